"""Reader of Open WebUI's exports: a list of chats, each a tree of messages.

What counts as said: messages of people and models on the branch that ends at `currentId`, without
what a model thought and what tools gave it.
"""

from __future__ import annotations

from typing import Final

from concordance.sessions.documents import Broken
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
    Json,
    entries,
    identifier,
    kind,
    moment,
    spoken,
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
from concordance.sessions.trees import branch, event_name, off_branch

_SPEAKERS: Final[dict[str, Speaker]] = {"user": "human", "assistant": "agent"}


def read_open_webui(data: bytes, context: LogContext) -> LogContent:
    """What people and models said, of each chat on its current branch."""
    document = whole_document(data)
    whole = document.value
    chats = [whole] if isinstance(whole, dict) else whole
    if not isinstance(chats, list):
        raise NotThisFormat("a JSON document without chats")
    events: list[Event] = []
    problems: list[LineProblem] = []
    left_out = LeftOut()
    notes: list[SessionNote] = []
    for number, chat in enumerate(chats, start=1):
        if isinstance(chat, Broken):
            problems.append(LineProblem(number, chat.reason, unit="chat"))
            continue
        inner, history = _inner(chat), _history(chat)
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
    return LogContent(
        tuple(events), tuple(problems), left_out.counts, tuple(notes), cut=document.cut
    )


def _chat(session: str, history: Json, left_out: LeftOut) -> list[Event]:
    nodes = history["messages"]
    seen = branch(nodes, history.get("currentId"), "parentId")
    for node in off_branch(nodes, seen):
        left_out.add("another branch" if isinstance(node, dict) else MALFORMED)
    events = []
    for number, name in enumerate(seen, start=1):
        message = nodes[name]
        if not isinstance(message, dict):
            left_out.add(MALFORMED)
            continue
        speaker = _SPEAKERS.get(kind(message, "role"))
        text, why = spoken(message.get("content")), None
        if speaker == "agent":
            text, why = without_thoughts(text)
        if speaker is None:
            left_out.add(f"role {kind(message, 'role')}" if kind(message, "role") else "no role")
        elif message.get("done") is False:
            left_out.add("not done")
        elif text is None:
            left_out.add(why or "nothing said")
        else:
            when = moment(message.get("timestamp"))
            events.append(Event(session, event_name(name, number), speaker, text, when))
    return events


def _inner(chat: object) -> Json:
    """The chat itself; an export wraps it in what the server keeps of it."""
    return table(table(chat).get("chat")) or table(chat)


def _history(chat: object) -> Json:
    return table(_inner(chat).get("history"))


def _recognises(sample: Sample) -> bool:
    whole = sample.document
    found = [whole] if isinstance(whole, dict) else entries(whole)
    return any(isinstance(_history(one).get("messages"), dict) for one in found)


READER = Reader(
    name="open-webui",
    about="an export of Open WebUI",
    patterns=("**/*chat*export*.json", "**/chat-*.json", "**/*open*webui*.json"),
    recognises=_recognises,
    read=read_open_webui,
    version=2,
)
