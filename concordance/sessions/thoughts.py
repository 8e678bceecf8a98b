"""What a model thought and what tools gave it, where that stands in the text of its answer.

What belongs here: telling the answer's own words from folded sections and thoughts in tags. What
stands in code is the answer's own: it may be about such tags.
"""

from __future__ import annotations

import re
from typing import Final

from concordance.sessions.lines import string

THINKING: Final = "thinking"
_FOLDED: Final = ("reasoning", "tool_calls", "tool_call", "code_interpreter")
_TAGS: Final = "think|thinking|thought|thoughts|reasoning"
# None of these goes back over what it has seen: a text may be made to be slow.
_ANY: Final = re.compile(rf"<details\b|</?(?:{_TAGS})\b", re.IGNORECASE)
_MARK: Final = re.compile(
    rf"^[ \t]{{0,3}}(?P<fence>`{{3,}}|~{{3,}})(?P<info>[^\n]*)|`[^`\n]++`"
    rf"|<(?P<end>/?)(?P<name>details|{_TAGS})\b(?P<attributes>[^<>]*)>",
    re.IGNORECASE | re.MULTILINE,
)
_DETAILS: Final = re.compile(r"<(/?)details\b[^<>]*>", re.IGNORECASE)
_TYPE: Final = re.compile(r"\btype\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
# A tag begins a line after so much indentation at the most.
_INDENTED: Final = 8


def without_thoughts(text: str | None) -> tuple[str | None, str | None]:
    """An answer without them, or None and the kind of what was there where nothing else was.

    A section or tag that is not closed goes to the end; a tag in the middle of a line is prose
    then. Where `</think>` begins a line and nothing opened it, all before it was thought.
    """
    if text is None or "<" not in text or _ANY.search(text) is None:
        return text, None
    kept, kinds = _Scan(text).read()
    if not kinds:
        return text, None
    own = string(kept.strip())
    return own, None if own is not None else kinds[0]


class _Scan:
    """One way through a text, from its start to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._kept: list[str] = []
        self._kinds: list[str] = []
        self._start = 0  # of what is kept next
        self._fence: str | None = None
        self._unclosed: set[str] = set()

    def read(self) -> tuple[str, list[str]]:
        """The text that stays, and the kinds of what does not, in order."""
        at = 0
        while (found := _MARK.search(self._text, at)) is not None:
            at = found.end()
            if found["fence"] is not None:
                self._code(found["fence"], found["info"])
            elif self._fence is None and found["name"] is not None:
                at = self._tag(found)
        self._kept.append(self._text[self._start :])
        return "".join(self._kept), self._kinds

    def _code(self, fence: str, info: str) -> None:
        if self._fence is None:
            self._fence = fence
        elif fence.startswith(self._fence) and not info.strip():
            self._fence = None

    def _tag(self, found: re.Match[str]) -> int:
        """Take out what a tag opens; where to look further."""
        name = found["name"].lower()
        if found["end"]:
            if not self._kinds and name != "details" and self._begins_line(found.start()):
                self._start = found.end()
                self._kinds.append(THINKING)
            return found.end()
        kind = _kind(name, found["attributes"])
        end = None if kind is None else self._closed(name, found)
        if kind is None or end is None:
            return found.end()
        self._kept.append(self._text[self._start : found.start()])
        self._kinds.append(kind)
        self._start = end
        return end

    def _closed(self, name: str, found: re.Match[str]) -> int | None:
        """Where what a tag opens ends; None where it opens nothing."""
        if name == "details":
            return self._end_of_details(found.end())
        if name not in self._unclosed:
            closing = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(self._text, found.end())
            if closing is not None:
                return closing.end()
            self._unclosed.add(name)
        return len(self._text) if self._begins_line(found.start()) else None

    def _end_of_details(self, at: int) -> int:
        """A folded section may hold others."""
        depth = 1
        for found in _DETAILS.finditer(self._text, at):
            depth += -1 if found[1] else 1
            if not depth:
                return found.end()
        return len(self._text)

    def _begins_line(self, at: int) -> bool:
        before = self._text[max(self._start, at - _INDENTED) : at].rstrip(" \t")
        return before.endswith("\n") or (not before and at - self._start <= _INDENTED)


def _kind(name: str, attributes: str) -> str | None:
    if attributes.rstrip().endswith("/"):
        return None
    if name != "details":
        return THINKING
    found = _TYPE.search(attributes)
    return found[1].lower() if found is not None and found[1].lower() in _FOLDED else None
