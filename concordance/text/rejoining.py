"""From passages back to the lines that they were cut from.

What belongs here: putting together. White space between two passages is not stored, so a blank line
comes back empty, and what stood behind a passage on its last line is lost where it was white space.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from concordance.text.lines import LINE_END


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage and its place: `start` and `end` are offsets into the text that it was cut from."""

    content: str
    start_line: int
    start: int
    end: int


def rejoin(pieces: Iterable[Piece]) -> dict[int, str]:
    """The text of each line that a piece reaches, without its line end; blank ones are left out.

    Pieces may overlap. A line is whole where every piece that reaches it is given. Where a piece's
    length is not that of its place, as a secret was taken out of it, the lines that another piece
    has already are taken as they are.
    """
    lines: dict[int, str] = {}
    reached = -1
    for piece in sorted(pieces, key=lambda p: (p.start, p.end)):
        fitting = piece.end - piece.start == len(piece.content)
        known = min(max(0, reached - piece.start), len(piece.content)) if fitting else 0
        first = piece.start_line + len(LINE_END.findall(piece.content, 0, known))
        between = piece.start - reached if fitting and reached >= 0 else 0
        for line, text in enumerate(LINE_END.split(piece.content[known:]), first):
            if line not in lines:
                lines[line] = text
            elif line == first and fitting:
                lines[line] += " " * max(0, between) + text
        reached = max(reached, piece.end)
    return lines
