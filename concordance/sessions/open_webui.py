"""Reader of Open WebUI's exports: a list of chats, each a tree of messages.

What counts as said: messages of people and models on the branch that ends at `currentId`, without
what a model thought and what tools gave it.
"""

from __future__ import annotations

import re
from typing import Final

from concordance.sessions.events import (
    Event,
    LeftOut,
    LineProblem,
    LogContent,
    SessionNote,
    Speaker,
    storable,
)
from concordance.sessions.lines import (
    BOM,
    Json,
    LineError,
    entries,
    identifier,
    kind,
    moment,
    parse,
    spoken,
    string,
    table,
)
from concordance.sessions.reader import LogContext, NotThisFormat, Reader, Sample
from concordance.sessions.trees import branch, off_branch

_SPEAKERS: Final[dict[str, Speaker]] = {"user": "human", "assistant": "agent"}
# Thoughts and calls of tools stand in the text itself, folded away.
_FOLDED: Final = re.compile(
    r"<details\s+type=\"(?:reasoning|tool_calls|code_interpreter)\".*?(?:</details>|\Z)", re.DOTALL
)


def read_open_webui(data: bytes, context: LogContext) -> LogContent:
    """What people and models said, of each chat on its current branch."""
    try:
        whole = parse(data.removeprefix(BOM))
    except LineError as error:
        raise NotThisFormat(f"no whole JSON document: {error}") from None
    chats = [whole] if isinstance(whole, dict) else whole
    if not isinstance(chats, list):
        raise NotThisFormat("a JSON document without chats")
    events: list[Event] = []
    problems: list[LineProblem] = []
    left_out = LeftOut()
    notes: list[SessionNote] = []
    for number, chat in enumerate(chats, start=1):
        inner = table(table(chat).get("chat")) or table(chat)
        history = table(inner.get("history"))
        if not isinstance(history.get("messages"), dict):
            problems.append(LineProblem(number, "no chat: it has no 'history'", unit="chat"))
            continue
        session = (
            identifier(table(chat).get("id"))
            or identifier(inner.get("id"))
            or f"{context.path.stem}-{number}"
        )
        title = string(table(chat).get("title")) or string(inner.get("title"))
        notes.append(SessionNote(session, title))
        events += _chat(session, history, left_out)
    return LogContent(tuple(events), tuple(problems), left_out.counts, tuple(notes))


def _chat(session: str, history: Json, left_out: LeftOut) -> list[Event]:
    nodes = history["messages"]
    seen = branch(nodes, history.get("currentId"), "parentId")
    left_out.add("another branch", len(off_branch(nodes, seen)))
    events = []
    for name in seen:
        message = table(nodes[name])
        speaker = _SPEAKERS.get(kind(message, "role"))
        text = spoken(message.get("content"))
        if text is not None and speaker == "agent" and "<details" in text:
            text = string(_FOLDED.sub("", text).strip())
        if speaker is None:
            left_out.add(f"role {kind(message, 'role')}" if kind(message, "role") else "no role")
        elif message.get("done") is False:
            left_out.add("not done")
        elif text is None:
            left_out.add("nothing said")
        else:
            when = moment(message.get("timestamp"))
            events.append(Event(session, storable(name), speaker, text, when))
    return events


def _recognises(sample: Sample) -> bool:
    whole = sample.document
    first = table(whole if isinstance(whole, dict) else next(iter(entries(whole)), None))
    inner = table(first.get("chat")) or first
    return isinstance(table(inner.get("history")).get("messages"), dict)


READER = Reader(
    name="open-webui",
    about="an export of Open WebUI",
    patterns=("**/*chat*export*.json", "**/chat-*.json", "**/*open*webui*.json"),
    recognises=_recognises,
    read=read_open_webui,
)
