"""Reader of canonical JSON Lines: one event a line.

Fields: `session_id`, `event_id`, `type`, `text`, `occurred_at`, and optionally `title`, `project`,
`author`, `thread`, `directory`, `branch`, `commit`. `chat.message` is a person's, `agent.response`
an agent's; every other type is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from concordance.sessions.events import (
    Event,
    LeftOut,
    LineProblem,
    LogContent,
    SessionNote,
    Speaker,
    Workplace,
    something_said,
    storable,
)
from concordance.sessions.lines import LineError, identifier, moment, objects, string
from concordance.sessions.reader import LogContext, Reader, Sample

SPEAKERS: dict[str, Speaker] = {"chat.message": "human", "agent.response": "agent"}
_NO_CONTEXT = LogContext()


def read_jsonl(data: bytes, _context: LogContext = _NO_CONTEXT) -> LogContent:
    """All events of a log, with the number and the reason of each line that could not be read."""
    events: list[Event] = []
    problems: list[LineProblem] = []
    left_out = LeftOut()
    notes: dict[tuple[str, str | None], SessionNote] = {}
    for number, value in objects(data):
        if isinstance(value, LineProblem):
            problems.append(value)
            continue
        try:
            event = read_event(value)
        except LineError as error:
            problems.append(LineProblem(number, str(error)))
            continue
        if event is None:
            left_out.add(value["type"])
        else:
            events.append(event)
        note = note_of(value)
        if note is not None:
            known = notes.get((note.session_id, note.project))
            if known is None or (note.workplace and not known.workplace):
                notes[note.session_id, note.project] = note
    said = something_said(events, left_out)
    return LogContent(said, tuple(problems), left_out.counts, tuple(notes.values()))


def read_event(value: Mapping[str, Any]) -> Event | None:
    """The event of a row with the canonical fields; None for a type that is left out.

    It may say nothing, and count all the same; see `something_said`.

    Raises:
        LineError: A field is missing or malformed.
    """
    kind = value.get("type")
    if not isinstance(kind, str):
        raise LineError("'type' is missing or no text")
    speaker = SPEAKERS.get(kind)
    if speaker is None:
        return None
    return Event(
        session_id=_name(value, "session_id"),
        event_id=_name(value, "event_id"),
        speaker=speaker,
        text=_said(value),
        occurred_at=_time(value.get("occurred_at")),
        title=string(value.get("title")),
        project=string(value.get("project")),
        author=string(value.get("author")),
        thread=string(value.get("thread")),
    )


def note_of(value: Mapping[str, Any]) -> SessionNote | None:
    """What a row says of its session, where it names one."""
    session_id = string(value.get("session_id"))
    if session_id is None:
        return None
    place = (string(value.get(key)) for key in ("directory", "branch", "commit"))
    return SessionNote(session_id, None, string(value.get("project")), Workplace(*place))


def _name(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str) or not found.strip():
        raise LineError(f"'{key}' is missing or no text")
    return storable(found)


def _said(value: Mapping[str, Any]) -> str:
    found = value.get("text")
    if not isinstance(found, str):
        raise LineError("'text' is missing or no text")
    return storable(found)


def _time(value: object) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        raise LineError("'occurred_at' is no text; write an ISO 8601 time")
    found = moment(value)
    if found is None:
        raise LineError("'occurred_at' is no ISO 8601 time")  # its value may be anything
    return found


def _recognises(sample: Sample) -> bool:
    return any(
        identifier(line.get("session_id")) and "event_id" in line and "type" in line
        for line in sample.lines
    )


READER = Reader(
    name="jsonl",
    about="canonical JSON Lines",
    patterns=("**/*.jsonl",),
    recognises=_recognises,
    read=read_jsonl,
    version=3,
)
