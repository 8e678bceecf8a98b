"""A small log of each format, as tests need them; written by hand from the formats' shapes."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A log, the name that it lies under, and what was said in it."""

    format: str
    name: str
    data: bytes
    said: tuple[tuple[str, str], ...]
    sessions: tuple[str, ...]

    def grown(self) -> bytes:
        """The same log with one more turn of the agent, for formats that grow line by line."""
        more = {
            "jsonl": {
                "session_id": self.sessions[0],
                "event_id": "new",
                "type": "agent.response",
                "text": GROWN,
            },
            "claude-code": _claude("assistant", GROWN, "new"),
            "codex": _codex("AgentMessage", GROWN, "new"),
            "gemini": {"id": "new", "type": "gemini", "content": GROWN},
        }
        if self.format == "aider":
            return self.data + f"\n{GROWN}\n".encode()
        return self.data + json.dumps(more[self.format]).encode() + b"\n"


GROWN = "One thing more: the harbour of Pellworm is closed on Mondays."
QUESTION = "Why was the buoy at Hooge Sands dark?"
ANSWER = "Its clock ran slow, so three heartbeats in a row came too late."
_SAID = (("human", QUESTION), ("agent", ANSWER))
_WHEN = "2030-01-02T03:04:05Z"


def _lines(*values: object) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def _claude(kind: str, text: str, uuid: str) -> dict[str, object]:
    return {
        "type": kind,
        "uuid": uuid,
        "sessionId": "claude-1",
        "timestamp": _WHEN,
        "cwd": "/src/beacon",
        "gitBranch": "main",
        "message": {"role": kind, "content": [{"type": "text", "text": text}]},
    }


def _codex(kind: str, text: str, item: str) -> dict[str, object]:
    content = [{"type": "text", "text": text}]
    payload = {"type": "item_completed", "item": {"type": kind, "id": item, "content": content}}
    return {"timestamp": _WHEN, "type": "event_msg", "payload": payload}


def _node(name: str, parent: str | None, role: str, text: str) -> dict[str, object]:
    content = {"content_type": "text", "parts": [text]}
    message = {"author": {"role": role}, "content": content, "create_time": 1_893_456_000.5}
    return {"id": name, "parent": parent, "message": message}


EXAMPLES: tuple[Example, ...] = (
    Example(
        "jsonl",
        "logs/a.jsonl",
        _lines(
            {"session_id": "own-1", "event_id": "1", "type": "chat.message", "text": QUESTION,
             "occurred_at": _WHEN},
            {"session_id": "own-1", "event_id": "2", "type": "tool.call", "text": "grep hooge"},
            {"session_id": "own-1", "event_id": "3", "type": "agent.response", "text": ANSWER},
        ),
        _SAID,
        ("own-1",),
    ),
    Example(
        "claude-code",
        "projects/-src-beacon/claude-1.jsonl",
        _lines(
            {"type": "permission-mode", "permissionMode": "plan", "sessionId": "claude-1"},
            _claude("user", QUESTION, "u1"),
            _claude("assistant", ANSWER, "a1"),
            _claude("assistant", "chatter of a helper", "a2") | {"isSidechain": True},
        ),
        _SAID,
        ("claude-1",),
    ),
    Example(
        "codex",
        "sessions/2030/01/02/rollout-1.jsonl",
        _lines(
            {"timestamp": _WHEN, "type": "session_meta",
             "payload": {"id": "codex-1", "cwd": "/src/beacon",
                         "git": {"branch": "main", "commit_hash": "c0ffee" * 6 + "c0ff"}}},
            _codex("UserMessage", QUESTION, "u1"),
            _codex("AgentMessage", ANSWER, "a1"),
            {"timestamp": _WHEN, "type": "event_msg", "payload": {"type": "token_count"}},
        ),
        _SAID,
        ("codex-1",),
    ),
    Example(
        "gemini",
        "tmp/h/chats/session-1.jsonl",
        _lines(
            {"sessionId": "gemini-1", "projectHash": "h", "startTime": _WHEN, "kind": "main"},
            {"id": "1", "timestamp": _WHEN, "type": "user", "content": [{"text": QUESTION}]},
            {"id": "2", "timestamp": _WHEN, "type": "gemini", "content": ANSWER},
            {"id": "3", "timestamp": _WHEN, "type": "info", "content": "Saved."},
        ),
        _SAID,
        ("gemini-1",),
    ),
    Example(
        "chatgpt",
        "export/conversations.json",
        json.dumps(
            [{"conversation_id": "gpt-1", "title": "Buoys", "current_node": "c", "mapping": {
                "a": _node("a", None, "user", QUESTION),
                "b": _node("b", "a", "assistant", "an answer that was made again"),
                "c": _node("c", "a", "assistant", ANSWER)}}]
        ).encode(),
        _SAID,
        ("gpt-1",),
    ),
    Example(
        "open-webui",
        "export/chat-export-1.json",
        json.dumps(
            [{"id": "webui-1", "chat": {"history": {"currentId": "2", "messages": {
                "1": {"parentId": None, "role": "user", "content": QUESTION, "timestamp": 1},
                "2": {"parentId": "1", "role": "assistant", "content": ANSWER, "done": True}}}}}]
        ).encode(),
        _SAID,
        ("webui-1",),
    ),
    Example(
        "cline",
        "tasks/1893456000000/ui_messages.json",
        json.dumps(
            [
                {"ts": 1_893_456_000_000, "type": "say", "say": "task", "text": QUESTION},
                {"ts": 1_893_456_001_000, "type": "say", "say": "api_req_started", "text": "{}"},
                {"ts": 1_893_456_002_000, "type": "say", "say": "completion_result",
                 "text": ANSWER},
            ]
        ).encode(),
        _SAID,
        ("1893456000000",),
    ),
    Example(
        "slack",
        "export/general/2030-01-02.json",
        json.dumps(
            [
                {"type": "message", "subtype": "channel_join", "ts": "1893556800.1", "text": "x"},
                {"type": "message", "ts": "1893556801.1", "user": "U1", "text": QUESTION},
                {"type": "message", "subtype": "bot_message", "ts": "1893556802.1", "bot_id": "B1",
                 "text": ANSWER},
            ]
        ).encode(),
        _SAID,
        ("general",),
    ),
    Example(
        "aider",
        "demo/.aider.chat.history.md",
        f"""
# aider chat started at 2030-01-02 03:04:05

> Aider v0.80.0

#### {QUESTION}

{ANSWER}
""".encode(),
        _SAID,
        ("demo/.aider.chat.history.md@2030-01-02 03:04:05",),
    ),
)  # fmt: skip
