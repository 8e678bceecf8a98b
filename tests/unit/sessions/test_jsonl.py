"""Canonical JSON Lines: every line is an event, is left out, or is a problem with a number."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.build import problem_document, session_document
from concordance.sessions.events import Event, LineProblem, group_sessions
from concordance.sessions.jsonl import read_jsonl
from concordance.sessions.lines import moment
from concordance.sessions.rows import read_rows
from concordance.text.cutting import ChunkSizes

SHARED = Path(__file__).parents[4] / "shared" / "sessions" / "synthetic"
UNFINISHED = "the line is not finished yet; it is read next time"


def line(number: int = 1, text: object = "Hello.", **more: Any) -> bytes:
    value = {"session_id": "s", "event_id": f"e{number}", "type": "chat.message", "text": text}
    return json.dumps(value | more, ensure_ascii=False).encode() + b"\n"


def event(data: bytes) -> Event:
    content = read_jsonl(data)
    assert (len(content.events), content.problems, content.left_out) == (1, (), {})
    return content.events[0]


def problems(data: bytes) -> list[LineProblem]:
    content = read_jsonl(data)
    assert content.events == ()
    return list(content.problems)


# --- the kinds of line -----------------------------------------------------------------------


def test_a_persons_message_and_an_agents_answer_are_events() -> None:
    data = line(1, "Why?", title="T", project="p", occurred_at="2026-03-01T10:00:00Z")
    data += line(2, "So.", type="agent.response")
    when = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
    assert read_jsonl(data).events == (
        Event("s", "e1", "human", "Why?", when, "T", "p"),
        Event("s", "e2", "agent", "So.", None, None, None),
    )


@pytest.mark.parametrize(
    "kind", ["tool.call", "tool.result", "status", "gate", "", "chat.message ", "Chat.Message"]
)
def test_every_other_type_is_left_out_and_counted(kind: str) -> None:
    content = read_jsonl(line(1) + line(2, type=kind) + json.dumps({"type": kind}).encode())
    assert (len(content.events), content.problems, content.left_out) == (
        1,
        (),
        {kind.strip() or "other": 2},
    )


def test_blank_lines_are_nothing_but_count_as_lines() -> None:
    content = read_jsonl(b"\n  \n" + line(1) + b"\r\n\n[]\n")
    assert len(content.events) == 1
    assert [(p.line, p.unfinished) for p in content.problems] == [(6, False)]
    assert content.left_out == {}


def test_no_bytes_are_no_lines() -> None:
    for data in (b"", b"\n", b"\xef\xbb\xbf"):
        content = read_jsonl(data)
        assert (content.events, content.problems, content.left_out) == ((), (), {})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[]\n", "an event is a JSON object, this is list"),
        (b"42\n", "an event is a JSON object, this is int"),
        (b"null\n", "an event is a JSON object, this is NoneType"),
        (b'"text"\n', "an event is a JSON object, this is str"),
        (b"{}\n", "'type' is missing or no text"),
        (line(type=["chat.message"]), "'type' is missing or no text"),
        (line(type=None), "'type' is missing or no text"),
        (line(session_id=None), "'session_id' is missing or no text"),
        (line(session_id=7), "'session_id' is missing or no text"),
        (line(event_id="  "), "'event_id' is missing or no text"),
        (line(text=None), "'text' is missing or no text"),
        (line(text=[{"text": "x"}]), "'text' is missing or no text"),
        (line(occurred_at=1_772_359_200), "'occurred_at' is no text; write an ISO 8601 time"),
        (line(occurred_at="yesterday"), "'occurred_at' is no ISO 8601 time"),
        (line(occurred_at=""), "'occurred_at' is no ISO 8601 time"),
        (b'{"text": "\\x"}\n', "not JSON: Invalid \\escape at character 11"),
        (
            b"{'type': 1}\n",
            "not JSON: Expecting property name enclosed in double quotes at character 2",
        ),
        (b"\0\0\0\n", "not JSON: Expecting value at character 1"),
        (b'{"a": "\xff"}\n', "not UTF-8 at byte 8 of the line"),
        (
            b'{"a": ' + b"9" * 5_000 + b"}\n",
            "Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits",
        ),
        (b"[" * 200_000 + b"\n", "nested too deeply"),
        (b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"\n", "nested too deeply"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_line_that_is_no_event_says_why(data: bytes, reason: str) -> None:
    assert problems(data) == [LineProblem(1, reason)]


def test_a_long_bad_value_is_shown_in_part() -> None:
    (problem,) = problems(line(occurred_at="x" * 1_000))
    assert len(problem.reason) < 100


def test_a_problem_stops_nothing_after_it() -> None:
    content = read_jsonl(line(1) + b"oops\n" + line(2) + b"[]\n" + line(3))
    assert [e.event_id for e in content.events] == ["e1", "e2", "e3"]
    assert [p.line for p in content.problems] == [2, 4]


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_an_event_that_says_nothing_is_left_out_and_takes_back_what_it_repeats(text: str) -> None:
    found = read_jsonl(line(1) + line(2, text) + line(3) + line(3, text) + line(4, text) + line(4))
    assert [e.event_id for e in found.events] == ["e1", "e4"]
    assert (found.left_out, found.problems) == ({"nothing said": 3, "taken back": 1}, ())
    row = {"session_id": "s", "event_id": "e", "type": "agent.response", "occurred_at": None}
    rows = read_rows([row | {"text": "Yes."}, row | {"event_id": "f", "text": text}])
    assert [e.event_id for e in rows.events] == ["e"]
    assert rows.left_out == {"nothing said": 1}


def test_a_title_or_project_that_is_no_text_is_none() -> None:
    found = event(line(title=["x"], project="  "))
    assert (found.title, found.project) == (None, None)


# --- bytes -----------------------------------------------------------------------------------


def test_a_byte_order_mark_and_windows_line_ends() -> None:
    data = b"\xef\xbb\xbf" + (line(1) + line(2)).replace(b"\n", b"\r\n")
    content = read_jsonl(data)
    assert [e.event_id for e in content.events] == ["e1", "e2"]
    assert content.problems == ()


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_lines_end_at_line_feeds_alone(mark: str) -> None:
    text = f"before{mark}after"
    data = json.dumps(
        {"session_id": "s", "event_id": "e", "type": "chat.message", "text": text},
        ensure_ascii=mark < " ",
    )
    assert event(data.encode()).text == text


def test_where_no_line_ends_at_a_line_feed_they_end_at_carriage_returns() -> None:
    data = (line(1) + b"oops\n" + line(2) + line(3)[:20]).replace(b"\n", b"\r")
    content = read_jsonl(data)
    assert [e.event_id for e in content.events] == ["e1", "e2"]
    assert [(p.line, p.unfinished) for p in content.problems] == [(2, False), (4, True)]


def test_what_postgres_can_not_store_is_replaced_one_for_one() -> None:
    data = rb'{"session_id":"s\u0000","event_id":"e\ud800","type":"chat.message",'
    data += rb'"text":"nul \u0000, half \udc00, whole \ud83d\ude00","title":"t\u0000"}'
    found = event(data)
    assert found.text == "nul \ufffd, half \ufffd, whole \U0001f600"
    assert (found.session_id, found.event_id, found.title) == ("s\ufffd", "e\ufffd", "t\ufffd")


def test_a_line_of_many_megabytes_is_one_event() -> None:
    assert len(event(line(text="x" * 5_000_000)).text) == 5_000_000


# --- the last line ---------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(1, len(line(2, "é 🎉"))))
def test_a_last_line_without_its_end_is_read_next_time_wherever_it_was_cut(cut: int) -> None:
    whole = line(2, "é 🎉")
    content = read_jsonl(line(1) + whole[:-cut])
    assert len(content.events) == (2 if cut == 1 else 1)
    assert content.problems == (() if cut == 1 else (LineProblem(2, UNFINISHED, True),))


def test_half_a_line_that_was_ended_is_a_problem() -> None:
    content = read_jsonl(line(1) + line(2)[:20] + b"\n" + line(3))
    assert [e.event_id for e in content.events] == ["e1", "e3"]
    (problem,) = content.problems
    assert (problem.line, problem.unfinished) == (2, False)
    (last,) = read_jsonl(line(1) + line(2)[:20] + b"\n").problems
    assert (last.line, last.unfinished) == (2, False)


def test_a_whole_last_value_that_is_no_event_is_a_problem_at_once() -> None:
    for data in (b"[]", b"{}", line(text=None)[:-1]):
        (problem,) = problems(data)
        assert problem.unfinished is False


def test_a_foreign_character_in_the_last_line_is_no_unfinished_one() -> None:
    (problem,) = problems(b'{"a": "\xff')
    assert problem == LineProblem(1, "not UTF-8 at byte 8 of the line")


def test_a_log_read_while_it_is_written_loses_and_repeats_nothing() -> None:
    good = [line(n, f"Turn {n}.") for n in range(1, 6)]
    odd = [
        b'{"session_id":"s","event_id":"bad","type":"chat.message","text":"\\q"}\n',
        line(6, "before\u2028after"),
        line(7, "x" * 50_000),
    ]
    last, more = line(8, "The last turn."), line(9, "One more.")
    first = read_jsonl(b"".join([*good, *odd]) + last[:-20])
    second = read_jsonl(b"".join([*good, *odd]) + last + more)

    assert len(first.events) == 7
    assert [(p.line, p.unfinished) for p in first.problems] == [(6, False), (9, True)]
    assert [e.event_id for e in second.events[7:]] == ["e8", "e9"]
    assert second.events[:7] == first.events
    assert second.problems == first.problems[:1]
    before, after = (
        session_document(group_sessions(c.events)[0], Path("log"), chunker="v", sizes=ChunkSizes())
        for c in (first, second)
    )
    assert after.passages[: len(before.passages)] == before.passages
    assert {p.event_id for p in after.passages[len(before.passages) :]} == {"e8", "e9"}
    names = [problem_document(p, Path("log"), chunker="v").name for p in first.problems]
    assert names == ["log#line 6", "log#line 9"]


# --- times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_time", "expected"),
    [
        ("2026-03-01T10:00:00Z", datetime(2026, 3, 1, 10, 0, tzinfo=UTC)),
        ("2026-03-01T10:00:00z", datetime(2026, 3, 1, 10, 0, tzinfo=UTC)),
        (" 2026-03-01t10:00:00Z ", datetime(2026, 3, 1, 10, 0, tzinfo=UTC)),
        ("2026-03-01T10:00:00", datetime(2026, 3, 1, 10, 0, tzinfo=UTC)),
        ("2026-03-01 10:00:00+02:00", datetime(2026, 3, 1, 8, 0, tzinfo=UTC)),
        ("2026-10-25T02:30:00+01:00", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
        ("2026-10-25T02:30:00+02:00", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("2026-03-01T10:00:00-03:30", datetime(2026, 3, 1, 13, 30, tzinfo=UTC)),
        ("2026-03-01T10:00:00.123456789Z", datetime(2026, 3, 1, 10, 0, 0, 123456, tzinfo=UTC)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        (None, None),
    ],
)
def test_times_are_kept_in_utc(given_time: str | None, expected: datetime | None) -> None:
    found = event(line(occurred_at=given_time)).occurred_at
    assert found == expected
    assert found is None or found.utcoffset() == timedelta(0)


def test_a_time_without_offset_is_utc_wherever_the_machine_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "America/St_Johns")
        time.tzset()
        found = event(line(occurred_at="2026-03-01T10:00:00")).occurred_at
    time.tzset()
    assert found == datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "given_time",
    ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00", "10000-01-01T00:00:00Z"],
)
def test_a_time_out_of_range_is_a_problem_and_no_crash(given_time: str) -> None:
    (problem,) = problems(line(occurred_at=given_time))
    assert "no ISO 8601 time" in problem.reason


@pytest.mark.parametrize(
    ("given_time", "expected"),
    [
        (1_893_456_000, datetime(2030, 1, 1, tzinfo=UTC)),
        (1_893_456_000.25, datetime(2030, 1, 1, microsecond=250_000, tzinfo=UTC)),
        (1_893_456_000_000, datetime(2030, 1, 1, tzinfo=UTC)),
        (1_893_456_000_000_000, datetime(2030, 1, 1, tzinfo=UTC)),
        (1_893_456_000_000_000_000, datetime(2030, 1, 1, tzinfo=UTC)),
        (99_999_999_999, datetime(5138, 11, 16, 9, 46, 39, tzinfo=UTC)),
        (0, None),
        (-1, None),
        (10**400, None),
        (1e300, None),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
        ("0000-01-01", None),
        ([], None),
    ],
)
def test_a_number_is_a_time_in_seconds_or_parts_of_them(
    given_time: object, expected: datetime | None
) -> None:
    assert moment(given_time) == expected


# --- anything --------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        key: VALUES | st.sampled_from(["s", "chat.message", "agent.response", "2026-03-01"])
        for key in ("session_id", "event_id", "type", "text", "occurred_at", "title", "project")
    },
)


@given(st.lists(EVENTS | VALUES, max_size=4))
def test_every_line_is_accounted_for(values: list[Any]) -> None:
    content = read_jsonl(b"".join(json.dumps(value).encode() + b"\n" for value in values))
    assert len(content.events) + len(content.problems) + sum(content.left_out.values()) == len(
        values
    )
    for found in content.events:
        joined = found.session_id + found.event_id + found.text + (found.title or "")
        assert "\0" not in joined
        assert joined.encode()
    for problem in content.problems:
        assert problem.reason.encode()
        assert "\0" not in problem.reason


@given(st.binary(max_size=60))
def test_no_bytes_at_all_break_the_reader(data: bytes) -> None:
    assert read_jsonl(data).events == ()


@pytest.mark.parametrize("path", sorted(SHARED.glob("hostile.jsonl")), ids=lambda path: path.name)
def test_a_hostile_log_of_another_format_is_counted_line_by_line(path: Path) -> None:
    content = read_jsonl(path.read_bytes())
    assert content.events == ()
    assert content.left_out == {"user": 3, "assistant": 1}
    assert [(p.line, p.unfinished) for p in content.problems] == [(4, False), (5, False), (8, True)]
