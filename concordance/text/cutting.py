"""Where a run of text is cut, so that each piece reads as well as its size allows.

What belongs here: the choice of each cut and of the overlap after it. Which sections form a run,
and what a chunk says about itself, is decided by the caller.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import regex  # type: ignore[import-untyped]

from concordance.text.graphemes import boundary_after, boundary_before, is_boundary
from concordance.text.lines import LINE_END
from concordance.text.markdown import Block

WHOLE: Final = frozenset({"fence", "table", "front_matter"})
"""Kinds of block that are not cut where they fit, and never overlapped into from behind."""

_VISIBLE: Final = re.compile(r"\S")
_SENTENCE: Final = r"(?:[.!?…][\"'”’»)\]]*\s+|[。！？]+\s*)"
_NEXT_SENTENCE: Final = re.compile(_SENTENCE)
_NEXT_WORD: Final = re.compile(r"\s+")
# Not within white space: each place in a run of it would be tried, and each walks the run.
_LAST_SENTENCE: Final = regex.compile(rf"(?r){_SENTENCE}(?!\s)")
_LAST_SPACE: Final = regex.compile(r"(?r)\s")


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """How long chunks are, in characters.

    A chunk is about `target` long and at most `target + window`; a cut is sought in the last
    `window` before the target. The next chunk of a section starts up to `overlap` earlier, but
    never more than a quarter of the target.

    Raises:
        ValueError: `target` is not positive, or another size is negative.
    """

    target: int = 1600
    overlap: int = 150
    window: int = 400

    def __post_init__(self) -> None:
        if self.target < 1 or self.overlap < 0 or self.window < 0:
            raise ValueError(f"chunk sizes must be positive: {self}")

    @property
    def bound(self) -> int:
        """The most characters of a chunk, unless one grapheme cluster is longer."""
        return self.target + self.window

    @property
    def quarter(self) -> int:
        """A quarter of the target: below this, a piece is too short to stand alone."""
        return self.target // 4


class Cutter:
    """Cuts the text from `start` to `end` into pieces; `blocks` say what lies in it.

    Both ends are grapheme boundaries; `start` is the start of a line, or the start of the text.
    """

    def __init__(
        self, text: str, start: int, end: int, blocks: Sequence[Block], sizes: ChunkSizes
    ) -> None:
        self._text = text
        self._start = start
        visible = start + len(text[start:end].rstrip())
        self._end = min(end, boundary_after(text, visible, start))
        self._blocks = blocks
        self._starts = [block.start for block in blocks]
        self._sizes = sizes

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Yield the start and the exclusive end of each piece, in order, without outer space."""
        start = fresh = self._start
        while fresh < self._end:
            start, first = self._enter(start, fresh)
            if self._end - start <= self._sizes.bound:
                yield start, self._trimmed(start, self._end)
                return
            start, cut = self._cut(start, first)
            yield start, self._trimmed(start, cut)
            start, fresh = self._overlapped(start, cut), cut

    def _enter(self, start: int, fresh: int) -> tuple[int, int]:
        """Skip white space; return the piece's start and its first character not seen before.

        A line's indentation is kept, unless it is so long that it would fill the piece.
        """
        text, quarter = self._text, self._sizes.quarter
        first = self._visible(fresh)
        if first - fresh > quarter:
            start = fresh
        visible = first if start == fresh else self._visible(start)
        line = max(text.rfind("\n", start, visible), text.rfind("\r", start, visible)) + 1
        if line == 0:
            line = start if start == 0 or text[start - 1] in "\r\n" else visible
        if line < visible <= line + quarter:
            return line, first
        return boundary_before(text, visible, start), first

    def _visible(self, offset: int) -> int:
        found = _VISIBLE.search(self._text, offset, self._end)
        return self._end if found is None else found.start()

    def _trimmed(self, start: int, cut: int) -> int:
        end = start + len(self._text[start:cut].rstrip())
        # a space can belong to the cluster before it, after a prepended mark
        return min(cut, boundary_after(self._text, end, start))

    def _cut(self, start: int, first: int) -> tuple[int, int]:
        """Return the piece's start, and a cut after `first`; the best kind of cut wins."""
        limit = start + self._sizes.target
        lowest = max(first, limit - self._sizes.window, start)
        candidates = (
            self._block_cut(start, first, limit),
            self._line_cut(max(first, start + self._sizes.target // 2), limit),
            self._last(_LAST_SENTENCE, lowest, limit),
            self._last(_LAST_SPACE, lowest, limit),
            boundary_before(self._text, limit, start),
        )
        for cut in candidates:
            if cut > first and is_boundary(self._text, cut, start):
                return start, cut
        # One cluster reaches over the whole target: it makes a piece of its own.
        start = boundary_before(self._text, first, start)
        limit = start + self._sizes.target
        cut = boundary_before(self._text, limit, start)
        return start, cut if cut > first else boundary_after(
            self._text, max(limit, first + 1), start
        )

    def _block_cut(self, start: int, first: int, limit: int) -> int:
        """Return the best cut between blocks, or -1."""
        number = bisect_right(self._starts, limit) - 1
        if number < 0:
            return -1
        block = self._blocks[number]
        if block.end <= limit:
            return block.end if block.end - start >= self._sizes.quarter else -1
        before = self._before_headings(number)
        if before - start >= self._sizes.quarter:
            return before
        if block.end - start <= self._sizes.bound:
            return block.end
        whole = block.kind in WHOLE and block.end - block.start <= self._sizes.bound
        return before if whole and before > first else -1

    def _before_headings(self, number: int) -> int:
        """Return the start of block `number`, or of the headings right before it."""
        while number > 0 and self._blocks[number - 1].kind == "heading":
            number -= 1
        return self._starts[number]

    def _line_cut(self, lowest: int, limit: int) -> int:
        """Return the last cut at a line's end, a blank line first, or -1."""
        text = self._text
        near = max(lowest, limit - self._sizes.window)
        for blank in ("\n\n", "\r\n\r\n"):
            found = text.rfind(blank, near, limit)
            if found >= 0:
                return found + len(blank)
        cut = max(text.rfind("\n", lowest, limit), text.rfind("\r", lowest, limit)) + 1
        inside = cut > 0 and text[cut - 1 : cut + 1] == "\r\n"
        return cut - 1 if inside else cut or -1

    def _last(self, pattern: regex.Pattern[str], lowest: int, limit: int) -> int:
        found = pattern.search(self._text, lowest, limit)
        return -1 if found is None else int(found.end())

    def _overlapped(self, start: int, cut: int) -> int:
        """Return where the next piece starts: at `cut`, or a little earlier."""
        room = min(self._sizes.overlap, self._sizes.quarter)
        lowest = max(start + 1, cut - room)
        whole_lines = False
        number = bisect_right(self._starts, cut) - 1
        while number >= 0 and self._blocks[number].end > lowest:
            block = self._blocks[number]
            if block.kind in WHOLE and block.start == cut:
                return cut  # an overlap could push its end over the bound
            if block.end <= cut and (block.kind in WHOLE or block.kind == "heading"):
                lowest = block.end
            elif block.start < cut < block.end and block.kind in WHOLE:
                whole_lines = True
            number -= 1
        return self._earliest(lowest, cut, start, whole_lines=whole_lines)

    def _earliest(self, lowest: int, cut: int, known: int, *, whole_lines: bool) -> int:
        """Return the first start of a line, else a sentence, else a word, from `lowest` on."""
        patterns = (LINE_END,) if whole_lines else (LINE_END, _NEXT_SENTENCE, _NEXT_WORD)
        for pattern in patterns:
            found = pattern.search(self._text, lowest - 1, cut - 1)
            if (
                found
                and lowest <= found.end() < cut
                and is_boundary(self._text, found.end(), known)
            ):
                return found.end()
        return cut if whole_lines else min(cut, boundary_after(self._text, lowest, known))
