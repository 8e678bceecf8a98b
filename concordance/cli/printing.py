"""How answers look on a terminal, and as JSON for scripts.

What belongs here: rendering only. Text of indexed sources is shown without its control characters:
a document must not be able to move a reader's cursor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from concordance.escaping import CONTROL, in_a_line, safe
from concordance.indexing.counting import age, counted
from concordance.models import (
    Answer,
    CoverageState,
    Explanation,
    FileOrigin,
    Hit,
    RecordState,
    ScopeCoverage,
    SessionOrigin,
)
from concordance.quoting import CitedText

_STATE_STYLE = {
    CoverageState.COMPLETE: "green",
    CoverageState.LEXICAL_ONLY: "yellow",
    CoverageState.PARTIAL: "yellow",
    CoverageState.STALE: "red",
    CoverageState.FAILED: "red",
    CoverageState.ABSENT: "dim",
}
SHOWN_LINES = 8
SHOWN_CHARACTERS = 480
# Kinds of lines that session logs hold besides turns; --json has all of them.
SHOWN_KINDS = 6
# Below this width the commit and the time of the last look are left out.
NARROW = 100
_QUOTE = "  > "


def print_json(value: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
    """One JSON document on standard output, and nothing else."""
    if isinstance(value, BaseModel):
        plain: Any = value.model_dump(mode="json")
    elif isinstance(value, dict):
        plain = value
    else:
        plain = [item.model_dump(mode="json") for item in value]
    written = json.dumps(plain, indent=2, ensure_ascii=False)
    # JSON leaves some of them as they are; as escapes they mean the same to a program.
    print(CONTROL.sub(_escaped, written))  # noqa: T201 - it is the output


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def print_coverage(console: Console, coverage: Sequence[ScopeCoverage], *, now: datetime) -> None:
    """One row a scope, then the reason of each that is not complete, then those with nothing."""
    wide = console.width >= NARROW
    table = Table(title="Coverage", title_justify="left", expand=False)
    table.add_column("Project", overflow="fold")
    table.add_column("Scope", no_wrap=True)
    table.add_column("State", no_wrap=True)
    for name in ("Documents", "Chunks", "Vectors"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("Commit", "Checked") if wide else ():
        table.add_column(name, no_wrap=True)
    shown = [c for c in coverage if c.state is not CoverageState.ABSENT]
    for c in shown:
        commit = (c.indexed_commit or "")[:12] if c.scope.value != "session" else ""
        table.add_row(
            c.project,
            c.scope.value,
            Text(c.state.value, style=_STATE_STYLE[c.state]),
            f"{c.indexed:,}/{c.found:,}",
            f"{c.chunks:,}",
            f"{c.chunks_with_vector:,}",
            *((commit, age(c.last_success, now)) if wide else ()),
        )
    console.print(table)
    for c in shown:
        _print_remarks(console, c, now)
    absent = [f"{c.project} {c.scope.value}" for c in coverage if c.state is CoverageState.ABSENT]
    if absent:
        console.print(Text(f"Absent: {', '.join(absent)}", style="dim"))


def _print_remarks(console: Console, c: ScopeCoverage, now: datetime) -> None:
    """Why a scope is not complete, which secrets were replaced in it, what its logs hold."""
    name = f"{c.project} {c.scope.value}"
    if c.state is not CoverageState.COMPLETE:
        head = Text(f"{name}: ", style=_STATE_STYLE[c.state])
        console.print(head + Text(in_a_line(c.reason)), soft_wrap=True)
    if c.secrets:
        found = sorted(c.secrets.items())
        kinds = ", ".join(f"{count:,} {in_a_line(kind)}" for kind, count in found)
        total = counted(sum(c.secrets.values()), "secret")
        line = f"{name}: {total} replaced by marks ({kinds})"
        console.print(Text(line, style="dim"), soft_wrap=True)
    if c.turns is not None:
        console.print(Text(f"{name}: {turns(c, now)}"), soft_wrap=True)


def turns(c: ScopeCoverage, now: datetime) -> str:
    """What the session logs hold: turns, what is left out by its kind, and how old the last is."""
    others = [("empty", c.empty), ("failed", c.failed), ("skipped", c.skipped)]
    sessions = [counted(c.indexed, "session"), *(f"{n:,} {name}" for name, n in others if n)]
    parts = [", ".join(sessions), counted(c.turns or 0, "turn")]
    if c.turns_left_out:
        kinds = sorted(c.turns_left_out.items(), key=lambda kind: (-kind[1], kind[0]))
        shown = [f"{in_a_line(kind)} {number:,}" for kind, number in kinds[:SHOWN_KINDS]]
        rest = sum(number for _, number in kinds[SHOWN_KINDS:])
        shown += [f"others {rest:,}"] if rest else []
        parts.append(f"left out: {', '.join(shown)}")
    if c.last_event is not None:
        parts.append(f"the last said {_when_said(c.last_event, now)}")
    return "; ".join(parts)


def _when_said(moment: datetime, now: datetime) -> str:
    """How long ago; of a time to come, which a log may hold as well, the time itself."""
    if moment <= now:
        return age(moment, now)
    return f"at {moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC, which is to come"


def print_answer(console: Console, answer: Answer, *, full: bool = False) -> None:
    """The hits with their citations, after everything that limits what they are worth."""
    if answer.degraded:
        said = in_a_line(answer.degraded_reason or "")
        console.print(Text(f"Degraded: {said}", style="bold yellow"))
    for note in answer.notes:
        console.print(Text(f"Note: {in_a_line(note)}", style="yellow"))
    for hit in answer.hits:
        print_hit(console, hit, full=full)
    if not answer.hits:
        console.print(Text(f"Nothing found: {in_a_line(answer.empty_reason or '')}", style="bold"))
    shaky = [
        f"{f.project} {f.scope.value} is {f.state.value}"
        for f in answer.freshness
        if f.state in (CoverageState.STALE, CoverageState.FAILED)
    ]
    if shaky:
        console.print(Text(f"Beware: {', '.join(shaky)}", style="yellow"))
    total = answer.milliseconds.get("total", 0.0)
    console.print(
        Text(
            f"{counted(len(answer.hits), 'hit')} of {counted(answer.candidates, 'candidate')}, "
            f"{answer.cut_by_threshold} below the threshold, {answer.fusion.value}, {total:.0f} ms",
            style="dim",
        )
    )


def print_hit(console: Console, hit: Hit, *, full: bool = False) -> None:
    """One passage: its citation, where it stands, and its text, as far as it fits."""
    head = Text(f"{hit.rank:>2}. ", style="bold")
    head.append(in_a_line(hit.citation), style="bold cyan")
    console.print(head, soft_wrap=True)
    facts = [f"confidence {hit.confidence:.2f}"]
    match hit.origin:
        case FileOrigin() as at:
            facts += [in_a_line(" > ".join(at.heading_path))] if at.heading_path else []
            facts += [] if at.record is None else [record_state(at.record)]
            link = at.link
        case SessionOrigin() as at:
            when = f", {at.occurred_at:%Y-%m-%d %H:%M} UTC" if at.occurred_at else ""
            facts.append(f"{in_a_line(at.speaker)}{when}")
            facts += (
                [f"to #{in_a_line(at.last_event_id)}"] if at.last_event_id != at.event_id else []
            )
            facts += [in_a_line(place)] if (place := workplace(at)) else []
            link = None
    console.print(_indented(Text(" · ".join(facts), style="green")))
    if link:
        console.print(Text("    " + in_a_line(link), style="dim"), soft_wrap=True)
    content = safe(hit.content).strip()
    shown = content if full else shorten(content)
    console.print(_Quoted(shown))
    if len(shown) < len(content):
        console.print(_indented(Text("… (--full shows the whole passage)", style="dim")))
    console.print()


def record_state(record: RecordState) -> str:
    """A decision record's status in one line, with what stands in its place now."""
    said = record.status.value
    if record.date is not None:
        said += f" {record.date.isoformat()}"
    if record.superseded_by:
        names = ", ".join(r.path for r in record.superseded_by)
        return f"{said}, superseded by {in_a_line(names)}"
    # What could not be followed is shown as it is written, so that a reader can.
    written = record.status_text or ""
    return f"{said} ({in_a_line(written)})" if _adds(written, record.status.value) else said


def _adds(written: str, status: str) -> bool:
    return written.casefold().strip(" .") not in ("", status)


def workplace(at: SessionOrigin) -> str:
    """Where a session was at work, as far as it is known."""
    commit = f"commit {at.commit[:12]}" if at.commit else ""
    branch = f"branch {at.branch}" if at.branch else ""
    return ", ".join(filter(None, [at.directory, branch, commit]))


def shorten(content: str) -> str:
    """The first lines of a passage, ended at a word, so that an answer fits a screen."""
    lines = "\n".join(content.split("\n")[:SHOWN_LINES])
    if len(lines) <= SHOWN_CHARACTERS:
        return lines
    cut = lines[:SHOWN_CHARACTERS]
    return cut.rsplit(None, 1)[0] if " " in cut else cut


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 4))


class _Quoted:
    """Text of a source, each line on the screen marked, so that none passes for one of ours."""

    def __init__(self, text: str, style: str = "", *, before: str = "") -> None:
        self._text = Text(text, style=style)
        self._mark = f"{before}{_QUOTE.lstrip()}" if before else _QUOTE

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrower = options.update(width=max(1, options.max_width - len(self._mark)))
        for line in console.render_lines(self._text, narrower, pad=False):
            yield Segment(self._mark)
            yield from line
            yield Segment.line()


def print_explanation(console: Console, explanation: Explanation) -> None:
    """The verdict first, then what it rests on."""
    style = "green" if explanation.in_index else "yellow"
    console.print(Text(f"{explanation.project}: {in_a_line(explanation.path)}", style="bold"))
    console.print(Text(in_a_line(explanation.verdict), style=style))
    facts: Iterable[tuple[str, str | None]] = (
        ("scope", explanation.scope.value if explanation.scope else None),
        ("rule", explanation.rule),
        ("commit", explanation.commit),
        ("note", explanation.reason),
    )
    for name, value in facts:
        if value and not (name == "note" and value in explanation.verdict):
            console.print(Text(f"  {name}: {in_a_line(value)}"))
    for detail in explanation.details:
        console.print(Text(f"  {in_a_line(detail)}"))


def print_cited(console: Console, cited: CitedText) -> None:
    """The lines with their numbers, or the turns with their speakers; what is cited is bold."""
    console.print(Text(in_a_line(cited.citation), style="bold"), soft_wrap=True)
    for part in cited.parts:
        style = "bold" if part.cited else "dim"
        if part.start_line is None:
            console.print(Text(f"  {in_a_line(part.speaker or '')}", style="cyan"))
            console.print(_Quoted(safe(part.content), style))
            continue
        for number, line in enumerate(part.content.split("\n"), part.start_line):
            console.print(_Quoted(in_a_line(line), style, before=f"{number:>6} "))
