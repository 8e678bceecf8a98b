"""The canonical event of a session log, and sessions made of events.

What belongs here: what every reader yields. A conversation has two kinds of event, a person's
message and an agent's answer; everything else is mechanism and is left out by the readers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Speaker = Literal["human", "agent"]


@dataclass(frozen=True, slots=True)
class Event:
    """One turn: `text` is what was said, whole."""

    session_id: str
    event_id: str
    speaker: Speaker
    text: str
    occurred_at: datetime | None
    title: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A line that could not be read; `unfinished` ones are read next time."""

    line: int
    reason: str
    unfinished: bool = False


@dataclass(frozen=True, slots=True)
class LogContent:
    """What one log file holds."""

    events: tuple[Event, ...]
    problems: tuple[LineProblem, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation: its events in the order of the log."""

    session_id: str
    title: str | None
    events: tuple[Event, ...]

    @property
    def content_id(self) -> str:
        """A hash of everything in the session that is indexed or cited."""
        rows = [
            [e.event_id, e.speaker, e.text, e.occurred_at.isoformat() if e.occurred_at else None]
            for e in self.events
        ]
        packed = json.dumps([self.title, rows], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(packed.encode()).hexdigest()

    @property
    def bytes(self) -> int:
        """The size of what was said, in UTF-8."""
        return sum(len(event.text.encode()) for event in self.events)


def group_sessions(events: Sequence[Event]) -> list[Session]:
    """Sessions by id.

    Where an event id stands twice in one session the last one wins, in its first place.
    """
    sessions: dict[str, dict[str, Event]] = {}
    titles: dict[str, str] = {}
    for event in events:
        sessions.setdefault(event.session_id, {})[event.event_id] = event
        if event.title:
            titles[event.session_id] = event.title
    return [
        Session(session_id, titles.get(session_id), tuple(by_id.values()))
        for session_id, by_id in sorted(sessions.items())
    ]
