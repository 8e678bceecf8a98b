"""Every hole in the protection of tenants is told by the check that starts look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from concordance.adapters.postgres.database import Database
from concordance.adapters.postgres.tenants import faults_in
from tests.postgres.house import READER, House, open_house, tables_of

Session = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module")
def house(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with open_house(server_url, "holes", tmp_path_factory.mktemp("house")) as made:
        yield made


def test_every_policy_that_is_dropped_or_changed_is_told(house: House) -> None:
    policies = house.ask(
        "select polrelid::regclass::text, polname from pg_policy where "
        "polrelid::regclass::text !~ '[.]' order by 1, 2"
    )
    tables = [table for table in tables_of(house) if table != "schema_migrations"]
    assert {table for table, _ in policies} == set(tables)
    assert len(policies) == 2 * len(tables) + 16
    holes = [
        (table, statement, f"table {table}: {told}")
        for table in tables
        for statement, told in (
            ("alter table {t} disable row level security", "row level security is off"),
            ("alter table {t} no force row level security", "row level security is not forced"),
            ("create policy mine on {t} using (true)", "there is a policy mine beside ours"),
        )
    ] + [
        (table, statement, f"table {table}: the policy {policy} {told}")
        for table, policy in policies
        for statement, told in (
            (f"drop policy {policy} on {{t}}", "is missing"),
            (
                f"alter policy {policy} on {{t}} to public using (true)",
                "is not the one that was made",
            ),
        )
    ]
    with Opened(house) as connection:
        assert faults_in(connection) == []
        for table, statement, told in holes:
            name = sql.Identifier("concordance", table)
            with connection.transaction(force_rollback=True):
                connection.execute(sql.SQL(statement).format(t=name))
                assert told in faults_in(connection), statement
        assert faults_in(connection) == []


MINE = "create function concordance.mine() returns int security definer language sql return 1"
VIEW = """
create view concordance.seen as select content from concordance.chunks;
grant select on concordance.seen to public;
"""
VIEW_OF_VIEW = """
create materialized view public.kept as select content from concordance.chunks;
create view public.seen as select content from public.kept;
grant select (content) on public.seen to public;
"""
HARMLESS = """
create view concordance.own with (security_invoker) as select content from concordance.chunks;
create view public.other as select 1 as n;
grant select on concordance.own, public.other to public;
"""


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("create table concordance.later (tenant_id integer)", "later: row level security is off"),
        (f"grant select on concordance.chunks to {READER}", f"the login {READER} has rights on"),
        (
            "grant select on concordance.chunks to public",
            "everybody has rights on the table chunks",
        ),
        (f"grant create on schema concordance to {READER}", "may make objects in the schema"),
        (f"grant create on schema public to {READER}", "may make objects in the schema public"),
        ("grant create on schema public to public", "everybody may make objects"),
        (f"grant concordance_functions to {READER}", "may act as"),
        (f"grant postgres to {READER}", "may act as the owner of the tables"),
        (f"alter role {READER} bypassrls", "is above row level security"),
        (f"alter role {READER} rename to gone_reader", f"login {READER} of tenant_access is not"),
        ("alter role concordance_functions login", "concordance_functions may log in"),
        ("alter role concordance_functions bypassrls", "or is above row level security"),
        ("grant insert on concordance.chunks to concordance_functions", "may do more than read"),
        ("grant create on schema concordance to concordance_functions", "may make objects"),
        ("alter function concordance.reader_model() reset search_path", "no fixed search path"),
        (
            "alter function concordance.reader_model() set search_path = pg_temp, public",
            "no fixed search path",
        ),
        ("alter function concordance.reader_model() reset client_min_messages", "lets messages"),
        ("alter function concordance.reader_model() owner to postgres", "does not run as"),
        ("grant execute on function concordance.reader_model() to public", "called by everybody"),
        (MINE, "is none of ours"),
        (f"grant select (content) on concordance.chunks to {READER}", "has rights on the table"),
        ("grant select (content) on concordance.chunks to public", "has rights on the table"),
        (f"grant select on concordance.chunks_id_seq to {READER}", "rights on the sequence chunks"),
        (VIEW, f"the login {READER} has rights on the view seen"),
        (VIEW_OF_VIEW, f"the login {READER} has rights on the view seen"),
        (f"alter role {READER} replication", "may copy the whole server"),
        (f"grant pg_read_server_files to {READER}", "may act as pg_read_server_files"),
        (f"grant pg_write_server_files to {READER}", "may act as pg_write_server_files"),
        (f"grant pg_execute_server_program to {READER}", "as pg_execute_server_program"),
        (f"grant pg_read_all_stats to {READER}", "may act as pg_read_all_stats"),
        (f"grant pg_monitor to {READER}", "may act as pg_read_all_stats"),
    ],
)
def test_every_other_hole_is_told(house: House, statement: str, told: str) -> None:
    with Opened(house) as connection, connection.transaction(force_rollback=True):
        connection.execute(statement.encode())
        found = faults_in(connection)
        assert any(told in fault for fault in found), found


def test_what_shows_a_reader_nothing_is_no_fault(house: House) -> None:
    """A view that looks with its reader's own eyes, and one that speaks of none of our tables."""
    with Opened(house) as connection, connection.transaction(force_rollback=True):
        connection.execute(HARMLESS)
        assert faults_in(connection) == []


class Opened:
    """A connection of the indexer's, with the program's own search path."""

    def __init__(self, house: House) -> None:
        self._database = Database(house.url, pool_size=1)

    def __enter__(self) -> Session:
        self._database.open()
        self._session = self._database.session()
        return self._session.__enter__()

    def __exit__(self, *error: object) -> None:
        self._session.__exit__(*error)  # type: ignore[arg-type]
        self._database.close()
