"""Every earlier schema, with rows as it had them, brought up to date by the product."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from concordance.adapters.postgres.database import Database, create_database
from concordance.adapters.postgres.schema import migrate
from concordance.index import Index
from concordance.models import CoverageState
from concordance.settings import Project
from sql import Migration, migrations
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import (
    ask,
    better_than_the_truth,
    documents_of,
    embedded,
    passages_of,
    reindex,
    statistics_of,
)
from tests.postgres.house import open_index
from tests.postgres.library import make_library
from tests.postgres.place import CHECKOUT, eventually

STEPS = migrations()
NEWEST = STEPS[-1].number
SLUGS = ("shop", "laden")
# Since the seventh, no migration needs what was written to be read again.
SAME_RULES = (7, 8, 9, 10, 11)
# Tables whose rows stay whatever schema they are of. Calibrations are of the program that made
# them, and words are analysed anew.
KEPT = ("tenants", "projects", "documents", "chunks", "embedding_models", "embeddings", "runs")
# Words have a mark of their tenant since the tenth.
MARKED = 10
UNMARKED = """
update lexical set lexemes = ts_delete(lexemes,
    array(select x from unnest(tsvector_to_array(lexemes)) as x where x ^@ '§@'))
"""
OLDER_TEXT = "A passage as an older program cut it."


@dataclass
class Today:
    """A database that today's program built, which older ones are made of."""

    url: str
    folder: Path
    provider: FakeOllama
    projects: Sequence[Project]

    def open(self, url: str) -> Index:
        return open_index(self.folder / "home", url, self.provider, *self.projects)


@pytest.fixture(scope="module")
def today(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Today]:
    folder = tmp_path_factory.mktemp("upgrades")
    url = create_database(server_url, "upgrades_today")
    with FakeOllama() as provider, psycopg.connect(server_url, autocommit=True) as root:
        opened: list[Index] = []

        def make(*projects: Project, **settings: object) -> Index:
            opened.append(open_index(folder / "home", url, provider, *projects, **settings))
            return opened[-1]

        index = make_library(make, folder)
        index.record_question("shop", "where is tea sold", "README.md:1-3")
        index.start_run(_run_id(), "reindex")
        yield Today(url, folder, provider, index.configuration.projects)
        for index in opened:
            index.close()
        root.execute("drop database upgrades_today with (force)")


def _run_id() -> Any:
    import uuid  # noqa: PLC0415

    return uuid.UUID(int=7)


@contextlib.contextmanager
def older(today: Today, server_url: str, number: int, *, made_by: str | None) -> Iterator[str]:
    """A database at an earlier schema, with the rows of today's as far as it has their columns."""
    url = create_database(server_url, f"upgrades_{number}")
    database = Database(url, pool_size=1)
    database.open()
    migrate(database, STEPS[:number])
    database.close()
    path = "-c search_path=concordance,public"
    with (
        psycopg.connect(today.url, options=path) as source,
        psycopg.connect(url, options=path) as c,
    ):
        c.execute("set session_replication_role = replica")  # in whatever order, then
        for table, columns in shared_columns(source, c).items():
            copy_rows(source, c, table, columns)
        if number < MARKED:
            c.execute(UNMARKED)
        count_on(c)
        if made_by is not None:
            age(c, made_by)
    try:
        yield url
    finally:
        with psycopg.connect(server_url, autocommit=True) as root:
            root.execute(f"drop database upgrades_{number} with (force)".encode())


def shared_columns(
    source: psycopg.Connection[Any], target: psycopg.Connection[Any]
) -> dict[str, list[str]]:
    ask_for = """
        select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'concordance'::regnamespace and c.relkind = 'r' and a.attnum > 0
          and not a.attisdropped and c.relname <> 'schema_migrations' order by 1, a.attnum
    """
    theirs = set(source.execute(ask_for).fetchall())
    found: dict[str, list[str]] = {}
    for table, column in target.execute(ask_for).fetchall():
        assert (table, column) in theirs, "a column that is gone needs a value of its own"
        found.setdefault(table, []).append(column)
    return found


def copy_rows(
    source: psycopg.Connection[Any], target: psycopg.Connection[Any], table: str, columns: list[str]
) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    out = sql.SQL("copy {} ({}) to stdout").format(sql.Identifier(table), names)
    into = sql.SQL("copy {} ({}) from stdin").format(sql.Identifier(table), names)
    with source.cursor().copy(out) as read, target.cursor().copy(into) as write:
        for block in read:
            write.write(block)


def count_on(connection: psycopg.Connection[Any]) -> None:
    """Have numbers go on after those that were copied."""
    for (table,) in connection.execute(
        "select table_name from information_schema.columns "
        "where table_schema = 'concordance' and column_name = 'id' and is_identity = 'YES'"
    ).fetchall():
        connection.execute(
            sql.SQL(
                "select setval(pg_get_serial_sequence({}, 'id'), (select max(id) from {}), true)"
            ).format(sql.Literal(f"concordance.{table}"), sql.Identifier(table))
        )


def age(connection: psycopg.Connection[Any], made_by: str) -> None:
    """Have rows say that an older program made them, and one passage be as it cut it."""
    connection.execute("update documents set chunker = %s", [made_by])
    connection.execute("update coverage set fingerprint = %s", [made_by])
    if connection.execute("select to_regclass('session_logs')").fetchone() != (None,):
        connection.execute("update session_logs set reader = %s", [made_by])
    connection.execute(
        "with cut as (update chunks set content = %s, content_hash = sha256('older') "
        "where id = (select min(id) from chunks) returning id) "
        "update embeddings e set content_hash = sha256('older') from cut where e.chunk_id = cut.id",
        [OLDER_TEXT],
    )


def counts(url: str, tables: Sequence[str]) -> dict[str, int]:
    return {
        table: ask(url, sql.SQL("select count(*) as n from {}").format(sql.Identifier(table)))[0][
            "n"
        ]
        for table in tables
    }


def honest(index: Index, url: str) -> None:
    """Coverage is not better than the tables, and nothing without its words is complete."""
    for slug in SLUGS:
        assert better_than_the_truth(index, url, slug) == []
        wordless = {p["scope"] for p in passages_of(url, slug) if p["lexemes"] is None}
        complete = {c.scope for c in index.coverage([slug]) if c.state is CoverageState.COMPLETE}
        assert not complete & wordless


def as_today(index: Index, url: str, today: Today) -> None:
    with today.open(today.url) as fresh:
        for slug in SLUGS:
            for rows in (documents_of, passages_of):
                assert rows(url, slug) == rows(today.url, slug)
            assert statistics_of(url, slug)[0] == statistics_of(today.url, slug)[0]
            assert index.decision_records(slug) == fresh.decision_records(slug)
            assert [
                (c.scope, c.state, c.found, c.chunks_with_vector, c.turns)
                for c in index.coverage([slug])
            ] == [
                (c.scope, c.state, c.found, c.chunks_with_vector, c.turns)
                for c in fresh.coverage([slug])
            ]
    assert index.check_statistics() == []


@pytest.mark.parametrize("number", range(1, NEWEST))
def test_a_schema_of_then_with_its_rows_becomes_today_s(
    today: Today, server_url: str, number: int
) -> None:
    with older(today, server_url, number, made_by=f"v{number}") as url:
        tables = [t for t in (*KEPT, "recorded_questions") if number >= 3 or t in KEPT]
        before = counts(url, tables)
        today.provider.forget()
        with today.open(url) as index:
            assert counts(url, tables) == before
            assert ask(url, "select max(number) as n from schema_migrations") == [{"n": NEWEST}]
            honest(index, url)
            states = {c.state for slug in SLUGS for c in index.coverage([slug])}
            assert CoverageState.COMPLETE not in states
            for slug in SLUGS:
                reindex(index, slug)
                honest(index, url)
            # The text that another program had cut in another way, and no other one.
            assert len(embedded(today.provider)) == 1
            as_today(index, url, today)


@pytest.mark.parametrize("number", SAME_RULES)
def test_where_no_rule_changed_the_next_run_has_nothing_to_do(
    today: Today, server_url: str, number: int
) -> None:
    with older(today, server_url, number, made_by=None) as url, today.open(url) as index:
        as_today(index, url, today)
        assert {found.action for found in index.survey(SLUGS)} == {"none"}


def test_processes_that_upgrade_at_once_do_it_once_beside_a_run_of_then(
    today: Today, server_url: str
) -> None:
    """The run holds what a migration locks, and wants what the migration holds."""
    crossing = (
        "update coverage set reason = 'upgraded'; select pg_sleep(0.2); "
        "lock table documents in access exclusive mode"
    )
    steps = [*STEPS, Migration(NEWEST + 1, "crossing", crossing)]
    with (
        older(today, server_url, 4, made_by="v4") as url,
        psycopg.connect(url, options="-c search_path=concordance") as run,
        ThreadPoolExecutor(2) as pool,
    ):
        quick = make_conninfo(url, options="-c deadlock_timeout=20ms")
        # As a run of then that looks again what a table holds, between two of its locks.
        before = int(pool.submit(upgrade, url, STEPS).result()[-1])
        run.execute("select count(*) from documents")
        done = [pool.submit(upgrade, quick, steps) for _ in range(2)]
        eventually(lambda: sleeping(url))
        run.execute("update coverage set reason = 'counted'")
        run.commit()
        assert before == NEWEST
        assert sorted(one.result() for one in done) == [[], [NEWEST + 1]]


def upgrade(url: str, steps: Sequence[Migration]) -> list[int]:
    database = Database(url, pool_size=1)
    database.open()
    try:
        return migrate(database, steps)
    finally:
        database.close()


DIES = """
import sys
from concordance.adapters.postgres.database import Database
from concordance.adapters.postgres.schema import migrate
from sql import Migration, migrations
database = Database(sys.argv[1], pool_size=1)
database.open()
migrate(database, [*migrations(), Migration(9999, "long", "select pg_sleep(0.4)")])
"""


def test_an_upgrade_that_is_killed_leaves_the_earlier_schema_whole(
    today: Today, server_url: str
) -> None:
    with older(today, server_url, 6, made_by="v6") as url:
        process = subprocess.Popen(
            [sys.executable, "-c", DIES, url], env=os.environ | {"PYTHONPATH": CHECKOUT}
        )
        eventually(lambda: sleeping(url))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        eventually(lambda: not sleeping(url))
        assert ask(url, "select max(number) as n from schema_migrations") == [{"n": 6}]
        database = Database(url, pool_size=1)
        database.open()
        assert migrate(database, STEPS[:6]) == []
        database.close()
        with today.open(url) as index:
            for slug in SLUGS:
                reindex(index, slug)
            as_today(index, url, today)


def sleeping(url: str) -> bool:
    found = ask(
        url,
        "select count(*) as n from pg_stat_activity where datname = current_database() "
        "and query ~ 'pg_sleep\\(0' and state = 'active' and wait_event = 'PgSleep'",
    )
    return bool(found[0]["n"])
