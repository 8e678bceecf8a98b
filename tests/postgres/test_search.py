"""Searching: filters, words, languages, and honest answers when something is missing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr, ValidationError

from concordance.errors import (
    BadRequest,
    DatabaseError,
    ProviderError,
    SourceRefused,
    TextRefused,
    UnknownProject,
)
from concordance.index import Index
from concordance.models import Fusion, Scope, SearchRequest, SessionOrigin
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama, Fault
from tests.postgres.driver import ask, reindex
from tests.postgres.library import make_library, place, places, search, shared_index

EVERY_FUSION = list(Fusion)
ODD_QUESTIONS = [
    "what is this about",
    "a",
    "IT",
    "🚀",
    "???",
    "it's \"quoted\" 'twice'",
    "tea & !water | (kettle <-> boil):*",
    "':*",
    "\\",
    "C++",
    "--------",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "tea\0kettle",
    "\0a\0",
    "%s %(x)s {} {model}",
    "復旧手順",
    "word " * 10_000,
    " ".join(f"word{n}" for n in range(10_000)),
    "x" * 100_000,
    "é" * 5_000,
    "a\u0301\u200b\ufeff\u202e",
]


@pytest.fixture(scope="module")
def library(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """One corpus for the tests that only ask."""
    with shared_index(server_url, "library", tmp_path_factory.mktemp("library")) as make:
        yield make_library(make, tmp_path_factory.mktemp("sources"))


@pytest.fixture
def index(make_index: IndexMaker, tmp_path: Path) -> Index:
    """The same, for a test that breaks something."""
    return make_library(make_index, tmp_path)


@pytest.mark.parametrize("fusion", EVERY_FUSION)
def test_every_filter_holds_on_every_hit_fus_6_fus_7(library: Index, fusion: Fusion) -> None:
    every = search(library, "tea water kettle queue", fusion=fusion, top_k=50)
    assert len({place(hit) for hit in every.hits}) >= 5
    filters: list[dict[str, Any]] = [
        {"projects": ["laden"]},
        {"projects": ["shop"], "scopes": ["adr"]},
        {"scopes": ["session"]},
        {"scopes": ["docs", "session"]},
        {"path_prefix": "docs/more/"},
        {"path_prefix": "docs/adr/", "projects": ["shop"], "top_k": 1},
        {"since": "2026-03-01T10:01:00Z"},
    ]
    for wanted in filters:
        answer = search(
            library, "tea water kettle queue", **({"fusion": fusion, "top_k": 50} | wanted)
        )
        assert answer.hits, wanted
        for hit in answer.hits:
            assert hit.project in wanted.get("projects", [hit.project])
            assert hit.scope in wanted.get("scopes", [hit.scope])
            if "path_prefix" in wanted:
                assert place(hit).split(":", 1)[1].startswith(str(wanted["path_prefix"]))
            if "since" in wanted:
                assert isinstance(hit.origin, SessionOrigin)
                assert hit.origin.occurred_at is not None
                assert hit.origin.occurred_at >= datetime(2026, 3, 1, 10, 1, tzinfo=UTC)


@pytest.mark.parametrize("fusion", EVERY_FUSION)
def test_fewer_hits_are_the_first_of_more(library: Index, fusion: Fusion) -> None:
    most = search(library, "tea water", fusion=fusion, top_k=50).hits
    for top_k in range(1, len(most)):
        fewer = search(library, "tea water", fusion=fusion, top_k=top_k).hits
        assert [(place(h), h.score) for h in fewer] == [(place(h), h.score) for h in most[:top_k]]


@pytest.mark.parametrize("fusion", EVERY_FUSION)
def test_no_question_breaks_a_search(library: Index, fusion: Fusion) -> None:
    for question in ODD_QUESTIONS:
        try:
            answer = search(library, question, fusion=fusion, deadline_seconds=60)
        except TextRefused:
            assert fusion is Fusion.VECTOR, "the model can't take it, and no words were to be asked"
            continue
        assert all(math.isfinite(hit.score) for hit in answer.hits)
        assert answer.hits or answer.empty_reason, question[:40]


@pytest.mark.parametrize("text", ["   ", "\0", " \n\t\0 "])
def test_a_blank_question_is_refused_fts_2(library: Index, text: str) -> None:
    with pytest.raises(BadRequest, match="blank"):
        library.search(SearchRequest(text=text))


def test_text_alone_may_be_asked_blank_is_refused_and_a_lone_surrogate_breaks_nothing(
    library: Index,
) -> None:
    with pytest.raises(BadRequest, match="blank"):
        library.search("")
    assert library.search("kettle \ud800").hits
    with pytest.raises(ValidationError):
        SearchRequest(text="")


@pytest.mark.parametrize("text", ["kettle \ud800", "\udcffkettle", "kettle \udfff\udbff"])
def test_half_a_character_in_a_question_breaks_nothing(library: Index, text: str) -> None:
    answer = library.search(SearchRequest(text=text, threshold=0.0))
    assert places(answer)[0] == "shop:docs/more/kettle.md"
    assert answer.model_dump_json().encode()
    for name in ("\ud800", "shop\udcff"):
        with pytest.raises(UnknownProject) as raised:
            search(library, "tea", projects=[name])
        assert str(raised.value).encode()
    for prefix in ("\udcff", "docs/\ud800"):
        assert search(library, text, path_prefix=prefix).hits == ()
    for slug in ("\ud800", "shop\udcff", "shop\0", "../shop", ""):
        for ask_for in (
            lambda s=slug: library.record_question(s, text, 1),
            lambda s=slug: library.recorded_questions(s),
            lambda s=slug: library.export_questions(s, Path("nowhere")),
            lambda s=slug: library.undo_calibration(s),
            lambda s=slug: library.explain(s, text),
            lambda s=slug: library.decision_records(s),
            lambda s=slug: library.coverage([s]),
            lambda s=slug: library.purge_secrets([s]),
            lambda s=slug: library.check_statistics([s]),
        ):
            with pytest.raises(UnknownProject) as raised:
                ask_for()
            assert str(raised.value).encode()
        with pytest.raises(SourceRefused):
            library.forget(slug)
        assert library.problems(slug) == []
    assert not library.explain("shop", f"docs/{text}").in_index


def test_two_languages_are_searched_at_once_each_by_its_own_rules(library: Index) -> None:
    answer = search(library, "Kessel kettles", fusion="lexical")
    assert {"laden:docs/anleitung.md", "shop:docs/more/kettle.md"} <= set(places(answer))
    german = search(library, "Wassers", fusion="lexical", projects=["laden"])
    assert places(german) == ["laden:docs/anleitung.md"]


def test_a_question_of_stop_words_gets_vectors_alone_and_says_so_fts_2(library: Index) -> None:
    hybrid = search(library, "what is this about")
    assert hybrid.hits
    assert all(hit.lexical_score is None for hit in hybrid.hits if hit.project == "shop")
    words = search(library, "what is this about", fusion="lexical", projects=["shop"])
    assert words.hits == ()
    assert words.empty_reason
    assert any("no word" in note for note in words.notes)


def test_an_unknown_project_is_an_error_and_an_empty_list_is_refused(library: Index) -> None:
    for slug in ("nobody", "o'neil", "x' OR 'a'='a", "shop\0", "", "p; drop table chunks", "%"):
        with pytest.raises(UnknownProject):
            search(library, "tea", projects=[slug])
        with pytest.raises(UnknownProject):
            search(library, "tea", projects=["shop", slug])
    with pytest.raises(BadRequest, match="empty list of projects"):
        search(library, "tea", projects=[])
    with pytest.raises(BadRequest, match="empty list of scopes"):
        search(library, "tea", scopes=[])
    with pytest.raises(ValidationError):
        search(library, "tea", scopes="adr")
    with pytest.raises(ValidationError):
        search(library, "tea", projects="shop")


@pytest.mark.parametrize("prefix", ["docs/%", "docs/_", "x' or '1'='1", "DOCS/", "\\"])
def test_a_prefix_is_taken_letter_by_letter(library: Index, prefix: str) -> None:
    for fusion in EVERY_FUSION:
        answer = search(library, "tea", fusion=fusion, path_prefix=prefix)
        assert answer.hits == ()
        assert answer.empty_reason == "nothing that matches lies under that path or after that time"


def test_a_prefix_that_no_path_can_have_is_refused(library: Index) -> None:
    with pytest.raises(BadRequest, match="NUL"):
        search(library, "tea", path_prefix="docs/\0")


def test_nothing_found_has_a_reason(library: Index) -> None:
    assert (
        search(library, "zebra", fusion="lexical").empty_reason
        == "no passage holds any of the words"
    )
    cut = search(library, "zebra", threshold=1.0)
    assert cut.hits == ()
    assert cut.cut_by_threshold == cut.candidates > 0
    assert cut.empty_reason is not None
    assert "confidence" in cut.empty_reason
    late = search(library, "tea", since="2030-01-01T00:00:00Z")
    assert late.hits == ()
    assert late.empty_reason is not None
    empty = search(library, "tea", projects=["laden"], scopes=["session"])
    assert empty.empty_reason == "nothing is indexed in what was searched"


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"path_prefix": "docs/"},
        {"since": "2020-01-01T00:00:00Z"},
        {"adr_status": ["accepted"]},
        {"lexical_ranking": "all_words"},
    ],
)
def test_where_the_question_has_no_word_no_filter_is_blamed(
    library: Index, more: dict[str, Any]
) -> None:
    answer = search(library, "🚀", fusion="lexical", **more)
    assert answer.empty_reason == "the question has no word to look for, and no vector answered"


def test_where_all_words_are_asked_for_the_reason_says_so(library: Index) -> None:
    asked = {"fusion": "lexical", "lexical_ranking": "all_words"}
    assert search(library, "kettle", **asked).hits
    answer = search(library, "kettle nonexistentword", **asked)
    assert answer.empty_reason == "no passage holds all of the words"


def test_where_vectors_were_asked_a_filter_may_be_the_reason(library: Index) -> None:
    answer = search(library, "🚀", path_prefix="nowhere/")
    assert answer.empty_reason == "nothing that matches lies under that path or after that time"


def test_sessions_are_cited_by_their_event(library: Index) -> None:
    answer = search(library, "brew", scopes=["session"], fusion="lexical")
    (hit,) = answer.hits
    assert hit.citation == "shop:session talk#talk-0"
    assert isinstance(hit.origin, SessionOrigin)
    assert (hit.origin.event_id, hit.origin.last_event_id) == ("talk-0", "talk-0")
    assert (hit.origin.title, hit.origin.speaker) == ("About tea", "human")
    assert hit.origin.source.endswith("talk.jsonl")
    assert hit.content == "how do we brew the tea"


def test_scores_ranks_and_freshness_are_told(library: Index) -> None:
    answer = search(library, "retry clone", projects=["shop"], top_k=50)
    best = answer.hits[0]
    assert place(best) == "shop:docs/guide.md"
    assert best.lexical_rank == 1
    assert best.vector_score is not None
    unmatched = [hit for hit in answer.hits if hit.lexical_rank is None]
    assert unmatched
    assert all(hit.lexical_score is None for hit in unmatched), "null, never zero"
    assert {f.scope for f in answer.freshness} == set(Scope)
    docs = next(f for f in answer.freshness if f.scope is Scope.DOCS)
    assert docs.chunks == docs.chunks_with_vector > 0
    assert docs.age_seconds is not None
    assert docs.age_seconds >= 0
    assert (answer.degraded, answer.vector_available) == (False, True)
    assert answer.model == "ollama/nomic-embed-text:latest"


# --- with something missing ----------------------------------------------------------------------


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


def test_a_slow_provider_does_not_hold_up_the_words_fus_5(
    index: Index, provider: FakeOllama
) -> None:
    provider.rule = lambda asked: Fault.slow(60)
    answer = search(index, "kettle", deadline_seconds=1.0)
    assert "shop:docs/more/kettle.md" in places(answer)
    assert answer.degraded
    assert "did not answer" in (answer.degraded_reason or "")
    # Generous: what matters is that it is not the provider's minute.
    assert answer.milliseconds["total"] < 20_000


def test_vectors_that_are_not_filled_in_yet_are_counted_fus_5(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    index = make_library(make_index, tmp_path, embed=False)
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
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    index = make_library(make_index, tmp_path)
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
    for fusion in EVERY_FUSION:
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
