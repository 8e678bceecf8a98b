"""The text that a citation names, with what stands around it, from what is stored.

What belongs here: reading a citation, and showing the lines or turns of it. They come from the
rows that the caller's login may read, without their secrets, as every answer's do; the repository
is not asked. What is stored as of another commit than the one cited is not shown for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pydantic import Field

from concordance.adapters.postgres.citations import (
    CitedDocument,
    FoundLines,
    FoundTurn,
    Shelf,
    open_shelf,
)
from concordance.citing import SESSION, file_origin, session_origin, turns_cited
from concordance.errors import BadRequest, OutdatedCitation, UnknownCitation
from concordance.models import Frozen, Origin, Scope, stored_path
from concordance.resources import Resources
from concordance.settings import SLUG
from concordance.text.rejoining import Piece, rejoin

AROUND_LINES: Final = 5
AROUND_TURNS: Final = 1
MOST_AROUND: Final = 200
MOST_LINES: Final = 2_000
# Passages that are read at once; each has up to 2,000 characters.
MOST_PASSAGES: Final = 200
_FILE: Final = re.compile(
    r"(?P<path>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?(?:@(?P<commit>[0-9A-Fa-f]{7,64}))?",
    re.DOTALL,
)
_FORMS: Final = "Write it as an answer has it: PROJECT:PATH:1-9@COMMIT, or PROJECT:session ID#EVENT"


class CitedPart(Frozen):
    """Lines of a file, or one turn of a session: what is cited, or what stands beside it."""

    cited: bool = Field(description="Whether it is what the citation names; else it is around it.")
    content: str = Field(description="As it stands in the source, without its secrets.")
    start_line: int | None = Field(default=None, description="Of a file: its first line, from 1.")
    end_line: int | None = Field(default=None, description="Its last line, included.")
    event_id: str | None = Field(default=None, description="Of a session: the turn's first event.")
    last_event_id: str | None = None
    speaker: str | None = None
    occurred_at: datetime | None = None


class CitedText(Frozen):
    """What a citation names, in the parts that it has, and whether there is more around it."""

    citation: str = Field(description="Of what is shown as cited, with the stored commit.")
    project: str
    scope: Scope
    origin: Origin
    parts: tuple[CitedPart, ...]
    more_before: bool
    more_after: bool


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines of a file as they are cited."""

    path: str
    first: int
    last: int
    commit: str | None


def read_citation(resources: Resources, citation: str, *, around: int | None = None) -> CitedText:
    """The cited lines or turn, and `around` lines or turns before and after.

    Args:
        resources: The opened installation.
        citation: As an answer has it; without `@COMMIT`, what is stored now is shown.
        around: 0 to 200; none given means 5 lines of a file, or 1 turn of a session.

    Raises:
        BadRequest: It is no citation, or `around` is out of range.
        UnknownCitation: Nothing of that name, and no such line or turn, is stored.
        OutdatedCitation: The file is stored as of another commit than the one cited.
        DatabaseError: Postgres can't be asked.
    """
    if around is not None and not 0 <= around <= MOST_AROUND:
        raise BadRequest(f"around: {around} is not in 0 to {MOST_AROUND}")
    slug, _, place = _storable(citation).partition(":")
    turns = turns_cited(place.removeprefix(SESSION)) if place.startswith(SESSION) else []
    lines = None if turns else _lines_cited(place)
    if SLUG.fullmatch(slug) is None or not (turns or lines):
        raise BadRequest("this is no citation", hint=_FORMS)
    with open_shelf(resources.database, resources.tenant, slug) as shelf:
        for session, event in turns:
            found = _read_turn(shelf, slug, session, event, around)
            if found is not None:
                return found
        # A file may be called like a session.
        lines = lines or _lines_cited(place, whole=True)
        if lines is not None:
            return _read_lines(shelf, slug, lines, around)
    raise UnknownCitation(f"no such turn is stored of '{slug}'", hint="Search again")


def _storable(text: str) -> str:
    return stored_path(text).replace("\0", "\ufffd")


def _lines_cited(place: str, *, whole: bool = False) -> _Lines | None:
    """The lines that a place names; with `whole`, only of a citation that has its commit."""
    found = _FILE.fullmatch(place)
    if found is None or (whole and found["commit"] is None):
        return None
    first = int(found["first"])
    last = int(found["last"] or first)
    if not 1 <= first <= last or last - first >= MOST_LINES:
        raise BadRequest(f"lines {first}-{last}: cite from 1 on, and at most {MOST_LINES:,} lines")
    return _Lines(found["path"], first, last, found["commit"])


# --- files -----------------------------------------------------------------------------------


def _read_lines(shelf: Shelf, slug: str, asked: _Lines, around: int | None) -> CitedText:
    document = shelf.document("file", asked.path)
    last_line = _last_line(document, slug, asked)
    wide = AROUND_LINES if around is None else around
    found = shelf.lines(
        asked.path, asked.first, asked.last, around=wide, most=MOST_PASSAGES
    ) or shelf.lines(asked.path, 1, last_line, around=0, most=1)
    text = rejoin(Piece(f.passage.content, f.start_line, f.start_char, f.end_char) for f in found)
    start, last, end = _whole(found, asked, wide)
    last, end = min(last, last_line), min(end, last_line)
    parts = [
        CitedPart(
            cited=cited,
            content="\n".join(text.get(line, "") for line in range(begin, stop + 1)),
            start_line=begin,
            end_line=stop,
        )
        for cited, begin, stop in (
            (False, start, asked.first - 1),
            (True, asked.first, last),
            (False, last + 1, end),
        )
        if begin <= stop
    ]
    return _of_file(slug, found, parts, last_line)


def _whole(found: Sequence[FoundLines], asked: _Lines, wide: int) -> tuple[int, int, int]:
    """The first line, the last cited one and the last one of those that were read whole."""
    if len(found) == MOST_PASSAGES:
        # The nearest were read, and of those that are as far as the farthest perhaps not all.
        far = max(
            max(asked.first - (f.passage.end_line or 1), f.start_line - asked.last, 0)
            for f in found
        )
        if far == 0:
            last = max(asked.first, min(asked.last, found[-1].start_line - 1))
            return asked.first, last, last
        wide = min(wide, far - 1)
    return max(1, asked.first - wide), asked.last, asked.last + wide


def _last_line(document: CitedDocument | None, slug: str, asked: _Lines) -> int:
    """The last line that is stored.

    Raises:
        UnknownCitation: Nothing is stored there.
        OutdatedCitation: It is stored as of another commit.
    """
    if document is None:
        raise UnknownCitation(
            f"no file '{asked.path}' is stored of '{slug}'",
            hint="Search again, or explain the path",
        )
    commit = document.commit or ""
    if asked.commit is not None and not commit.startswith(asked.commit.lower()):
        raise OutdatedCitation(
            f"'{asked.path}' is stored as of {commit[:12]}, and {asked.commit[:12]} is cited: "
            "whether these lines are still the same is not known",
            hint="Search again, or leave out '@' and the commit to read what is stored now",
        )
    if document.last_line is None:
        why = f": {document.reason}" if document.reason else ""
        raise UnknownCitation(f"of '{asked.path}' no text is stored, it is {document.status}{why}")
    if asked.first > document.last_line:
        raise UnknownCitation(
            f"line {asked.first} is behind the last one of '{asked.path}' that is stored, "
            f"{document.last_line}"
        )
    return document.last_line


def _of_file(
    slug: str, found: Sequence[FoundLines], parts: Sequence[CitedPart], last_line: int
) -> CitedText:
    cited = next(part for part in parts if part.cited)
    first, last = cited.start_line or 1, cited.end_line or 1
    # The passage in which the cited lines begin has their headings.
    at = next((f.passage for f in found if (f.passage.end_line or 1) >= first), found[-1].passage)
    return CitedText(
        citation=f"{slug}:{at.name}:{first}-{last}@{(at.commit or '')[:12]}",
        project=slug,
        scope=Scope(at.scope),
        origin=file_origin(replace(at, start_line=first, end_line=last)),
        parts=tuple(parts),
        more_before=(parts[0].start_line or 1) > 1,
        more_after=(parts[-1].end_line or last) < last_line,
    )


# --- sessions --------------------------------------------------------------------------------


def _read_turn(
    shelf: Shelf, slug: str, session: str, event: str, around: int | None
) -> CitedText | None:
    """The turn that begins with an event; None where there is none."""
    wide = AROUND_TURNS if around is None else around
    # One more on either side tells whether there is more.
    found = shelf.turns(session, event, around=wide + 1, most=MOST_PASSAGES)
    cut = len(found) == MOST_PASSAGES
    if cut:  # of the farthest turn perhaps a part
        wide = max(0, max(abs(turn.turn) for turn in found) - 1)
    shown = [turn for turn in found if abs(turn.turn) <= wide]
    at = next((turn.passage for turn in shown if turn.turn == 0), None)
    if at is None:
        return None
    numbers = list(dict.fromkeys(turn.turn for turn in shown))
    parts = [_turn_part([turn for turn in shown if turn.turn == number]) for number in numbers]
    return CitedText(
        citation=f"{slug}:{SESSION}{at.name}#{at.event_id}",
        project=slug,
        scope=Scope(at.scope),
        origin=session_origin(at),
        parts=tuple(parts),
        more_before=any(turn.turn < -wide for turn in found),
        more_after=cut or any(turn.turn > wide for turn in found),
    )


def _turn_part(parts: Sequence[FoundTurn]) -> CitedPart:
    """A turn; a long one is put together from its passages, which overlap."""
    first = parts[0].passage
    text, reached = "", parts[0].start_char
    for part in parts:
        content = part.passage.content
        if part.start_char > reached:  # white space, of which only the length is known
            text += " " if part.start_char == reached + 1 else "\n\n"
        if part.end_char - part.start_char == len(content):
            content = content[max(0, reached - part.start_char) :]
        text += content
        reached = max(reached, part.end_char)
    return CitedPart(
        cited=parts[0].turn == 0,
        content=text,
        event_id=first.event_id,
        last_event_id=first.last_event_id,
        speaker=first.speaker,
        occurred_at=first.occurred_at,
    )
