"""Searching with something missing: a leg, a provider, vectors, words, a reranker."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from concordance.errors import (
    DatabaseError,
    ProviderError,
)
from concordance.index import Index
from concordance.models import Fusion, Scope
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.fake_ollama_faults import Fault
from tests.postgres.driver import ask, reindex
from tests.postgres.library import make_library, place, places, search, shared_index

KEPT = "degraded_library"


@pytest.fixture(scope="module")
def library(
    server_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Project, ...]]:
    """The corpus, in a database that each test has a copy of."""
    folder = tmp_path_factory.mktemp("library")
    with shared_index(server_url, KEPT, folder / "home") as make:
        index = make_library(make, folder)
        index.close()
        yield index.configuration.projects


@pytest.fixture
def database_template(library: tuple[Project, ...]) -> str:
    return KEPT


@pytest.fixture
def index(make_index: IndexMaker, library: tuple[Project, ...]) -> Index:
    """The corpus, for a test that breaks something."""
    return make_index(*library)


@pytest.mark.parametrize("fusion", [Fusion.CONVEX, Fusion.RRF, Fusion.WEIGHTED])
def test_a_provider_that_is_down_leaves_the_words_and_says_so_fus_5(
    index: Index, provider: FakeOllama, fusion: Fusion
) -> None:
    provider.stop()
    answer = search(index, "how do we retry a clone on flaky wifi", fusion=fusion, scopes=["docs"])
    assert places(answer)[0] == "shop:docs/guide.md"
    assert (answer.degraded, answer.vector_available) == (True, False)
    assert "can't be reached" in (answer.degraded_reason or "")
    assert all(hit.vector_score is None and hit.vector_rank is None for hit in answer.hits)
    assert {hit.scope for hit in answer.hits} == {Scope.DOCS}, "filters hold here too"


def test_vectors_alone_are_an_error_when_the_provider_is_down_fus_5(
    index: Index, provider: FakeOllama
) -> None:
    provider.stop()
    with pytest.raises(ProviderError):
        search(index, "tea", fusion="vector")
    lexical = search(index, "tea", fusion="lexical")
    assert lexical.hits
    assert not lexical.degraded, "the words were all that was asked for"


@pytest.mark.timeout(60, func_only=True)
def test_a_slow_provider_does_not_hold_up_the_words_fus_5(
    index: Index, provider: FakeOllama
) -> None:
    provider.rule = lambda asked: Fault.hanging()
    answer = search(index, "kettle", deadline_seconds=1.0)
    assert "shop:docs/more/kettle.md" in places(answer)
    assert answer.degraded
    assert "did not answer" in (answer.degraded_reason or "")


def test_vectors_that_are_not_filled_in_yet_are_counted_fus_5(
    index: Index, database_url: str
) -> None:
    for slug in ("shop", "laden"):
        index.forget(slug)
    with psycopg.connect(database_url) as connection:
        connection.execute("delete from concordance.embedding_models")
    for slug in ("shop", "laden"):
        reindex(index, slug, embed=False)
    before = search(index, "kettle")
    assert before.hits
    assert (before.degraded, before.vector_available) == (True, False)
    assert "nothing has a vector yet" in (before.degraded_reason or "")
    reindex(index, "laden")
    half = search(index, "kettle")
    total = sum(f.chunks for f in half.freshness)
    held = sum(f.chunks_with_vector for f in half.freshness)
    assert 0 < held < total
    assert half.degraded
    assert f"{held} of {total} passages have a vector" in (half.degraded_reason or "")
    assert not search(index, "Kessel", projects=["laden"]).degraded


def test_a_query_vector_of_zeros_leaves_the_words_vec_4(index: Index, provider: FakeOllama) -> None:
    provider.rule = lambda asked: Fault.zeros()
    answer = search(index, "kettle", threshold=0.3)
    assert answer.degraded
    assert "zero" in (answer.degraded_reason or "")
    assert answer.hits
    assert all(math.isfinite(hit.score) and hit.vector_score is None for hit in answer.hits)
    with pytest.raises(ProviderError):
        search(index, "kettle", fusion="vector")


def test_a_provider_of_another_model_version_leaves_the_words(
    index: Index, make_index: IndexMaker, provider: FakeOllama
) -> None:
    name = "nomic-embed-text:latest"
    provider.models[name] = type(provider.models[name])(version="2")
    answer = search(make_index(*index.configuration.projects), "kettle")
    assert answer.degraded
    assert answer.hits
    assert "the provider serves" in (answer.degraded_reason or "")


@pytest.fixture
def as_reader(index: Index, make_index: IndexMaker, database_url: str) -> Iterator[Index]:
    """The same index, as a login from which a test can take rights."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("drop role if exists reader")
        connection.execute("create role reader")
        connection.execute("grant usage on schema concordance to reader")
        connection.execute(
            "grant select, insert, update on all tables in schema concordance to reader"
        )
    reader = make_index(
        *index.configuration.projects,
        database_url=SecretStr(make_conninfo(database_url, options="-c role=reader")),
    )
    yield reader
    reader.close()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("drop owned by reader")
        connection.execute("drop role reader")


def _revoke(database_url: str, table: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("revoke select on concordance.{} from reader").format(sql.Identifier(table))
        )


def test_a_lexical_leg_that_fails_leaves_the_vectors_and_says_so_fus_5(
    as_reader: Index, database_url: str
) -> None:
    assert not search(as_reader, "kettle").degraded
    _revoke(database_url, "lexical")
    answer = search(as_reader, "kettle", projects=["shop"], scopes=["docs"])
    assert places(answer)[0] == "shop:docs/more/kettle.md"
    assert answer.degraded
    assert "the lexical leg failed" in (answer.degraded_reason or "")
    assert all(hit.lexical_score is None for hit in answer.hits)
    assert {(hit.project, hit.scope) for hit in answer.hits} == {("shop", Scope.DOCS)}
    with pytest.raises(DatabaseError, match="lexical"):
        search(as_reader, "kettle", fusion="lexical")


def test_a_vector_leg_that_fails_leaves_the_words_and_says_so_fus_5(
    as_reader: Index, database_url: str
) -> None:
    _revoke(database_url, "embeddings")
    answer = search(as_reader, "kettle")
    assert answer.hits
    assert (answer.degraded, answer.vector_available) == (True, False)
    assert "the vector leg failed" in (answer.degraded_reason or "")


def test_two_legs_that_fail_are_an_error_and_no_empty_list_fus_5(
    as_reader: Index, database_url: str, provider: FakeOllama
) -> None:
    _revoke(database_url, "lexical")
    _revoke(database_url, "embeddings")
    with pytest.raises(DatabaseError, match=r"lexical leg failed.*vector leg failed"):
        search(as_reader, "kettle")
    provider.stop()
    with pytest.raises(DatabaseError, match="lexical leg failed"):
        search(as_reader, "kettle")


def test_an_answer_is_of_one_moment(index: Index, database_url: str) -> None:
    """Passages that go away while a question is asked are no error."""
    assert search(index, "tea").hits
    index.forget("shop")
    assert {hit.project for hit in search(index, "tea").hits} == {"laden"}
    assert ask(database_url, "select slug from projects") == [{"slug": "laden"}]
    assert search(index, "tea", projects=["shop"]).empty_reason


def test_a_passage_without_words_yet_is_found_by_its_vector(
    index: Index, database_url: str
) -> None:
    """As after an upgrade that analyses all words anew, before the next run."""
    before = search(index, "tea", fusion=Fusion.VECTOR)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("delete from concordance.lexical")
    after = search(index, "tea", fusion=Fusion.VECTOR)
    assert [(h.origin, h.vector_score) for h in after.hits] == [
        (h.origin, h.vector_score) for h in before.hits
    ]
    assert all(hit.lexical_score is None for hit in search(index, "tea").hits)
    assert search(index, "tea").hits


# --- while vectors are filled in, their count lags behind ----------------------------------------


def _count_no_vectors(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update concordance.coverage set chunks_with_vector = 0")


def test_vectors_that_are_not_counted_yet_are_used_and_judged(
    index: Index, database_url: str
) -> None:
    counted = search(index, "tea kettle")
    _count_no_vectors(database_url)
    for fusion in Fusion:
        answer = search(index, "tea kettle", fusion=fusion)
        assert answer.hits
        assert answer.vector_available is (fusion is not Fusion.LEXICAL)
        assert not answer.degraded, "every passage that there is was found with its vector"
    lagging = search(index, "tea kettle")
    assert [(h.origin, h.confidence) for h in lagging.hits] == [
        (h.origin, h.confidence) for h in counted.hits
    ]


def test_of_vectors_that_are_not_counted_yet_no_more_is_said_than_is_known(
    index: Index, database_url: str
) -> None:
    _count_no_vectors(database_url)
    answer = search(index, "tea kettle", path_prefix="docs/more/")
    assert answer.vector_available
    assert answer.degraded_reason is not None
    assert answer.degraded_reason.startswith("at least 1 of ")
    alone = search(index, "tea kettle", path_prefix="docs/more/", fusion=Fusion.VECTOR)
    assert (alone.degraded_reason or "").endswith("any without one were not searched")
    nowhere = search(index, "tea", path_prefix="nowhere/", fusion=Fusion.VECTOR)
    assert nowhere.empty_reason == "nothing that matches lies under that path or after that time"


def test_vectors_that_are_counted_and_gone_are_not_claimed(index: Index, database_url: str) -> None:
    """As after a change of the model, before its vectors are counted."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("delete from concordance.embeddings")
    answer = search(index, "tea kettle")
    assert answer.hits
    assert (answer.degraded, answer.vector_available) == (True, False)
    assert "no passage of what was searched has a vector yet" in (answer.degraded_reason or "")
    for prefix in (None, "docs/"):
        with pytest.raises(ProviderError, match="has a vector yet"):
            search(index, "tea kettle", fusion=Fusion.VECTOR, path_prefix=prefix)


def test_found_passages_without_a_vector_are_told_where_all_are_counted(
    index: Index, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "delete from concordance.embeddings e using concordance.chunks k"
            " join concordance.documents d on d.id = k.document_id"
            " where k.id = e.chunk_id and d.name = 'docs/more/kettle.md'"
        )
    answer = search(index, "kettle")
    assert answer.vector_available
    assert "passages that were found has no vector yet" in (answer.degraded_reason or "")


def _forget_words(database_url: str, name: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "delete from concordance.lexical l using concordance.documents d"
            " where d.id = l.document_id and starts_with(d.name, %s)",
            (name,),
        )


def test_passages_that_wait_for_their_words_are_told_of_and_judged_by_their_vectors(
    index: Index, database_url: str
) -> None:
    alone = search(index, "kettle", fusion=Fusion.VECTOR)
    assert not search(index, "kettle").degraded
    _forget_words(database_url, "docs/more/")
    answer = search(index, "kettle")
    said = "1 passage waits for its words, which the next run writes: found by its vector alone"
    assert answer.degraded_reason == said
    (waiting,) = (h for h in answer.hits if place(h) == "shop:docs/more/kettle.md")
    (judged,) = (h for h in alone.hits if place(h) == "shop:docs/more/kettle.md")
    assert waiting.confidence == judged.confidence
    assert not search(index, "Kessel", projects=["laden"]).degraded
    assert not alone.degraded


def test_where_all_words_wait_the_words_alone_say_so(index: Index, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        for table in ("lexical", "term_stats", "project_stats"):
            connection.execute(sql.SQL("delete from concordance.{}").format(sql.Identifier(table)))
    for fusion in (Fusion.LEXICAL, Fusion.CONVEX):
        answer = search(index, "kettle", fusion=fusion)
        assert "passages wait for their words" in (answer.degraded_reason or "")
        assert bool(answer.hits) is (fusion is Fusion.CONVEX)


@pytest.mark.parametrize("tokenizer", ["{}", '{"model": {"type": "Nope"}}'])
def test_a_reranker_that_can_t_be_used_leaves_the_fused_order(
    index: Index, make_index: IndexMaker, tmp_path: Path, tokenizer: str
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "tokenizer.json").write_text(tokenizer)
    (model / "model.onnx").write_bytes(b"")
    reranked = make_index(*index.configuration.projects, reranker=f"local/{model}")
    answer = search(reranked, "tea kettle")
    assert places(answer) == places(search(index, "tea kettle"))
    assert any("the fused order stands" in note for note in answer.notes)
    assert answer.reranker is None
