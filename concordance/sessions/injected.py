"""What Claude Code writes in a person's name, told from what a person says about it.

What belongs here: reminders and what an editor shows, beside a person's words, and texts that are
none of theirs at all. The program writes each of them as a whole element that begins a block or a
line. A tag that is not closed, or stands in the middle of a line or in code, is a person's own.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from concordance.sessions.lines import entries, spoken

INJECTED: Final = "injected context"
SUMMARY: Final = "summary of what was said before"
# Reminders, and what the editor shows.
_NAMES: Final = "system-reminder|ide_[a-z_]+"
# None of these goes back over what it has seen: a text may be made to be slow.
_MARK: Final = re.compile(
    rf"^[ \t]*+(?:(?P<fence>`{{3,}}|~{{3,}})(?P<info>[^\n]*)|<(?P<name>{_NAMES})>)", re.MULTILINE
)
_NEXT: Final = re.compile(rf"\s*+<(?P<name>{_NAMES})>")
_CLOSING: Final = re.compile(rf"</({_NAMES})>")
_WORD: Final = re.compile(r"\w")
# Commands and their output, notices of tasks.
_WHOLE: Final = re.compile(
    r"<(command-(?:name|message|args|contents)|local-command-[a-z]+|bash-(?:input|stdout|stderr)"
    r"|task-notification|user-memory-input|user-prompt-submit-hook|teammate-message"
    r"|session-start-hook|environment_context)(?:\s[^<>]*)?>"
)
_CONTINUED: Final = re.compile(
    r"This session is being continued from a previous conversation"
    r"(?: that ran out of (?:context|tokens))?\."
)
_CAVEAT: Final = "Caveat: The messages below were generated"
_INTERRUPTED: Final = re.compile(r"\[Request interrupted by user[^\]]*\]\s*\Z")


def own_words(content: object) -> tuple[str | None, str | None, int]:
    """A person's own words in the content of a message, as far as there are any.

    Returns:
        The words, or None and the reason why there are none; and how many parts that the program
        added were taken out beside them. None and None where nothing is said at all.
    """
    text = spoken(content)
    if text is None:
        return None, None, 0
    parts, number = [], 0
    # A block is looked at by itself: code that is not closed in one does not go on in the next.
    for block in [content] if isinstance(content, str) else entries(content):
        part, taken = _without_added(spoken([block]) or "")
        number += taken
        parts += [part] if part.strip() else []
    if number:
        text = "\n\n".join(parts).strip()
    kept = text.strip()
    if not kept:
        return None, INJECTED, 0
    if _CONTINUED.match(kept):
        return None, SUMMARY, 0
    if _is_injected(kept):
        return None, "command or injected context", 0
    if _INTERRUPTED.match(kept):
        return None, "interruption", 0
    return text, None, number


def _is_injected(text: str) -> bool:
    """Whether a text begins with an element of the program, the end of which ends a line."""
    if text.startswith(_CAVEAT):
        return True
    found = _WHOLE.match(text)
    if found is None:
        return False
    return re.compile(rf"</{found[1]}>[ \t]*+(?:[\n<]|\Z)").search(text, found.end()) is not None


def _without_added(text: str) -> tuple[str, int]:
    """A text without what the program added to it, and how many parts that were."""
    kept: list[str] = []
    start = at = 0
    fence: str | None = None
    closings = _closings(text)
    while (found := _MARK.search(text, at)) is not None:
        at = found.end()
        if found["fence"] is not None:
            fence = _code(fence, found["fence"], found["info"])
            continue
        follows: re.Match[str] | None = found if fence is None else None
        while follows is not None:
            end = _closed(text, follows, closings)
            if end is None:
                break
            kept.append(text[start : follows.start()])
            start = at = end
            follows = _NEXT.match(text, end)
    kept.append(text[start:])
    return ("".join(kept).strip() if start else text), len(kept) - 1


def _code(fence: str | None, found: str, info: str) -> str | None:
    """The fence of the code that is open after a fence, or None."""
    if fence is None:
        return found
    return None if found.startswith(fence) and not info.strip() else fence


def _closings(text: str) -> dict[str, list[int]]:
    """Where elements end, by their names; looked for once, as a text may name very many."""
    found: dict[str, list[int]] = {}
    for closing in _CLOSING.finditer(text):
        found.setdefault(closing[1], []).append(closing.start())
    return found


def _closed(text: str, opened: re.Match[str], closings: Mapping[str, list[int]]) -> int | None:
    """Where an element ends; None where it is not closed, or has no word in it, as `<x>…</x>`."""
    ends = closings.get(opened["name"], [])
    place = bisect_left(ends, opened.end())
    if place == len(ends) or _WORD.search(text, opened.end(), ends[place]) is None:
        return None
    return ends[place] + len(opened["name"]) + len("</>")
