"""The schema and the server that it needs."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from concordance.adapters.postgres.database import (
    Database,
    ServerFacts,
    check_pgvector,
    check_server,
    create_database,
)
from concordance.adapters.postgres.schema import migrate
from concordance.errors import DatabaseUnsuitable, SchemaMismatch
from sql import Migration, migrations

LATEST = [step.number for step in migrations()]
NEXT = LATEST[-1] + 1
_numbers = itertools.count(1)
MIGRATE = """
import sys
from concordance.adapters.postgres.database import Database
from concordance.adapters.postgres.schema import migrate
database = Database(sys.argv[1], pool_size=2)
sys.stdin.readline()
database.open()
print(migrate(database))
database.close()
"""


@pytest.fixture
def make_blank(server_url: str) -> Iterator[Callable[[], str]]:
    """Makes databases that hold nothing, not even the extension."""
    made: list[str] = []

    def make() -> str:
        name = f"blank_{next(_numbers)}"
        made.append(name)
        return create_database(server_url, name)

    yield make
    with psycopg.connect(server_url, autocommit=True) as connection:
        for name in made:
            connection.execute(
                sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            )


def _opened(url: str) -> Database:
    database = Database(url, pool_size=2)
    database.open()
    return database


def test_the_schema_is_made_once(make_blank: Callable[[], str]) -> None:
    database = _opened(make_blank())
    assert migrate(database) == [step.number for step in migrations()]
    assert migrate(database) == []
    database.close()


def test_a_database_is_made_once(server_url: str, make_blank: Callable[[], str]) -> None:
    url = make_blank()
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    assert create_database(server_url, str(name)) == url


def test_processes_that_migrate_at_once_make_it_once(make_blank: Callable[[], str]) -> None:
    url = make_blank()
    racing = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATE, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in racing:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [(*process.communicate(), process.returncode) for process in racing]
    assert [(err, code) for _, err, code in ended] == [("", 0)] * 3
    assert sorted(out.strip() for out, _, _ in ended) == sorted(["[]", "[]", str(LATEST)])


def test_a_migration_that_was_changed_afterwards_is_refused(database: Database) -> None:
    changed = [step._replace(text=step.text + "-- more") for step in migrations()]
    with pytest.raises(SchemaMismatch, match="0001"):
        migrate(database, changed)


def test_a_schema_of_a_newer_program_is_refused(database: Database) -> None:
    newer = [*migrations(), Migration(NEXT, "more", "create table concordance.more (id integer)")]
    assert migrate(database, newer) == [NEXT]
    with pytest.raises(SchemaMismatch, match=f"{NEXT:04}"):
        migrate(database)


def test_a_migration_that_fails_leaves_nothing_of_itself(database: Database) -> None:
    broken = [*migrations(), Migration(NEXT, "bad", "create table concordance.half (); select 1/0")]
    with pytest.raises(Exception, match="division by zero"):
        migrate(database, broken)
    with database.transaction() as connection:
        assert connection.execute("select to_regclass('concordance.half')").fetchone() == (None,)
    assert migrate(database) == []


def test_no_file_scope_is_called_complete_before_its_records_were_read(
    make_blank: Callable[[], str],
) -> None:
    database = _opened(make_blank())
    migrate(database, [step for step in migrations() if step.name != "records"])
    with database.transaction() as connection:
        connection.execute("insert into tenants (slug) values ('t')")
        connection.execute(
            "insert into projects (tenant_id, slug, location, language) values (1, 'p', 'l', 'e')"
        )
        connection.execute(
            "insert into coverage (project_id, tenant_id, scope, state, reason, last_success) "
            "select 1, 1, unnest(array['docs', 'adr', 'session']), 'complete', 'all', now()"
        )
    assert migrate(database) == [step.number for step in migrations() if step.name == "records"]
    with database.transaction() as connection:
        states = connection.execute(
            "select scope, state, attempt_open from coverage order by scope"
        ).fetchall()
    assert states == [
        ("adr", "stale", True),
        ("docs", "stale", True),
        ("session", "complete", False),
    ]
    database.close()


def test_a_login_that_may_not_make_the_extension_is_told_who_can(
    server_url: str, make_blank: Callable[[], str]
) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("drop role if exists guest")
        connection.execute("create role guest login")
    database = Database(make_conninfo(make_blank(), options="-c role=guest"), pool_size=1)
    with pytest.raises(DatabaseUnsuitable, match="create extension vector"):
        database.open()
    database.close()


@pytest.mark.parametrize(
    ("version", "pgvector", "told"),
    [
        (150_013, "0.8.1", "version 15; 16 or newer"),
        (160_000, "0.7.4", "pgvector at db is 0.7.4; 0.8 or newer"),
        (180_004, None, "0.8 or newer"),
    ],
)
def test_an_older_server_is_refused_by_its_number(
    version: int, pgvector: str | None, told: str
) -> None:
    facts = ServerFacts(version, pgvector, "public", pgvector_available=True, read_only=False)

    def check() -> None:
        check_server(facts, "db")
        check_pgvector(facts, "db")

    with pytest.raises(DatabaseUnsuitable, match=told):
        check()


@pytest.mark.parametrize("pgvector", ["0.8.0", "0.8.1", "0.10.0", "1.0"])
def test_newer_servers_are_taken(pgvector: str) -> None:
    facts = ServerFacts(160_000, pgvector, "public", pgvector_available=True, read_only=False)
    check_server(facts, "db")
    check_pgvector(facts, "db")


def test_the_options_of_an_address_reach_every_connection(database_url: str) -> None:
    database = _opened(make_conninfo(database_url, options="-c work_mem=3MB"))
    with database.transaction() as pooled, database.session() as single:
        for connection in (pooled, single):
            assert connection.execute("show work_mem").fetchone() == ("3MB",)
            assert connection.execute("show timezone").fetchone() == ("UTC",)
    database.close()
