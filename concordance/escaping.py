"""Text of sources among text of ours: nothing in it is obeyed, by a terminal or by a page.

What belongs here: the marks of Markdown around a text of which nothing is known. On pages it stands
in code, inline or as a block, since some renderers make links of addresses even where these were
escaped as text.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

# Control characters but tab and line feed, turns of the writing direction, halves of characters.
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
LINE_CHARACTERS = 300
_LEAST_FENCE = 3
# It looks like the mark that ends code, and ends none.
_NO_BACKTICK = "ˋ"
# What no renderer takes for a mark, nor for an address of its own. Some show the label of a link as
# it is written, marks of code included.
_PLAIN = re.compile(r"(?:[A-Za-z0-9 ./:@#+,=-]|(?<=[A-Za-z0-9])_(?=[A-Za-z0-9]))+")
_ADDRESS = re.compile(r"//|www\.|@[\w-]*\.", re.IGNORECASE)
_OF_ADDRESSES = "%/:?#@!$&'*+,;=~"


def safe(text: str) -> str:
    """Text without characters that a terminal or a page would obey."""
    return CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def in_a_line(text: str) -> str:
    """The same on one line, for names: a line of their own would pass for one of ours."""
    return safe(text).replace("\n", "\ufffd")


def one_line(text: str, *, most: int = LINE_CHARACTERS) -> str:
    """The same on one line, cut where it is long."""
    line = " ".join(safe(text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def verbatim(text: str, *, most: int = LINE_CHARACTERS) -> str:
    """Text as inline code, also for the cell of a table."""
    line = one_line(text, most=most).replace("`", _NO_BACKTICK)
    # In a table a bar ends the cell even within code; renderers disagree on what escapes it.
    line = line.replace("|", "¦")
    return f"`{line}`" if line else "–"


def block(text: str, *, most: int) -> str:
    """Text as a block of code, line by line as it stands."""
    shown = safe(text[:most])
    runs = (len(run) for run in re.findall("`+", shown))
    fence = "`" * max(_LEAST_FENCE, 1 + max(runs, default=0))
    more = "" if len(text) <= most else "\n…"
    return f"{fence}text\n{shown}{more}\n{fence}"


def linked(label: str, address: str | None, *, most: int = LINE_CHARACTERS) -> str:
    """Text as a link to a page, or as text alone where there is none."""
    shown = verbatim(label, most=most)
    line = one_line(label, most=most)
    if address is None or urlsplit(address).scheme not in ("http", "https"):
        return shown
    if _PLAIN.fullmatch(line) and not _ADDRESS.search(line):
        shown = line
    # What could end the address, or be taken for a mark, is written as an escape of addresses.
    target = quote(address, safe=_OF_ADDRESSES, errors="replace")
    return f"[{shown}]({target})"
