"""What commands print: pages for a terminal, and JSON for a program."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from typing import Any

import pytest

from concordance.cli.printing import (
    SHOWN_LINES,
    print_answer,
    print_coverage,
    print_explanation,
    print_json,
    workplace,
)
from concordance.models import (
    AdrStatus,
    Answer,
    CoverageState,
    DocumentStatus,
    Explanation,
    FileOrigin,
    Fusion,
    Hit,
    Origin,
    RecordName,
    RecordState,
    Scope,
    ScopeCoverage,
    ScopeFreshness,
    SearchRequest,
    SessionOrigin,
)
from tests.unit.cli.terminal import LINK, NOW, OBEYED, shown


def coverage(state: CoverageState = CoverageState.COMPLETE, **more: Any) -> ScopeCoverage:
    values: dict[str, Any] = {
        "project": "a",
        "scope": Scope.DOCS,
        "state": state,
        "reason": "why",
        "found": 3,
        "indexed": 2,
        "empty": 0,
        "failed": 1,
        "skipped": 0,
        "chunks": 12_345,
        "chunks_with_vector": 12_000,
        "chunks_refused": 0,
        "model": "m",
        "indexed_commit": "0123456789abcdef",
        "remote_commit": "0123456789abcdef",
        "last_attempt": NOW,
        "last_success": NOW - timedelta(hours=3),
        "last_complete": None,
    }
    return ScopeCoverage(**(values | more))


def hit(origin: Origin, content: str = "text", rank: int = 1) -> Hit:
    return Hit(
        rank=rank,
        score=0.9,
        confidence=0.71,
        lexical_score=None,
        lexical_rank=None,
        vector_score=0.71,
        vector_rank=1,
        project="a",
        scope=Scope.DOCS,
        content=content,
        origin=origin,
    )


FILE = FileOrigin(
    path=f"docs/{LINK}.md",
    title="T",
    heading_path=("T", "\x1b[2J"),
    start_line=3,
    end_line=9,
    commit="0123456789abcdef0123456789abcdef01234567",
    link="https://example.org/\x9dx",
)
TURN = SessionOrigin(
    session_id="s\x1b",
    event_id="e",
    last_event_id="e",
    title=None,
    speaker="agent",
    occurred_at=NOW,
    source="log",
)


def answer(*hits: Hit, **more: Any) -> Answer:
    values: dict[str, Any] = {
        "request": SearchRequest(text="q"),
        "hits": hits,
        "confidence": 0.71,
        "vector_available": True,
        "degraded": False,
        "degraded_reason": None,
        "empty_reason": None,
        "model": "m",
        "fusion": Fusion.CONVEX,
        "fusion_parameters": {},
        "lexical_ranking": "bm25",
        "candidates": 20,
        "cut_by_threshold": 4,
        "milliseconds": {"total": 12.4},
        "as_of": NOW,
        "freshness": (),
    }
    return Answer(**(values | more))


def test_coverage_shows_each_scope_and_ends_with_the_absent_ones() -> None:
    page = shown(
        print_coverage,
        [
            coverage(CoverageState.PARTIAL, reason="[red]x[/red]\x1b"),
            coverage(project="b"),
            coverage(CoverageState.ABSENT, project="z", scope=Scope.SESSION),
        ],
        now=NOW,
    )
    for part in ("complete", "2/3", "12,345", "12,000", "0123456789ab", "3 h ago"):
        assert part in page
    assert "a docs: [red]x[/red]\ufffd\n" in page
    assert "b docs: " not in page
    assert page.rstrip().endswith("Absent: z session")
    assert not OBEYED.search(page)


@pytest.mark.parametrize("state", [s for s in CoverageState if s is not CoverageState.ABSENT])
def test_every_state_has_its_row(state: CoverageState) -> None:
    assert state.value in shown(print_coverage, [coverage(state)], now=NOW)


def test_the_marker_of_session_logs_is_no_commit() -> None:
    page = shown(
        print_coverage, [coverage(scope=Scope.SESSION, indexed_commit="logs-0123456789")], now=NOW
    )
    assert "logs-" not in page


def test_hits_are_shown_with_their_citation_and_first_lines() -> None:
    many = "\n".join(f"line {n}" for n in range(1, SHOWN_LINES + 4))
    page = shown(print_answer, answer(hit(FILE, many), hit(TURN, "said\x1b[1A", rank=2)))
    assert ".md:3-9@0123456789ab\n" in page
    assert "confidence 0.71" in page
    assert "a:session s\ufffd#e" in page
    assert "agent, 2026-03-01 12:00 UTC" in page
    assert re.search(rf"^  > line {SHOWN_LINES} *$", page, re.MULTILINE)
    assert f"line {SHOWN_LINES + 1}" not in page
    assert "--full shows the whole passage" in page
    assert f"line {SHOWN_LINES + 3}" in shown(print_answer, answer(hit(FILE, many)), full=True)
    assert "2 hits of 20 candidates, 4 below the threshold, convex, 12 ms" in page
    assert not OBEYED.search(page)


def state(status: AdrStatus, written: str | None, *names: str) -> RecordState:
    return RecordState(
        status=status,
        status_text=written,
        date=date(2026, 1, 5) if names else None,
        superseded_by=tuple(RecordName(path=name, title=None) for name in names),
    )


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (state(AdrStatus.ACCEPTED, "Accepted."), "accepted"),
        (state(AdrStatus.UNKNOWN, None), "unknown"),
        (state(AdrStatus.UNKNOWN, "on\x1b trial"), "unknown (on\ufffd trial)"),
        (state(AdrStatus.SUPERSEDED, "Superseded by 7"), "superseded (Superseded by 7)"),
        (
            state(AdrStatus.SUPERSEDED, "Superseded", "a\x1b.md", "b.md"),
            "superseded 2026-01-05, superseded by a\ufffd.md, b.md",
        ),
    ],
)
def test_a_decision_record_is_shown_with_its_state(record: RecordState, line: str) -> None:
    at = FILE.model_copy(update={"record": record})
    assert re.search(
        rf" · {re.escape(line)} *$", shown(print_answer, answer(hit(at))), re.MULTILINE
    )


def test_whatever_limits_an_answer_comes_with_it() -> None:
    stale = ScopeFreshness(
        project="a",
        scope=Scope.ADR,
        state=CoverageState.STALE,
        reason="r",
        indexed_commit=None,
        last_success=None,
        age_seconds=None,
        chunks=1,
        chunks_with_vector=0,
    )
    page = shown(
        print_answer,
        answer(
            degraded=True,
            degraded_reason="no provider\x1b",
            notes=("a note\x1b",),
            empty_reason="no passage holds a word of it\x1b",
            freshness=(stale, stale.model_copy(update={"state": CoverageState.COMPLETE})),
        ),
    )
    lines = page.splitlines()
    assert lines[0] == "Degraded: no provider\ufffd"
    assert lines[1] == "Note: a note\ufffd"
    assert lines[2] == "Nothing found: no passage holds a word of it\ufffd"
    assert lines[3] == "Beware: a adr is stale"
    assert "Degraded" not in shown(print_answer, answer(hit(FILE)))


def test_an_explanation_starts_with_its_verdict() -> None:
    explanation = Explanation(
        project="a",
        path="docs/x\x1b.md",
        in_index=False,
        verdict="It is not indexed.",
        scope=Scope.DOCS,
        rule="docs folder 'docs/'",
        status=DocumentStatus.FAILED,
        reason=None,
        commit="c0ffee",
        chunks=0,
        chunks_with_vector=0,
        chunks_refused=0,
        details=("line 3\x9d",),
    )
    assert shown(print_explanation, explanation).splitlines() == [
        "a: docs/x\ufffd.md",
        "It is not indexed.",
        "  scope: docs",
        "  rule: docs folder 'docs/'",
        "  commit: c0ffee",
        "  line 3\ufffd",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (coverage(), "a"),
        ({"coverage": "é", "when": 1}, None),
        ([coverage(), coverage()], None),
    ],
)
def test_json_is_one_document(
    value: Any, expected: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    print_json(value)
    parsed = json.loads(capsys.readouterr().out)
    if isinstance(value, list):
        assert [item["project"] for item in parsed] == ["a", "a"]
    elif isinstance(value, dict):
        assert parsed == value
    else:
        assert parsed["project"] == expected
        assert parsed["last_attempt"] == "2026-03-01T12:00:00Z"


def test_json_holds_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{LINK} \x9b2J \x7f \u202e \u2066 \u2028 é 中 \x85"
    print_json({"said": text})
    out = capsys.readouterr().out
    assert not OBEYED.search(out)
    assert json.loads(out) == {"said": text}
    assert "é 中" in out


# --- session logs ----------------------------------------------------------------------------


def test_what_session_logs_hold_stands_below_the_table() -> None:
    kinds = {f"kind {n}": n for n in range(1, 9)} | {LINK: 100}
    found = coverage(
        scope=Scope.SESSION,
        turns=1_200,
        turns_left_out=kinds,
        last_event=NOW - timedelta(hours=3),
    )
    out = shown(print_coverage, [found], now=NOW)
    assert "a session: 2 sessions, 1 failed; 1,200 turns; left out: " in out
    assert "kind 8 8" in out
    assert "others 6" in out, "kinds 1, 2 and 3"
    assert "the last said 3 h ago" in out
    assert not OBEYED.search(out)


def test_a_turn_of_a_time_to_come_is_shown_with_that_time() -> None:
    for ahead, part in ((0, "the last said 0 s ago"), (1, "the last said at 2026-03-01 12:00 UTC")):
        last = NOW + timedelta(seconds=ahead)
        found = coverage(scope=Scope.SESSION, turns=1, last_event=last)
        assert part in shown(print_coverage, [found], now=NOW)


def test_a_scope_of_files_says_nothing_of_turns() -> None:
    out = shown(print_coverage, [coverage()], now=NOW)
    assert "turn" not in out


@pytest.mark.parametrize(
    ("values", "shown_place"),
    [
        ({}, ""),
        ({"directory": "/work"}, "/work"),
        ({"branch": "main", "commit": "c0ffee" * 6}, "branch main, commit c0ffeec0ffee"),
    ],
)
def test_the_place_of_the_work_is_shown_as_far_as_it_is_known(
    values: dict[str, str], shown_place: str
) -> None:
    origin = SessionOrigin(
        session_id="s",
        event_id="1",
        last_event_id="1",
        title=None,
        speaker="human",
        occurred_at=None,
        source="log",
        **values,  # type: ignore[arg-type]
    )
    assert workplace(origin) == shown_place
