"""The search page in a real browser: by keyboard, by key, on a phone, with hostile sources."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect, sync_playwright

from concordance.models import SearchRequest
from tests.http.conftest import OTHER, READS, Site
from tests.http.serving import client

CHROMIUM = shutil.which("chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
HOSTILE = "<img src=x onerror=\"window.hit='yes'\"><script>window.hit='yes'</script>"
PATIENCE = 20_000

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield opened
        opened.close()


class Seen:
    """A page, and what it did besides what it shows."""

    def __init__(self, page: Page, site: Site) -> None:
        self.page, self.site = page, site
        self.addresses: list[str] = []
        self.faults: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: self.addresses.append(request.url))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: self.faults.append(said.text) if "401" not in said.text
                and "404" not in said.text else None)  # fmt: skip

    def open(self, key: str | None = None, path: str = "/") -> Page:
        self.page.goto(f"{self.site.address}{path}")
        if key is not None:
            self.give(key)
            expect(self.page.locator("#covered")).to_contain_text("complete")
        return self.page

    def give(self, key: str) -> None:
        expect(self.page.locator("#key-dialog")).to_be_visible()
        self.page.keyboard.type(key)
        self.page.keyboard.press("Enter")

    def ask(self, text: str) -> None:
        self.page.fill("#text", text)
        self.page.keyboard.press("Enter")


@pytest.fixture
def seen(browser: Browser, site: Site) -> Iterator[Seen]:
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        looked = Seen(context.new_page(), site)
        yield looked
        # Whatever was done, nothing came from elsewhere, and nothing was forbidden by the policy.
        assert {address.split("/")[2] for address in looked.addresses} <= {site.address[7:]}
        assert looked.faults == []


def test_a_person_asks_by_keyboard_alone_and_opens_a_citation_at_its_lines(
    seen: Seen, site: Site
) -> None:
    page = seen.open(OTHER)
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("tea queue")
    page.keyboard.press("Enter")
    hits = site.other.search(SearchRequest(text="tea queue")).hits
    places = page.locator("#passages .place")
    expect(places).to_have_text([f"{hit.rank}. {hit.citation}" for hit in hits])
    expect(page.locator("#passages .passage")).to_have_text([hit.content for hit in hits])
    linked = [hit.origin.link for hit in hits if hit.origin.kind == "file"]
    assert linked
    assert all(link is not None and "#L" in link for link in linked)
    found = page.locator("#passages .place a").evaluate_all("all => all.map(a => a.href)")
    assert found == linked
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    step = 1 + next(n for n, hit in enumerate(hits) if hit.origin.kind == "file")
    for _ in range(step):
        page.keyboard.press("j")
    expect(page.locator("#passages article").nth(step - 1)).to_be_focused()
    page.evaluate(
        "document.addEventListener('click', event => {"
        "  window.opened = event.target.href; event.preventDefault(); }, true)"
    )
    page.keyboard.press("Enter")
    assert page.evaluate("window.opened") == linked[0]
    page.keyboard.press("/")
    expect(page.locator("#text")).to_be_focused()


def test_a_key_is_asked_for_once_and_kept_in_the_tab_alone(seen: Seen) -> None:
    page = seen.open(path="/#text=tea")
    seen.give("a-wrong-key")
    expect(page.locator("#key-why")).to_contain_text("does not know that key")
    seen.give(READS)
    # What was asked in the address is answered then.
    expect(page.locator("#passages article").first).to_be_visible()
    page.reload()
    expect(page.locator("#passages article").first).to_be_visible()
    expect(page.locator("#key-dialog")).to_be_hidden()
    assert page.evaluate("Object.values(sessionStorage)") == [READS]
    assert page.evaluate("localStorage.length + document.cookie.length") == 0
    assert READS not in "".join([page.url, *seen.addresses])
    assert "tea" not in "".join(address.partition("#")[0] for address in seen.addresses)
    page.click("#forget")
    expect(page.locator("#key-dialog")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_every_filter_is_sent_and_kept_in_the_address(seen: Seen) -> None:
    page = seen.open(READS)
    seen.ask("queue")
    expect(page.locator("#passages article").first).to_be_visible()

    def sent(change: Callable[[], object]) -> dict[str, Any]:
        with page.expect_request(re.compile("/v1/search")) as asked:
            change()
        body: dict[str, Any] = json.loads(asked.value.post_data or "")
        return body

    assert sent(lambda: page.select_option("#project", "shop"))["projects"] == ["shop"]
    assert sent(lambda: page.check("[value=adr]"))["scopes"] == ["adr"]
    assert sent(lambda: page.select_option("#status", "unknown"))["adr_status"] == ["unknown"]
    assert sent(lambda: page.select_option("#hits", "5"))["top_k"] == 5
    expect(page.locator("#passages .place")).to_contain_text(["shop:docs/adr/0001-queue.md"])
    expect(page.locator("#filtered")).to_have_text("(3 set)")
    page.reload()
    expect(page.locator("#passages .place")).to_contain_text(["shop:docs/adr/0001-queue.md"])
    expect(page.locator("#project")).to_have_value("shop")
    assert sent(lambda: page.fill("#since", "2026-03-01"))["since"].startswith("2026-0")
    expect(page.locator("#empty")).to_contain_text("No passage is shown: ")
    expect(page.locator("#empty")).to_contain_text("Fewer filters may find more.")
    cleared = sent(lambda: page.click("button[type=reset]"))
    assert set(cleared) == {"text", "top_k"}
    assert cleared["text"] == "queue"


def test_an_empty_answer_says_why(seen: Seen, site: Site) -> None:
    page = seen.open(READS)
    seen.ask("???")
    reason = site.reader.search("???").empty_reason
    assert reason
    expect(page.locator("#empty p").first).to_have_text(f"No passage is shown: {reason}.")
    expect(page.locator("#passages article")).to_have_count(0)


def test_what_a_source_says_is_shown_as_text_and_limits_of_an_answer_above_it(
    seen: Seen, site: Site
) -> None:
    def hostile(value: Any) -> Any:
        if isinstance(value, dict):
            kept = ("kind", "scope", "state", "status", "occurred_at", "last_success")
            return {
                name: part if name in kept else HOSTILE if part is None else hostile(part)
                for name, part in value.items()
            }
        if isinstance(value, list):
            return [hostile(part) for part in value]
        return HOSTILE if isinstance(value, str) else value

    with client(site.address, READS) as plain:
        answer = plain.post("/v1/search", json={"text": "queue tea"}).json()
    changed = {**answer, "hits": hostile(answer["hits"]), "notes": [HOSTILE], "degraded": True}
    changed |= {"degraded_reason": HOSTILE, "freshness": hostile(answer["freshness"])}
    changed["freshness"][0]["state"] = "stale"
    for hit in changed["hits"]:
        if hit["origin"]["kind"] == "file":
            hit["origin"]["link"] = "javascript:window.hit='yes'"

    def fulfil(route: Route, _: Request) -> None:
        route.fulfill(json=changed)

    page = seen.open(READS)
    page.route("**/v1/search", fulfil)
    seen.ask("queue tea")
    expect(page.locator("#passages .passage").first).to_have_text(HOSTILE)
    limits = page.locator("#degraded p")
    expect(limits).to_have_count(3)
    expect(limits.nth(0)).to_have_text(f"Degraded: {HOSTILE}")
    expect(limits.nth(1)).to_contain_text("Beware: ")
    expect(limits.nth(2)).to_have_text(f"Note: {HOSTILE}")
    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main script, main a").count() == 0


def test_a_failure_is_told_in_its_words(seen: Seen) -> None:
    page = seen.open(READS)
    page.route(
        "**/v1/search",
        lambda route: route.fulfill(
            status=404,
            content_type="application/problem+json",
            json={"title": "There is no such project", "detail": "there is no project 'x'"},
        ),
    )
    seen.ask("tea")
    expect(page.locator("#failure")).to_contain_text("There is no such project")
    expect(page.locator("#failure")).to_contain_text("there is no project 'x'")


def test_coverage_is_seen_at_a_glance(seen: Seen, site: Site) -> None:
    page = seen.open(READS)
    covered = [one for one in site.reader.coverage() if one.state != "absent"]
    expect(page.locator("#covered")).to_have_text(
        f"{len(covered)} of {len(covered)} scopes complete"
    )
    expect(page.locator("#scopes tr")).to_have_count(len(covered))
    assert page.locator("#project option").all_inner_texts() == ["All", "laden", "shop"]


def test_it_is_readable_on_a_phone(browser: Browser, site: Site) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True) as context:
        phone = Seen(context.new_page(), site)
        page = phone.open(READS)
        phone.ask("tea")
        first = page.locator("#passages article").first
        expect(first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate("document.getElementById('coverage').open") is False
        box = first.bounding_box()
        assert box is not None
        assert box["y"] < 500
        assert page.locator("#text").evaluate("e => getComputedStyle(e).fontSize") >= "16px"
        assert phone.faults == []
