"""The bounds of what a reader sees as one character, found near one place only.

What belongs here: grapheme clusters (Unicode Standard Annex 29), so that no cut parts a letter
from its accent, the members of an emoji family, a flag's two halves, or CR from LF.
"""

from __future__ import annotations

from typing import Final

import regex  # type: ignore[import-untyped]

_CLUSTER: Final = regex.compile(r"\X")
# Between two of these a cluster always ends (rule GB999), so counting may start there. Left out
# on purpose: marks, pictographs, Hangul and the Indic scripts, whose letters can join.
_LETTER: Final = (
    r"[\x20-\x7E[\p{L}&&[\p{Han}\p{Hiragana}\p{Katakana}\p{Latin}\p{Cyrillic}\p{Greek}]]]"
)
_ANCHOR: Final = regex.compile(rf"(?V1)(?r)(?:{_LETTER}{_LETTER}|\n)")

_REACH: Final = 32


def boundary_before(text: str, offset: int, known: int) -> int:
    """Return the largest cluster boundary that is not after `offset`.

    `known` is a boundary at or before `offset`; nothing before it is read.
    """
    return _around(text, offset, known)[0]


def boundary_after(text: str, offset: int, known: int) -> int:
    """Return the smallest cluster boundary that is not before `offset`; `known` as above."""
    return _around(text, offset, known)[1]


def is_boundary(text: str, offset: int, known: int) -> bool:
    """Say whether a cut at `offset` leaves every cluster whole; `known` as above."""
    return _around(text, offset, known)[0] == offset


def _around(text: str, offset: int, known: int) -> tuple[int, int]:
    pair = text[offset - 1 : offset + 1] if offset else ""
    if offset <= known or len(pair) < 2 or (pair.isascii() and pair != "\r\n"):  # noqa: PLR2004 - a pair
        return offset, offset
    anchor = _ANCHOR.search(text, known, offset)
    start = known if anchor is None else anchor.end() - (anchor[0] != "\n")
    if start == offset:
        return offset, offset
    reach = offset + _REACH
    while True:
        # A slice, since \X counts flags back to the start of what it is given, at every flag.
        for cluster in _CLUSTER.finditer(text[start:reach]):
            first, last = cluster.start() + start, cluster.end() + start
            if last == offset:
                return offset, offset
            if last > offset and (last < reach or reach >= len(text)):
                return first, last
        reach += reach - start
