"""Reader of Gemini CLI's logs: `…/chats/session-*.jsonl`, and one JSON document in older ones.

What counts as said: `content` of messages of type `user` and `gemini`. A message that stands again
replaces the one before, and `$rewindTo` takes back a message with all that follow it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from concordance.sessions.documents import Broken, Document, read_document
from concordance.sessions.events import (
    MALFORMED,
    Event,
    LeftOut,
    LineProblem,
    LogContent,
    SessionNote,
    Speaker,
)
from concordance.sessions.lines import (
    BOM,
    Json,
    LineError,
    entries,
    identifier,
    kind,
    moment,
    objects,
    spoken,
    string,
    table,
)
from concordance.sessions.reader import LogContext, Reader, Sample
from concordance.sessions.thoughts import without_thoughts

_SPEAKERS: dict[str, Speaker] = {"user": "human", "gemini": "agent"}
_INJECTED = ("<session_context>", "<hook_context>", "<state_snapshot>")
# What stands after it was read from files that a person named.
_FILES = "--- Content from referenced files ---"
_SUBAGENT = "sub-agent"


@dataclass(slots=True)
class _Log:
    """The messages that stand, by id, and what the log says of itself."""

    meta: Json = field(default_factory=dict)
    messages: dict[str, Json] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)


def read_gemini(data: bytes, context: LogContext) -> LogContent:
    """What people and the agent said, as it stands after all that was taken back."""
    document = _document(data)
    log = _Log()
    problems: list[LineProblem] = []
    if document is not None:
        log.meta = document.value
        for number, message in enumerate(entries(log.meta.get("messages")), start=1):
            if isinstance(message, dict):
                _take(log, number, message)
            else:
                told = "a message is a JSON object"
                told = message.reason if isinstance(message, Broken) else told
                problems.append(LineProblem(number, told, unit="entry"))
    else:
        for number, value in objects(data):
            if isinstance(value, LineProblem):
                problems.append(value)
            else:
                _line(log, number, value)
    cut = document is not None and document.cut
    return _content(log, problems, context, cut=cut)


def _line(log: _Log, number: int, line: Json) -> None:
    if "$rewindTo" in line:
        log.left_out.add("$rewindTo")
        _rewind(log, identifier(line["$rewindTo"]))
    elif "$set" in line:
        changed = table(line["$set"])
        log.meta.update(changed)
        log.left_out.add("$set")
        if isinstance(changed.get("messages"), list):
            log.left_out.add("rewound", len(log.messages))
            log.messages.clear()
            for place, message in enumerate(changed["messages"], start=1):
                if isinstance(message, dict):
                    _take(log, number, message, place)
                else:
                    log.left_out.add(MALFORMED)
    elif "sessionId" in line and not kind(line):
        log.meta.update(line)
        log.left_out.add("head of the log")
    else:
        _take(log, number, line)


def _take(log: _Log, number: int, message: Json, place: int = 1) -> None:
    """A message; one that stands again counts as it was written last, in its first place."""
    own = f"line-{number}" if place == 1 else f"line-{number}-{place}"
    message_id = identifier(message.get("id")) or own
    if message_id in log.messages:
        log.left_out.add("written again, the last one counts")
    log.messages[message_id] = message


def _rewind(log: _Log, to: str | None) -> None:
    while to in log.messages:
        log.messages.popitem()
        log.left_out.add("rewound")


def _content(
    log: _Log, problems: list[LineProblem], context: LogContext, *, cut: bool
) -> LogContent:
    session = identifier(log.meta.get("sessionId")) or context.path.name.split(".")[0] or "log"
    subagent = kind(log.meta, "kind") == "subagent" and not context.subagents
    events = []
    for message_id, message in log.messages.items():
        speaker = _SPEAKERS.get(kind(message))
        content = message.get("content")  # parts, or one that is not in a list
        text, why = spoken([content] if isinstance(content, dict) else content), None
        if speaker == "agent":
            text, why = without_thoughts(text)
        if speaker is None:
            log.left_out.add(f"type {kind(message)}" if kind(message) else "no type")
        elif subagent:
            log.left_out.add(_SUBAGENT)
        elif text is None or text.lstrip().startswith(_FILES):
            log.left_out.add(why or ("tool calls" if message.get("toolCalls") else "nothing said"))
        elif speaker == "human" and text.lstrip().startswith(_INJECTED):
            log.left_out.add("injected context")
        else:
            when = moment(message.get("timestamp"))
            said = text.partition(_FILES)[0].rstrip() if speaker == "human" else text
            events.append(Event(session, message_id, speaker, said, when))
    note = SessionNote(session, string(log.meta.get("summary")))
    return LogContent(tuple(events), tuple(problems), log.left_out.counts, (note,), cut=cut)


def _document(data: bytes) -> Document | None:
    """The older form: one JSON object over several lines, or on one."""
    if not data.removeprefix(BOM).lstrip().startswith(b"{"):
        return None
    try:
        found = read_document(data)
    except LineError:
        return None
    return found if isinstance(table(found.value).get("messages"), list) else None


def _recognises(sample: Sample) -> bool:
    if any("sessionId" in line and "projectHash" in line for line in sample.lines):
        return True
    if any(
        "$rewindTo" in line
        or (kind(line) in ("user", "gemini") and {"id", "content"} <= line.keys())
        for line in sample.lines
    ):
        return True
    whole = table(sample.document)
    return "sessionId" in whole and isinstance(whole.get("messages"), list)


READER = Reader(
    name="gemini",
    about="Gemini CLI",
    patterns=("**/chats/session-*.jsonl", "**/chats/session-*.json", "session-*.json*"),
    recognises=_recognises,
    read=read_gemini,
    version=3,
)
