"""The canonical event of a session log, and sessions made of events.

What belongs here: what every reader yields. A conversation has two kinds of event, a person's
message and an agent's answer; everything else is mechanism and is left out by the readers, counted
by its kind.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

Speaker = Literal["human", "agent"]

MOST_KINDS = 60
"""Kinds of what was left out that are told apart in one log; a log may hold anything."""
OTHER = "other"
MALFORMED = "malformed"
"""A message of a tree or list that is no object, in an entry that can be read all the same."""
NOTHING_SAID = "nothing said"
TAKEN_BACK = "taken back"
MOST_PROBLEMS = 1_000
"""Lines of one log that are named one by one."""


@dataclass(frozen=True, slots=True)
class Event:
    """One turn: `text` is what was said, whole.

    `author` is the name of who spoke, where a log has names; `thread` tells conversations apart
    that run side by side in one session.
    """

    session_id: str
    event_id: str
    speaker: Speaker
    text: str
    occurred_at: datetime | None
    title: str | None = None
    project: str | None = None
    author: str | None = None
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A line that could not be read; `unfinished` ones are read next time.

    `unit` is what `line` counts, as some logs are no lines: such as `entry` or `conversation`.
    """

    line: int
    reason: str
    unfinished: bool = False
    unit: str = "line"


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a session was at work: the folder, and the state of the repository, as it says."""

    directory: str | None = None
    branch: str | None = None
    commit: str | None = None

    def __bool__(self) -> bool:
        return any((self.directory, self.branch, self.commit))


@dataclass(frozen=True, slots=True)
class SessionNote:
    """What a log says of one of its sessions, which may have no event that is kept."""

    session_id: str
    title: str | None = None
    project: str | None = None
    workplace: Workplace = Workplace()


@dataclass(frozen=True, slots=True)
class LogContent:
    """What one log file holds.

    `left_out` counts lines (or entries) by the kind of what they hold; `notes` names every session
    that the log speaks of; `beside` is the reason why a file that stands beside logs is not read.
    With `cut` the file breaks off, so that it may have held more.
    """

    events: tuple[Event, ...]
    problems: tuple[LineProblem, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[SessionNote, ...] = ()
    beside: str | None = None
    cut: bool = False


class LeftOut:
    """Counts what is left out by its kind; kinds beyond `MOST_KINDS` are counted as one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, kind: str, number: int = 1) -> None:
        """Count one more of a kind; its name stays whole, as half a secret is not known as one."""
        kind = storable(" ".join(kind.split())) or OTHER
        if kind not in self._counts and len(self._counts) >= MOST_KINDS:
            kind = OTHER
        if number:
            self._counts[kind] += number

    @property
    def counts(self) -> dict[str, int]:
        """How many there were of each kind, by kind."""
        return dict(sorted(self._counts.items()))


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation: its events in the order of the log."""

    session_id: str
    title: str | None
    events: tuple[Event, ...]
    workplace: Workplace = Workplace()

    @property
    def content_id(self) -> str:
        """A hash of everything in the session that is indexed or cited."""
        return digest(self.events, SessionNote(self.session_id, self.title, None, self.workplace))

    @property
    def bytes(self) -> int:
        """The size of what was said, in UTF-8."""
        return sum(len(event.text.encode()) for event in self.events)


def digest(events: Iterable[Event], note: SessionNote | None) -> str:
    """A hash of everything that one log says of a session and that is indexed or cited."""
    hashed = hashlib.sha256()
    if note is not None:
        place = note.workplace
        _feed(hashed, [note.title, place.directory, place.branch, place.commit])
    for e in events:
        when = e.occurred_at.isoformat() if e.occurred_at else None
        _feed(hashed, [e.event_id, e.speaker, e.text, when, e.title, e.author, e.thread])
    return hashed.hexdigest()


def join_session(
    session_id: str, events: Iterable[Event], notes: Iterable[SessionNote] = ()
) -> Session:
    """One session from its events and notes, in the order of its logs.

    Where an event id stands twice the last one wins, in its first place. The last title counts, and
    the first workplace that is known.
    """
    by_id: dict[str, Event] = {}
    title: str | None = None
    for event in events:
        by_id[event.event_id] = event
        title = event.title or title
    workplace = Workplace()
    for note in notes:
        title = note.title or title
        workplace = workplace or note.workplace
    return Session(session_id, title, tuple(by_id.values()), workplace)


def group_sessions(events: Iterable[Event]) -> list[Session]:
    """Sessions by id; see `join_session`."""
    grouped: dict[str, list[Event]] = {}
    for event in events:
        grouped.setdefault(event.session_id, []).append(event)
    return [join_session(session_id, found) for session_id, found in sorted(grouped.items())]


def by_session(
    content: LogContent, project: str
) -> dict[str, tuple[list[Event], list[SessionNote]]]:
    """What a log holds of each session, without what belongs to other projects."""
    found: dict[str, tuple[list[Event], list[SessionNote]]] = {}
    for note in content.notes:
        if note.project in (None, project):
            found.setdefault(note.session_id, ([], []))[1].append(note)
    for event in content.events:
        if event.project in (None, project):
            found.setdefault(event.session_id, ([], []))[0].append(event)
    return found


def last_time(events: Sequence[Event]) -> datetime | None:
    """When the last of some events happened, where any of them says it."""
    return max((e.occurred_at for e in events if e.occurred_at is not None), default=None)


def few_problems(problems: Sequence[LineProblem]) -> tuple[LineProblem, ...]:
    """The first problems of a log; where there are very many, one more says how many."""
    if len(problems) <= MOST_PROBLEMS:
        return tuple(problems)
    more = problems[MOST_PROBLEMS]
    rest = len(problems) - MOST_PROBLEMS
    reason = f"this and {rest - 1:,} more can't be read, the first as {more.reason}"
    return (*problems[:MOST_PROBLEMS], LineProblem(more.line, reason, unit=more.unit))


def something_said(events: Sequence[Event], left_out: LeftOut) -> tuple[Event, ...]:
    """The events in which something is said; the others are counted.

    Where an id stands twice the last one counts: one that says nothing takes back those before.
    """
    if all(event.text.strip() for event in events):
        return tuple(events)
    last = {(e.session_id, e.event_id, e.project): bool(e.text.strip()) for e in events}
    kept = []
    for event in events:
        if not event.text.strip():
            left_out.add(NOTHING_SAID)
        elif not last[event.session_id, event.event_id, event.project]:
            left_out.add(TAKEN_BACK)
        else:
            kept.append(event)
    return tuple(kept)


def storable(text: str) -> str:
    """NUL and lone surrogates, which Postgres can't store, become U+FFFD one for one."""
    return _UNSTORABLE.sub("\ufffd", text)


def _feed(hashed: hashlib._Hash, values: Sequence[str | None]) -> None:
    packed = json.dumps(values, ensure_ascii=True, separators=(",", ":"))
    hashed.update(packed.encode())
    hashed.update(b"\n")
