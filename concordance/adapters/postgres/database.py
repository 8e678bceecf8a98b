"""Connections to Postgres: a pool, sessions that hold locks, and the driver's errors made ours.

What belongs here: how a connection is made and how its errors are sorted. What is asked over it
is in the modules beside this one, in the words of `sql/queries`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg import sql as pgsql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from concordance.errors import (
    ConcordanceError,
    DatabaseConflict,
    DatabaseError,
    DatabaseUnavailable,
    DatabaseUnsuitable,
    UsageError,
)
from concordance.text.scrubbing import Scrubber
from sql import queries

Row = TypeVar("Row")
Connection = psycopg.Connection[tuple[Any, ...]]
Parameters = Mapping[str, Any]
Statements = Mapping[str, LiteralString]

OLDEST_SERVER = 160_000
OLDEST_PGVECTOR = (0, 8)
CONNECT_SECONDS = 10
MOST_SAID = 300


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself."""

    version: int
    pgvector: str | None
    pgvector_schema: str | None
    pgvector_available: bool
    read_only: bool


def fetch_all(
    connection: Connection,
    query: LiteralString | pgsql.Composed,
    parameters: Parameters,
    row: type[Row],
) -> list[Row]:
    """All rows of a query, each as a `row`."""
    with connection.cursor(row_factory=class_row(row)) as cursor:
        return cursor.execute(query, parameters).fetchall()


def fetch_rows(
    connection: Connection, query: LiteralString | pgsql.Composed, parameters: Parameters
) -> list[tuple[Any, ...]]:
    """All rows of a query as they come, for the hundreds that every search reads."""
    return connection.execute(query, parameters).fetchall()


def fetch_one(
    connection: Connection, query: LiteralString, parameters: Parameters, row: type[Row]
) -> Row | None:
    """The first row of a query as a `row`, or None."""
    with connection.cursor(row_factory=class_row(row)) as cursor:
        return cursor.execute(query, parameters).fetchone()


def fetch_value(connection: Connection, query: LiteralString, parameters: Parameters) -> Any:
    """The first column of the first row of a query, or None where there is no row."""
    row = connection.execute(query, parameters).fetchone()
    return None if row is None else row[0]


def numbers_as_text(chunks: Iterable[int]) -> str:
    """Numbers as Postgres writes an array of them: the driver's way costs a search half a ms."""
    return f"{{{','.join(map(str, chunks))}}}"


def translate(  # noqa: PLR0911 - one case a kind of error
    error: psycopg.Error, target: str
) -> ConcordanceError:
    """The driver's error as one of ours, with the server's own first line and nothing secret."""
    said = (error.diag.message_primary or str(error).strip().split("\n")[0]).strip()
    # A server may quote the text that it could not take; half a secret is not known as one.
    said = Scrubber().text(said)[:MOST_SAID]
    match error:
        case pg.DeadlockDetected() | pg.SerializationFailure():
            return DatabaseConflict(f"Postgres could not run two transactions at once: {said}")
        case pg.InvalidPassword() | pg.InvalidAuthorizationSpecification():
            return DatabaseUnsuitable(
                f"Postgres at {target} did not accept the login: {said}",
                hint="Check the user and password in CONCORDANCE_DATABASE_URL",
            )
        case pg.InvalidCatalogName():
            return DatabaseUnsuitable(
                f"there is no such database at {target}: {said}", hint="Create it, then try again"
            )
        case pg.InsufficientPrivilege():
            return DatabaseUnsuitable(
                f"the login at {target} lacks a right: {said}",
                hint="A reader's login may search and show coverage; see docs/tenants.md",
            )
        case pg.DiskFull():
            return DatabaseError(
                f"Postgres at {target} has no room left: {said}", hint="Free disk space there"
            )
        case pg.ProgramLimitExceeded():
            return DatabaseError(f"Postgres at {target} can't hold so much in one value: {said}")
        case pg.QueryCanceled():
            return DatabaseUnavailable(f"Postgres at {target} did not answer in time: {said}")
        case pg.UndefinedTable() | pg.InvalidSchemaName():
            return DatabaseUnsuitable(
                f"the schema is not there or not whole at {target}: {said}",
                hint="Run 'concordance reindex' once, which makes it",
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return DatabaseUnavailable(f"Postgres at {target} can't be reached: {said}")
        case _:
            return DatabaseError(f"Postgres at {target} refused a statement: {said}")


class Database:
    """One Postgres database, reached through a pool of connections.

    Made without touching the network; `open` connects. All methods that talk to the server raise
    `DatabaseError`s only. `reader` is whether its login has a reader's functions and no table.
    """

    reader = False

    def __init__(self, conninfo: str, *, pool_size: int) -> None:
        try:
            parts = conninfo_to_dict(conninfo)
        except psycopg.ProgrammingError:
            # The driver's message quotes the string, and with it the password.
            raise UsageError(
                "the database URL can't be read",
                hint="Write it as postgresql://user:password@host:5432/name",
            ) from None
        host = parts.get("host") or "local socket"
        self.target = f"{host}/{parts.get('dbname') or 'default'}"
        self._conninfo = make_conninfo(
            conninfo,
            application_name="concordance",
            connect_timeout=parts.get("connect_timeout") or CONNECT_SECONDS,
        )
        self._options = _options(parts.get("options"))
        self._vector_schema: str | None = None
        self._pool = ConnectionPool(
            self._conninfo,
            connection_class=psycopg.Connection[tuple[Any, ...]],
            kwargs={"options": self._options},
            configure=self._configure,
            min_size=0,
            max_size=pool_size,
            timeout=30,
            open=False,
            reconnect_timeout=0,
        )

    def open(self) -> ServerFacts:
        """Connect and check the server; makes the `vector` extension where it may.

        Raises:
            DatabaseUnsuitable: The server is older than PostgreSQL 16, or lacks pgvector 0.8.
        """
        with self.errors(), psycopg.connect(self._conninfo, autocommit=True) as connection:
            facts = _check(connection, self.target)
        self._vector_schema = facts.pgvector_schema
        self._pool.open()
        return facts

    def close(self) -> None:
        """Close every connection of the pool."""
        self._pool.close()

    def statements(self, room: str) -> Statements:
        """The named statements of a room, as this login may send them."""
        return _as_reader(room) if self.reader else queries(room)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection with a transaction: committed at the end, rolled back on any error."""
        with self.errors(), self._pool.connection() as connection:
            yield connection

    @contextmanager
    def statement(self) -> Iterator[Connection]:
        """A connection without a transaction, for one statement that needs none around it."""
        with self.errors(), self._pool.connection() as connection:
            connection.autocommit = True
            try:
                yield connection
            finally:
                # One that is broken or still at work goes no further: the pool closes it.
                if connection.info.transaction_status is TransactionStatus.IDLE:
                    connection.autocommit = False

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection outside the pool, in autocommit, for locks that live as long as it does."""
        with (
            self.errors(),
            psycopg.connect(
                self._conninfo,
                autocommit=True,
                options=self._options,
                keepalives_idle=30,
            ) as connection,
        ):
            self._configure(connection)
            yield connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn the driver's errors into ours."""
        try:
            yield
        except psycopg.Error as error:
            raise translate(error, self.target) from error
        except (PoolTimeout, PoolClosed) as error:
            raise DatabaseUnavailable(
                f"no connection to Postgres at {self.target} came free",
                hint="Raise CONCORDANCE_DATABASE_POOL, or the server's max_connections",
            ) from error

    def _configure(self, connection: Connection) -> None:
        if self._vector_schema is not None:
            connection.execute(
                queries("connection")["set_search_path"],
                {"pgvector_schema": self._vector_schema},
            )
            connection.commit()


@cache
def _as_reader(room: str) -> Statements:
    """Those of the room, but for what a reader asks of functions instead."""
    instead = {
        name.removeprefix(f"{room}_"): text
        for name, text in queries("readers").items()
        if name.startswith(f"{room}_")
    }
    return queries(room) | instead


def _options(given: str | int | None) -> str:
    """Server options of each session: the caller's own, but for times, which are in UTC."""
    # Of two settings of one name the later one counts.
    return f"-c client_min_messages=warning {given or ''} -c timezone=UTC"


def _check(connection: Connection, target: str) -> ServerFacts:
    ask = queries("connection")
    facts = fetch_all(connection, ask["server_facts"], {}, ServerFacts)[0]
    check_server(facts, target)
    if facts.pgvector is None:
        if not facts.pgvector_available:
            raise DatabaseUnsuitable(
                f"Postgres at {target} has no pgvector",
                hint="Install pgvector 0.8 or newer on that server",
            )
        try:
            connection.execute(ask["create_extension"])
        except pg.UniqueViolation:
            # Another process made it in the same moment.
            pass
        except pg.InsufficientPrivilege as error:
            raise DatabaseUnsuitable(
                f"pgvector is not set up in the database at {target}, and this login may not do it",
                hint="Run 'create extension vector' there as its owner",
            ) from error
        facts = fetch_all(connection, ask["server_facts"], {}, ServerFacts)[0]
    check_pgvector(facts, target)
    return facts


def check_server(facts: ServerFacts, target: str) -> None:
    """Make sure that the server is new enough.

    Raises:
        DatabaseUnsuitable: It is older than PostgreSQL 16.
    """
    if facts.version < OLDEST_SERVER:
        raise DatabaseUnsuitable(
            f"Postgres at {target} is version {facts.version // 10_000}; 16 or newer is needed",
            hint="Use a newer server, or unset CONCORDANCE_DATABASE_URL for the embedded one",
        )


def check_pgvector(facts: ServerFacts, target: str) -> None:
    """Make sure that the extension is new enough.

    Raises:
        DatabaseUnsuitable: It is older than pgvector 0.8, or not there.
    """
    found = tuple(int(part) for part in (facts.pgvector or "0.0").split(".")[:2])
    if found < OLDEST_PGVECTOR:
        raise DatabaseUnsuitable(
            f"pgvector at {target} is {facts.pgvector}; 0.8 or newer is needed",
            hint="Install it, then run 'alter extension vector update' there",
        )


def create_database(conninfo: str, name: str) -> str:
    """Make a database unless it is there; returns its connection string."""
    ask = queries("connection")
    with psycopg.connect(conninfo, autocommit=True) as connection:
        if not fetch_value(connection, ask["database_exists"], {"name": name}):
            # Another process may make it in the same moment.
            with suppress(pg.DuplicateDatabase, pg.UniqueViolation):
                connection.execute(
                    pgsql.SQL(ask["create_database"]).format(name=pgsql.Identifier(name))
                )
    return make_conninfo(conninfo, dbname=name)
