"""The tools: what they say, find and refuse, in process and over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from concordance.errors import DatabaseUnavailable, ProviderUnavailable
from concordance.mcp.rendering import QUOTED
from concordance.mcp.tools import TOOLS
from concordance.models import FileOrigin, SearchRequest, SessionOrigin
from tests.examples import DOCS, example, examples
from tests.fake_ollama_faults import Fault
from tests.http.conftest import OTHER, READS, Site
from tests.http.serving import client as plain_client
from tests.mcp.asking import TEA, ask, ask_over_http, failed, in_process, text_of
from tests.postgres.house import MARK

# --- what is said of them --------------------------------------------------------------------


def test_the_tools_say_what_they_take_and_give(site: Site) -> None:
    async def listed() -> tuple[Any, str | None]:
        async with in_process(site.reader) as asking:
            return (await asking.list_tools()).tools, asking.instructions

    tools, instructions = asyncio.run(listed())
    assert [tool.name for tool in tools] == ["search", "read_citation", "coverage", "explain"]
    assert instructions is not None
    assert "never instructions" in instructions
    for tool in tools:
        assert tool.annotations.read_only_hint
        for schema in (tool.input_schema, tool.output_schema):
            told = json.dumps(schema)
            assert schema["type"] == "object"
            assert "$ref" not in told
            assert '"title": "' not in told
            assert "null" not in told
        for name, field in tool.input_schema["properties"].items():
            assert field["description"], f"{tool.name} {name}"
        assert tool.input_schema["additionalProperties"] is False
    search = tools[0].input_schema
    assert search["required"] == ["text"]
    assert search["properties"]["scopes"]["items"]["enum"] == ["docs", "adr", "session"]
    assert search["properties"]["top_k"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": 5,
        "description": "Most passages.",
    }
    assert len(json.dumps([t.input_schema for t in tools])) < 4_000, "a model reads all of it"


# --- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"projects": ["shop"], "scopes": ["docs", "session"], "top_k": 3},
        {"since": "2026-03-01T10:01:00Z"},
        {"adr_status": ["unknown"], "path_prefix": "docs/adr/"},
    ],
)
def test_a_search_finds_what_the_plain_call_finds_in_the_same_order(
    site: Site, filters: dict[str, Any]
) -> None:
    asked = TEA | filters
    answer = site.reader.search(SearchRequest.model_validate(asked))
    (found,) = ask_over_http(site, READS, ("search", asked))
    said = found.structured_content
    assert [hit["citation"] for hit in said["hits"]] == [hit.citation for hit in answer.hits]
    assert [hit["quoted"] for hit in said["hits"]] == [hit.content for hit in answer.hits]
    assert [hit["score"] for hit in said["hits"]] == [round(h.score, 4) for h in answer.hits]
    for said_of, hit in zip(said["hits"], answer.hits, strict=True):
        # What a leg does not know is left out, and never written as zero.
        assert ("vector_score" in said_of) == (hit.vector_score is not None)
        assert ("lexical_score" in said_of) == (hit.lexical_score is not None)
    assert answer.hits
    assert said["searched"]["scopes"] == len(answer.freshness)
    assert sum(said["searched"]["states"].values()) == len(answer.freshness)


def test_answers_are_small_by_default_and_say_what_they_leave_out(site: Site) -> None:
    (short,) = ask(site.reader, ("search", TEA | {"characters": 40}))
    cut = [hit for hit in short.structured_content["hits"] if hit["cut"]]
    assert cut
    whole = {h.citation: h.content for h in site.reader.search(SearchRequest(**TEA)).hits}
    for hit in cut:
        content = whole[hit["citation"]]
        assert content.startswith(hit["quoted"])
        assert len(hit["quoted"]) + hit["cut"] == len(content)
        assert f"{hit['cut']} characters left out" in text_of(short)
    (read,) = ask(site.reader, ("read_citation", {"citation": cut[0]["citation"], "around": 0}))
    (part,) = read.structured_content["parts"]
    assert whole[cut[0]["citation"]] in part["quoted"]
    (five,) = ask(site.reader, ("search", {"text": "tea", "threshold": 0}))
    assert len(five.structured_content["hits"]) == 5


def test_text_of_sources_is_marked_on_every_line(site: Site) -> None:
    calls: Sequence[tuple[str, dict[str, Any]]] = [
        ("search", TEA),
        ("read_citation", {"citation": "shop:docs/guide.md:1-3", "around": 200}),
        ("read_citation", {"citation": "shop:session talk#talk-0", "around": 5}),
        ("explain", {"project": "shop", "path": "docs/guide.md"}),
    ]
    for result in ask(site.reader, *calls):
        text = text_of(result)
        assert QUOTED in text
        ours = [line for line in text.splitlines() if not line.startswith(">")]
        assert [
            line for line in ours if "kettle" in line or "guide" in line or "Boil" in line
        ] == []


def test_a_citation_is_read_with_what_is_around_it(site: Site) -> None:
    answer = site.reader.search(SearchRequest(text="boil the water", threshold=0))
    of_file = next(h for h in answer.hits if isinstance(h.origin, FileOrigin))
    of_session = next(h for h in answer.hits if isinstance(h.origin, SessionOrigin))
    lines, turn = ask_over_http(
        site,
        READS,
        ("read_citation", {"citation": of_file.citation}),
        ("read_citation", {"citation": of_session.citation}),
    )
    said = lines.structured_content
    assert said["citation"] == of_file.citation
    cited = next(part for part in said["parts"] if part["cited"])
    assert cited["quoted"] == of_file.content
    assert f"> {cited['start_line']}: {of_file.content.splitlines()[0]}" in text_of(lines)
    said = turn.structured_content
    assert said["citation"] == of_session.citation
    assert [part["cited"] for part in said["parts"]].count(True) == 1
    assert of_session.content in [part["quoted"] for part in said["parts"] if part["cited"]]
    assert len(said["parts"]) > 1


def test_coverage_and_explanations_are_those_of_the_plain_calls(site: Site) -> None:
    covered, explained, absent = ask_over_http(
        site,
        READS,
        ("coverage", {}),
        ("explain", {"project": "shop", "path": "docs/guide.md"}),
        ("explain", {"project": "shop", "path": "docs/nowhere.md"}),
    )
    plain = site.reader.coverage()
    said = covered.structured_content
    assert said["scopes"] == len(plain)
    assert {(c["project"], c["scope"], c["chunks"]) for c in said["coverage"]} == {
        (c.project, c.scope, c.chunks) for c in plain
    }
    told = site.house.owner.explain("shop", "docs/guide.md")
    assert explained.structured_content["verdict"] == told.verdict
    assert explained.structured_content["chunks"] == told.chunks > 0
    assert explained.structured_content["commit"] == told.commit
    assert "chunks_refused" not in explained.structured_content, "a reader is not told"
    assert not absent.structured_content["in_index"]
    assert not absent.is_error
    (few,) = ask(site.reader, ("coverage", {"limit": 2}))
    assert len(few.structured_content["coverage"]) == 2
    assert few.structured_content["left_out"] == len(plain) - 2


def test_a_degraded_answer_says_so(site: Site) -> None:
    site.house.provider.rule = lambda _: Fault.status(503)
    try:
        (found,) = ask(site.reader, ("search", TEA))
    finally:
        site.house.provider.rule = None
        site.reader.reset_breaker()
    assert "words alone" in found.structured_content["degraded"]
    assert "\nDegraded: words alone" in text_of(found)


# --- failures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("search", {}, "text: Field required"),
        ("search", {"text": "tea", "top_k": 101}, "top_k: "),
        ("search", {"text": "tea", "scopes": ["mail"]}, "scopes.0: "),
        ("search", {"text": "tea", "since": "2026-03-01T10:00:00"}, "since: "),
        ("search", {"text": "tea", "top_n": 3}, "top_n: "),
        ("search", {"text": "tea", "projects": ["nobody"]}, "no project"),
        ("read_citation", {"citation": "see the guide"}, "no citation"),
        ("read_citation", {"citation": "shop:docs/guide.md:9-1"}, "lines 9-1"),
        ("read_citation", {"citation": "shop:docs/guide.md:1-2", "around": 999}, "around: "),
        ("read_citation", {"citation": "shop:docs/nowhere.md:1-2"}, "docs/nowhere.md"),
        ("read_citation", {"citation": "shop:docs/guide.md:1-2@0123456789ab"}, "0123456789ab"),
        ("read_citation", {"citation": "shop:session talk#nothing"}, "no such turn"),
        ("explain", {"project": "nobody", "path": "a"}, "no project"),
    ],
)
def test_a_failure_names_what_can_t_be_used(
    site: Site, tool: str, given: dict[str, Any], said: str
) -> None:
    for result in (*ask(site.reader, (tool, given)), *ask_over_http(site, READS, (tool, given))):
        assert said in failed(result)


def test_an_unknown_tool_is_an_error_of_the_protocol(site: Site) -> None:
    async def asked() -> None:
        async with in_process(site.reader) as asking:
            with pytest.raises(MCPError, match="the tools are: search"):
                await asking.call_tool("delete", {})

    asyncio.run(asked())


class Failing:
    """Stands where the index does, and fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def search(self, _: SearchRequest) -> None:
        raise self._error


def test_what_only_the_operator_can_mend_is_told_to_the_operator(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    index: Any = Failing(DatabaseUnavailable("Postgres at db.example.org is away"))
    assert "db.example.org" in failed(*ask(index, ("search", TEA)))
    index = Failing(ProviderUnavailable("the provider refused"))
    assert "the provider refused" in failed(*ask(index, ("search", TEA)))
    index = Failing(RuntimeError("password=hunter2"))
    told = failed(*ask(index, ("search", TEA)))
    assert told == "A fault of this program; the cause is in its log"
    assert "hunter2" in caplog.text


# --- tenants ---------------------------------------------------------------------------------


def test_no_key_shows_anything_of_another_tenant(site: Site) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search", {"text": f"{MARK} tea kettle", "threshold": 0, "top_k": 100}),
        ("coverage", {}),
        ("coverage", {"projects": ["vault"]}),
        ("explain", {"project": "vault", "path": f"docs/{MARK}.md"}),
        ("read_citation", {"citation": f"vault:docs/{MARK}.md:1-3"}),
        ("read_citation", {"citation": f"vault:session {MARK}#{MARK}-0"}),
    ]
    mine = ask_over_http(site, OTHER, *calls)
    assert [r.is_error for r in mine] == [False] * len(calls)
    theirs = ask_over_http(site, READS, *calls)
    assert [r.is_error for r in theirs] == [False, False, True, True, True, True]
    shown = [json.dumps(r.structured_content) + text_of(r) for r in theirs[:2]]
    assert [text for text in shown if MARK in text or "vault" in text] == []
    nobody = [(name, json.loads(json.dumps(g).replace("vault", "nobody"))) for name, g in calls]
    for told, same in zip(theirs[2:], ask_over_http(site, READS, *nobody)[2:], strict=True):
        assert text_of(told).replace("vault", "…") == text_of(same).replace("nobody", "…")


def test_without_a_known_key_nothing_is_answered(site: Site) -> None:
    for key in (None, "key-of-nobody"):
        with plain_client(site.address, key) as asking:
            refused = asking.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert refused.status_code == 401
        assert refused.json()["type"] == "urn:concordance:problem:no-key"


# --- the documentation -----------------------------------------------------------------------


def test_the_examples_of_the_documentation_work(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("KEY", READS), ("ADDRESS", f"{site.address}/mcp"), ("NO_PROXY", "*")):
        monkeypatch.setenv(name, value)
    job = example("mcp.md", "python").replace("how is a backup restored?", "tea water")
    exec(compile(job, "mcp.md", "exec"), {"__name__": "job"})  # noqa: S102
    assert "shop:" in capsys.readouterr().out
    for block in examples("mcp.md", "json"):
        assert set(json.loads(block)["mcpServers"]) == {"concordance"}
    page = (DOCS / "mcp.md").read_text("utf-8")
    for tool in TOOLS.values():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{tool.name}` |"))
        assert [name for name in tool.taken.model_fields if f"`{name}`" not in row] == []
