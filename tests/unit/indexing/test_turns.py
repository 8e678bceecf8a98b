"""Which turns make one passage, and what is said of it besides what was said in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.documents import Passage
from concordance.indexing.turns import (
    BEFORE,
    JOINED,
    SHORT_TURN,
    label,
    session_passages,
)
from concordance.indexing.vector_space import content_hash, passage_text
from concordance.sessions.events import Event, Session, Speaker
from concordance.text.cutting import ChunkSizes

WHEN = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)
LONG = "A long turn that says very much about buoys and clocks. " * 8


def turn(number: int, speaker: Speaker, text: str, **more: object) -> Event:
    values = {"occurred_at": WHEN + timedelta(minutes=number)} | more
    return Event("s", f"e{number}", speaker, text, **values)  # type: ignore[arg-type]


def passages(*events: Event, title: str | None = None) -> tuple[Passage, ...]:
    return session_passages(Session("s", title, events), ChunkSizes(), title)


def test_an_answer_of_one_word_stands_with_its_question() -> None:
    first, second = passages(
        turn(1, "human", "Which port?"),
        turn(2, "agent", "5432."),
        turn(3, "agent", "By default, on every system."),
        turn(4, "human", "Thanks."),
    )
    assert first.content == "Which port?\n\n5432.\n\nBy default, on every system."
    assert (first.event_id, first.last_event_id, first.speaker) == ("e1", "e3", "human, agent")
    assert first.occurred_at == WHEN + timedelta(minutes=1)
    assert (first.start_char, first.end_char) == (0, len(first.content))
    assert (second.event_id, second.last_event_id, second.speaker) == ("e4", "e4", "human")


@pytest.mark.parametrize(
    "events",
    [
        (turn(1, "human", "One."), turn(2, "human", "Two.")),
        (turn(1, "agent", "One."), turn(2, "human", "Two.")),
        (turn(1, "human", "One."), turn(2, "agent", "x" * (SHORT_TURN + 1))),
        (turn(1, "human", "x" * (SHORT_TURN + 1)), turn(2, "agent", "Two.")),
        (turn(1, "human", "One."), turn(2, "agent", "Two.", occurred_at=WHEN + timedelta(days=1))),
        (turn(1, "human", "One."), turn(2, "agent", "Two.", thread="t")),
        (turn(1, "human", "How is it started?"), turn(2, "agent", "Run make.")),
    ],
    ids=[
        *("two questions", "a new question", "a long answer", "a long question", "days"),
        *("threads", "two that say something"),
    ],
)
def test_what_is_no_short_exchange_stands_apart(events: tuple[Event, ...]) -> None:
    assert [p.event_id for p in passages(*events)] == ["e1", "e2"]


def test_an_exchange_ends_where_it_would_be_too_long() -> None:
    found = passages(*(turn(n, "agent", "x" * 150 if n % 2 else "Ok.") for n in range(6)))
    assert [(p.event_id, p.last_event_id) for p in found] == [("e0", "e4"), ("e5", "e5")]
    assert all(len(p.content) <= JOINED for p in found)


def test_a_turn_without_words_ends_an_exchange_and_is_no_passage() -> None:
    found = passages(turn(1, "human", "One."), turn(2, "agent", " "), turn(3, "agent", "Two."))
    assert [p.content for p in found] == ["One.", "Two."]


def test_speaker_and_date_are_searched_and_embedded_and_not_in_the_content() -> None:
    (found,) = passages(turn(1, "human", "Which port?"), turn(2, "agent", "5432."), title="Ports")
    assert found.heading_path == ("human and agent, 8 May 2026",)
    assert found.content == "Which port?\n\n5432."
    text = passage_text("Ports", found.heading_path, found.content, found.preceding)
    assert text == "Ports\nhuman and agent, 8 May 2026\n\nWhich port?\n\n5432."
    assert found.content_hash == content_hash("Ports", found.heading_path, found.content)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([turn(1, "human", "x")], "human, 8 May 2026"),
        ([turn(1, "human", "x", occurred_at=None)], "human"),
        ([turn(1, "human", "x", author="Ana\n Example")], "Ana Example, 8 May 2026"),
        (
            [
                turn(1, "human", "x", author="Ana"),
                turn(2, "human", "x", author="Bo"),
                turn(3, "agent", "x"),
                turn(4, "human", "x", author="Ana"),
            ],
            "Ana, Bo and agent, 8 May 2026",
        ),
    ],
)
def test_the_label_names_who_spoke_and_when(events: list[Event], expected: str) -> None:
    assert label(events) == expected


def test_what_was_said_before_is_embedded_with_a_passage() -> None:
    found = passages(
        turn(1, "human", "About the buoy."),
        turn(2, "human", "And its clock."),
        turn(3, "human", "And the light."),
        turn(4, "human", "Why?"),
        turn(5, "human", LONG * 3),
        turn(6, "human", "So."),
    )
    by_id = {p.event_id: p for p in found if p.start_char == 0}
    assert by_id["e1"].preceding is None
    assert by_id["e4"].preceding == "And its clock.\nAnd the light."
    assert by_id["e5"].preceding is None, "a long passage speaks for itself"
    before = by_id["e6"].preceding
    assert before is not None
    assert len(before) <= BEFORE
    assert LONG.strip().endswith(before.split(". ")[-1])
    assert passage_text(None, (), "Why?", by_id["e4"].preceding).startswith("Why?\n\n")


def test_threads_that_run_side_by_side_are_told_apart() -> None:
    found = passages(
        turn(1, "human", "About the buoy.", thread="a"),
        turn(2, "human", "About tea.", thread="b"),
        turn(3, "human", "It is dark.", thread="a"),
    )
    assert [p.preceding for p in found] == [None, None, "About the buoy."]


EVENTS = st.lists(
    st.builds(
        lambda speaker, text, thread: (speaker, text, thread),
        st.sampled_from(["human", "agent"]),
        st.text(st.sampled_from("ab .\n é"), max_size=300) | st.just(LONG * 5),
        st.sampled_from([None, "t"]),
    ),
    max_size=8,
)


@given(EVENTS)
def test_every_word_is_in_a_passage_and_no_passage_goes_past_its_session(
    said: list[tuple[Speaker, str, str | None]],
) -> None:
    events = tuple(turn(n, s, text, thread=t) for n, (s, text, t) in enumerate(said))
    found = passages(*events)
    assert [p.ordinal for p in found] == list(range(len(found)))
    by_id = {e.event_id: e for e in events}
    numbers = [e.event_id for e in events]
    for p in found:
        first, last = (numbers.index(i or "") for i in (p.event_id, p.last_event_id))
        joined = "\n\n".join(e.text for e in events[first : last + 1])
        assert joined[p.start_char : p.end_char] == p.content
        assert p.content.strip()
    for event_id, event in by_id.items():
        if event.text.strip():
            assert any(
                numbers.index(p.event_id or "")
                <= numbers.index(event_id)
                <= numbers.index(p.last_event_id or "")
                for p in found
            )


@given(EVENTS, EVENTS)
def test_turns_that_are_added_change_the_last_exchange_at_the_most(
    said: list[tuple[Speaker, str, str | None]], more: list[tuple[Speaker, str, str | None]]
) -> None:
    events = tuple(turn(n, s, text, thread=t) for n, (s, text, t) in enumerate([*said, *more]))
    before, after = passages(*events[: len(said)]), passages(*events)
    last = before[-1].event_id if before else None
    kept = [p for p in before if p.event_id != last]
    assert list(after[: len(kept)]) == kept
