"""Connections: a transaction, a statement by itself, and what is left of them after an error."""

from __future__ import annotations

import pytest

from concordance.adapters.postgres.database import Database
from concordance.errors import DatabaseError


def test_a_cloned_database_has_the_schema(database: Database) -> None:
    with database.transaction() as connection:
        row = connection.execute("select count(*) from concordance.documents").fetchone()
    assert row == (0,)


def test_a_statement_by_itself_leaves_its_connection_as_it_was(database_url: str) -> None:
    """The pool has one connection: what the next transaction gets is the one that failed before."""
    database = Database(database_url, pool_size=1)
    database.open()
    with pytest.raises(DatabaseError), database.statement() as connection:
        connection.execute("select 1 / 0")
    with database.statement() as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    with pytest.raises(DatabaseError), database.transaction() as connection:
        connection.execute("create table left_behind (); select 1 / 0")
    with database.transaction() as connection:
        assert connection.execute("select to_regclass('left_behind')").fetchone() == (None,)
    database.close()


def test_a_statement_that_loses_its_connection_is_an_error_and_the_pool_goes_on(
    database_url: str,
) -> None:
    database = Database(database_url, pool_size=1)
    database.open()
    with pytest.raises(DatabaseError), database.statement() as connection:
        connection.execute("select pg_terminate_backend(pg_backend_pid())")
    with database.transaction() as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    database.close()
