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
from functools import cache
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
    Statements,
    fetch_all,
    fetch_rows,
    fetch_value,
    numbers_as_text,
    translate,
)
from concordance.adapters.postgres.embeddings import StoredSpace, vector_as_text
from concordance.adapters.postgres.records import Standing, standing_of
from concordance.errors import DatabaseError, DatabaseUnavailable
from concordance.models import POOL, AdrStatus, LexicalRanking
from concordance.ranking.calibration import Calibration
from concordance.ranking.candidates import Known, Scored
from sql import queries

T = TypeVar("T")

# Up to here every vector of the scope is compared; measured faster than HNSW with a filter.
EXACT_UP_TO = 20_000
# The same where less than this share of all passages is searched: the index would meet so many
# others that it takes longer, and loses some of the nearest (measured, 0.94 of them left at 1 %).
LEAST_SHARE = 0.1
# But not beyond this many, which would be read from disk.
EXACT_AT_MOST = 100_000
# Seconds that a leg's earlier statements may have taken before the server is told what is left.
WORTH_TELLING = 0.05
# Beyond this HNSW holds half precision only; see create_vector_index.
WIDEST_VECTOR = 2_000
# What an answer says of passages that wait is not counted further than to here.
COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Target:
    """One scope of one project that is searched, with its coverage in the same snapshot.

    `in_all` is how many passages all scopes of the tenant hold.
    """

    project_id: int
    slug: str
    scope: str
    state: str
    reason: str
    indexed_commit: str | None
    last_success: datetime | None
    fingerprint: str | None
    chunks: int
    chunks_with_vector: int
    chunks_refused: int
    in_all: int


@dataclass(frozen=True, slots=True)
class Filters:
    """What every find must satisfy; `places` lets the text index look at few scopes alone."""

    projects: tuple[int, ...]
    scopes: tuple[str, ...]
    path_prefix: str | None
    since: datetime | None
    places: tuple[str, ...] = ()
    adr_status: tuple[AdrStatus, ...] | None = None

    @property
    def narrow(self) -> bool:
        """Whether more is asked for than scopes of projects."""
        return not (self.path_prefix is None and self.since is None and self.adr_status is None)

    def parameters(self) -> dict[str, Any]:
        """The filters as the statements name them."""
        return {
            "projects": list(self.projects),
            "scopes": list(self.scopes),
            "narrow": self.narrow,
            "adr_status": None if self.adr_status is None else list(self.adr_status),
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


@dataclass(frozen=True, slots=True)
class Nearest:
    """A question's vector in a space, and what the vector leg found with it."""

    space: StoredSpace
    vector: NDArray[np.float32]
    found: Sequence[Scored]


class Snapshot:
    """One read-only view of the index: everything asked of it is of the same moment."""

    def __init__(
        self,
        connection: Connection,
        target: str,
        deadline: float,
        statements: Callable[[str], Statements] = queries,
    ) -> None:
        self._connection = connection
        self._target = target
        self._deadline = deadline
        self._statements = statements
        self._ask = statements("search")
        self._timed_at = time.monotonic()

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
        ask = self._statements("calibrations")
        return find_calibration(self._connection, project_id, ask)

    def questions(self, text: str, filters: Filters) -> list[lexical.Question]:
        """The question in each language of the searched projects, with idf and bounds."""
        return self._guarded(
            lambda connection: lexical.read_questions(
                connection,
                text,
                filters.projects,
                self._in_time,
                ask=self._statements("lexical"),
            )
        )

    def lexical_leg(
        self, questions: Sequence[lexical.Question], filters: Filters, ranking: LexicalRanking
    ) -> list[Scored]:
        """Passages that hold the question's words, best first."""
        return self._guarded(
            lambda connection: lexical.find(
                connection,
                questions,
                filters.parameters(),
                filters.places,
                ranking=ranking,
                in_time=self._in_time,
                ask=self._statements("lexical"),
            ),
            anew=True,
        )

    def vector_leg(
        self,
        space: StoredSpace,
        vector: NDArray[np.float32],
        filters: Filters,
        *,
        held: int,
        in_all: int,
    ) -> list[Scored]:
        """The nearest passages; all of the pool where the scopes hold that many.

        `held` is how many passages the searched scopes hold, `in_all` how many there are: they
        decide whether the index is asked or every vector is compared.
        """
        parameters = filters.parameters() | {"vector": vector_as_text(vector)}
        if not self._compare_all(filters, held, in_all):
            # Without statistics, as after a mass of writes, the planner would sort every vector.
            query = _shaped(self._ask["vector_leg"], space)
            found = self._scored(query, parameters, sort=False)
            if len(found) >= min(POOL, held):
                return found
        name = "vector_leg_narrow" if parameters["narrow"] else "vector_leg_exact"
        return self._scored(_shaped(self._ask[name], space), parameters)

    def _compare_all(self, filters: Filters, held: int, in_all: int) -> bool:
        """Whether comparing every vector is as good as asking the index, or better."""
        bound = max(EXACT_UP_TO, min(int(LEAST_SHARE * in_all), EXACT_AT_MOST))
        if held <= bound:
            return True
        given = filters.parameters() | {"most": bound + 1}
        if not given["narrow"]:
            return False
        found = self._guarded(lambda c: fetch_value(c, self._ask["count_narrow"], given))
        return int(found) <= bound

    def candidates(
        self,
        chunks: Sequence[int],
        questions: Sequence[lexical.Question],
        ranking: LexicalRanking,
        nearest: Nearest | None,
    ) -> list[Known]:
        """What both legs say of given passages; nothing of a leg without words or without vector.

        A lexical score is None where passage and question share no word, a cosine where the passage
        has no vector.
        """
        given = lexical.score_parameters(questions, ranking) | {"chunks": numbers_as_text(chunks)}
        cosines: dict[int, float] = {}
        wordless: list[int] = []
        if nearest is None:
            rows = self._known(self._ask["candidates_by_words"], given)
        else:
            cosines = {found.chunk_id: found.score for found in nearest.found}
            given |= {"vector": vector_as_text(nearest.vector), "near": numbers_as_text(cosines)}
            both, alone = (
                _shaped(self._ask[name], nearest.space)
                for name in ("candidates", "candidates_by_vector")
            )
            # A leg that failed is not touched again.
            rows = self._known(both, given) if questions else []
            wordless = sorted(set(chunks) - {row[0] for row in rows})
        known = [
            # Sums of shares may pass 1 by rounding.
            Known(i, slug, kind, name, n, score, min(1.0, share or 0.0), cosines.get(i, cosine))
            for i, slug, kind, name, n, share, score, cosine in rows
        ]
        if wordless and nearest is not None:
            given["chunks"] = numbers_as_text(wordless)
            known += [
                # Whether it holds a word is not known.
                Known(i, slug, kind, name, n, score, None, cosines.get(i, cosine))
                for i, slug, kind, name, n, _, score, cosine in self._known(alone, given)
            ]
        return known

    def wordless(self, filters: Filters) -> int:
        """How many passages of the scopes have no words yet, up to `COUNTED`."""
        given = filters.parameters() | {"most": COUNTED}
        found = self._guarded(lambda c: fetch_value(c, self._ask["count_wordless"], given))
        return int(found)

    def passages(self, tenant: int, chunks: Sequence[int]) -> dict[int, StoredPassage]:
        """Passages with their text and the place where they stand."""
        rows = fetch_all(
            self._connection,
            self._ask["passages"],
            {"tenant": tenant, "chunks": list(chunks)},
            StoredPassage,
        )
        return {row.chunk_id: row for row in rows}

    def records(self, chunks: Sequence[int]) -> dict[int, Standing]:
        """The decision record of each of these passages that belongs to one."""
        return standing_of(self._connection, chunks, self._statements("records"))

    def _known(self, query: Any, given: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._guarded(lambda connection: fetch_rows(connection, query, given))

    def _scored(self, query: Any, given: dict[str, Any], *, sort: bool = True) -> list[Scored]:
        rows = self._guarded(
            lambda connection: fetch_rows(connection, query, given), sort=sort, anew=True
        )
        return [Scored(chunk_id, score) for chunk_id, score in rows]

    def _guarded(
        self, work: Callable[[Connection], T], *, sort: bool = True, anew: bool = False
    ) -> T:
        """Statements after a savepoint: where they fail, the other leg can still answer.

        Without `sort` the planner takes an index that gives the order, where there is one. What is
        planned `anew` sees its values: a general plan can't prove the predicate of a model's index,
        nor how many rows a condition keeps.
        """
        guard = pgsql.SQL(self._ask["guard"]).format(
            milliseconds=pgsql.Literal(_milliseconds(self._deadline)),
            sort=pgsql.SQL("on" if sort else "off"),
            plans=pgsql.SQL("force_custom_plan" if anew else "auto"),
        )
        self._connection.execute(guard)
        self._timed_at = time.monotonic()
        try:
            return work(self._connection)
        except psycopg.OperationalError:
            raise  # the connection or the deadline is gone, for both legs
        except psycopg.Error as error:
            self._connection.execute(self._ask["give_up_leg"])
            raise LegFailed(str(translate(error, self._target))) from error

    def _in_time(self) -> None:
        """Before a statement: no more time than is left, all of a leg's statements together.

        Raises:
            DatabaseUnavailable: None is left.
        """
        now = time.monotonic()
        if now >= self._deadline:
            raise DatabaseUnavailable(f"Postgres at {self._target} did not answer in time")
        if now - self._timed_at > WORTH_TELLING:
            timeout = pgsql.SQL(self._ask["set_timeout"]).format(
                milliseconds=pgsql.Literal(_milliseconds(self._deadline))
            )
            self._connection.execute(timeout)
            self._timed_at = now


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
        yield Snapshot(connection, database.target, deadline, database.statements)


def _milliseconds(deadline: float) -> int:
    """What is left; at least one, as none means no limit."""
    return max(1, int((deadline - time.monotonic()) * 1_000))


def _shaped(query: LiteralString, space: StoredSpace) -> pgsql.Composed:
    """The statement with the model's number, type and width written in, as its index needs them."""
    return _written(query, space.id, space.dimensions)


@cache
def _written(query: LiteralString, model: int, dimensions: int) -> pgsql.Composed:
    return pgsql.SQL(query).format(
        model=pgsql.Literal(model),
        type=pgsql.SQL("vector" if dimensions <= WIDEST_VECTOR else "halfvec"),
        dimensions=pgsql.Literal(dimensions),
    )
