"""Reader of Codex's logs: `$CODEX_HOME/sessions/Y/M/D/rollout-*.jsonl`, one line a record.

What counts as said: newer versions write `item_completed`, older ones `user_message` and
`agent_message`. Each text stands a second time as a `response_item`, so those are read only where
the log has nothing else of one of the two sides.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from concordance.sessions.events import (
    Event,
    LeftOut,
    LineProblem,
    LogContent,
    SessionNote,
    Speaker,
    Workplace,
)
from concordance.sessions.lines import (
    Json,
    identifier,
    kind,
    moment,
    objects,
    spoken,
    string,
    table,
)
from concordance.sessions.reader import LogContext, Reader, Sample

_ITEMS: Final[dict[str, Speaker]] = {"UserMessage": "human", "AgentMessage": "agent"}
_MESSAGES: Final[dict[str, Speaker]] = {"user_message": "human", "agent_message": "agent"}
_ROLES: Final[dict[str, Speaker]] = {"user": "human", "assistant": "agent"}
_PARTS: Final = ("text", "Text", "input_text", "output_text")
_RECORDS: Final = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
# Files of instructions are handed to the agent in the person's name.
_INSTRUCTIONS: Final = "# AGENTS.md instructions"
_EDITOR: Final = "# Context from my IDE setup:"
_REQUEST: Final = "## My request for Codex:"
_INJECTED_KINDS: Final = ("user_instructions", "environment_context")
_SUBAGENT: Final = "sub-agent"


@dataclass(frozen=True, slots=True)
class _Said:
    """A text that somebody said, or the reason why it is left out."""

    number: int
    mirror: bool
    speaker: Speaker
    text: str | None
    item: str | None
    why: str | None
    occurred_at: datetime | None


def read_codex(data: bytes, context: LogContext) -> LogContent:
    """What people and the agent said; a sub-agent's session only with `context.subagents`."""
    problems: list[LineProblem] = []
    left_out = LeftOut()
    meta: Json | None = None
    title: str | None = None
    said: list[_Said] = []
    for number, value in objects(data):
        if isinstance(value, LineProblem):
            problems.append(value)
            continue
        record, payload = _parts(value)
        if record == "session_meta":
            # A fork repeats what it comes from, its head included: the first one is its own.
            meta = payload if meta is None else meta
        if kind(payload) == "thread_name_updated":
            title = string(payload.get("thread_name")) or title
        found = _said(number, record, payload, moment(value.get("timestamp")))
        if found is not None:
            said.append(found)
        elif kind(payload) == "thread_rolled_back":
            left_out.add("event_msg thread_rolled_back")
            said = _rolled_back(said, payload.get("num_turns"), left_out)
        else:
            left_out.add(" ".join(filter(None, [record or "no type", _what(payload)])))
    session = _session_id(meta, context)
    kept = _kept(said, left_out)
    if _is_subagent(meta) and not context.subagents:
        left_out.add(_SUBAGENT, len(kept))
        kept = []
    note = SessionNote(session, title, workplace=_workplace(meta))
    return LogContent(_events(session, kept), tuple(problems), left_out.counts, (note,))


def _parts(line: Json) -> tuple[str, Json]:
    """The kind of a record and what it holds; the oldest logs have no envelope around it."""
    if "payload" in line:
        return kind(line), table(line["payload"])
    if not kind(line) and "id" in line and "timestamp" in line:
        return "session_meta", line
    return ("response_item" if kind(line) else ""), line


def _what(payload: Json) -> str:
    """What a record is about: its own kind, and that of the item in it."""
    role = kind(payload, "role") if kind(payload) == "message" else ""
    return " ".join(filter(None, [kind(payload), kind(payload.get("item")), role]))


def _said(number: int, record: str, payload: Json, when: datetime | None) -> _Said | None:
    """What a record says, if it is one in which somebody speaks."""
    of = kind(payload)
    item = table(payload.get("item"))
    speaker: Speaker | None = None
    text: str | None = None
    if record == "event_msg" and of == "item_completed":
        speaker, text = _ITEMS.get(kind(item)), spoken(item.get("content"), _PARTS)
    elif record == "event_msg":
        speaker, text = _MESSAGES.get(of), string(payload.get("message"))
    elif record == "response_item" and of == "message":
        item = payload
        speaker, text = _ROLES.get(kind(payload, "role")), spoken(payload.get("content"), _PARTS)
    if speaker is None:
        return None
    why = None if text is not None else "nothing said"
    injected = kind(payload, "kind") in _INJECTED_KINDS
    if text is not None and speaker == "human":
        text = _request(text)
        injected = injected or text.lstrip().startswith(("<", _INSTRUCTIONS))
        why = "injected context" if injected else None
    return _Said(
        number, record == "response_item", speaker, text, identifier(item.get("id")), why, when
    )


def _request(text: str) -> str:
    """A person's own words, without what their editor put before them."""
    if not text.lstrip().startswith(_EDITOR):
        return text
    _, found, own = text.partition(_REQUEST)
    return own.strip() or text if found else text


def _kept(said: list[_Said], left_out: LeftOut) -> list[_Said]:
    """Of two records that say the same the first source's, in the order of the log."""
    own = [s for s in said if not s.mirror and s.why is None]
    whole = {s.speaker for s in own} == {"human", "agent"}
    seen = Counter((s.speaker, s.text) for s in own)
    kept = []
    for one in said:
        mirrored = one.mirror and one.why is None
        if one.why is not None:
            left_out.add(one.why)
        elif mirrored and (whole or seen[one.speaker, one.text]):
            seen[one.speaker, one.text] -= 1
            left_out.add("repeats what was said")
        else:
            kept.append(one)
    return kept


def _rolled_back(said: list[_Said], turns: object, left_out: LeftOut) -> list[_Said]:
    """What is left when the last turns were undone; a turn begins with what a person said."""
    if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
        return said
    own = [n for n, s in enumerate(said) if s.speaker == "human" and s.why is None and not s.mirror]
    starts = own or [n for n, s in enumerate(said) if s.speaker == "human" and s.why is None]
    if not starts:
        return said
    cut = starts[-turns] if turns <= len(starts) else starts[0]
    # The repetition of a person's words stands before or after them.
    while cut and said[cut - 1].mirror and said[cut - 1].text == said[cut].text:
        cut -= 1
    left_out.add("rolled back", len(said) - cut)
    return said[:cut]


def _events(session: str, kept: list[_Said]) -> tuple[Event, ...]:
    events = []
    taken: set[str] = set()
    for one in kept:
        event_id = one.item or f"line-{one.number}"
        if event_id in taken:
            event_id = f"{event_id}:{one.number}"
        taken.add(event_id)
        events.append(Event(session, event_id, one.speaker, one.text or "", one.occurred_at))
    return tuple(events)


def _session_id(meta: Json | None, context: LogContext) -> str:
    named = (
        None if meta is None else identifier(meta.get("id")) or identifier(meta.get("session_id"))
    )
    return named or context.path.name.split(".")[0] or "log"


def _workplace(meta: Json | None) -> Workplace:
    if meta is None:
        return Workplace()
    git = table(meta.get("git"))
    return Workplace(
        string(meta.get("cwd")), string(git.get("branch")), string(git.get("commit_hash"))
    )


def _is_subagent(meta: Json | None) -> bool:
    return meta is not None and "subagent" in table(meta.get("source"))


def _recognises(sample: Sample) -> bool:
    return any(
        (kind(line) in _RECORDS and isinstance(line.get("payload"), dict))
        or ("instructions" in line and "timestamp" in line and "id" in line)
        for line in sample.lines
    )


READER = Reader(
    name="codex",
    about="Codex",
    patterns=("**/rollout-*.jsonl", "**/rollout-*.jsonl.zst"),
    recognises=_recognises,
    read=read_codex,
)
