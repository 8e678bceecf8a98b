"""The two legs of a search, in one snapshot.

What belongs here: candidates with their true scores on both legs, and what is needed to show them.
How they become one order is `concordance.ranking`'s work.

The lexical leg is behind one seam, `concordance.adapters.postgres.lexical`: it finds and ranks, and
it scores given passages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString, TypeVar

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql as pgsql

from concordance.adapters.postgres import lexical
from concordance.adapters.postgres.calibrations import find_calibration
from concordance.adapters.postgres.database import (
    Connection,
    Database,
    fetch_all,
    translate,
)
from concordance.adapters.postgres.embeddings import StoredSpace, vector_as_text
from concordance.errors import DatabaseError, DatabaseUnavailable
from concordance.models import POOL, LexicalRanking
from concordance.ranking.calibration import Calibration
from concordance.ranking.candidates import Place, Scored, Worded
from sql import queries

Row = TypeVar("Row")
T = TypeVar("T")

# Up to here every vector of the scope is compared; measured faster than HNSW with a filter.
EXACT_UP_TO = 20_000
# Beyond this HNSW holds half precision only; see create_vector_index.
WIDEST_VECTOR = 2_000


@dataclass(frozen=True, slots=True)
class Target:
    """One scope of one project that is searched, with its coverage in the same snapshot."""

    project_id: int
    slug: str
    scope: str
    state: str
    reason: str
    indexed_commit: str | None
    last_success: datetime | None
    chunks: int
    chunks_with_vector: int
    chunks_refused: int


@dataclass(frozen=True, slots=True)
class Filters:
    """What every find must satisfy; `places` lets the text index look at few scopes alone."""

    projects: tuple[int, ...]
    scopes: tuple[str, ...]
    path_prefix: str | None
    since: datetime | None
    places: tuple[str, ...] = ()

    def parameters(self) -> dict[str, Any]:
        """The filters as the statements name them."""
        return {
            "projects": list(self.projects),
            "scopes": list(self.scopes),
            "narrow": self.path_prefix is not None or self.since is not None,
            "prefix": self.path_prefix,
            "since": self.since,
            "pool": POOL,
        }


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as an answer shows it."""

    chunk_id: int
    project: str
    location: str
    web_url: str | None
    scope: str
    kind: str
    name: str
    source: str | None
    title: str | None
    commit: str | None
    directory: str | None
    branch: str | None
    linked_commit: str | None
    heading_path: list[str]
    start_line: int | None
    end_line: int | None
    event_id: str | None
    last_event_id: str | None
    speaker: str | None
    occurred_at: datetime | None
    content: str


class Snapshot:
    """One read-only view of the index: everything asked of it is of the same moment."""

    def __init__(self, connection: Connection, target: str, deadline: float) -> None:
        self._connection = connection
        self._target = target
        self._deadline = deadline
        self._ask = queries("search")

    def targets(
        self, tenant: int, slugs: Sequence[str] | None, scopes: Sequence[str]
    ) -> list[Target]:
        """The scopes that a search would look at."""
        return fetch_all(
            self._connection,
            self._ask["targets"],
            {
                "tenant": tenant,
                "slugs": None if slugs is None else list(slugs),
                "scopes": list(scopes),
            },
            Target,
        )

    def calibration(self, project_id: int) -> Calibration | None:
        """What was fitted for a project, or None."""
        return find_calibration(self._connection, project_id)

    def questions(self, text: str, filters: Filters) -> list[lexical.Question]:
        """The question in each language of the searched projects, with idf and bounds."""
        return self._guarded(
            lambda connection: lexical.read_questions(connection, text, filters.projects)
        )

    def lexical_leg(
        self, questions: Sequence[lexical.Question], filters: Filters, ranking: LexicalRanking
    ) -> list[Scored]:
        """Passages that hold the question's words, best first."""
        return self._guarded(
            lambda connection: lexical.find(
                connection, questions, filters.parameters(), filters.places, ranking=ranking
            )
        )

    def lexical_scores(
        self,
        questions: Sequence[lexical.Question],
        chunks: Sequence[int],
        ranking: LexicalRanking,
    ) -> list[Worded]:
        """The lexical score of given passages; None where they share no word with the question."""
        return self._guarded(
            lambda connection: lexical.score(connection, questions, chunks, ranking=ranking)
        )

    def vector_leg(
        self, space: StoredSpace, vector: NDArray[np.float32], filters: Filters, *, held: int
    ) -> list[Scored]:
        """The nearest passages; all of the pool where the scopes hold that many.

        `held` is how many vectors there may be: it decides how they are looked through.
        """
        parameters = filters.parameters() | {"vector": vector_as_text(vector)}
        if held > EXACT_UP_TO:
            found = self._leg(_shaped(self._ask["vector_leg"], space), parameters, Scored)
            if len(found) >= min(POOL, held):
                return found
        return self._leg(_shaped(self._ask["vector_leg_exact"], space), parameters, Scored)

    def vector_scores(
        self, space: StoredSpace, vector: NDArray[np.float32], chunks: Sequence[int]
    ) -> list[Scored]:
        """The cosine of given passages; those without a vector are left out."""
        return self._leg(
            _shaped(self._ask["vector_scores"], space),
            {"vector": vector_as_text(vector), "chunks": list(chunks)},
            Scored,
        )

    def places(self, chunks: Sequence[int]) -> dict[int, Place]:
        """What orders passages of equal score."""
        rows = fetch_all(self._connection, self._ask["order_keys"], {"chunks": list(chunks)}, Place)
        return {row.chunk_id: row for row in rows}

    def passages(self, tenant: int, chunks: Sequence[int]) -> dict[int, StoredPassage]:
        """Passages with their text and the place where they stand."""
        rows = fetch_all(
            self._connection,
            self._ask["passages"],
            {"tenant": tenant, "chunks": list(chunks)},
            StoredPassage,
        )
        return {row.chunk_id: row for row in rows}

    def _leg(self, query: Any, parameters: dict[str, Any], row: type[Row]) -> list[Row]:
        return self._guarded(lambda connection: fetch_all(connection, query, parameters, row))

    def _guarded(self, work: Callable[[Connection], T]) -> T:
        """Statements in a savepoint: where they fail, the other leg can still answer."""
        try:
            with self._connection.transaction():
                self._connection.execute(
                    self._ask["limit_time"], {"milliseconds": _milliseconds(self._deadline)}
                )
                return work(self._connection)
        except psycopg.OperationalError:
            raise  # the connection or the deadline is gone, for both legs
        except psycopg.Error as error:
            raise LegFailed(str(translate(error, self._target))) from error


class LegFailed(DatabaseError):
    """One leg's statement failed; the snapshot can still be used."""


@contextmanager
def open_snapshot(database: Database, *, timeout_seconds: float) -> Iterator[Snapshot]:
    """A snapshot whose legs end within `timeout_seconds`, all of them together.

    Raises:
        DatabaseUnavailable: Postgres can't be reached, or a statement took too long.
    """
    if timeout_seconds <= 0:
        raise DatabaseUnavailable("no time was left to ask Postgres", hint="Give a later deadline")
    ask = queries("search")
    deadline = time.monotonic() + timeout_seconds
    with database.transaction() as connection:
        connection.execute(ask["begin"])
        connection.execute(
            ask["tune"],
            {"ef_search": 2 * POOL, "milliseconds": _milliseconds(deadline)},
        )
        yield Snapshot(connection, database.target, deadline)


def _milliseconds(deadline: float) -> int:
    """What is left; at least one, as none means no limit."""
    return max(1, int((deadline - time.monotonic()) * 1_000))


def _shaped(query: LiteralString, space: StoredSpace) -> pgsql.Composed:
    """The statement with the model's number, type and width written in, as its index needs them."""
    return pgsql.SQL(query).format(
        model=pgsql.Literal(space.id),
        type=pgsql.SQL("vector" if space.dimensions <= WIDEST_VECTOR else "halfvec"),
        dimensions=pgsql.Literal(space.dimensions),
    )
