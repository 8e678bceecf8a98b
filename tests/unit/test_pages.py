"""Pages of coverage and of answers: what they say, how large they get, and what they obey."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from concordance import answer_page as answers
from concordance import coverage_page as pages
from concordance.answer_page import answer_page
from concordance.coverage_page import coverage_page, table_rows
from concordance.escaping import block, linked, one_line, verbatim
from concordance.indexing.outcome import Outcome, Verdict
from concordance.models import (
    CoverageState,
    RecordName,
    RecordState,
    Scope,
    ScopeCoverage,
    ScopeFreshness,
)
from concordance.problems import Account, FailedFile
from concordance.text.decoding import Unreadable, decode, line_of
from tests.unit.cli.test_printing import FILE, TURN, answer, coverage, hit

NOW = datetime(2026, 12, 1, 2, 31, tzinfo=UTC)
GOOD = Verdict(Outcome.COMPLETE, "1 project, 12 chunks, all with a vector")
HOSTILE = [
    "x<img src=https://evil.example onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![i](//evil.example/p)",
    "a`b](https://evil.example)`c",
    "``` \n# heading\n```\n| b |\n",
    "<script>alert(1)</script>",
    "https://evil.example www.evil.example mail@evil.example",
    "\\`\\|\\[x](y) | cell | <b>",
    "~~~\n<b>\n~~~\n    <b>\n* * *\n\n[x]: https://evil.example",
    "\x1b[2J\u202egnp.exe\x00\ud800",
    "&lt;b&gt; &#x3c;b&#x3e; $$x$$ :smile: [^1]",
]


def account(*covered: ScopeCoverage, **more: Any) -> Account:
    values: dict[str, Any] = {"now": NOW, "never": (), "failed": (), "failed_elsewhere": 0}
    return Account(covered=covered, **(values | more))


def tokens(page: str) -> list[Token]:
    """What a renderer makes of a page, inner tokens as well."""
    found = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(page)
    return [inner for token in found for inner in (token, *(token.children or ()))]


def texts(page: str) -> str:
    """All that stands on a page outside of code: what a renderer could still make a link of."""
    return "\n".join(t.content for t in tokens(page) if t.type == "text")


def hostile_pages(text: str) -> list[str]:
    scope = coverage(CoverageState.STALE, project=text, reason=text, embedding_error=text)
    record = RecordState(
        status="superseded",  # type: ignore[arg-type]
        status_text=text,
        date=None,
        superseded_by=(RecordName(path=text, title=text),),
    )
    file = FILE.model_copy(
        update={
            "path": text,
            "title": text,
            "heading_path": (text, text),
            "link": None,
            "record": record,
        }
    )
    turn = TURN.model_copy(update={"session_id": text, "title": text, "speaker": text})
    request = answer().request.model_copy(update={"text": text})
    found = answer(hit(file, text), hit(turn, text)).model_copy(
        update={
            "request": request,
            "degraded": True,
            "degraded_reason": text,
            "empty_reason": text,
            "notes": (text, text),
            "model": text,
            "freshness": (
                ScopeFreshness(
                    project=text,
                    scope=Scope.DOCS,
                    state=CoverageState.STALE,
                    reason=text,
                    indexed_commit=text,
                    last_success=NOW,
                    age_seconds=1.0,
                    chunks=1,
                    chunks_with_vector=1,
                ),
            ),
        }
    )
    told = account(
        scope,
        scope.model_copy(update={"state": CoverageState.COMPLETE, "indexed_commit": text}),
        never=(text,),
        failed=(FailedFile(text, "docs", text, text, None),),
    )
    return [answer_page(found), coverage_page(told, Verdict(Outcome.FAILED, text))]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_source_is_obeyed_by_a_page(text: str) -> None:
    plain = [[(t.type, t.tag) for t in tokens(p) if t.type != "text"] for p in hostile_pages("a")]
    for page, shape in zip(hostile_pages(text), plain, strict=True):
        found = tokens(page)
        assert [(t.type, t.tag) for t in found if t.type != "text"] == shape
        assert not {t.type for t in found} & {"html_block", "html_inline", "image", "link_open"}
        assert not re.search(r"https?:|www\.|evil|@", texts(page)), "nothing to make a link of"
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", page)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_link_leads_where_it_should_and_shows_what_it_should(text: str) -> None:
    page = linked(text, f"https://git.example.org/blob/a) (b[{text}]")
    (start,) = [t for t in tokens(page) if t.type == "link_open"]
    assert str(start.attrs["href"]).startswith("https://git.example.org/blob/a%29%20%28b%5B")
    assert [t.type for t in tokens(page) if t.type not in ("text", "inline")] == [
        "paragraph_open",
        "link_open",
        "code_inline",
        "link_close",
        "paragraph_close",
    ]
    assert linked("docs/a_b.md:1-2@01", "https://g.org") == "[docs/a_b.md:1-2@01](https://g.org)"
    for address in ("javascript:alert(1)", "//evil.example", "data:text/html,x", None):
        assert linked("a", address) == "`a`"


@pytest.mark.parametrize("text", HOSTILE)
def test_a_passage_stands_as_it_is(text: str) -> None:
    (fence,) = [t for t in tokens(block(f"{text}\nend", most=500)) if t.type == "fence"]
    assert fence.content.endswith("\nend\n")
    assert fence.content.count("`") == text.count("`")
    assert verbatim("") == "–"
    assert len(one_line("ä" * 999, most=50)) == 50


def test_a_page_says_what_is_fresh_what_is_not_why_and_since_when() -> None:
    page = coverage_page(
        account(
            coverage(project="lamp", last_success=NOW - timedelta(hours=3)),
            coverage(
                CoverageState.STALE,
                project="shade",
                reason="the last attempt failed, older rows stay: no route",
                last_success=NOW - timedelta(days=4),
                embedding_error="Ollama can't be reached",
            ),
            coverage(CoverageState.FAILED, project="bulb", scope=Scope.ADR, last_success=None),
            never=("new",),
            failed=(FailedFile("lamp", "docs", "docs/a.md", "not UTF-8", "https://g.org/a#L3"),),
            failed_elsewhere=7,
        ),
        Verdict(Outcome.FAILED, "1 of 3 projects failed"),
    )
    assert "As of **2026-12-01 02:31 UTC**" in page
    assert "| `lamp` | docs | 2026-11-30 23:31 UTC (3 h ago) | `0123456789ab` |" in page
    assert "`docs` of `shade`: **stale**, last up to date 2026-11-27 02:31 UTC (4 d ago), " in page
    assert "`the last attempt failed, older rows stay: no route`" in page
    assert "`adr` of `bulb`: **failed**, last up to date never" in page
    assert page.index("of `bulb`") < page.index("of `shade`"), "the worst first"
    assert "> **Degraded**" in page
    assert "> `Ollama can't be reached`" in page
    assert "1 project never indexed: `new`" in page
    assert "[docs/a.md](https://g.org/a#L3) (docs of `lamp`): `not UTF-8`" in page
    assert "7 more files failed" in page
    assert "| stale | 1 | 0 | 0 |" in page


def test_a_page_with_nothing_on_it_says_so() -> None:
    page = coverage_page(account(never=("lamp",)), Verdict(Outcome.FAILED, "lamp (never indexed)"))
    assert "Nothing is indexed." in page
    assert "Degraded" not in page


@pytest.mark.parametrize("state", [CoverageState.COMPLETE, CoverageState.FAILED])
@pytest.mark.parametrize("long", [False, True])
def test_pages_and_tables_of_two_thousand_projects_keep_their_size(
    state: CoverageState, long: bool
) -> None:
    name = "p-{:04}" + "x" * (57 if long else 0)
    slugs = [name.format(n) for n in range(2_000)]
    reason = "ä" * 5_000 if long else "as it should be"
    told = account(
        *(
            coverage(state, project=slug, scope=scope, reason=reason, last_success=NOW)
            for slug in slugs
            for scope in Scope
        ),
        never=slugs,
        failed=tuple(FailedFile(s, "docs", f"{s}/{reason}", reason, None) for s in slugs[:400]),
    )
    page = coverage_page(told, Verdict(Outcome.FAILED, "; ".join(slugs)))
    assert len(page.encode()) <= pages.PAGE_BYTES
    row = re.compile(
        r"^(?:\| `p-.* \| (?:docs|adr|session) \| 2026|\* `\w+` of `p-.*failed)", re.MULTILINE
    )
    shown = len(row.findall(page))
    rest = rf"^([\d,]+) more scopes are not shown: \1 {state.value}, in `p-"
    (left,) = re.findall(rest, page, re.MULTILINE)
    assert shown + int(left.replace(",", "")) == 6_000
    for scope in Scope:
        rows, said = table_rows(told, scope)
        assert len(json.dumps(rows, ensure_ascii=False).encode()) <= pages.TABLE_BYTES
        if len(rows) < 2_000:
            assert f"{2_000 - len(rows):,} more scopes are not shown" in said
            assert f"`{slugs[len(rows)]}`" in said, "and named"


def test_an_answer_has_links_scores_and_what_limits_it() -> None:
    file = FILE.model_copy(update={"link": "https://g.org/blob/0/docs/a.md?plain=1#L1-3"})
    found = answer(hit(file, "Lamps speak `MQTT`.")).model_copy(
        update={"degraded": True, "degraded_reason": "words alone were searched: no provider"}
    )
    page = answer_page(found)
    assert "`](https://g.org/blob/0/docs/a.md?plain=1#L1-3)\n" in page
    assert "## 1. [`a:docs/" in page
    assert "> **Degraded**: `words alone were searched: no provider`" in page
    assert f"| {found.hits[0].confidence:.2f} | {found.hits[0].score:.4f} |" in page
    assert "```text\nLamps speak `MQTT`.\n```" in page


def test_an_empty_answer_says_why() -> None:
    found = answer().model_copy(
        update={
            "empty_reason": "no passage holds any of the words",
            "cut_by_threshold": 4,
            "fusion_parameters": {"threshold": 0.1},
        }
    )
    page = answer_page(found)
    assert "> **Nothing was found**: `no passage holds any of the words`" in page
    assert "4 passages below the threshold of 0.10" in page


def test_an_answer_of_a_hundred_large_passages_keeps_its_size() -> None:
    hits = [hit(FILE, "ä`" * 6_000).model_copy(update={"rank": rank}) for rank in range(1, 101)]
    page = answer_page(answer(*hits))
    assert len(page.encode()) <= answers.PAGE_BYTES + 20_000
    shown = page.count("\n## ") - 1 - page.count("## What was searched")
    assert f"## {100 - shown} more hits, for which the page has no room" in page
    assert page.count(verbatim(hits[0].citation)) == 100, "each is named"


def test_the_line_of_a_file_that_is_not_utf_8_is_known() -> None:
    found = decode(b"# A\n\nfine\n\xb2\xe2\n")
    assert isinstance(found, Unreadable)
    assert line_of(found.reason) == 4
    assert line_of("looks like a binary file: 20 NUL characters") is None
