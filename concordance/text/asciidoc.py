"""AsciiDoc to sections and blocks, as far as citations need it.

What belongs here: headings, delimited blocks and paragraphs, by line. Attributes, macros and
conditions are left as they are written.
"""

from __future__ import annotations

import re
from typing import Final

from concordance.text.lines import LINE_END
from concordance.text.markdown import MarkdownDocument, placed
from concordance.text.outline import BlockKind, Leaf

_HEADING: Final = re.compile(
    r"(?P<marks>={1,6}|#{1,6})[ \t]+(?P<title>\S.*?)(?:[ \t]+(?P=marks))?[ \t]*$"
)
_DELIMITER: Final = re.compile(
    r"(?:-{4,}|={4,}|\.{4,}|\+{4,}|_{4,}|\*{4,}|/{4,}|--|```.*|[|,:!]={3,})[ \t]*$"
)
_LIST: Final = re.compile(r"\s*(?:(?:[-*.•]{1,5}|\d+[.)])\s+\S|\S.*?::(?:\s|$))")
_PLAIN: Final = re.compile(r"[:/\[]")


def parse_asciidoc(text: str) -> MarkdownDocument:
    """Parse any text; offsets are those of `text` as it was given, whatever its line endings."""
    return placed(text, asciidoc_outline(text))


def asciidoc_outline(text: str) -> list[Leaf]:
    """Return the blocks of `text` in order; blank lines are in none."""
    lines = LINE_END.split(text)
    ends = _last_lines(lines)
    leaves: list[Leaf] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        heading = _HEADING.match(line)
        if not line.strip():
            number += 1
            continue
        first = number
        if heading is not None:
            number += 1
            leaves.append(Leaf("heading", first, number, len(heading["marks"]), heading["title"]))
            continue
        if _DELIMITER.match(line) and ends.get(line.rstrip(), -1) > number:
            number = _closing(lines, number) + 1
            leaves.append(Leaf(_kind(line), first, number))
            continue
        number += 1
        while number < len(lines) and lines[number].strip() and not _opens(lines[number]):
            number += 1
        leaves.append(Leaf("list" if _LIST.match(line) else "paragraph", first, number))
    return leaves


def _last_lines(lines: list[str]) -> dict[str, int]:
    """Where each delimiter stands last: one that is not closed opens nothing."""
    return {line.rstrip(): n for n, line in enumerate(lines) if _DELIMITER.match(line)}


def _closing(lines: list[str], number: int) -> int:
    wanted = lines[number].rstrip()
    wanted = "```" if wanted.startswith("```") else wanted
    for later in range(number + 1, len(lines)):
        if lines[later].rstrip() == wanted:
            return later
    return number


def _kind(line: str) -> BlockKind:
    return "table" if line[:1] in "|,:!" else "quote" if line[:1] in "_=*" else "fence"


def _opens(line: str) -> bool:
    return bool(_HEADING.match(line) or _DELIMITER.match(line) or _LIST.match(line))
