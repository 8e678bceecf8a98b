"""Session logs in a Postgres database of their own, read by the query that projects.toml has.

What belongs here: asking for whole sessions, in one order, over a server-side cursor: the rows of
very many sessions are never held at once. The database is only read. What a row means is
`concordance.sessions.jsonl`'s matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import psycopg
from psycopg import sql as pgsql
from psycopg.rows import DictRow, dict_row
from psycopg.types.string import TextLoader
from pydantic import SecretStr

from concordance.errors import LogsUnavailable, LogsUnreadable
from concordance.settings import SessionSource
from concordance.text.scrubbing import Scrubber
from sql import queries

ROWS_AT_ONCE = 2_000
# A connection that broke is made again so often, and goes on after the last whole session.
RESTARTS = 3
CONNECT_SECONDS = 10
MOST_SAID = 300
OPTIONS = "-c timezone=UTC -c datestyle=ISO -c default_transaction_read_only=on"
# Read as text: a time that Python has no value for, such as infinity, is one row's matter, and so
# is JSON that is nested too deeply.
AS_TEXT = (
    *("date", "time", "timetz", "timestamp", "timestamptz", "interval", "json", "jsonb"),
    *("daterange", "tsrange", "tstzrange", "datemultirange", "tsmultirange", "tstzmultirange"),
)

Row = dict[str, Any]


class SessionQuery:
    """One query on one database; every error is ours and holds no secret.

    Args:
        source: With its `query`, and `marker` where there is one.
        url: The database's address.
    """

    def __init__(self, source: SessionSource, url: SecretStr) -> None:
        self._query = _whole(source.query or "")
        self._marker = None if source.marker is None else _whole(source.marker)
        self._url = url
        self._variable = source.url_env or ""

    def marker(self) -> str | None:
        """What the marker query gives now; None where there is no such query.

        Raises:
            LogsUnreadable: It can't be asked.
        """
        if self._marker is None:
            return None
        with self._errors(), self._connect() as connection:
            found = connection.execute(_statement("read_marker", self._marker), {}).fetchall()
        values = "\n".join(str(row["marker"]) for row in found)
        return hashlib.sha256(values.encode()).hexdigest()[:24]

    def sessions(self, wanted: Sequence[str] | None = None) -> Iterator[tuple[str, list[Row]]]:
        """Each session with its rows, by its id; those that are wanted, or all.

        Values of ids and times are text, as in a log of JSON Lines.

        Raises:
            LogsUnavailable: The database can't be reached, or broke off again and again.
            LogsUnreadable: It refuses the query, or a column is missing.
        """
        after: str | None = None
        broken = 0
        while True:
            try:
                for session_id, rows in self._sessions(after, wanted):
                    after = session_id
                    yield session_id, rows
            except LogsUnavailable:
                broken += 1
                if after is None or broken > RESTARTS:
                    raise
            else:
                return

    def _sessions(
        self, after: str | None, wanted: Sequence[str] | None
    ) -> Iterator[tuple[str, list[Row]]]:
        key = {"after": after, "wanted": None if wanted is None else list(wanted)}
        with (
            self._errors(),
            self._connect() as connection,
            connection.cursor("session_events") as cursor,  # a name makes it one of the server
        ):
            cursor.itersize = ROWS_AT_ONCE
            cursor.execute(_statement("read_events", self._query), key)
            plain = (_plain(row) for row in cursor)
            for session_id, rows in groupby(plain, key=lambda row: row["session_id"]):
                yield str(session_id), list(rows)

    def _connect(self) -> psycopg.Connection[DictRow]:
        connection = psycopg.connect(
            self._url.get_secret_value(),
            row_factory=dict_row,
            connect_timeout=CONNECT_SECONDS,
            application_name="concordance-sessions",
            options=OPTIONS,
        )
        for name in AS_TEXT:
            connection.adapters.register_loader(name, TextLoader)
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        named = f"session logs of the query on {self._variable} can't be read"
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise LogsUnavailable(
                f"{named}: {_said(error)}", hint="Nothing was deleted. Is that database up?"
            ) from None
        except psycopg.ProgrammingError as error:
            # The driver quotes an address that it can't read, and with it the password.
            said = _said(error) if error.sqlstate else "the address in that variable can't be read"
            raise LogsUnreadable(
                f"{named}: {said}",
                hint="It needs the columns session_id, event_id, type, text and occurred_at",
            ) from None
        except psycopg.Error as error:
            raise LogsUnreadable(f"{named}: {_said(error)}", hint="Nothing was deleted") from None


def _whole(query: str) -> str:
    """A query as a part of another one: without its end, and with signs that mean no parameter."""
    return query.strip().rstrip(";").replace("%", "%%")


def _statement(name: str, query: str) -> pgsql.Composed:
    # It is what the owner of projects.toml wrote to be asked, and the session is read-only.
    return pgsql.SQL(queries("session_logs")[name]).format(query=pgsql.SQL(query))


def _plain(row: Row) -> Row:
    for key in ("session_id", "event_id"):
        if row.get(key) is not None:
            row[key] = str(row[key])
    return row


def _said(error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error).strip().split("\n")[0]
    # A server may quote a value; half a secret is not known as one.
    return Scrubber().text(said.strip())[:MOST_SAID]
