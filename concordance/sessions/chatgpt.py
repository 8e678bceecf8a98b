"""Reader of ChatGPT's export: `conversations.json`, whole or split, one tree a conversation.

What counts as said: messages of people and the assistant to everybody, on the branch that ends at
`current_node`.
"""

from __future__ import annotations

import re
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
_TEXTS: Final = ("", "text", "multimodal_text")
# Places of citations, in signs that no reader sees.
_MARKERS: Final = re.compile("\ue200[^\ue200\ue201]*\ue201")
_BESIDE: Final = ("user.json", "message_feedback.json", "shared_conversations.json")


def read_chatgpt(data: bytes, context: LogContext) -> LogContent:
    """What people and the assistant said, of each conversation on its current branch."""
    if context.path.name in _BESIDE:
        return LogContent((), beside="it stands beside the conversations of an export")
    document = whole_document(data)
    whole = document.value
    if isinstance(whole, dict):
        whole = [whole] if "mapping" in whole else whole.get("conversations")
    if not isinstance(whole, list):
        raise NotThisFormat("a JSON document without conversations")
    events: list[Event] = []
    problems: list[LineProblem] = []
    left_out = LeftOut()
    notes: list[SessionNote] = []
    for number, conversation in enumerate(whole, start=1):
        reason = _why_none(conversation)
        if reason is not None:
            problems.append(LineProblem(number, reason, unit="conversation"))
            continue
        session = (
            identifier(conversation.get("conversation_id"))
            or identifier(conversation.get("id"))
            or f"{context.path.stem}-{number}"
        )
        notes.append(SessionNote(session, string(conversation.get("title"))))
        events += _conversation(session, conversation, left_out)
    return LogContent(
        tuple(events), tuple(problems), left_out.counts, tuple(notes), cut=document.cut
    )


def _why_none(conversation: object) -> str | None:
    if isinstance(conversation, Broken):
        return conversation.reason
    if isinstance(table(conversation).get("mapping"), dict):
        return None
    return "no conversation: it has no 'mapping'"


def _conversation(session: str, conversation: Json, left_out: LeftOut) -> list[Event]:
    nodes = conversation["mapping"]
    seen = branch(nodes, conversation.get("current_node"), "parent")
    for node in off_branch(nodes, seen):
        if not _says_nothing(node):
            left_out.add("another branch" if _is_message(node) else MALFORMED)
    events = []
    for number, name in enumerate(seen, start=1):
        message = table(table(nodes[name]).get("message"))
        if _says_nothing(nodes[name]):
            continue
        if not message:
            left_out.add(MALFORMED)
            continue
        why = _left_out(message)
        role = kind(table(message.get("author")), "role")
        text = None if why else _text(table(message.get("content")))
        if text is not None and _SPEAKERS[role] == "agent":
            text, why = without_thoughts(text)
        if text is None:
            left_out.add(why or "nothing said")
            continue
        when = moment(message.get("create_time"))
        events.append(Event(session, event_name(name, number), _SPEAKERS[role], text, when))
    return events


def _says_nothing(node: object) -> bool:
    """Whether a node holds no message, as the root of a conversation does."""
    return isinstance(node, dict) and node.get("message") in (None, {})


def _is_message(node: object) -> bool:
    return bool(table(table(node).get("message")))


def _left_out(message: Json) -> str | None:
    role = kind(table(message.get("author")), "role")
    if role not in _SPEAKERS:
        return f"role {role}" if role else "no role"
    if table(message.get("metadata")).get("is_visually_hidden_from_conversation") is True:
        return "hidden"
    if message.get("recipient", "all") not in ("all", None):
        return "to a tool"
    of = kind(message.get("content"), "content_type")
    return None if of in _TEXTS else f"content {of}"


def _text(content: Json) -> str | None:
    """The parts that are text: strings, and objects that hold some, such as what was spoken."""
    said = []
    for part in entries(content.get("parts")):
        text = part if isinstance(part, str) else table(part).get("text")
        if isinstance(text, str) and text.strip():
            said.append(text)
    whole = string("\n\n".join(said)) or string(content.get("text"))
    return None if whole is None else string(_MARKERS.sub("", whole))


def _recognises(sample: Sample) -> bool:
    whole = sample.document
    if isinstance(whole, dict) and isinstance(whole.get("conversations"), list):
        whole = whole["conversations"]
    if sample.path.name in _BESIDE and "user" in sample.text:
        return True
    if whole == [] and sample.path.match("conversations*.json"):
        return True
    found = [whole] if isinstance(whole, dict) else entries(whole)
    return any(isinstance(table(one).get("mapping"), dict) for one in found)


READER = Reader(
    name="chatgpt",
    about="an export of ChatGPT",
    patterns=("**/conversations*.json",),
    recognises=_recognises,
    read=read_chatgpt,
    version=3,
)
