"""The vector leg at a size where the approximate index is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from pydantic import ValidationError

from concordance.adapters.postgres import embeddings, projects
from concordance.adapters.postgres import search as legs
from concordance.adapters.postgres.database import Database
from concordance.adapters.postgres.embeddings import StoredSpace
from concordance.errors import DimensionsUnsupported, TextRefused
from concordance.index import Index
from concordance.models import POOL, CoverageState, SearchRequest
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeModel, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.postgres.driver import covered, fill, reindex
from tests.postgres.library import search
from tests.postgres.rows import NOW, Shelf, space, vector_of
from tests.sources import GitSource

MANY = 21_000
RARE = 100
INSERT = """
with made as (
    insert into concordance.documents (tenant_id, project_id, scope, kind, name, content_id, bytes,
        status, chunker)
    select %(tenant)s, p.id, 'docs', 'file', 'docs/a.md', 'x', 1, 'indexed', '1'
    from concordance.projects p
    returning id, project_id
), passages as (
    insert into concordance.chunks (tenant_id, project_id, document_id, ordinal, heading_path,
        titled, start_char, end_char, content, content_hash)
    select %(tenant)s, m.project_id, m.id, n, '{}', true, 0, 1, 'text ' || n, int8send(n)
    from generate_series(1, %(many)s) as n
    join concordance.projects p on p.slug = case when n %% %(every)s = 0 then 'rare' else 'big' end
    join made m on m.project_id = p.id
    returning id, project_id, content_hash
)
insert into concordance.embeddings (model_id, chunk_id, tenant_id, project_id, scope, content_hash,
    embedding)
select %(model)s, id, %(tenant)s, project_id, 'docs', content_hash,
    array(select random() - 0.5 from generate_series(1, 8) where id > 0)::vector
from passages
"""


class Crowd:
    """One project that owns nearly all of the table, and a rare one."""

    def __init__(self, url: str) -> None:
        self.database = Database(url, pool_size=1)
        self.database.open()
        shelf = Shelf(self.database)
        self.space: StoredSpace = shelf.activate(space())
        self.big, self.rare = shelf.project("big").id, shelf.project("rare").id
        values = {
            "tenant": shelf.tenant,
            "model": self.space.id,
            "many": MANY,
            "every": MANY // RARE,
        }
        with self.database.transaction() as connection:
            connection.execute(INSERT, values)
        assert embeddings.ensure_vector_index(self.database, self.space)
        with self.database.session() as connection:
            connection.execute("vacuum analyze concordance.embeddings")

    def leg(self, *wanted: int, held: int = MANY, path_prefix: str | None = None) -> list[int]:
        filters = legs.Filters(wanted, ("docs",), path_prefix, None)
        with legs.open_snapshot(self.database, timeout_seconds=60) as snapshot:
            found = snapshot.vector_leg(
                self.space, vector_of("question"), filters, held=held, in_all=MANY
            )
        scores = [scored.score for scored in found]
        assert scores == sorted(scores, reverse=True)
        return [scored.chunk_id for scored in found]

    def index_scans(self) -> int:
        with self.database.transaction() as connection:
            connection.execute("select pg_stat_force_next_flush()")
        with self.database.transaction() as connection:
            row = connection.execute(
                "select idx_scan from pg_stat_user_indexes where indexrelname = %s",
                [f"embeddings_hnsw_{self.space.id}"],
            ).fetchone()
        return int(row[0]) if row else -1


@pytest.fixture(scope="module")
def crowd(server_url: str) -> Iterator[Crowd]:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("create database crowd template template strategy file_copy")
    crowd = Crowd(make_conninfo(server_url, dbname="crowd"))
    yield crowd
    crowd.database.close()
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database crowd with (force)"))


def test_a_rare_project_gets_all_that_it_has_beside_a_big_one_vec_1(crowd: Crowd) -> None:
    assert len(crowd.leg(crowd.rare)) == RARE
    assert len(crowd.leg(crowd.rare, held=RARE)) == RARE
    assert crowd.leg(crowd.rare) == crowd.leg(crowd.rare, held=RARE), "whichever way is taken"


def test_the_whole_pool_comes_back_vec_2(crowd: Crowd) -> None:
    assert len(crowd.leg(crowd.big, crowd.rare)) == POOL
    assert len(crowd.leg(crowd.big)) == POOL
    assert len(crowd.leg(crowd.big, path_prefix="docs/")) == POOL
    assert crowd.leg(crowd.big, path_prefix="nowhere/") == []


def test_the_index_is_used_each_time_also_when_the_statement_is_prepared_vec_7(
    crowd: Crowd,
) -> None:
    before = crowd.index_scans()
    for _ in range(8):
        crowd.leg(crowd.big, crowd.rare)
    assert crowd.index_scans() == before + 8


def test_the_approximate_leg_finds_nearly_what_the_exact_one_finds(crowd: Crowd) -> None:
    near = crowd.leg(crowd.big, crowd.rare)
    exact = crowd.leg(crowd.big, crowd.rare, held=0)
    assert len(set(near) & set(exact)) > 0.9 * POOL


# --- through the front door ----------------------------------------------------------------------


def _two_pages(folder: Path) -> Project:
    pages: dict[str, str | bytes] = {f"docs/{n}.md": f"# Page\n\nkettle {n}\n" for n in range(120)}
    return Project(slug="p", path=GitSource.make(folder / "source", pages).path)


@pytest.mark.parametrize("approximate", [False, True])
def test_as_many_hits_as_asked_for_come_back_vec_2(
    make_index: IndexMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approximate: bool
) -> None:
    if approximate:
        monkeypatch.setattr(legs, "EXACT_UP_TO", 10)
        monkeypatch.setattr(embeddings, "INDEX_FROM", 10)
    index = make_index(_two_pages(tmp_path))
    reindex(index)
    for fusion in ("vector", "convex", "lexical", "rrf"):
        assert len(search(index, "kettle", fusion=fusion, top_k=100).hits) == 100


def test_more_than_the_pool_is_refused_vec_2() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 100"):
        SearchRequest(text="kettle", top_k=POOL + 1)


@pytest.fixture
def wide(make_index: IndexMaker, tmp_path: Path, provider: FakeOllama) -> Index:
    provider.models["wide:latest"] = FakeModel(dimensions=2_560)
    return make_index(_two_pages(tmp_path), embedding_model="ollama/wide")


def test_a_wide_model_is_indexed_and_searched_in_half_precision_vec_6(
    wide: Index, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    monkeypatch.setattr(embeddings, "INDEX_FROM", 10)
    monkeypatch.setattr(legs, "EXACT_UP_TO", 10)
    reindex(wide)
    assert covered(wide).state is CoverageState.COMPLETE
    with database.transaction() as connection:
        rows = connection.execute(
            "select indexdef from pg_indexes where indexname like 'embeddings_hnsw%'"
        ).fetchall()
    assert len(rows) == 1
    assert "halfvec(2560)" in rows[0][0]
    stored = embeddings.active_space(database, projects.ensure_tenant(database, "default"))
    assert stored is not None
    shaped = legs._shaped("{type}({dimensions})", stored)
    assert shaped.as_string() == "halfvec(2560)", "the query asks for what the index holds"
    answer = search(wide, "kettle 7", fusion="vector")
    assert len(answer.hits) == 10
    assert not answer.degraded
    assert answer.hits[0].content == "# Page\n\nkettle 7"


def test_a_model_too_wide_for_any_index_is_refused_by_name_vec_6(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    provider.models["wider:latest"] = FakeModel(dimensions=4_096)
    index = make_index(_two_pages(tmp_path), embedding_model="ollama/wider")
    with pytest.raises(DimensionsUnsupported, match="4096"):
        index.prepare_space()
    reindex(index)
    assert "4096" in covered(index).reason
    assert covered(index).state is CoverageState.LEXICAL_ONLY


def test_vectors_of_zeros_are_refused_and_counted_vec_4(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, database: Database
) -> None:
    index = make_index(_two_pages(tmp_path))
    provider.rule = lambda asked: (
        Fault.zeros() if any("kettle 7\n" in f"{t}\n" for t in asked.inputs) else None
    )
    reindex(index)
    said = covered(index)
    assert (said.chunks - said.chunks_with_vector, said.chunks_refused) == (1, 1)
    assert said.state is CoverageState.PARTIAL
    assert "zero" in said.reason
    with database.transaction() as connection:
        bad = connection.execute(
            "select count(*) from concordance.embeddings where vector_norm(embedding) < 0.5"
        ).fetchone()
    assert bad == (0,)
    provider.rule = None
    index._resources.breaker.reset()
    fill(index)
    assert covered(index).state is CoverageState.COMPLETE


def test_the_tenant_of_a_space_is_its_own(database: Database) -> None:
    one, other = (projects.ensure_tenant(database, name) for name in ("one", "other"))
    first = embeddings.activate_space(database, one, space(), now=NOW)
    second = embeddings.activate_space(database, other, space(), now=NOW)
    assert first.id != second.id
    assert embeddings.active_space(database, one) == first


def test_a_question_that_the_model_refuses_is_an_error_in_vector_mode(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    index = make_index(_two_pages(tmp_path))
    reindex(index)
    with pytest.raises(TextRefused):
        search(index, "é" * 5_000, fusion="vector")
