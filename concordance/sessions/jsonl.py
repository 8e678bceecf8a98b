"""Reader of canonical JSON Lines: one event a line.

Fields: `session_id`, `event_id`, `type`, `text`, `occurred_at`, and optionally `title`, `project`.
`chat.message` is a person's, `agent.response` an agent's; every other type is left out.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from concordance.sessions.events import Event, LineProblem, LogContent, Speaker

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

SPEAKERS: dict[str, Speaker] = {"chat.message": "human", "agent.response": "agent"}


class _LineError(Exception):
    """A line that is no event; the message is the reason."""


class _BrokenLineError(_LineError):
    """A line that could be the beginning of a whole one."""


def read_jsonl(data: bytes) -> LogContent:
    """All events of a log, with the number and the reason of each line that could not be read.

    Lines end at LF alone: a JSON string may hold U+2028. A last line without its LF that is no
    whole JSON value is still being written.
    """
    events: list[Event] = []
    problems: list[LineProblem] = []
    left_out = 0
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            event = _read_event(line)
        except _LineError as error:
            unfinished = isinstance(error, _BrokenLineError) and number == len(lines)
            reason = "the line is not finished yet; it is read next time"
            problems.append(LineProblem(number, reason if unfinished else str(error), unfinished))
        else:
            if event is None:
                left_out += 1
            else:
                events.append(event)
    return LogContent(tuple(events), tuple(problems), left_out)


def _read_event(line: bytes) -> Event | None:
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        # Half a line may end within a character.
        kind = _BrokenLineError if error.reason == "unexpected end of data" else _LineError
        raise kind(f"not UTF-8 at byte {error.start + 1} of the line") from None
    except json.JSONDecodeError as error:
        raise _BrokenLineError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise _LineError("nested too deeply") from None
    except ValueError as error:
        # A number of thousands of digits is JSON, and more than Python reads.
        raise _LineError(str(error).split(";")[0]) from None
    if not isinstance(value, dict):
        raise _LineError(f"an event is a JSON object, this is {type(value).__name__}")
    speaker = SPEAKERS.get(value.get("type", "")) if isinstance(value.get("type"), str) else None
    if speaker is None:
        if not isinstance(value.get("type"), str):
            raise _LineError("'type' is missing or no text")
        return None
    return Event(
        session_id=_text(value, "session_id"),
        event_id=_text(value, "event_id"),
        speaker=speaker,
        text=_storable(_text(value, "text", blank=True)),
        occurred_at=_time(value.get("occurred_at")),
        title=_optional(value, "title"),
        project=_optional(value, "project"),
    )


def _text(value: dict[str, Any], key: str, *, blank: bool = False) -> str:
    found = value.get(key)
    if not isinstance(found, str) or not (found.strip() or blank):
        raise _LineError(f"'{key}' is missing or no text")
    return _storable(found)


def _optional(value: dict[str, Any], key: str) -> str | None:
    found = value.get(key)
    return _storable(found) if isinstance(found, str) and found.strip() else None


def _time(value: object) -> datetime | None:
    """An ISO 8601 time; one without an offset is taken as UTC."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise _LineError("'occurred_at' is no text; write an ISO 8601 time")
    try:
        found = datetime.fromisoformat(value.strip().upper())  # RFC 3339 allows a small z
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _LineError(f"'occurred_at' is no ISO 8601 time: {value[:40]!r}") from None


def _storable(text: str) -> str:
    """NUL and lone surrogates, which Postgres can't store, become U+FFFD one for one."""
    return _UNSTORABLE.sub("\ufffd", text)
