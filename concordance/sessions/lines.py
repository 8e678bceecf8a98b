"""JSON Lines: the value of each line, or the number and the reason of one that can't be read.

What belongs here: what the formats with one JSON object a line have in common, and the checks of
values that any log may hold. What the values mean is each reader's matter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from concordance.sessions.events import LineProblem, storable

Json = dict[str, Any]

BOM = b"\xef\xbb\xbf"
UNFINISHED = "the line is not finished yet; it is read next time"
# Seconds from the first number on would be after the year 5000: they are milliseconds; likewise
# those are microseconds, and those nanoseconds.
_PARTS_OF_A_SECOND = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3))


class LineError(Exception):
    """A line that is no event; the message is the reason."""


class BrokenLineError(LineError):
    """A line that could be the beginning of a whole one."""


def objects(data: bytes) -> Iterator[tuple[int, Json | LineProblem]]:
    """Each line that is not blank, by its number: a JSON object, or what is wrong with it.

    A last line without its end that is no whole JSON value is still being written.
    """
    for number, line, last in split(data):
        if line.strip():
            yield number, _read(line, number, last=last)


def split(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Each line without its end, by its number, and whether it is the last, which has no end.

    Lines end at LF alone: a JSON string may hold U+2028, and a terminal writes CR within a line.
    Where there is no LF at all they end at CR.
    """
    start = len(BOM) if data.startswith(BOM) else 0
    sign = b"\r" if b"\n" not in data and b"\r" in data else b"\n"
    number = 0
    while start <= len(data):
        end = data.find(sign, start)
        number += 1
        if end < 0:
            yield number, data[start:], True
            return
        yield number, data[start:end], False
        start = end + 1


def parse(data: bytes) -> Any:
    """One JSON value.

    Raises:
        LineError: It is none.
    """
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        # Half a line may end within a character.
        kind = BrokenLineError if error.reason == "unexpected end of data" else LineError
        raise kind(f"not UTF-8 at byte {error.start + 1} of the line") from None
    except json.JSONDecodeError as error:
        raise BrokenLineError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise LineError("nested too deeply") from None
    except ValueError as error:
        # A number of thousands of digits is JSON, and more than Python reads.
        raise LineError(str(error).split(";")[0]) from None


def _read(line: bytes, number: int, *, last: bool) -> Json | LineProblem:
    try:
        value = parse(line)
    except LineError as error:
        unfinished = last and isinstance(error, BrokenLineError)
        return LineProblem(number, UNFINISHED if unfinished else str(error), unfinished)
    if not isinstance(value, dict):
        return LineProblem(number, f"an event is a JSON object, this is {type(value).__name__}")
    return value


def table(value: object) -> Json:
    """A JSON object, or an empty one where there is none."""
    return value if isinstance(value, dict) else {}


def entries(value: object) -> list[Any]:
    """A JSON list, or an empty one where there is none."""
    return value if isinstance(value, list) else []


def kind(value: object, key: str = "type") -> str:
    """The text that an object has under a key, or an empty one; never what can't be compared."""
    found = table(value).get(key)
    return found if isinstance(found, str) else ""


def string(value: object) -> str | None:
    """A text that says something, as it can be stored, or None."""
    return storable(value) if isinstance(value, str) and value.strip() else None


def identifier(value: object) -> str | None:
    """A text or a number that names something, or None."""
    if isinstance(value, bool):
        return None
    return string(str(value)) if isinstance(value, (str, int, float)) else None


def moment(value: object) -> datetime | None:
    """A time in ISO 8601, or in seconds since 1970 or thousandths, millionths or so of them.

    One without an offset is taken as UTC. None where it is no time of the years 1 to 9999.
    """
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip().upper())  # RFC 3339 allows a small z
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        if not math.isfinite(value) or value <= 0:
            return None
        parts = next((parts for least, parts in _PARTS_OF_A_SECOND if value >= least), 1)
        return datetime.fromtimestamp(value / parts, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def spoken(content: object, kinds: tuple[str, ...] = ("text",)) -> str | None:
    """The text of a message: a string, or the text of its parts, which are strings or objects.

    Args:
        content: What the message holds.
        kinds: The `type` of the parts that are text; parts without a type are, too.
    """
    if isinstance(content, str):
        return string(content)
    parts = []
    for part in entries(content):
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict) and part.get("type", kinds[0]) in kinds:
            text = part.get("text")
            parts += [text] if isinstance(text, str) else []
    said = [part for part in parts if part.strip()]
    return string("\n\n".join(said)) if said else None
