"""From the turns of a session to its passages.

What belongs here: which turns go into a passage together, and what is said of a passage besides
what was said in it. How a long turn is cut is `concordance.text.cutting`'s matter.

A passage is one turn, a part of a long one, or turns of which one says nothing by itself, such as
`5432` with its question. It never holds the start of another exchange, so a log that grows changes
its last passage at the most. Who spoke and when stands above it like a heading, and is searched and
embedded; what was said before is embedded with it and not searched: an answer means little without
its question.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from concordance.indexing.documents import Passage
from concordance.indexing.vector_space import content_hash
from concordance.sessions.events import Event, Session
from concordance.text.chunking import Chunk, chunk_plain
from concordance.text.cutting import ChunkSizes

TURNS_VERSION: Final = 2
"""Raised when the same session would give other passages, or another number of turns."""

# In characters. A turn that is longer stands alone; so many of joined turns read as one exchange.
SHORT_TURN: Final = 200
JOINED: Final = 400
# A turn of one word, and no longer, says nothing by itself.
ONE_WORD: Final = 16
# How much of the turns before is embedded with a passage, of how many, and with which passages.
BEFORE: Final = 400
TURNS_BEFORE: Final = 2
STANDS_ALONE: Final = 600
BETWEEN: Final = "\n\n"
MOST_NAMES: Final = 4
LONGEST_NAME: Final = 80
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_NEXT_WORD: Final = re.compile(r"\s+")


@dataclass(slots=True)
class _Group:
    """Neighbouring turns of one thread that make one passage, and what was said before them."""

    events: list[Event]
    before: tuple[str, ...]

    @property
    def length(self) -> int:
        return sum(len(event.text) for event in self.events)


def session_passages(session: Session, sizes: ChunkSizes, title: str | None) -> tuple[Passage, ...]:
    """The passages of a session, in the order of its turns.

    `start_char` and `end_char` are counted from the start of a passage's first turn; between turns
    that are joined stands an empty line.
    """
    passages: list[Passage] = []
    for group in _groups(session.events):
        for chunk in _chunks(group, sizes):
            passages.append(_passage(group, chunk, len(passages), title))
    return tuple(passages)


def label(events: Sequence[Event]) -> str | None:
    """Who spoke and when, as it is searched: `Ana Example and agent, 8 May 2023`."""
    names = _speakers(events)
    who = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
    when = events[0].occurred_at
    day = f"{when.day} {_MONTHS[when.month - 1]} {when.year}" if when is not None else ""
    return ", ".join(filter(None, [who, day])) or None


def _groups(events: Sequence[Event]) -> Iterator[_Group]:
    """Turns in groups; those of threads that run side by side are told apart."""
    said: dict[str | None, deque[str]] = {}
    group: _Group | None = None
    for event in events:
        before = said.setdefault(event.thread, deque(maxlen=TURNS_BEFORE))
        if group is not None and _joins(group, event):
            group.events.append(event)
        else:
            if group is not None:
                yield group
            group = _Group([event], tuple(before))
        if event.text.strip():
            before.append(event.text.strip())
    if group is not None:
        yield group


def _joins(group: _Group, event: Event) -> bool:
    """Whether a turn answers the short one before it, and one of the two is a word."""
    last = group.events[-1]
    return (
        event.speaker == "agent"
        and event.thread == last.thread
        and 0 < len(event.text.strip()) <= SHORT_TURN
        and 0 < len(last.text.strip()) <= SHORT_TURN
        and group.length + len(event.text) <= JOINED
        and (_is_word(last.text) or _is_word(event.text))
        and _same_day(last, event)
    )


def _is_word(text: str) -> bool:
    word = text.strip()
    return len(word) <= ONE_WORD and len(word.split()) == 1


def _same_day(one: Event, other: Event) -> bool:
    """Whether one date is true of both, as far as is known."""
    if one.occurred_at is None or other.occurred_at is None:
        return True
    return one.occurred_at.date() == other.occurred_at.date()


def _chunks(group: _Group, sizes: ChunkSizes) -> tuple[Chunk, ...]:
    return chunk_plain(BETWEEN.join(event.text for event in group.events), sizes)


def _passage(group: _Group, chunk: Chunk, ordinal: int, title: str | None) -> Passage:
    above = label(group.events)
    headings = (above,) if above else ()
    # The parts of a long turn overlap and need nothing more.
    alone = chunk.start > 0 or len(chunk.content) >= STANDS_ALONE
    preceding = None if alone else _end_of("\n".join(group.before))
    first, last = group.events[0], group.events[-1]
    return Passage(
        ordinal=ordinal,
        heading_path=headings,
        start_char=chunk.start,
        end_char=chunk.end,
        content=chunk.content,
        content_hash=content_hash(title, headings, chunk.content, preceding),
        event_id=first.event_id,
        last_event_id=last.event_id,
        speaker=", ".join(_speakers(group.events)),
        occurred_at=first.occurred_at,
        preceding=preceding,
    )


def _speakers(events: Sequence[Event]) -> list[str]:
    """The speakers in their order, each once: by name where there is one."""
    named = (" ".join((e.author or e.speaker).split())[:LONGEST_NAME] for e in events)
    return list(dict.fromkeys(named))[:MOST_NAMES]


def _end_of(text: str) -> str | None:
    """The end of what was said, from a word's start; None where nothing was."""
    if len(text) <= BEFORE:
        return text or None
    cut = text[-BEFORE:]
    word = _NEXT_WORD.search(cut)
    return cut[word.end() :] if word is not None else cut
