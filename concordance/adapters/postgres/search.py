"""The two legs of a search, in one snapshot.

What belongs here: candidates with their true scores on both legs, and what is needed to show them.
How they become one order is `concordance.ranking`'s work.

The lexical leg is behind one seam: `lexical_leg` finds and ranks, `lexical_scores` scores given
passages; another ranking changes these two statements and `LEXICAL_RANKING`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString, TypeVar

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql as pgsql

from concordance.adapters.postgres.database import (
    Connection,
    Database,
    fetch_all,
    fetch_value,
    translate,
)
from concordance.adapters.postgres.embeddings import StoredSpace, vector_as_text
from concordance.errors import DatabaseError, DatabaseUnavailable
from concordance.models import POOL
from concordance.ranking.candidates import Place, Scored, Worded
from sql import queries

Row = TypeVar("Row")

LEXICAL_RANKING = "ts_rank"
MOST_TERMS = 256
# Up to here every vector of the scope is compared; measured faster than HNSW with a filter.
EXACT_UP_TO = 20_000
# Beyond this HNSW holds half precision only; see create_vector_index.
WIDEST_VECTOR = 2_000


@dataclass(frozen=True, slots=True)
class Target:
    """One scope of one project that is searched, with its coverage in the same snapshot."""

    project_id: int
    slug: str
    language: str
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
    """What every find must satisfy besides project and scope."""

    projects: tuple[int, ...]
    scopes: tuple[str, ...]
    path_prefix: str | None
    since: datetime | None

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

    def terms(self, language: str, question: str) -> list[str]:
        """The question's words as the language's passages would have them, `MOST_TERMS` at most."""
        found = fetch_value(
            self._connection,
            self._ask["terms"],
            {"language": language, "question": question, "most": MOST_TERMS},
        )
        return list(found)

    def lexical_leg(self, terms: Sequence[str], filters: Filters) -> list[Scored]:
        """Passages that hold any of the words, best first."""
        if not terms:
            return []
        return self._leg(
            self._ask["lexical_leg"], filters.parameters() | {"terms": list(terms)}, Scored
        )

    def lexical_scores(self, terms: Sequence[str], chunks: Sequence[int]) -> list[Worded]:
        """The lexical score of given passages; None where they share no word with the question."""
        return self._leg(
            self._ask["lexical_scores"], {"terms": list(terms), "chunks": list(chunks)}, Worded
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
        """One statement in a savepoint: where it fails, the other leg can still answer."""
        try:
            with self._connection.transaction():
                self._connection.execute(
                    self._ask["limit_time"], {"milliseconds": _milliseconds(self._deadline)}
                )
                return fetch_all(self._connection, query, parameters, row)
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
            {"ef_search": POOL, "milliseconds": _milliseconds(deadline)},
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
