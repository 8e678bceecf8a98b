"""What stands where a citation points: a document by its name, and passages around a place in it.

What belongs here: finding. How passages become lines and turns again is `concordance.quoting`'s
work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from concordance.adapters.postgres.database import Connection, Database, fetch_all, fetch_one
from concordance.adapters.postgres.search import StoredPassage
from concordance.indexing.documents import Kind


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A file or a session; `last_line` is that of its last passage, None where it has no lines."""

    id: int
    scope: str
    status: str
    reason: str | None
    commit: str | None
    chunks: int
    chunks_with_vector: int
    last_line: int | None


@dataclass(frozen=True, slots=True)
class FoundLines:
    """A passage of a file with its place; `start_char` and `end_char` are of the whole text."""

    passage: StoredPassage
    start_line: int
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A passage of a session; `turn` counts from the one asked for, negative before it."""

    passage: StoredPassage
    turn: int
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class _Lines:
    chunk_id: int
    start_line: int
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class _Turn:
    chunk_id: int
    turn: int
    start_char: int
    end_char: int


class Shelf:
    """One read-only view of a project's documents: all that is asked of it is of one moment."""

    def __init__(
        self, connection: Connection, database: Database, tenant: int, project: str
    ) -> None:
        self._connection = connection
        self._ask = database.statements("citations")
        self._passages = database.statements("search")["passages"]
        self._key = {"tenant": tenant, "slug": project}

    def document(self, kind: Kind, name: str) -> CitedDocument | None:
        """What is stored under a name, or None."""
        key = self._key | {"kind": kind, "name": name}
        return fetch_one(self._connection, self._ask["document"], key, CitedDocument)

    def lines(
        self, name: str, first: int, last: int, *, around: int, most: int
    ) -> list[FoundLines]:
        """The passages of a file on and around some lines, in their order.

        Where there are more than `most`, the nearest.
        """
        key = self._key | {"name": name, "first": first, "last": last, "around": around}
        rows = fetch_all(self._connection, self._ask["lines"], key | {"most": most}, _Lines)
        texts = self._texts([row.chunk_id for row in rows])
        found = [
            FoundLines(texts[row.chunk_id], row.start_line, row.start_char, row.end_char)
            for row in rows
        ]
        return sorted(found, key=lambda f: (f.start_char, f.end_char))

    def turns(self, name: str, event: str, *, around: int, most: int) -> list[FoundTurn]:
        """The passages of a turn and of those around it, in their order; the nearest `most`."""
        key = self._key | {"name": name, "event": event, "around": around, "most": most}
        rows = fetch_all(self._connection, self._ask["turns"], key, _Turn)
        texts = self._texts([row.chunk_id for row in rows])
        found = [
            FoundTurn(texts[row.chunk_id], row.turn, row.start_char, row.end_char) for row in rows
        ]
        return sorted(found, key=lambda f: (f.turn, f.start_char, f.end_char))

    def _texts(self, chunks: list[int]) -> dict[int, StoredPassage]:
        key = {"tenant": self._key["tenant"], "chunks": chunks}
        rows = fetch_all(self._connection, self._passages, key, StoredPassage)
        return {row.chunk_id: row for row in rows}


@contextmanager
def open_shelf(database: Database, tenant: int, project: str) -> Iterator[Shelf]:
    """A view of a project, by its slug; one that nobody has holds no document.

    Raises:
        DatabaseError: Postgres can't be reached, or refuses.
    """
    with database.transaction() as connection:
        connection.execute(database.statements("search")["begin"])
        yield Shelf(connection, database, tenant, project)
