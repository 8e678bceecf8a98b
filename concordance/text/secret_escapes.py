"""A text as it is shown: without the escapes that a terminal or a parser takes away.

What belongs here: the copy, and where in the text each of its characters stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

_BEGUN: Final = r"(?:\x1b|\u241b|\^\[|`e|(?<!\\)\\++(?:u001[bB]|u\{1[bB]\}|x1[bB]|0?33|e))"
# Colours and moves of a terminal, the same written out, and colours that lost their sign.
_COLOUR: Final = (
    rf"{_BEGUN}(?:\[[0-9;:?]{{0,24}}[A-Za-z]|[()][A-Z0-9]|\]8;[^;\s]{{0,80}};)"
    r"|\[(?:[0-9]{1,3}(?:;[0-9]{1,3}){0,5})?m|\x1b\\?"
)
# Characters as JSON and programs write them.
_CHARACTER: Final = (
    r"(?<!\\)\\++(?:u(?P<four>[0-9A-Fa-f]{4})|u\{(?P<any>[0-9A-Fa-f]{1,6})\}"
    r"|x(?P<two>[0-9A-Fa-f]{2})|(?P<octal>[0-3][0-7]{2}))"
    # Signs that Markdown would take for its own.
    r"|\\(?P<sign>[_~*.-])"
)
_ESCAPE: Final = re.compile(rf"(?P<colours>(?:{_COLOUR})++)|{_CHARACTER}")
_SIGNS: Final = ("\x1b", "\u241b", "^[", "`e", "\\", "m")
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class Shown:
    """A text without colours, and with characters in place of the escapes that stand for them."""

    def __init__(self, text: str) -> None:
        self.text = text
        # By piece: where it begins in the copy, and begins and ends in the text. A piece is as
        # it was, or one character.
        self._pieces = [(0, 0, len(text))]
        if any(sign in text for sign in _SIGNS):
            self._copy(text)
        self._copied = [copied for copied, _, _ in self._pieces]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where a span of the copy, one character or more, lies in the text."""
        copied, begin, _ = self._pieces[bisect_right(self._copied, start) - 1]
        number = bisect_right(self._copied, end - 1) - 1
        last_copied, last_begin, last_end = self._pieces[number]
        length = end - last_copied
        whole = number + 1 < len(self._pieces) and self._copied[number + 1] == end
        return begin + start - copied, last_end if whole else last_begin + length

    def _copy(self, text: str) -> None:
        parts: list[str] = []
        pieces: list[tuple[int, int, int]] = []
        length, position = 0, 0
        for match in _ESCAPE.finditer(text):
            for part, start, end in (
                (text[position : match.start()], position, match.start()),
                (_shown(match), *match.span()),
            ):
                if part:
                    pieces.append((length, start, end))
                    parts.append(part)
                    length += len(part)
            position = match.end()
        if parts or position:
            pieces.append((length, position, len(text)))
            self._pieces, self.text = pieces, "".join([*parts, text[position:]])


def _shown(match: re.Match[str]) -> str:
    """One character, or none; words that only a colour parts stay apart."""
    if match["colours"] is not None:
        beside = (
            match.string[max(0, match.start() - 1) : match.start()],
            match.string[match.end() : match.end() + 1],
        )
        return " " if all(c.isalnum() for c in beside) else ""
    if match["sign"] is not None:
        return match["sign"]
    digits = match["four"] or match["any"] or match["two"]
    code = int(match["octal"], 8) if digits is None else int(digits, 16)
    return chr(code) if code <= _LAST and code not in _SURROGATES else " "
