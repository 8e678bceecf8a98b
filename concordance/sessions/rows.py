"""Reader of rows with the canonical fields, such as a query gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concordance.sessions.events import (
    Event,
    LeftOut,
    LineProblem,
    LogContent,
    SessionNote,
    something_said,
)
from concordance.sessions.jsonl import note_of, read_event
from concordance.sessions.lines import LineError


def read_rows(rows: Sequence[Mapping[str, Any]], before: int = 0) -> LogContent:
    """The events of some rows; `before` is how many rows came before them, for the reasons."""
    events: list[Event] = []
    problems: list[LineProblem] = []
    left_out = LeftOut()
    notes: dict[SessionNote, None] = {}
    for number, row in enumerate(rows, start=before + 1):
        try:
            event = read_event(row)
        except LineError as error:
            problems.append(LineProblem(number, str(error), unit="row"))
            continue
        if event is None:
            left_out.add(row["type"])
        else:
            events.append(event)
        note = note_of(row)
        if note is not None:
            notes[note] = None
    said = something_said(events, left_out)
    return LogContent(said, tuple(problems), left_out.counts, tuple(notes))
