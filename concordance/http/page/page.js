// The search page: asks this server, and shows what it says. Every text that comes from a source
// is set as text; only links whose address is http or https are links.
"use strict";

const KEY = "concordance-key";
const SETTLED = new Set(["complete", "absent"]);
const SCOPES = { docs: "docs", adr: "decisions", session: "sessions" };
const at = (id) => document.getElementById(id);
let pending = null;
let again = null;

// --- small parts ---------------------------------------------------------------------------

function made(name, text, kind) {
  const element = document.createElement(name);
  if (text !== undefined && text !== null) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

function linked(text, address) {
  let link = null;
  try {
    const parsed = new URL(address);
    if (parsed.protocol === "https:" || parsed.protocol === "http:") link = parsed.href;
  } catch {
    // It has no address, or one that is none: the text stands alone.
  }
  if (link === null) return made("span", text);
  const anchor = made("a", text);
  anchor.href = link;
  anchor.target = "_blank";
  anchor.rel = "noopener noreferrer";
  return anchor;
}

function moment(text) {
  const time = made("time", new Date(text).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }));
  time.dateTime = text;
  return time;
}

function age(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];
  for (const [length, unit] of units) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit} ago`;
  }
  return "just now";
}

function counted(number, one, many) {
  return `${number} ${number === 1 ? one : many}`;
}

function show(element, ...parts) {
  element.replaceChildren(...parts);
  element.hidden = parts.length === 0;
}

// --- asking --------------------------------------------------------------------------------

async function asked(path, options = {}) {
  const key = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  if (response.ok) return response.json();
  if (response.status === 401) {
    sessionStorage.removeItem(KEY);
    wantKey(key !== null);
  }
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // Something between here and the server answered.
  }
  const error = new Error(problem.detail || `The server answered ${response.status}`);
  error.title = problem.title || "It did not work";
  error.status = response.status;
  throw error;
}

function request() {
  const form = at("ask");
  const scopes = [...form.querySelectorAll("[name=scope]:checked")].map((box) => box.value);
  const body = { text: form.text.value, top_k: Number(form.hits.value) };
  if (form.project.value) body.projects = [form.project.value];
  if (scopes.length > 0) body.scopes = scopes;
  if (form.status.value) body.adr_status = [form.status.value];
  if (form.since.value) body.since = new Date(`${form.since.value}T00:00:00`).toISOString();
  return body;
}

async function search() {
  const body = request();
  if (!body.text.trim()) return;
  remember();
  pending?.abort();
  const mine = new AbortController();
  pending = mine;
  again = search;
  at("answer").classList.add("waiting");
  try {
    const answer = await asked("/v1/search", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: mine.signal,
    });
    showAnswer(answer);
  } catch (error) {
    if (!mine.signal.aborted) showFailure(error);
  } finally {
    if (pending === mine) at("answer").classList.remove("waiting");
  }
}

async function cover() {
  try {
    const report = await asked("/v1/coverage");
    showCoverage(report);
    at("forget").hidden = sessionStorage.getItem(KEY) === null;
  } catch (error) {
    at("covered").textContent = error.status === 401 ? "" : error.message;
  }
}

// --- the answer ----------------------------------------------------------------------------

function clear() {
  for (const id of ["failure", "degraded", "empty"]) show(at(id));
  at("passages").replaceChildren();
  at("summary").textContent = "";
}

function showFailure(error) {
  clear();
  if (error.status === 401) return;
  const network = error.status === undefined;
  show(
    at("failure"),
    made("p", network ? "The server can't be reached" : error.title),
    made("p", network ? "Try again in a moment." : error.message),
  );
}

function showAnswer(answer) {
  clear();
  const sure = `${Math.round(answer.confidence * 100)} %`;
  const took = `${Math.round(answer.milliseconds.total)} ms`;
  const found = counted(answer.hits.length, "passage", "passages");
  at("summary").textContent = answer.hits.length
    ? `${found}, ${sure} sure that the answer is here, ${took}`
    : `No passage, ${took}`;
  showLimits(answer);
  if (answer.hits.length === 0) {
    const advice = [];
    if (filtersSet() > 0) advice.push("Fewer filters may find more.");
    show(at("empty"), made("p", `No passage is shown: ${answer.empty_reason}.`), ...advice.map((line) => made("p", line, "hint")));
  }
  at("passages").replaceChildren(...answer.hits.map(passage));
  for (const text of document.querySelectorAll(".passage")) cut(text);
}

function showLimits(answer) {
  const lines = [];
  if (answer.degraded) lines.push(made("p", `Degraded: ${answer.degraded_reason}`));
  const shaky = answer.freshness.filter((one) => !SETTLED.has(one.state));
  for (const one of shaky.slice(0, 5)) {
    lines.push(made("p", `Beware: ${one.project}, ${SCOPES[one.scope]}: ${one.state.replace("_", " ")}, ${one.reason}`));
  }
  if (shaky.length > 5) lines.push(made("p", `Beware: ${shaky.length - 5} more scopes, see the coverage`));
  for (const note of answer.notes) lines.push(made("p", `Note: ${note}`));
  show(at("degraded"), ...lines);
}

function citation(hit) {
  const place = hit.origin;
  if (place.kind === "session") return `${hit.project}:session ${place.session_id}#${place.event_id}`;
  return `${hit.project}:${place.path}:${place.start_line}-${place.end_line}@${place.commit.slice(0, 12)}`;
}

function passage(hit) {
  const item = made("li");
  const article = made("article");
  article.tabIndex = -1;
  const where = made("p", undefined, "place");
  const address = hit.origin.kind === "session" ? null : hit.origin.link;
  where.append(made("span", `${hit.rank}. `), linked(citation(hit), address));
  const text = made("pre", hit.content, "passage");
  article.setAttribute("aria-label", `Passage ${hit.rank}`);
  article.append(where, facts(hit), text);
  item.append(article);
  return item;
}

function facts(hit) {
  const line = made("div", undefined, "facts");
  const place = hit.origin;
  line.append(made("span", SCOPES[hit.scope], "tag"));
  if (place.record) line.append(...record(place.record));
  const names = place.kind === "file" ? place.heading_path : [place.title, place.speaker];
  const path = [...new Set(names.filter(Boolean))].join(" › ");
  if (path) line.append(made("span", path, "path"));
  if (place.occurred_at) line.append(moment(place.occurred_at));
  if (place.commit_link) line.append(linked(`commit ${place.commit.slice(0, 12)}`, place.commit_link));
  const sure = made("span", undefined, "sure");
  const meter = made("meter");
  meter.value = hit.confidence;
  meter.setAttribute("aria-hidden", "true");
  sure.append(meter, made("span", `${Math.round(hit.confidence * 100)} % sure`));
  line.append(sure);
  return line;
}

function record(state) {
  const kinds = { accepted: "good", superseded: "warn", deprecated: "warn", rejected: "bad" };
  const parts = [];
  if (state.status !== "unknown") parts.push(made("span", state.status, `tag ${kinds[state.status] || ""}`));
  if (state.superseded_by.length > 0) {
    const names = state.superseded_by.map((one) => one.title || one.path).join(", ");
    parts.push(made("span", `replaced by ${names}`));
  }
  if (state.date) parts.push(made("span", state.date));
  return parts;
}

function cut(text) {
  text.classList.add("cut");
  // A few lines more than fit are no reason for a button.
  if (text.scrollHeight <= text.clientHeight + 96) {
    text.classList.remove("cut");
    return;
  }
  const more = made("button", "Show all of it", "more");
  more.type = "button";
  more.setAttribute("aria-expanded", "false");
  more.addEventListener("click", () => {
    const short = text.classList.toggle("cut");
    more.textContent = short ? "Show all of it" : "Show less";
    more.setAttribute("aria-expanded", String(!short));
  });
  text.after(more);
}

// --- coverage ------------------------------------------------------------------------------

function showCoverage(report) {
  const known = report.coverage.filter((one) => one.state !== "absent");
  const good = known.filter((one) => one.state === "complete").length;
  at("covered").textContent = known.length
    ? `${good} of ${counted(known.length, "scope", "scopes")} complete`
    : "nothing is indexed yet";
  const now = new Date(report.as_of).getTime();
  const order = [...known].sort((a, b) => (a.state === "complete") - (b.state === "complete"));
  at("scopes").replaceChildren(...order.map((one) => covered(one, now)));
  at("as-of").replaceChildren("As of ", moment(report.as_of));
  at("coverage").open = window.matchMedia("(min-width: 861px)").matches;
  const chosen = at("project").value || wanted.get("project") || "";
  const slugs = [...new Set(report.coverage.map((one) => one.project))];
  at("project").replaceChildren(new Option("All", ""), ...slugs.map((slug) => new Option(slug, slug)));
  at("project").value = slugs.includes(chosen) ? chosen : "";
  countFilters();
}

function covered(one, now) {
  const row = made("tr");
  const state = made("td");
  const kind = one.state === "complete" ? "good" : one.state === "failed" ? "bad" : "warn";
  state.append(made("span", one.state.replace("_", " "), `tag ${kind}`));
  if (one.state !== "complete") state.append(made("span", one.reason, "why"));
  const last = made("td");
  if (one.last_success) {
    const when = moment(one.last_success);
    when.className = "why";
    last.append(made("span", age((now - new Date(one.last_success).getTime()) / 1000)), when);
  } else {
    last.textContent = "never";
  }
  const which = made("th");
  which.scope = "row";
  which.append(made("span", one.project), made("span", SCOPES[one.scope], "why"));
  row.append(which, state, last);
  return row;
}

// --- keys, filters, the address --------------------------------------------------------------

function wantKey(wrong) {
  if (at("key-dialog").open && !wrong) return;
  at("key-why").textContent = wrong
    ? "The server does not know that key. Enter the one that you were given."
    : "Enter the key that you were given. It is kept in this tab alone.";
  at("forget").hidden = true;
  if (!at("key-dialog").open) at("key-dialog").showModal();
}

function filtersSet() {
  const form = at("ask");
  const scopes = form.querySelectorAll("[name=scope]:checked").length > 0;
  return [form.project.value, scopes, form.status.value, form.since.value].filter(Boolean).length;
}

function countFilters() {
  const set = filtersSet();
  at("filtered").textContent = set ? `(${set} set)` : "";
}

// The question stands behind the `#`, which is not sent: a link to it is kept from the server's log.
let wanted = new URLSearchParams(location.hash.slice(1));

function remember() {
  const form = at("ask");
  const kept = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value && !(name === "hits" && value === "10")) kept.append(name, value);
  }
  wanted = kept;
  if (`#${kept}` !== location.hash) history.pushState(null, "", `#${kept}`);
}

function restore() {
  wanted = new URLSearchParams(location.hash.slice(1));
  const form = at("ask");
  form.text.value = wanted.get("text") || "";
  form.project.value = wanted.get("project") || "";
  form.status.value = wanted.get("status") || "";
  form.since.value = wanted.get("since") || "";
  form.hits.value = wanted.get("hits") || "10";
  for (const box of form.querySelectorAll("[name=scope]")) {
    box.checked = wanted.getAll("scope").includes(box.value);
  }
  countFilters();
}

function step(by) {
  const all = [...document.querySelectorAll("#passages article")];
  if (all.length === 0) return;
  const now = all.indexOf(document.activeElement?.closest("article"));
  const next = all[Math.min(Math.max(now + by, 0), all.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || at("key-dialog").open) return;
  const writing = event.target.matches("input:not([type=checkbox]), select");
  if (event.key === "Escape") {
    at("text").focus();
  } else if (!writing && event.key === "/") {
    at("text").focus();
    at("text").select();
    event.preventDefault();
  } else if (!writing && (event.key === "j" || event.key === "k")) {
    step(event.key === "j" ? 1 : -1);
  } else if (event.key === "Enter" && event.target.matches("article")) {
    event.target.querySelector(".place a")?.click();
  }
}

function begin() {
  at("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  at("filters").addEventListener("change", () => {
    countFilters();
    search();
  });
  at("ask").addEventListener("reset", (event) => {
    event.preventDefault();
    const text = at("text").value;
    const form = at("ask");
    form.project.value = form.status.value = form.since.value = "";
    for (const box of form.querySelectorAll("[name=scope]")) box.checked = false;
    at("text").value = text;
    countFilters();
    search();
  });
  at("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, at("key").value.trim());
    at("key").value = "";
    at("key-dialog").close();
    cover();
    if (again) again();
    at("text").focus();
  });
  at("forget").addEventListener("click", () => {
    sessionStorage.removeItem(KEY);
    location.reload();
  });
  document.addEventListener("keydown", pressed);
  window.addEventListener("popstate", () => {
    restore();
    if (at("text").value) search();
    else clear();
  });
  restore();
  // On a phone the answer comes first, whatever filters are set: their number is shown.
  at("filters").open = window.matchMedia("(min-width: 861px)").matches;
  cover().then(() => {
    if (at("text").value) search();
  });
}

begin();
