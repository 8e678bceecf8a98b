"""Plans under a reader's login, and under an indexer's that is no superuser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from concordance.adapters.postgres import embeddings, lexical
from concordance.adapters.postgres import search as legs
from concordance.adapters.postgres.database import Database, create_database
from concordance.adapters.postgres.embeddings import StoredSpace, vector_as_text
from concordance.adapters.postgres.schema import migrate
from concordance.adapters.postgres.tenants import find_reader
from concordance.models import LexicalRanking
from sql import queries
from tests.postgres.house import grant, logins
from tests.postgres.rows import Shelf, space, vector_of

EACH = 11_000
# Two tenants that share every word; one word in a hundred is asked for.
INSERT = """
with made as (
    insert into documents (tenant_id, project_id, scope, kind, name, content_id, bytes, status,
        chunker, language)
    select %(tenant)s, %(project)s, 'docs', 'file', 'docs/a.md', 'x', 1, 'indexed', '1', 'english'
    returning id
), passages as (
    insert into chunks (tenant_id, project_id, document_id, ordinal, heading_path, titled,
        start_char, end_char, content, content_hash)
    select %(tenant)s, %(project)s, m.id, n, '{}', true, 0, 1, 'rare' || n %% 1000, int8send(n)
    from generate_series(1, %(many)s) as n cross join made m
    returning id, document_id, ordinal, content, content_hash
), words as (
    insert into lexical (chunk_id, tenant_id, project_id, document_id, ordinal, scope, language,
        lexemes, length, weights)
    select id, %(tenant)s, %(project)s, document_id, ordinal, 'docs', 'english',
        to_tsvector('simple', content) || place_lexemes('english', %(project)s, 'docs'), 1,
        bm25_weights(to_tsvector('simple', content), 1, 1)
    from passages
)
insert into embeddings (model_id, chunk_id, tenant_id, project_id, scope, content_hash, embedding)
select %(model)s, id, %(tenant)s, %(project)s, 'docs', content_hash,
    array(select random() - 0.5 from generate_series(1, 8) where id > 0)::vector
from passages
"""
COUNTED = """
insert into coverage (project_id, tenant_id, scope, chunks, chunks_with_vector, state, reason)
values (%(project)s, %(tenant)s, 'docs', %(many)s, %(many)s, 'complete', 'all');
"""


@dataclass(frozen=True)
class Town:
    """A database of an indexer that is no superuser, with a reader's login for one tenant."""

    url: str
    project: int
    space: StoredSpace

    def as_login(self, login: str, **more: str) -> str:
        return make_conninfo(self.url, user=login, **more)

    def number(self, index: str) -> int:
        with psycopg.connect(self.url) as connection:
            row = connection.execute(
                "select %s::regclass::oid", [f"concordance.{index}"]
            ).fetchone()
        return int(row[0] if row else 0)


@pytest.fixture(scope="module")
def town(server_url: str) -> Iterator[Town]:
    name = "tenant_town"
    with logins(server_url, "tenant_mayor", "tenant_visitor"):
        url = create_database(server_url, name)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create extension vector")
            connection.execute("alter role tenant_mayor createrole")
            connection.execute(
                sql.SQL("grant create on database {} to tenant_mayor").format(sql.Identifier(name))
            )
            connection.execute(
                "do $$ begin if to_regrole('concordance_functions') is not null then "
                "grant concordance_functions to tenant_mayor with inherit true, set true; end if; "
                "end $$"
            )
        database = Database(make_conninfo(url, user="tenant_mayor"), pool_size=2)
        database.open()
        migrate(database)
        shelves = [Shelf(database, "default"), Shelf(database, "other")]
        made = [(shelf, shelf.activate(space()), shelf.project()) for shelf in shelves]
        with database.transaction() as connection:
            for shelf, stored, project in made:
                given = {
                    "tenant": shelf.tenant,
                    "model": stored.id,
                    "project": project.id,
                    "many": EACH,
                }
                connection.execute(INSERT, given)
                connection.execute(COUNTED, given)
                for table in ("missing_languages", "recount_totals", "rebuild_terms"):
                    key = {"project": project.id, "language": None}
                    connection.execute(queries("lexical")[table], key)
                    connection.execute("update project_stats set average = 1")
        for _, stored, _ in made:
            assert embeddings.ensure_vector_index(database, stored)
        with database.session() as session:
            for table in ("lexical", "embeddings", "chunks", "documents"):
                session.execute(sql.SQL("vacuum analyze {}").format(sql.Identifier(table)))
        database.close()
        grant(make_conninfo(url, user="tenant_mayor"), {"tenant_visitor": "default"})
        yield Town(url, made[0][2].id, made[0][1])
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            )
            connection.execute("revoke concordance_functions from tenant_mayor cascade")
            connection.execute("reassign owned by tenant_mayor to postgres")
            connection.execute("drop owned by tenant_mayor")


def plans(town: Town, call: str, given: dict[str, Any]) -> tuple[list[tuple[Any, ...]], list[str]]:
    """What a reader's call gives, and the plans that the server tells of on the way."""
    told: list[str] = []
    with psycopg.connect(town.as_login("tenant_visitor"), autocommit=True) as session:
        session.add_notice_handler(lambda note: told.append(str(note.message_detail)))
        session.execute("set debug_print_plan = on; set client_min_messages = log")
        return session.execute(call.encode(), given).fetchall(), told


@pytest.fixture
def outspoken(town: Town) -> Iterator[None]:
    """The functions let messages through, which they keep back otherwise."""
    with psycopg.connect(town.url, autocommit=True) as connection:
        for value in ("log", "error"):
            connection.execute(
                "do $$ declare f regprocedure; begin "
                "for f in select concordance.reader_functions() "
                "loop execute format('alter function %s set client_min_messages = "
                + value
                + "', f); end loop; end $$"
            )
            if value == "log":
                yield


WORDS = "select * from concordance.reader_words('rare7', array[%(project)s], null, %(prefix)s)"
NEAREST = (
    "select * from concordance.reader_nearest(%(model)s, %(vector)s, array[%(project)s], null, "
    "%(prefix)s, null, null, 100, 'index')"
)


@pytest.mark.parametrize("prefix", [None, "docs/"])
@pytest.mark.parametrize(
    ("call", "index", "node"),
    [(WORDS, "lexical_lexemes", "BITMAPINDEXSCAN"), (NEAREST, "embeddings_hnsw_{}", "INDEXSCAN")],
)
@pytest.mark.usefixtures("outspoken")
def test_a_reader_has_the_indexes(
    town: Town, call: str, index: str, node: str, prefix: str | None
) -> None:
    given = {
        "project": town.project,
        "model": town.space.id,
        "vector": vector_as_text(vector_of("question")),
        "prefix": prefix,
    }
    number = town.number(index.format(town.space.id))
    for _ in range(8):  # also where a plan is kept
        rows, told = plans(town, call, given)
        assert rows
        scans = [
            int(found)
            for plan in told
            for found in re.findall(rf"\{{{node}\b.*?:indexid (\d+)", plan, re.DOTALL)
        ]
        assert number in scans


def test_the_plans_are_kept_from_a_reader(town: Town) -> None:
    """They hold estimates, which come from the rows of every tenant."""
    rows, told = plans(town, WORDS, {"project": town.project, "prefix": None})
    assert rows
    assert told, "the plan of the call itself"
    seen = {
        int(number) for plan in told for number in re.findall(r":(?:relid|indexid) (\d+)", plan)
    }
    assert seen <= {0}


def test_an_index_scan_is_counted_for_a_readers_search(town: Town) -> None:
    database = Database(town.as_login("tenant_visitor"), pool_size=1)
    database.open()
    assert find_reader(database) is not None
    before = scans(town)
    filters = legs.Filters((town.project,), ("docs",), None, None)
    with legs.open_snapshot(database, timeout_seconds=60) as snapshot:
        questions = snapshot.questions("rare7", filters)
        assert snapshot.lexical_leg(questions, filters, LexicalRanking.BM25)
        for narrow in (filters, legs.Filters((town.project,), ("docs",), "docs/", None)):
            assert snapshot.vector_leg(
                town.space, vector_of("question"), narrow, held=10**6, in_all=10**6
            )
    with database.transaction() as connection:
        connection.execute("select pg_stat_force_next_flush()")
    database.close()
    after = scans(town)
    for table in ("lexical", "embeddings"):
        assert after[f"all of {table}"] == before[f"all of {table}"]
    assert after["lexical_lexemes"] > before["lexical_lexemes"]
    assert after[f"embeddings_hnsw_{town.space.id}"] > before[f"embeddings_hnsw_{town.space.id}"]


def scans(town: Town) -> dict[str, int]:
    with psycopg.connect(town.url, autocommit=True) as connection:
        connection.execute("select pg_stat_force_next_flush()")
        return dict(
            connection.execute(
                "select indexrelname, idx_scan from pg_stat_user_indexes "
                "union all select 'all of ' || relname, seq_scan from pg_stat_user_tables"
            ).fetchall()
        )


def test_an_indexer_under_its_own_forced_policies_has_the_indexes(town: Town) -> None:
    database = Database(town.as_login("tenant_mayor"), pool_size=1)
    database.open()
    with database.transaction() as connection:
        filters = legs.Filters((town.project,), ("docs",), None, None).parameters()
        (question,) = lexical.read_questions(connection, "rare7", [town.project])
        given = filters | {
            "languages": ["english"],
            "vectors": [question.vector],
            "conditions": ["'rare7'"],
        }
        asked = sql.SQL("explain ") + sql.SQL(queries("lexical")["top"])
        connection.execute("set local plan_cache_mode = force_custom_plan")
        plan = "\n".join(row[0] for row in connection.execute(asked, given).fetchall())
        assert "Bitmap Index Scan on lexical_lexemes" in plan
        assert "is_indexer" not in plan
        shaped = sql.SQL(queries("search")["vector_leg"]).format(
            model=sql.Literal(town.space.id), type=sql.SQL("vector"), dimensions=sql.Literal(8)
        )
        connection.execute("set local enable_sort = off")
        vector = {"vector": vector_as_text(vector_of("question"))}
        rows = connection.execute(sql.SQL("explain ") + shaped, filters | vector).fetchall()
        assert f"embeddings_hnsw_{town.space.id}" in "\n".join(row[0] for row in rows)
    database.close()
