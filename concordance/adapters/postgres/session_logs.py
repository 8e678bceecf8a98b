"""What each session log held when it was read last, as it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from concordance.adapters.postgres.database import Connection, Database, fetch_all
from concordance.indexing.logs import LogState, Part
from concordance.sessions.events import LineProblem
from sql import queries


@dataclass(frozen=True, slots=True)
class _Row:
    path: str
    stamp: str
    reader: str
    format: str | None
    parts: list[list[Any]]
    problems: list[list[Any]]
    left_out: dict[str, int]
    last_event: datetime | None
    refused: str | None
    beside: str | None


def stored_logs(database: Database, project_id: int) -> Mapping[str, LogState]:
    """The logs of a project by path, as they were when the last run that ended well read them."""
    with database.transaction() as connection:
        return stored_logs_in(connection, project_id)


def stored_logs_in(connection: Connection, project_id: int) -> Mapping[str, LogState]:
    """The same, inside a transaction of the caller's."""
    rows = fetch_all(connection, queries("session_logs")["stored"], {"project": project_id}, _Row)
    return {row.path: _state(row) for row in rows}


def save_logs(
    connection: Connection, tenant: int, project_id: int, states: Sequence[LogState]
) -> None:
    """Keep what the logs hold; those that are not named are forgotten."""
    ask = queries("session_logs")
    key = {"project": project_id}
    connection.execute(ask["forget"], key | {"paths": [state.path for state in states]})
    rows = connection.execute(ask["stamps"], key).fetchall()
    stored = {path: (stamp, reader) for path, stamp, reader in rows}
    # A log without a stamp may have changed whenever it is looked at.
    changed = [s for s in states if not s.stamp or stored.get(s.path) != (s.stamp, s.reader)]
    with connection.cursor() as cursor:
        cursor.executemany(
            ask["save"],
            [
                key | {"tenant": tenant} | log_values(state)
                for state in sorted(changed, key=lambda state: state.path)
            ],
        )


def _state(row: _Row) -> LogState:
    return LogState(
        path=row.path,
        stamp=row.stamp,
        reader=row.reader,
        format=row.format,
        parts=tuple(Part(*part) for part in row.parts),
        problems=tuple(LineProblem(*problem) for problem in row.problems),
        left_out=row.left_out,
        last_event=row.last_event,
        refused=row.refused,
        beside=row.beside,
    )


def log_values(state: LogState) -> dict[str, Any]:
    """A state as the statements name its parts."""
    return {
        "path": state.path,
        "stamp": state.stamp,
        "reader": state.reader,
        "format": state.format,
        "turns": state.turns,
        "left_out": Jsonb(dict(state.left_out)),
        "last_event": state.last_event,
        "parts": Jsonb([[part.session_id, part.digest, part.turns] for part in state.parts]),
        "problems": Jsonb([[p.line, p.reason, p.unfinished, p.unit] for p in state.problems]),
        "refused": state.refused,
        "beside": state.beside,
    }
