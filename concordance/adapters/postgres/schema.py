"""The schema: numbered migrations, applied once, checked by hash ever after."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from concordance.adapters.postgres.database import (
    Connection,
    Database,
    fetch_all,
    fetch_value,
    run_again,
)
from concordance.errors import DatabaseReadOnly, SchemaMismatch
from sql import Migration, migrations, queries

# Any constant will do, as long as every process of every version uses the same.
_LOCK_KEY = 4_820_117_334_501


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that the database has had."""

    number: int
    name: str
    sha256: str


def migrate(database: Database, steps: Sequence[Migration] | None = None) -> list[int]:
    """Bring the schema up to date; returns the numbers of the migrations that were applied.

    One process migrates, the others wait for it: an advisory lock is held to the commit.

    Raises:
        SchemaMismatch: An applied migration has changed, or the schema is newer than the program,
            or older and read only.
    """
    wanted = migrations() if steps is None else steps
    try:
        # A run of the earlier version may hold what a migration locks, the other way round.
        return run_again(lambda: _migrate(database, wanted))
    except DatabaseReadOnly as error:
        raise SchemaMismatch(
            f"the schema at {database.target} is older than this program, and can't be changed "
            "there: it is a replica, or read only",
            hint="Run 'concordance coverage' once with the address of the primary, which brings it "
            "up to date",
        ) from error


def _migrate(database: Database, wanted: Sequence[Migration]) -> list[int]:
    ask = queries("migrations")
    with database.transaction() as connection:
        # The usual case needs no lock: everything is applied already.
        if not _pending(connection, wanted):
            return []
        connection.execute(ask["lock"], {"key": _LOCK_KEY})
        connection.execute(ask["create_schema"])
        connection.execute(ask["create_table"])
        todo = _pending(connection, wanted)
        for step in todo:
            connection.execute(step.text.encode())
            connection.execute(
                ask["record"],
                {"number": step.number, "name": step.name, "sha256": _hash(step)},
            )
    return [step.number for step in todo]


def _pending(connection: Connection, wanted: Sequence[Migration]) -> list[Migration]:
    ask = queries("migrations")
    if not fetch_value(connection, ask["table_exists"], {}):
        return list(wanted)
    applied = {row.number: row for row in fetch_all(connection, ask["applied"], {}, Applied)}
    known = {step.number: step for step in wanted}
    newer = sorted(applied.keys() - known.keys())
    if newer:
        raise SchemaMismatch(
            f"the database has migration {newer[-1]:04d}, which this program does not know",
            hint="Install the newer version of Concordance that made it",
        )
    for number, row in sorted(applied.items()):
        if row.sha256 != _hash(known[number]):
            raise SchemaMismatch(
                f"migration {number:04d} ({row.name}) is not the one that was applied",
                hint="Restore the file; a change of the schema is a new migration",
            )
    return [step for step in wanted if step.number not in applied]


def _hash(step: Migration) -> str:
    return hashlib.sha256(step.text.encode()).hexdigest()
