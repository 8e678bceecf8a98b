"""Where the lines of a text begin, counted as CommonMark counts them.

What belongs here: offsets and line numbers. What a line means belongs to the parsers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

LINE_END: Final = re.compile(r"\r\n?|\n")
"""A line ending of CommonMark 0.31, section 2.1: LF, CR LF, or a CR alone.

A form feed, a vertical tab, U+0085 and U+2028 end no line, so `str.splitlines` can't be used.
"""


class LineIndex:
    """The line starts of one text; lines count from 1, offsets are characters from 0.

    An empty text has no line; a text that ends in a line ending has no empty line after it.
    """

    __slots__ = ("_length", "_starts")

    def __init__(self, text: str) -> None:
        starts = [0]
        starts.extend([match.end() for match in LINE_END.finditer(text)])
        if starts[-1] == len(text):
            starts.pop()
        self._starts = starts
        self._length = len(text)

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self._starts)

    def line_of(self, offset: int) -> int:
        """Return the line that holds the character at `offset`.

        The end of the text belongs to the last line, and to line 1 where there is none.
        """
        return max(1, bisect_right(self._starts, offset))

    def start_of(self, line: int) -> int:
        """Return the offset at which `line` starts; past the last line, the text's length."""
        return self._starts[line - 1] if line <= len(self._starts) else self._length

    def span_of(self, line: int) -> tuple[int, int]:
        """Return the start and the exclusive end of `line`, its line ending included.

        Raises:
            IndexError: there is no such line.
        """
        if not 1 <= line <= len(self._starts):
            raise IndexError(f"line {line} of {len(self._starts)}")
        return self.start_of(line), self.start_of(line + 1)
