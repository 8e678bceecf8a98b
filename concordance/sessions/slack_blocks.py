"""The words in the blocks of a message of Slack, for messages that have no other text.

What belongs here: blocks to text in Slack's own marks, as `text` has them. What the marks mean is
the reader's matter.
"""

from __future__ import annotations

import html
from typing import Final

from concordance.sessions.lines import Json, entries, kind, string, table

_LINES: Final = ("section", "header", "context", "markdown")
# Which kinds of rich text hold others that begin lines of their own.
_APART: Final = ("rich_text", "rich_text_list")
_MARKS: Final = {
    "text": ("{}", "text"),
    "user": ("<@{}>", "user_id"),
    "channel": ("<#{}>", "channel_id"),
    "broadcast": ("<!{}>", "range"),
    "emoji": (":{}:", "name"),
}
_DEEPEST: Final = 8


def in_blocks(blocks: object) -> str | None:
    """The words of some blocks, or None; buttons, menus and pictures have none."""
    return string("\n\n".join(filter(None, map(_words, entries(blocks)))))


def _words(block: object) -> str:
    if kind(block) == "rich_text":
        return _rich(table(block), 0).strip()
    if kind(block) not in _LINES:
        return ""
    one = table(block)
    parts = [one.get("text"), *entries(one.get("fields")), *entries(one.get("elements"))]
    texts = [part if isinstance(part, str) else table(part).get("text") for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip())


def _rich(element: Json, depth: int) -> str:
    """The words of rich text, with its mentions and links as marks; no deeper than people nest."""
    of = kind(element)
    if of == "link" or of in _MARKS:
        return _piece(element)
    inner = entries(element.get("elements")) if depth < _DEEPEST else []
    pieces = [_rich(table(one), depth + 1) for one in inner]
    return "\n".join(filter(str.strip, pieces)) if of in _APART else "".join(pieces)


def _piece(element: Json) -> str:
    of, text = kind(element), html.escape(kind(element, "text"), quote=False)
    if of == "link":
        address = kind(element, "url")
        return f"<{address}|{text}>" if text else f"<{address}>"
    mark, key = _MARKS[of]
    return text if of == "text" else mark.format(kind(element, key))
