"""What a log holds, in a few words: enough to tell whether a session has changed.

What belongs here: the state of a log as it is stored, and what the planner compares. No text of a
session is in it, so that the states of very many logs can be held at once.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from concordance.indexing.build import problem_document, refused_document, storable_name
from concordance.indexing.documents import Document
from concordance.indexing.plan import Found
from concordance.models import DocumentStatus, Scope
from concordance.sessions.events import (
    LineProblem,
    LogContent,
    by_session,
    digest,
    few_problems,
    last_time,
)
from concordance.text.scrubbing import Scrubber

OTHER_PROJECT = "of another project"
REPEATED = "repeats an id, the last one counts"
LONGEST_KIND = 60
LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class Part:
    """What one log holds of one session: how many turns, and a hash of all that is said of it."""

    session_id: str
    digest: str
    turns: int


@dataclass(frozen=True, slots=True)
class LogState:
    """One log as it was read last.

    `stamp` changes when the log does, `reader` when the same bytes would be read otherwise.
    `refused` is the reason why it could not be read, `beside` why it is none.
    """

    path: str
    stamp: str
    reader: str
    format: str | None = None
    parts: tuple[Part, ...] = ()
    problems: tuple[LineProblem, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    last_event: datetime | None = None
    refused: str | None = None
    beside: str | None = None

    @property
    def turns(self) -> int:
        """How many turns it holds."""
        return sum(part.turns for part in self.parts)


def state_of(  # noqa: PLR0913 - what is known of a log
    content: LogContent, *, path: str, stamp: str, reader: str, named: str | None, project: str
) -> LogState:
    """The state of a log that was read; turns of other projects count as left out."""
    mine = by_session(content, project)
    kept = sum(len(events) for events, _ in mine.values())
    left_out = dict(content.left_out)
    if kept < len(content.events):
        left_out[OTHER_PROJECT] = len(content.events) - kept
    parts = []
    for session_id, (events, notes) in mine.items():
        hashed = [digest(events, None), *(digest((), note) for note in notes)]
        turns = len({event.event_id for event in events})
        parts.append(Part(session_id, _digest(hashed), turns))
        if turns < len(events):
            left_out[REPEATED] = left_out.get(REPEATED, 0) + len(events) - turns
    times = (last_time(events) for events, _ in mine.values())
    return LogState(
        path=path,
        stamp=stamp,
        reader=reader,
        format=named,
        parts=tuple(sorted(parts, key=lambda part: part.session_id)),
        problems=few_problems(content.problems),
        left_out=left_out,
        last_event=max((time for time in times if time is not None), default=None),
        beside=content.beside,
    )


def without_secrets(state: LogState, scrubber: Scrubber) -> LogState:
    """The state with marks in all that it names and tells; its path has none any more.

    What is long is cut here and not before: half a secret is not known as one.
    """
    left_out: Counter[str] = Counter()
    for kind, number in state.left_out.items():
        left_out[_shortened(scrubber.text(kind), LONGEST_KIND)] += number
    parts = [replace(part, session_id=scrubber.name(part.session_id)) for part in state.parts]
    return replace(
        state,
        parts=tuple(sorted(parts, key=lambda part: part.session_id)),
        problems=tuple(replace(p, reason=told(p.reason, scrubber)) for p in state.problems),
        left_out=dict(sorted(left_out.items())),
        refused=None if state.refused is None else told(state.refused, scrubber),
        beside=None if state.beside is None else told(state.beside, scrubber),
    )


def holds_less(state: LogState, known: LogState) -> bool:
    """Whether a log lacks a turn that it held when it was read before."""
    turns = {part.session_id: part.turns for part in state.parts}
    return any(turns.get(part.session_id, -1) < part.turns for part in known.parts)


def told(reason: str, scrubber: Scrubber, more: str = "") -> str:
    """A reason as it is kept: without secrets, and no longer than is read with `more` after it."""
    return _shortened(scrubber.text(reason), LONGEST_REASON - len(more)) + more


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def found_sessions(states: Sequence[LogState]) -> list[Found]:
    """Every session of some logs, as the planner compares it; the logs are in their order."""
    sources: dict[str, str] = {}
    parts: dict[str, list[str]] = {}
    for state in states:
        for part in state.parts:
            sources.setdefault(part.session_id, state.path)
            parts.setdefault(part.session_id, []).append(part.digest)
    return [
        Found(
            scope=Scope.SESSION,
            kind="session",
            name=storable_name(session_id),
            content_id=_digest([sources[session_id], *digests]),
            bytes=0,
            source=sources[session_id],
        )
        for session_id, digests in sorted(parts.items())
    ]


def problem_documents(states: Iterable[LogState], *, chunker: str) -> list[Document]:
    """Logs and lines that could not be read, each with the reason."""
    found = []
    for state in states:
        if state.refused is not None:
            found.append(
                refused_document(state.path, state.refused, DocumentStatus.FAILED, chunker=chunker)
            )
        if state.beside is not None:
            found.append(
                refused_document(state.path, state.beside, DocumentStatus.SKIPPED, chunker=chunker)
            )
        found += [problem_document(p, state.path, chunker=chunker) for p in state.problems]
    return found


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()
