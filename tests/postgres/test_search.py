"""Searching: filters, words, languages, and reasons for empty answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from concordance.errors import (
    BadRequest,
    SourceRefused,
    TextRefused,
    UnknownProject,
)
from concordance.index import Index
from concordance.models import Fusion, Scope, SearchRequest, SessionOrigin
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
