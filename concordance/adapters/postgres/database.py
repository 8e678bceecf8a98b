"""Connections to Postgres: a pool, sessions that hold locks, and the driver's errors made ours.

What belongs here: how a connection is made, and kept. How errors are sorted is `diagnosis`'s
matter; what is asked is in the modules beside this one, in the words of `sql/queries`.
"""

from __future__ import annotations

import logging
import random
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, LiteralString, Self, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg import sql as pgsql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from concordance.adapters.postgres.diagnosis import translate
from concordance.errors import (
    DatabaseConflict,
    DatabaseUnavailable,
    DatabaseUnsuitable,
    UsageError,
)
from sql import queries

Row = TypeVar("Row")
Connection = psycopg.Connection[tuple[Any, ...]]
Parameters = Mapping[str, Any]
Statements = Mapping[str, LiteralString]

OLDEST_SERVER = 160_000
OLDEST_PGVECTOR = (0, 8)
CONNECT_SECONDS = 10
# How long a statement waits for a connection: a server that is started anew is waited for.
WAIT_SECONDS = 30.0
# The same of a session that holds a lock; and the pause between two tries.
SESSION_SECONDS = 10.0
PAUSE_SECONDS = 0.25
# How often a transaction is run that Postgres gave up for another one's sake; the longest pause.
TRIES = 4
LONGEST_PAUSE = 0.2
# A session that holds a lock is to live as long as its process: no idle time-out ends it, and one
# whose machine is gone is noticed by the server within a minute, not after the two hours that are
# the systems' default.
_OF_SESSIONS = (
    "-c idle_session_timeout=0 -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 "
    "-c tcp_keepalives_count=3"
)


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


def run_again(work: Callable[[], Row], *, until: float = float("inf")) -> Row:
    """Do a whole unit of work, and once more where Postgres gave it up for another one's sake.

    Deadlocks, serialization failures and, on a replica, conflicts with what is being replayed are
    nobody's fault. `until` is a moment of `time.monotonic` after which nothing is begun.
    """
    for tried in range(1, TRIES):
        try:
            return work()
        except DatabaseConflict:
            pause = random.uniform(0, LONGEST_PAUSE) * tried  # noqa: S311 - no secret depends on it
            if time.monotonic() + pause >= until:
                raise
            time.sleep(pause)
    return work()


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection of a pool, which tells why another one could not be made."""

    @classmethod
    def connect(  # type: ignore[override]  # with a parameter of our own
        cls, conninfo: str, *, told: Callable[[psycopg.Error | None], None], **parameters: Any
    ) -> Self:
        """Connect; `told` gets the error where that fails, and None where it does not."""
        try:
            made = super().connect(conninfo, **parameters)
        except psycopg.Error as error:
            told(error)
            raise
        told(None)
        return made


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
        self.target = _target(parts, parts.get("dbname"))
        self._conninfo = make_conninfo(
            conninfo,
            application_name="concordance",
            connect_timeout=parts.get("connect_timeout") or CONNECT_SECONDS,
        )
        self._options = _options(parts.get("options"))
        self._vector_schema: str | None = None
        self._refused: psycopg.Error | None = None
        self._pool = ConnectionPool(
            self._conninfo,
            connection_class=_Connection,
            kwargs={"options": self._options, "told": self._note_connecting},
            configure=self._configure,
            check=self._check_idle,
            min_size=0,
            max_size=pool_size,
            timeout=WAIT_SECONDS,
            open=False,
            # Tried again as long as somebody may wait: a server that restarts is back in a second.
            reconnect_timeout=WAIT_SECONDS,
        )

    def open(self) -> ServerFacts:
        """Connect and check the server; makes the `vector` extension where it may.

        Raises:
            DatabaseUnsuitable: The server is older than PostgreSQL 16, or lacks pgvector 0.8.
        """
        with self.errors(), psycopg.connect(self._conninfo, autocommit=True) as connection:
            facts = _check(connection, self.target)
        self._vector_schema = facts.pgvector_schema
        # What the pool would warn of is told by our errors, once.
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        self._pool.open()
        return facts

    def close(self) -> None:
        """Close every connection of the pool."""
        self._pool.close()

    def statements(self, room: str) -> Statements:
        """The named statements of a room, as this login may send them."""
        return _as_reader(room) if self.reader else queries(room)

    @contextmanager
    def transaction(self, *, wait_seconds: float | None = None) -> Iterator[Connection]:
        """A connection with a transaction: committed at the end, rolled back on any error."""
        with self.errors(), self._pool.connection(wait_seconds) as connection:
            yield connection

    @contextmanager
    def statement(self, *, wait_seconds: float | None = None) -> Iterator[Connection]:
        """A connection without a transaction, for one statement that needs none around it."""
        with self.errors(), self._pool.connection(wait_seconds) as connection:
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
        with self.errors(), self._connect_session() as connection:
            self._configure(connection)
            yield connection

    def _connect_session(self) -> Connection:
        """A connection of its own; a server that is away for a moment is waited for."""
        deadline = time.monotonic() + SESSION_SECONDS
        while True:
            try:
                return psycopg.connect(
                    self._conninfo,
                    autocommit=True,
                    options=f"{self._options} {_OF_SESSIONS}",
                    keepalives_idle=30,
                )
            except psycopg.OperationalError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(PAUSE_SECONDS)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn the driver's errors into ours."""
        try:
            yield
        except (PoolTimeout, PoolClosed) as error:  # first, as they count as the driver's, too
            if self._refused is not None:
                raise translate(self._refused, self.target) from self._refused
            raise DatabaseUnavailable(
                f"no connection to Postgres at {self.target} came free",
                hint="Raise CONCORDANCE_DATABASE_POOL, or the server's max_connections",
            ) from error
        except psycopg.Error as error:
            raise translate(error, self.target) from error

    def _note_connecting(self, error: psycopg.Error | None) -> None:
        """Keep why the pool can't connect: who waits for a connection learns nothing but that."""
        self._refused = error

    def _check_idle(self, connection: Connection) -> None:
        """Raise where the server closed a connection while nobody used it.

        A server says nothing to one that is idle but goodbye, so nothing is asked of it. All others
        are left, too: where one is gone, they mostly are, and each would fail in its turn.
        """
        heard = select.poll()
        heard.register(connection.fileno(), select.POLLIN)
        if not heard.poll(0):
            return
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.Error:
            self._pool.drain()
            raise

    def _configure(self, connection: Connection) -> None:
        if self._vector_schema is not None:
            connection.execute(
                queries("connection")["set_search_path"],
                {"pgvector_schema": self._vector_schema},
            )
            connection.commit()


def _target(parts: Parameters, name: str | int | None) -> str:
    """A server and a database, as messages name them."""
    return f"{parts.get('host') or 'local socket'}/{name or 'default'}"


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
    """Make a database unless it is there; returns its connection string.

    Raises:
        DatabaseError: The server can't be reached, or does not let this login make one.
    """
    ask = queries("connection")
    try:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            if not fetch_value(connection, ask["database_exists"], {"name": name}):
                # Another process may make it in the same moment.
                with suppress(pg.DuplicateDatabase, pg.UniqueViolation):
                    connection.execute(
                        pgsql.SQL(ask["create_database"]).format(name=pgsql.Identifier(name))
                    )
    except psycopg.Error as error:
        raise translate(error, _target(conninfo_to_dict(conninfo), name)) from error
    return make_conninfo(conninfo, dbname=name)
