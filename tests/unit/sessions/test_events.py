"""Sessions made of events, and what tells one state of a session from another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from concordance.sessions.events import Event, Session, group_sessions

EVENT = Event("s", "e1", "human", "Hello.", datetime(2026, 3, 1, tzinfo=UTC))


def test_events_are_grouped_by_session_in_the_order_of_the_log() -> None:
    events = [
        replace(EVENT, session_id="t", event_id="1"),
        replace(EVENT, session_id="s", event_id="2"),
        replace(EVENT, session_id="t", event_id="0"),
    ]
    made = group_sessions(events)
    assert [(s.session_id, [e.event_id for e in s.events]) for s in made] == [
        ("s", ["2"]),
        ("t", ["1", "0"]),
    ]


def test_a_repeated_event_id_takes_the_last_text_in_its_first_place() -> None:
    first, other, again = EVENT, replace(EVENT, event_id="e2"), replace(EVENT, text="Corrected.")
    (made,) = group_sessions([first, other, again])
    assert made.events == (again, other)


def test_one_event_id_in_two_sessions_is_two_events() -> None:
    made = group_sessions([EVENT, replace(EVENT, session_id="t")])
    assert [len(s.events) for s in made] == [1, 1]


def test_the_last_title_given_is_the_sessions() -> None:
    events = [
        replace(EVENT, title="First"),
        replace(EVENT, event_id="e2", title="Second"),
        replace(EVENT, event_id="e3"),
        replace(EVENT, session_id="t"),
    ]
    assert [s.title for s in group_sessions(events)] == ["Second", None]


def test_no_events_are_no_sessions() -> None:
    assert group_sessions([]) == []


@pytest.mark.parametrize(
    "other",
    [
        Session("s", "Title", (EVENT,)),
        Session("s", None, (EVENT, EVENT)),
        Session("s", None, (replace(EVENT, event_id="e2"),)),
        Session("s", None, (replace(EVENT, speaker="agent"),)),
        Session("s", None, (replace(EVENT, text="Hello"),)),
        Session("s", None, (replace(EVENT, occurred_at=None),)),
        Session("s", None, (replace(EVENT, occurred_at=datetime(2026, 3, 2, tzinfo=UTC)),)),
    ],
)
def test_whatever_is_indexed_or_cited_changes_the_content_id(other: Session) -> None:
    session = Session("s", None, (EVENT,))
    assert session.content_id == Session("s", None, (replace(EVENT),)).content_id
    assert session.content_id != other.content_id


def test_the_size_is_that_of_what_was_said() -> None:
    assert Session("s", "a title", (EVENT, replace(EVENT, text="é"))).bytes == 8
