"""Reader of Cline's and Roo Code's tasks: `tasks/ID/ui_messages.json`, a list of messages.

What counts as said: the task, what a person wrote back, the agent's words, its questions and its
result. The history for the API beside it repeats all of that and is not read.
"""

from __future__ import annotations

from typing import Final

from concordance.sessions.documents import Broken
from concordance.sessions.events import (
    Event,
    LeftOut,
    LineProblem,
    LogContent,
    SessionNote,
    Speaker,
)
from concordance.sessions.lines import (
    Json,
    LineError,
    entries,
    kind,
    moment,
    parse,
    string,
    table,
)
from concordance.sessions.reader import (
    LogContext,
    NotThisFormat,
    Reader,
    Sample,
    whole_document,
)
from concordance.sessions.thoughts import without_thoughts

_SAID: Final[dict[str, Speaker]] = {
    "task": "human",
    "user_feedback": "human",
    "text": "agent",
    "completion_result": "agent",
}
# What the agent asks or answers where a person is to reply, and the key of its words.
_ASKED: Final = {
    "followup": "question",
    "plan_mode_respond": "response",
    "plan_mode_response": "response",
}
_MESSAGES: Final = "ui_messages.json"
_BESIDE: Final = (
    "api_conversation_history.json",
    "task_metadata.json",
    "history_item.json",
    "context_history.json",
)
# Cline adds this to a result when files were changed.
_CHANGED: Final = "HAS_CHANGES"


def read_cline(data: bytes, context: LogContext) -> LogContent:
    """What a person and the agent said in one task; the session is the task's folder."""
    if context.path.name in _BESIDE:
        return LogContent((), beside="ui_messages.json beside it has what was said")
    document = whole_document(data)
    whole = document.value
    if not isinstance(whole, list):
        raise NotThisFormat("a JSON document that is no list of messages")
    session = context.folder_id
    events: list[Event] = []
    problems: list[LineProblem] = []
    left_out = LeftOut()
    taken: dict[str, int] = {}
    for number, message in enumerate(whole, start=1):
        if not isinstance(message, dict):
            reason = message.reason if isinstance(message, Broken) else "a message is a JSON object"
            problems.append(LineProblem(number, reason, unit="entry"))
            continue
        speaker, text = _said(message, first=number == 1)
        thought = None
        if speaker == "agent":
            text, thought = without_thoughts(text)
        if speaker is None or text is None:
            left_out.add(thought or _why(message))
            continue
        when = moment(message.get("ts"))
        event_id = str(message["ts"]) if when is not None else f"entry-{number}"
        taken[event_id] = taken.get(event_id, 0) + 1
        if taken[event_id] > 1:
            event_id = f"{event_id}-{taken[event_id]}"
        events.append(Event(session, event_id, speaker, text, when))
    notes = (SessionNote(session),)
    return LogContent(tuple(events), tuple(problems), left_out.counts, notes, cut=document.cut)


def _said(message: Json, *, first: bool) -> tuple[Speaker | None, str | None]:
    if message.get("partial") is True:
        return None, None
    if kind(message) == "say":
        say = kind(message, "say")
        # Roo Code writes the task itself as the first text.
        speaker = "human" if first and say == "text" else _SAID.get(say)
        text = string(message.get("text"))
        if text is not None and say == "completion_result":
            text = string(text.removesuffix(_CHANGED))
        return speaker, text
    key = _ASKED.get(kind(message, "ask")) if kind(message) == "ask" else None
    if key is not None:
        return "agent", _asked(message.get("text"), key)
    return None, None


def _asked(text: object, key: str) -> str | None:
    """The words in a JSON text that also has the answers to choose from."""
    if not isinstance(text, str):
        return None
    try:
        asked = parse(text.encode("utf-8", "replace"))
    except LineError:
        return string(text)
    return string(asked.get(key)) if isinstance(asked, dict) else string(text)


def _why(message: Json) -> str:
    if message.get("partial") is True:
        return "partial"
    of = kind(message)
    named = kind(message, of) if of in ("say", "ask") else ""
    if named in (_SAID if of == "say" else _ASKED):
        return "nothing said"
    return f"{of} {named}".strip() or "no type"


def _recognises(sample: Sample) -> bool:
    if sample.path.name in _BESIDE and sample.document is not None:
        return True
    if sample.document == [] and sample.path.name == _MESSAGES:
        return True
    found = [table(message) for message in entries(sample.document)]
    return any(kind(m) in ("say", "ask") and ("say" in m or "ask" in m) for m in found)


READER = Reader(
    name="cline",
    about="Cline and Roo Code",
    patterns=("**/ui_messages.json",),
    recognises=_recognises,
    read=read_cline,
    version=3,
    in_exports=True,
    aside=_BESIDE,
)
