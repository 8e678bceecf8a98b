"""Reader of Claude Code's logs: `~/.claude/projects/FOLDER/SESSION.jsonl`, one line a message.

What counts as said: the text of lines of type `user` and `assistant`. Tools answer in lines of type
`user` as well, and one answer of the agent spans several lines with the same `message.id`. What a
person types while the agent works is attached as a `queued_command`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from concordance.sessions.events import (
    Event,
    LeftOut,
    LineProblem,
    LogContent,
    SessionNote,
    Workplace,
)
from concordance.sessions.injected import INJECTED, SUMMARY, own_words
from concordance.sessions.lines import Json, entries, kind, moment, objects, spoken, string, table
from concordance.sessions.reader import LogContext, Reader, Sample
from concordance.sessions.thoughts import without_thoughts

SPOKEN_TYPES: Final = ("user", "assistant")
SUBAGENT: Final = "sub-agent"
# Stands between the parts of an answer.
_BETWEEN: Final = "\n\n"
# Blocks of a message that hold no words of the conversation, in the order in which one names it.
_MECHANISM: Final = ("tool_result", "tool_use", "thinking", "redacted_thinking", "image")
# Which title counts where there are several: the one that a person gave.
_TITLES: Final = {
    "summary": (0, "summary"),
    "ai-title": (1, "aiTitle"),
    "custom-title": (2, "customTitle"),
}
_OWN_TYPES: Final = frozenset(
    {"file-history-snapshot", "summary", "permission-mode", "queue-operation", "last-prompt"}
)


@dataclass(slots=True)
class _Log:
    """What was read so far."""

    fallback: str
    subagents: bool
    events: dict[tuple[str, str], Event] = field(default_factory=dict)
    # The texts of an answer that spans lines, by the key of its event; and the keys by the id.
    parts: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    keys: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    notes: dict[str, SessionNote] = field(default_factory=dict)
    # By session: the message that the last event belongs to, and its key.
    answering: dict[str, tuple[str, tuple[str, str]]] = field(default_factory=dict)
    titles: dict[str, tuple[int, str]] = field(default_factory=dict)
    # By session: prompts that were queued and are not repeated yet.
    queued: dict[str, Counter[str]] = field(default_factory=dict)
    # By message: a summary names its session by its last one.
    sessions: dict[str, str] = field(default_factory=dict)


def read_claude_code(data: bytes, context: LogContext) -> LogContent:
    """What people and the agent said; sub-agents' chatter only with `context.subagents`."""
    log = _Log(context.path.name.split(".")[0] or "log", context.subagents)
    problems: list[LineProblem] = []
    lines: list[tuple[int, Json]] = []
    for number, value in objects(data):
        if isinstance(value, LineProblem):
            problems.append(value)
        else:
            lines.append((number, value))
    log.sessions = {string(line.get("uuid")) or "": _session(log, line) for _, line in lines}
    for number, line in lines:
        _read_line(log, number, line)
    notes = [
        replace(note, title=log.titles.get(session, (0, None))[1])
        for session, note in log.notes.items()
    ]
    for key, parts in log.parts.items():
        log.events[key] = replace(log.events[key], text=_BETWEEN.join(parts))
    return LogContent(
        tuple(log.events.values()), tuple(problems), log.left_out.counts, tuple(notes)
    )


def _read_line(log: _Log, number: int, line: Json) -> None:
    queued = kind(line) == "attachment"
    line = _prompt(line) if queued else line
    session = _session(log, line)
    _note(log, session, line)
    _take_back(log, line)
    why = _left_out(log, line)
    if why is not None:
        log.left_out.add(why)
        return
    message = table(line.get("message"))
    human = kind(line) == "user"
    if human:
        text, why, added = own_words(message.get("content"))
        log.left_out.add(INJECTED, added)
    else:
        text, why = without_thoughts(spoken(message.get("content")))
    if text is None:
        log.left_out.add(why or _mechanism(message.get("content")))
        return
    if human and _is_repeated(log, session, text, queued=queued):
        log.left_out.add("repeats a prompt that was queued")
        return
    event_id = string(line.get("uuid")) or f"line-{number}"
    _add(
        log,
        line,
        Event(
            session_id=session,
            event_id=event_id,
            speaker="human" if human else "agent",
            text=text,
            occurred_at=moment(line.get("timestamp")),
        ),
    )


def _prompt(line: Json) -> Json:
    """A prompt that was typed while the agent was at work, as a line of a person."""
    attached = table(line.get("attachment"))
    if kind(attached) != "queued_command" or attached.get("commandMode", "prompt") != "prompt":
        return line
    also = {key: attached[key] for key in ("isMeta", "origin") if key in attached}
    return line | also | {"type": "user", "message": {"content": attached.get("prompt")}}


def _is_repeated(log: _Log, session: str, text: str, *, queued: bool) -> bool:
    """Whether a person's line says again what was queued; a person may say the same later on."""
    if queued:
        log.queued.setdefault(session, Counter())[text.strip()] += 1
        return False
    waiting = log.queued.get(session, Counter())
    if waiting[text.strip()] < 1:
        log.queued.pop(session, None)
        return False
    waiting[text.strip()] -= 1
    return True


def _add(log: _Log, line: Json, event: Event) -> None:
    """Add an event, or join it to the answer that it goes on with."""
    key = (event.session_id, event.event_id)
    message_id = string(table(line.get("message")).get("id"))
    before = log.answering.get(event.session_id)
    if event.speaker == "agent" and message_id and before and before[0] == message_id:
        log.left_out.add("goes on with the answer before")
        parts = log.parts.setdefault(before[1], [log.events[before[1]].text])
        if not f"{_BETWEEN}{parts[-1]}".endswith(f"{_BETWEEN}{event.text}"):
            parts.append(event.text)
        return
    if key in log.events:
        log.left_out.add("repeats an id, the last one counts")
    log.events[key] = event
    log.parts.pop(key, None)
    log.keys.setdefault(event.event_id, set()).add(key)
    log.answering.pop(event.session_id, None)
    if event.speaker == "agent" and message_id:
        log.answering[event.session_id] = (message_id, key)


def _left_out(log: _Log, line: Json) -> str | None:  # noqa: PLR0911
    """Why a whole line is left out, or None."""
    of = kind(line)
    if of not in SPOKEN_TYPES:
        return f"type {of}" if of else "no type"
    if line.get("isSidechain") is True and not log.subagents:
        return SUBAGENT
    if line.get("isCompactSummary") is True or line.get("isVisibleInTranscriptOnly") is True:
        return SUMMARY
    if line.get("isApiErrorMessage") is True:
        return "error of the API"
    message = table(line.get("message"))
    if message.get("model") == "<synthetic>":
        return "written by the program"
    if line.get("isMeta") is True:
        only = {kind(block) for block in entries(message.get("content"))}
        return "tool_result" if only == {"tool_result"} else "isMeta"
    origin = table(line.get("origin"))
    if of == "user" and (origin.get("kind") == "task-notification" or "senderTaskId" in origin):
        return "sent by a task"
    return None


def _mechanism(content: object) -> str:
    """What a message without words holds instead."""
    kinds = {kind(block) for block in entries(content)}
    return next((name for name in _MECHANISM if name in kinds), "nothing said")


def _take_back(log: _Log, line: Json) -> None:
    """Forget earlier messages that a line replaces or retracts."""
    gone = {
        uuid
        for key in ("supersedesUuids", "retractedMessageUuids")
        for uuid in entries(line.get(key))
        if isinstance(uuid, str)
    }
    for key in sorted(key for uuid in gone for key in log.keys.pop(uuid, ())):
        del log.events[key]
        log.parts.pop(key, None)
        log.answering.pop(key[0], None)
        log.left_out.add("taken back")


def _session(log: _Log, line: Json) -> str:
    session = string(line.get("sessionId")) or string(line.get("session_id")) or log.fallback
    agent = string(line.get("agentId"))
    if line.get("isSidechain") is True and log.subagents:
        named = f"agent-{agent}" if agent else "sidechain"
        return session if session == named else f"{session}/{named}"
    return session


def _note(log: _Log, session: str, line: Json) -> None:
    """Keep what a line says of its session: its title, and where it was at work."""
    of = kind(line)
    if of == "summary":
        session = log.sessions.get(string(line.get("leafUuid")) or "", session)
    if of in _TITLES:
        rank, key = _TITLES[of]
        title = string(line.get(key))
        if title and rank >= log.titles.get(session, (0, ""))[0]:
            log.titles[session] = (rank, title)
    if of not in SPOKEN_TYPES:
        return
    place = Workplace(string(line.get("cwd")), string(line.get("gitBranch")))
    known = log.notes.get(session)
    if known is None or (place and not known.workplace):
        log.notes[session] = SessionNote(session, workplace=place)


def _recognises(sample: Sample) -> bool:
    return any(
        kind(line) in _OWN_TYPES
        or ("sessionId" in line and bool(kind(line)))
        or (kind(line) in SPOKEN_TYPES and "uuid" in line and "message" in line)
        for line in sample.lines
    )


READER = Reader(
    name="claude-code",
    about="Claude Code",
    patterns=("**/*.jsonl",),
    recognises=_recognises,
    read=read_claude_code,
    version=3,
)
