"""Reader of Codex's logs: `$CODEX_HOME/sessions/Y/M/D/rollout-*.jsonl`, one line a record.

What counts as said: newer versions write `item_completed`, older ones `user_message` and
`agent_message`. Each text stands a second time as a `response_item`, so those are read only where
the log has nothing else of one of the two sides. Of records that say the same within a turn, one of
each kind is the same turn; two of one kind are two.
"""

from __future__ import annotations

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
from concordance.sessions.thoughts import without_thoughts

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


# Of the kinds of record that say the same, the first counts.
_ITEM: Final = 0
_MESSAGE: Final = 1
_RESPONSE: Final = 2
# What two records of one text can't stand on two sides of.
_ENDS: Final = ("task_complete", "turn_aborted", "turn_complete")


@dataclass(frozen=True, slots=True)
class _Said:
    """A text that somebody said, or the reason why it is left out; `stretch` is a part of a log."""

    number: int
    stretch: int
    source: int
    speaker: Speaker
    text: str | None
    item: str | None
    why: str | None
    occurred_at: datetime | None
    words: str
    """What is said, however its lines are broken."""

    @property
    def mirror(self) -> bool:
        return self.source == _RESPONSE


@dataclass(slots=True)
class _Talk:
    """What was said so far, and where a person's turns begin: the place, and whether as an event.

    A turn begins with what a person said, in whichever kind of record that stands first.
    """

    said: list[_Said] = field(default_factory=list)
    _starts: list[tuple[int, bool]] = field(default_factory=list)
    _own: int = 0
    # Of the turn that was begun last: its words, and the kinds of record that have them.
    _words: str | None = None
    _sources: set[int] = field(default_factory=set)

    def add(self, one: _Said) -> None:
        """One record more."""
        if one.why is None and one.speaker == "human":
            if one.words == self._words and one.source not in self._sources:
                at, own = self._starts.pop()
                self._own -= own
            else:
                at, own, self._sources = len(self.said), False, set()
            own = own or not one.mirror
            self._own += own
            self._starts.append((at, own))
            self._words = one.words
            self._sources.add(one.source)
        elif one.why is None:
            self._words = None
        self.said.append(one)

    def roll_back(self, turns: object) -> int:
        """Take back the last turns; how many records those are."""
        if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
            return 0
        # Where some stand as events, the others are no turns of their own.
        events, cut = bool(self._own), len(self.said)
        while self._starts and turns:
            at, own = self._starts[-1]
            if own or not events:
                cut, turns = at, turns - 1
            self._own -= own
            self._starts.pop()
        gone = len(self.said) - cut
        del self.said[cut:]
        self._words = None
        return gone


def read_codex(data: bytes, context: LogContext) -> LogContent:
    """What people and the agent said; a sub-agent's session only with `context.subagents`."""
    problems: list[LineProblem] = []
    left_out = LeftOut()
    meta: Json | None = None
    title: str | None = None
    talk = _Talk()
    stretch = 0
    for number, value in objects(data):
        if isinstance(value, LineProblem):
            problems.append(value)
            continue
        record, payload = _parts(value)
        if record == "session_meta":
            # A fork repeats what it comes from, its head included: the first one is its own.
            meta = payload if meta is None else meta
        stretch += record in ("session_meta", "compacted") or kind(payload) in _ENDS
        if kind(payload) == "thread_name_updated":
            title = string(payload.get("thread_name")) or title
        found = _said((number, stretch), record, payload, moment(value.get("timestamp")))
        if found is not None:
            talk.add(found)
        elif kind(payload) == "thread_rolled_back":
            left_out.add("event_msg thread_rolled_back")
            left_out.add("rolled back", talk.roll_back(payload.get("num_turns")))
        else:
            left_out.add(" ".join(filter(None, [record or "no type", _what(payload)])))
    session = _session_id(meta, context)
    kept = _kept(talk.said, left_out)
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


def _said(
    place: tuple[int, int], record: str, payload: Json, when: datetime | None
) -> _Said | None:
    """What a record says, if it is one in which somebody speaks; its place is line and stretch."""
    of = kind(payload)
    item = table(payload.get("item"))
    speaker: Speaker | None = None
    text: str | None = None
    source = _MESSAGE
    if record == "event_msg" and of == "item_completed":
        source = _ITEM
        speaker, text = _ITEMS.get(kind(item)), spoken(item.get("content"), _PARTS)
    elif record == "event_msg":
        speaker, text = _MESSAGES.get(of), string(payload.get("message"))
    elif record == "response_item" and of == "message":
        item, source = payload, _RESPONSE
        speaker, text = _ROLES.get(kind(payload, "role")), spoken(payload.get("content"), _PARTS)
    if speaker is None:
        return None
    why = None if text is not None else "nothing said"
    if speaker == "agent" and text is not None:
        text, why = without_thoughts(text)
    injected = kind(payload, "kind") in _INJECTED_KINDS
    if text is not None and speaker == "human":
        text = _request(text)
        injected = injected or text.lstrip().startswith(("<", _INSTRUCTIONS))
        why = "injected context" if injected else None
    words = " ".join(text.split()) if text is not None else ""
    return _Said(*place, source, speaker, text, identifier(item.get("id")), why, when, words)


def _request(text: str) -> str:
    """A person's own words, without what their editor put before them."""
    if not text.lstrip().startswith(_EDITOR):
        return text
    _, found, own = text.partition(_REQUEST)
    return own.strip() or text if found else text


def _kept(said: list[_Said], left_out: LeftOut) -> list[_Said]:
    """What was said, each once and in the order of the log.

    Where both sides speak in events, responses that repeat none are what a program added.
    """
    own = [n for n, s in enumerate(said) if not s.mirror and s.why is None]
    whole = {said[n].speaker for n in own} == {"human", "agent"}
    runs = _runs(said)
    repeats = _repeats(said, runs)
    kept = []
    for number, one in enumerate(said):
        if one.why is not None:
            left_out.add(one.why)
        elif number in repeats:
            left_out.add("repeats what was said")
        elif whole and one.mirror and runs[number] >= runs[own[0]]:
            left_out.add("in the responses alone")
        else:
            kept.append(one)
    return kept


def _runs(said: list[_Said]) -> list[int]:
    """For each record the number of its run: one side speaks, within one stretch of the log."""
    runs: list[int] = []
    run, last = 0, None
    for one in said:
        if one.why is None:
            run += last is not None and last != (one.speaker, one.stretch)
            last = (one.speaker, one.stretch)
        runs.append(run)
    return runs


def _repeats(said: list[_Said], runs: list[int]) -> set[int]:
    """Which records say what another kind of record says as well, in the same run.

    Of each kind the first is paired with the first, the second with the second: two of one kind
    are two turns, as a person may say the same again.
    """
    same: dict[tuple[int, str], list[list[int]]] = {}
    for number, one in enumerate(said):
        if one.why is None:
            kinds = same.setdefault((runs[number], one.words), [[], [], []])
            kinds[one.source].append(number)
    found: set[int] = set()
    for kinds in same.values():
        known = 0
        for numbers in kinds:
            found.update(numbers[:known])
            known = max(known, len(numbers))
    return found


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
    version=2,
)
