"""Reader of Aider's chat history: `.aider.chat.history.md`, Markdown that grows.

What counts as said: lines that begin with `#### ` are a person's, those that begin with `> ` are
the tool's, all others are the agent's. Each start of Aider is a session of its own.

An agent's Markdown has headings and quotes that look the same. Aider ends its own lines with two
blanks, which an editor may have taken away: from the first line of a person that has them on, a
line needs them to be its own. What stands before is read as without them, so that a log which
grows never changes what was read of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
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
from concordance.sessions.lines import UNFINISHED, moment, split
from concordance.sessions.reader import LogContext, NotThisFormat, Reader, Sample
from concordance.sessions.thoughts import without_thoughts
from concordance.text.decoding import looks_binary

_START: Final = "# aider chat started at "
_STARTED: Final = re.compile(rf"(?:^|\r){_START}", re.MULTILINE)
_HUMAN: Final = "#### "
_TOOL: Final = ">"
_FENCE: Final = re.compile(r"(`{3,}|~{3,})")
# Aider ends the lines of people and of the tool so.
_BREAK: Final = "  "
# Aider writes it where a person entered nothing.
_BLANK: Final = "<blank>"
# Of its own, and for the shell.
_COMMANDS: Final = ("/", "!")
# Commands that put a question or a task to the agent.
_ASKING: Final = ("/ask ", "/code ", "/architect ", "/context ")


@dataclass(slots=True)
class _Turn:
    speaker: Speaker
    line: int
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Log:
    """What was read so far: the session, and the turn that lines are added to."""

    folder: str
    session: str
    started: datetime | None = None
    turn: _Turn | None = None
    fence: str | None = None
    breaks: bool = False
    """Whether a line has to end with `_BREAK` to be a person's or the tool's."""
    events: list[Event] = field(default_factory=list)
    notes: dict[str, SessionNote] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)


def read_aider(data: bytes, context: LogContext) -> LogContent:
    """What a person and the agent said; times are those of the sessions' starts, taken as UTC."""
    if looks_binary(data):
        raise NotThisFormat("looks like a binary file: it has many NUL characters")
    log = _Log(context.name, context.name)
    problems: list[LineProblem] = []
    for number, line, last in split(data):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            text = line.decode("utf-8", "replace")
            if not (last and error.reason == "unexpected end of data"):
                reason = f"not UTF-8 at byte {error.start + 1} of the line"
                problems.append(LineProblem(number, reason))
                _unread(log, text.removesuffix("\r"))
                continue
            # Half a character at the end is being written.
            text = line[: error.start].decode("utf-8", "replace")
        text = text.removesuffix("\r")
        if last and log.breaks and text.startswith((_HUMAN[:-1], _TOOL)) and not _own(log, text):
            # Whose it is shows at its end, which is not written yet.
            problems.append(LineProblem(number, UNFINISHED, unfinished=True))
            continue
        _line(log, number, text)
    _end_turn(log)
    notes = tuple(log.notes.values())
    return LogContent(tuple(log.events), tuple(problems), log.left_out.counts, notes)


def _line(log: _Log, number: int, line: str) -> None:
    if line.startswith(_START):
        _start(log, line.removeprefix(_START).strip())
        log.left_out.add("start of a session")
        return
    own = _own(log, line)
    if line.startswith(_HUMAN[:-1]) and own and line[4:5] in ("", " "):
        log.fence = None
        log.breaks = log.breaks or line.endswith(_BREAK)
        _say(log, "human", number, line[5:].rstrip())
    elif line.startswith(_TOOL) and own:
        log.fence = None
        _end_turn(log)
        log.left_out.add("tool")
    elif line.strip() or (log.turn is not None and log.turn.speaker == "agent"):
        _fence(log, line)
        _say(log, "agent", number, line)
    else:
        _end_turn(log)


def _own(log: _Log, line: str) -> bool:
    """Whether a line may be Aider's own, and not the agent's; within code it has to end so."""
    return line.endswith(_BREAK) or (log.fence is None and not log.breaks)


def _unread(log: _Log, line: str) -> None:
    """What a line that can't be read is known by all the same: whose it was, or code's fence."""
    if _own(log, line) and line.startswith((_HUMAN, _TOOL)):
        log.fence = None
        _end_turn(log)
    else:
        _fence(log, line)


def _start(log: _Log, when: str) -> None:
    _end_turn(log)
    log.fence = None
    log.session = storable(f"{log.folder}@{when}")
    log.started = moment(when)
    log.notes[log.session] = SessionNote(log.session)


def _fence(log: _Log, line: str) -> None:
    """Code is open from a fence to the next one that is as long."""
    found = _FENCE.match(line.lstrip())
    if found is None:
        return
    if log.fence is None:
        log.fence = found[1]
    elif found[1].startswith(log.fence) and not line.strip().strip(found[1][0]):
        log.fence = None


def _say(log: _Log, speaker: Speaker, number: int, line: str) -> None:
    if log.turn is None or log.turn.speaker != speaker:
        _end_turn(log)
        log.turn = _Turn(speaker, number)
    log.turn.lines.append(line)


def _end_turn(log: _Log) -> None:
    turn, log.turn = log.turn, None
    if turn is None:
        return
    text: str | None = "\n".join(turn.lines).strip()
    why = None
    if turn.speaker == "agent":
        text, why = without_thoughts(text)
    if not text or (turn.speaker == "human" and text == _BLANK):
        log.left_out.add(why or "nothing said")
    elif turn.speaker == "human" and text.startswith(_COMMANDS) and not text.startswith(_ASKING):
        log.left_out.add("command")
    else:
        log.notes.setdefault(log.session, SessionNote(log.session))
        log.events.append(
            Event(log.session, f"line-{turn.line}", turn.speaker, storable(text), log.started)
        )


def _recognises(sample: Sample) -> bool:
    return sample.path.name.endswith(".aider.chat.history.md") or bool(_STARTED.search(sample.text))


READER = Reader(
    name="aider",
    about="Aider",
    patterns=("**/*.aider.chat.history.md", "**/.aider.chat.history.md"),
    recognises=_recognises,
    read=read_aider,
    version=4,
)
