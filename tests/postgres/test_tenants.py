"""What a reader's login can't get of another tenant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from tests.postgres.house import MARK, NEIGHBOUR, READER, House, open_house, tables_of
from tests.postgres.library import search
from tests.postgres.reader_calls import CALLS, Session, numbers, results

# What nobody but the other tenant has.
SECRETS = ("vault", f"docs/{MARK}", f"{MARK} kettle boils", f"1. {MARK}", f"https://{MARK}")


@pytest.fixture(scope="module")
def house(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with open_house(server_url, "tenants", tmp_path_factory.mktemp("house")) as made:
        made.ask("select 1")
        with psycopg.connect(made.url, options="-c search_path=concordance") as connection:
            connection.execute(
                "insert into calibrations (project_id, tenant_id, set_name, questions_hash, "
                "fitted_on, checked_on, model, model_name, figures, made_at) select id, tenant_id, "
                "%s, 'h', 1, 1, 'm', 'm', '[]', now() from projects where slug = 'vault'",
                [MARK],
            )
            connection.execute(
                "insert into recorded_questions (tenant_id, project_id, question, kind, name, "
                "recorded_at) select tenant_id, id, %s, 'file', %s, now() from projects "
                "where slug = 'vault'",
                [MARK, MARK],
            )
            connection.execute(
                "insert into runs (id, tenant_id, kind, started_at) "
                "select gen_random_uuid(), id, 'reindex', now() from tenants"
            )
        yield made


def test_every_function_is_tried(house: House) -> None:
    known = house.ask("select distinct split_part(reader_functions()::text, '(', 1)")
    assert {row[0].removeprefix("concordance.") for row in known} == {
        name.partition(",")[0] for name in CALLS
    }
    others = house.ask(
        "select proname from pg_proc where pronamespace = 'concordance'::regnamespace "
        "and prosecdef and proname !~ '^reader_'"
    )
    assert others == []


def test_the_calls_find_what_a_tenant_owns(house: House) -> None:
    """Else they would show nothing of another one, either."""
    given = numbers(house, "other")
    with house.session(NEIGHBOUR) as session:
        found = results(session, given)
    assert all(isinstance(rows, list) and rows for rows in found.values()), found
    told = repr({name: rows for name, rows in found.items() if name != "reader_tenant"})
    assert told.count(MARK) > 10


def test_no_function_tells_another_tenants_rows_from_none(house: House) -> None:
    other, default = numbers(house, "other"), numbers(house, "default")
    kinds = ("projects", "chunks", "models")
    nobody = other | {kind: [10**9 + n for n in range(len(other[kind]))] for kind in kinds}
    nobody["slugs"] = ["nobody"]
    with house.session() as session:
        theirs, none = results(session, other), results(session, nobody)
        mixed, apart = (
            results(session, default | {kind: default[kind] + given[kind] for kind in kinds})
            for given in (other, nobody)
        )
        narrow = {"vector": "[1,1,1]"}  # of another width than that of the spaces
        assert results(session, other | narrow) == results(session, nobody | narrow)
    assert theirs == none
    assert mixed == apart
    for name in CALLS:
        if name.startswith(("reader_passages", "reader_words", "reader_near", "reader_candi")):
            assert theirs[name] == []
            assert mixed[name], name
    assert [told for told in SECRETS if told in repr((theirs, mixed))] == []
    (term,) = [row for row in mixed["reader_terms"] if MARK in row and "english" in row]
    assert term.endswith("1, 0, 0.0, 3, False)"), "nobody of this tenant has the word"


def test_every_setting_that_a_reader_may_make_shows_nothing(house: House) -> None:
    given = numbers(house, "other", "default")
    tables = {
        row[0]
        for row in house.ask(
            "select oid from pg_class where relnamespace = 'concordance'::regnamespace"
        )
    }
    with house.session() as session:
        plain = results(session, given)
        settings = session.execute(
            "select name, vartype, enumvals, min_val, max_val, setting from pg_settings "
            "where context = 'user' and name <> all(%s) order by name",
            [["client_min_messages", "client_encoding", "session_authorization"]],
        ).fetchall()
    asked = [(name, value) for name, *about in settings for value in _values(*about)]
    tried = list(_said(house, asked, given))
    assert len({name for name, _, found, _ in tried if found}) > 100
    for name, value, found, notices in tried:
        told = repr(found) + repr(notices)
        assert [secret for secret in SECRETS if secret in told] == [], (name, value)
        relations = {int(n) for n in re.findall(r":(?:relid|indexid) (\d+)", told)}
        assert not relations & tables, f"{name} = {value} shows a plan of the tables"
        for call, rows in found.items():
            assert isinstance(rows, str) or len(rows) == len(plain[call]), (name, value, call)


def _said(
    house: House, asked: list[tuple[str, str]], given: dict[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any], list[str]]]:
    """What the functions say under each setting, and every message beside it."""
    left = list(asked)
    while left:
        notices: list[str] = []
        with suppress(psycopg.OperationalError), house.session() as session:
            session.add_notice_handler(lambda note: notices.append(str(note.message_primary)))  # noqa: B023
            # A session that ends for what was set is followed by a new one.
            while left and not session.closed:
                name, value = left.pop()
                notices.clear()
                try:
                    session.execute("select set_config(%s, %s, false)", [name, value])
                    session.execute("set client_min_messages = debug5")
                except psycopg.Error:
                    continue
                yield name, value, results(session, given), list(notices)
                session.execute("reset all")


def _values(
    kind: str, enumerated: list[str] | None, least: str | None, most: str | None, now: str
) -> list[str]:
    match kind:
        case "bool":
            return ["off" if now == "on" else "on"]
        case "enum":
            return list(enumerated or ())
        case "integer" | "real":
            return [value for value in (least, most) if value is not None]
        case _:
            return ["pg_temp", MARK]


SHADOWS = """
create temp table chunks as select 1::bigint as id, 1 as project_id, 1 as tenant_id;
create temp table tenant_access as
    select session_user::text as login, generate_series(1, 9) as tenant_id;
create temp table projects as select 1 as id, 1 as tenant_id, 'x' as slug;
create function pg_temp.own_tenant() returns integer language sql as 'select 2';
create function pg_temp.own_projects(integer, integer[]) returns integer[]
    language sql as 'select $2';
create function pg_temp.always(integer, integer) returns boolean language sql as 'select true';
create operator pg_temp.= (function = pg_temp.always, leftarg = integer, rightarg = integer);
create function pg_temp.always(text, name) returns boolean language sql as 'select true';
create operator pg_temp.= (function = pg_temp.always, leftarg = text, rightarg = name);
create function pg_temp.starts_with(text, text) returns boolean language plpgsql
    as $$ begin raise notice 'leaked %', $1; return true; end $$;
set search_path = pg_temp, concordance, public, pg_catalog;
"""


def test_names_of_a_readers_own_stand_in_for_nothing(house: House) -> None:
    given = numbers(house, "other", "default")
    notices: list[str] = []
    with house.session() as session:
        session.add_notice_handler(lambda note: notices.append(str(note.message_primary)))
        plain = results(session, given)
        session.execute(SHADOWS)
        assert results(session, given) == plain
        session.execute("set row_security = off")
        assert results(session, given) == plain
    assert [note for note in notices if "leaked" in note] == []


@pytest.mark.parametrize(
    "statement",
    [
        "set role postgres",
        "set role concordance_functions",
        f"set role {NEIGHBOUR}",
        "set session authorization postgres",
        f"set session authorization {NEIGHBOUR}",
        f"grant {NEIGHBOUR} to {READER}",
        f"grant concordance_functions to {READER}",
        f"alter role {READER} superuser",
        f"alter role {READER} bypassrls",
        "alter table concordance.chunks disable row level security",
        "create policy mine on concordance.chunks using (true)",
        "drop policy indexer on concordance.chunks",
        "create function concordance.mine() returns integer language sql return 1",
        "create table concordance.mine ()",
        "create function public.mine() returns integer language sql return 1",
        "create schema mine",
        "alter function concordance.reader_tenant() set search_path = pg_temp",
        "create temp view seen as select * from concordance.chunks; select * from seen",
        "select concordance.arrange_readers()",
        "select concordance.protect_tables()",
        f"select concordance.admit_reader('{READER}')",
        "select concordance.dismiss_reader('postgres')",
        "set search_path = concordance; select own_tenant()",
        "select concordance.own_projects(2, null)",
        "select concordance.own_width(2, 2)",
        "select concordance.has_adr_status(1, 'adr', '{unknown}')",
        "set search_path = concordance, public; select create_vector_index(1, 3)",
        "copy concordance.chunks to stdout",
        "begin; lock table concordance.chunks",
        "select * from pg_statistic",
        "select * from pg_authid",
        "load 'vector'; load 'auto_explain'",
        "set session_preload_libraries = 'x'",
        "set session_replication_role = replica",
        "set log_statement = 'all'",
    ],
)
def test_a_reader_may_not(house: House, statement: str) -> None:
    with (
        house.session() as session,
        pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFile)),
    ):
        session.execute(statement.encode())


def test_tables_give_a_reader_nothing(house: House) -> None:
    tables = tables_of(house)
    assert len(tables) >= 20
    with house.session() as session:
        for table in tables:
            name = sql.Identifier("concordance", table)
            for statement in (
                "select * from {}",
                "select count(*) from {}",
                "select tableoid from {} limit 1",
                "insert into {} default values",
                "delete from {}",
                "truncate {}",
                "explain select * from {}",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    session.execute(sql.SQL(statement).format(name))
        assert (
            session.execute("select * from pg_stats where schemaname = 'concordance'").fetchall()
            == []
        )
        assert session.execute("select * from pg_stats_ext").fetchall() == []
        others = session.execute(
            "select query from pg_stat_activity where usename <> session_user and query <> ''"
        ).fetchall()
        assert {row[0] for row in others} <= {"<insufficient privilege>"}
        values = session.execute(
            "select last_value from pg_sequences where schemaname = 'concordance'"
        ).fetchall()
        assert {row[0] for row in values} <= {None}


def test_plans_of_functions_are_the_same_whoever_the_rows_belong_to(house: House) -> None:
    other, mine = numbers(house, "other"), numbers(house, "default")
    with house.session() as session:
        for call in CALLS.values():
            plans = [
                _plan(session, call, given)
                for given in (other, mine, other | {"projects": [10**9], "chunks": [10**9]})
            ]
            assert plans[0] == plans[1] == plans[2]
            assert not re.search(r"lexical|embeddings|documents|Index|Seq", plans[0])


def _plan(session: Session, call: LiteralString, given: dict[str, Any]) -> str:
    """Without what was asked with, of which each asked with its own."""
    rows = session.execute(sql.SQL("explain (verbose) ") + sql.SQL(call), given).fetchall()
    kept = [row[0] for row in rows if "Call" not in row[0] and "Output" not in row[0]]
    return re.sub(r"rows=\d+ width=\d+|cost=[\d.]+", "", "\n".join(kept))


def test_a_table_granted_by_mistake_still_shows_no_row(house: House) -> None:
    empty = {"schema_migrations", "embedding_backlog", "successions", "project_commits"}
    filled = [table for table in tables_of(house) if table not in empty]
    with psycopg.connect(house.url, autocommit=True) as connection:
        for table in filled:
            connection.execute(
                sql.SQL("grant select, update on concordance.{} to {}").format(
                    sql.Identifier(table), sql.Identifier(READER)
                )
            )
        try:
            assert {table: seen(house, table) for table in filled} == dict.fromkeys(filled, 0)
            for table in filled:
                name = sql.Identifier("concordance", table)
                connection.execute(
                    sql.SQL("alter table {} disable row level security").format(name)
                )
                assert seen(house, table) > 0, "the policies are what hides them"
                connection.execute(sql.SQL("alter table {} enable row level security").format(name))
        finally:
            for table in filled:
                connection.execute(
                    sql.SQL("revoke all on concordance.{} from {}").format(
                        sql.Identifier(table), sql.Identifier(READER)
                    )
                )


def seen(house: House, table: str) -> int:
    """Rows that a reader sees of a table, or that a function of its own is shown."""
    shown: list[str] = []
    with house.session() as session:
        session.add_notice_handler(lambda note: shown.append(str(note.message_primary)))
        session.execute(
            "create function pg_temp.leak(anyelement) returns boolean language plpgsql cost 0.0001 "
            "as $$ begin raise notice 'row %', $1; return true; end $$"
        )
        name = sql.Identifier("concordance", table)
        statement = sql.SQL("select count(*) from {} x where pg_temp.leak(x)").format(name)
        row = session.execute(statement).fetchone()
        session.execute("set row_security = off")
        with suppress(psycopg.errors.InsufficientPrivilege):
            session.execute(statement)
    return int(row[0] if row else 0) + len(shown)


PAIR = """
select min(w), max(w)
from (select 'w' || n as w from generate_series(1, 100000) as n) x
group by concordance.lexeme_dimension(w) having count(*) > 1
order by 1 limit 1
"""
PLANT = """
insert into concordance.term_stats (project_id, language, lexeme, passages, largest)
select id, 'english', %s, 1, 1 from concordance.projects where slug = %s
"""


def test_words_that_fall_together_tell_nothing_of_another_tenants_words(house: House) -> None:
    asked = "select shared from concordance.reader_terms(%s) where lexeme = %s"
    with psycopg.connect(house.url, autocommit=True) as owner, house.session() as session:
        pair = owner.execute(PAIR).fetchone()
        assert pair is not None
        one, other = pair
        for project, told in (("vault", False), ("shop", True)):
            owner.execute(PLANT, [other, project])
            rows = session.execute(asked, [one, one]).fetchall()
            assert {row[0] for row in rows} >= {told}
            assert told or {row[0] for row in rows} == {False}
            owner.execute("delete from concordance.term_stats where lexeme = %s", [other])


def test_what_another_tenant_has_changes_no_score_and_no_figure(house: House) -> None:
    """The last one here: it removes the rows of the other tenant."""
    requests = [
        {"text": text, "fusion": fusion}
        for text in ("tea kettle queue", f"{MARK} tea", "Kessel")
        for fusion in ("convex", "lexical", "vector")
    ]

    given = numbers(house, "default")

    def told() -> list[Any]:
        with house.session() as session:
            functions = results(session, given)
        return [
            functions,
            *(
                search(house.reader, **request, top_k=50).model_dump(exclude={"milliseconds"})
                for request in requests
            ),
        ]

    before = told()
    with psycopg.connect(house.url, autocommit=True) as connection:
        gone = connection.execute("delete from concordance.projects where slug = 'vault'")
        assert gone.rowcount == 1
    assert told() == before
