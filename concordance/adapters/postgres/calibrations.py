"""Calibrations and recorded questions, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, LiteralString

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from concordance.adapters.postgres.database import (
    Connection,
    Database,
    Statements,
    fetch_all,
    fetch_value,
)
from concordance.indexing.documents import Kind
from concordance.ranking.calibration import Calibration
from sql import queries


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer stands: lines of a file, or a turn of a session."""

    kind: Kind
    name: str
    start_line: int | None = None
    end_line: int | None = None
    event_id: str | None = None

    def __str__(self) -> str:
        """As a citation writes it."""
        if self.kind == "session":
            return f"session {self.name}#{self.event_id}"
        return f"{self.name}:{self.start_line}-{self.end_line}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A question with one place that answers it."""

    id: int
    project: str
    question: str
    kind: Kind
    name: str
    start_line: int | None
    end_line: int | None
    event_id: str | None
    recorded_at: datetime

    @property
    def place(self) -> Place:
        """Where the answer stands."""
        return Place(self.kind, self.name, self.start_line, self.end_line, self.event_id)


@dataclass(frozen=True, slots=True)
class KeptPassage:
    """A stored passage, as an export needs it."""

    kind: Kind
    name: str
    ordinal: int
    title: str | None
    titled: bool
    heading_path: list[str]
    start_line: int | None
    end_line: int | None
    event_id: str | None
    last_event_id: str | None
    content: str


def find_calibration(
    connection: Connection, project_id: int, ask: Statements
) -> Calibration | None:
    """What is stored for a project, or None."""
    found = _calibrations(connection, ask["find"], {"project": project_id})
    return found[0] if found else None


def list_calibrations(database: Database, tenant: str) -> list[Calibration]:
    """All that is stored for the projects of a tenant, named by its slug.

    A database whose schema is older holds none.
    """
    with database.transaction() as connection:
        if not fetch_value(connection, queries("calibrations")["there"], {}):
            return []
        return _calibrations(connection, queries("calibrations")["list"], {"slug": tenant})


def save_calibration(
    database: Database, tenant: int, project_id: int, calibration: Calibration
) -> None:
    """Store a project's calibration in place of the one before."""
    plain = calibration.model_dump(mode="json")
    confidence = plain["confidence"]
    parameters = calibration.model_dump(exclude={"project", "made_at", "confidence", "figures"})
    with database.transaction() as connection:
        connection.execute(
            queries("calibrations")["save"],
            parameters
            | {
                "project": project_id,
                "tenant": tenant,
                "confidence": None if confidence is None else Jsonb(confidence),
                "figures": Jsonb(plain["figures"]),
                "now": calibration.made_at,
            },
        )


def remove_calibration(database: Database, project_id: int) -> bool:
    """Go back to the defaults; tells whether there was anything to undo."""
    with database.transaction() as connection:
        gone = connection.execute(queries("calibrations")["remove"], {"project": project_id})
        return gone.rowcount > 0


def record_question(  # noqa: PLR0913 - one row's values
    database: Database, tenant: int, project_id: int, question: str, place: Place, *, now: datetime
) -> bool:
    """Store a question with a place that answers it; tells whether it was new."""
    key = {"tenant": tenant, "project": project_id, "question": question, "now": now}
    with database.transaction() as connection:
        done = connection.execute(queries("calibrations")["record_question"], key | asdict(place))
        return done.rowcount > 0


def recorded_questions(database: Database, tenant: int, project_id: int | None) -> list[Recorded]:
    """The recorded questions of a project, or of all."""
    with database.transaction() as connection:
        return fetch_all(
            connection,
            queries("calibrations")["recorded"],
            {"tenant": tenant, "project": project_id},
            Recorded,
        )


def forget_question(database: Database, tenant: int, number: int) -> bool:
    """Remove one recorded question; tells whether it was there."""
    with database.transaction() as connection:
        gone = connection.execute(
            queries("calibrations")["forget_question"], {"tenant": tenant, "number": number}
        )
        return gone.rowcount > 0


def kept_passages(database: Database, project_id: int) -> list[KeptPassage]:
    """Every passage of a project, by document and place."""
    with database.transaction() as connection:
        return fetch_all(
            connection, queries("calibrations")["passages"], {"project": project_id}, KeptPassage
        )


def _calibrations(
    connection: Connection, query: LiteralString, parameters: Mapping[str, Any]
) -> list[Calibration]:
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(query, parameters).fetchall()
    return [Calibration.model_validate(row) for row in rows]
