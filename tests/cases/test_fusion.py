"""Scores and thresholds of the fused answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import ValidationError

from concordance.adapters.postgres import embeddings
from concordance.adapters.postgres import search as legs
from concordance.errors import BadRequest, DatabaseError, ProviderError, UnknownProject
from concordance.index import Index
from concordance.models import FileOrigin, Fusion, Hit, SessionOrigin
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.fake_ollama_faults import Fault
from tests.postgres.driver import reindex
from tests.postgres.library import places, search, shared_index
from tests.sources import GitSource, event, write_log

PAGES: dict[str, str | bytes] = {
    "docs/perfect.md": "# Backoff\n\nretry the clone with backoff\n",
    "docs/useless.md": "# Garden\n\nroses and tulips in spring\n",
    "docs/repeated.md": "# Again\n\n" + "clone " * 200 + "\n",
    "docs/identifier.md": "# Numbers\n\nErrorCode4711 among quite different things entirely\n",
}


@pytest.fixture(scope="module")
def index(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Four pages, for tests that only ask."""
    folder = tmp_path_factory.mktemp("fusion")
    source = GitSource.make(folder / "source", PAGES)
    with shared_index(server_url, "fusion", folder / "home") as make:
        index = make(Project(slug="p", path=source.path))
        reindex(index)
        yield index


@pytest.mark.parametrize("fusion", list(Fusion))
@pytest.mark.parametrize("threshold", [0.0, 0.02, 0.3])
def test_a_threshold_means_the_same_in_every_fusion_fus_2(
    index: Index, fusion: Fusion, threshold: float
) -> None:
    answer = search(index, "retry the clone with backoff", fusion=fusion, threshold=threshold)
    assert places(answer)[0] == "p:docs/perfect.md"
    assert all(hit.confidence >= threshold for hit in answer.hits)
    if threshold == 0.3:
        assert "p:docs/useless.md" not in places(answer)
    assert answer.candidates - answer.cut_by_threshold == len(answer.hits)


@pytest.mark.parametrize("fusion", list(Fusion))
@pytest.mark.parametrize("threshold", [0.9, 1.0])
def test_a_high_threshold_cuts_and_says_how_many_fus_2(
    index: Index, fusion: Fusion, threshold: float
) -> None:
    answer = search(index, "retry the clone with backoff", fusion=fusion, threshold=threshold)
    assert all(hit.confidence >= threshold for hit in answer.hits)
    assert answer.candidates - answer.cut_by_threshold == len(answer.hits)
    assert answer.hits or answer.empty_reason


@pytest.mark.parametrize("bad", [-1, 1.5, math.nan, math.inf])
def test_thresholds_and_weights_out_of_range_are_refused_fus_2_fus_3(
    index: Index, bad: float
) -> None:
    for name in ("threshold", "vector_weight"):
        with pytest.raises(ValidationError):
            search(index, "clone", **{name: bad})


@pytest.mark.parametrize("fusion", [Fusion.CONVEX, Fusion.RRF, Fusion.WEIGHTED])
def test_repetition_alone_does_not_win_and_one_leg_is_not_lost_fus_3(
    index: Index, fusion: Fusion
) -> None:
    answer = search(index, "retry the clone with backoff ErrorCode4711", fusion=fusion)
    order = places(answer)
    assert order[0] == "p:docs/perfect.md"
    assert "p:docs/identifier.md" in order
    assert all(math.isfinite(hit.score) for hit in answer.hits)


@pytest.mark.parametrize("fusion", [Fusion.CONVEX, Fusion.WEIGHTED])
def test_a_weight_of_one_leg_alone_gives_that_legs_order_fus_3(
    index: Index, fusion: Fusion
) -> None:
    question = "retry the clone"
    vectors = places(search(index, question, fusion="vector"))
    # Cosines below zero count as zero in the weighted sum, so its tail is a tie.
    near = [
        place
        for place, hit in zip(vectors, search(index, question, fusion="vector").hits, strict=True)
        if hit.vector_score is not None and hit.vector_score > 0
    ]
    assert places(search(index, question, fusion=fusion, vector_weight=1.0))[: len(near)] == near
    words = places(search(index, question, fusion="lexical"))
    assert places(search(index, question, fusion=fusion, vector_weight=0.0))[: len(words)] == words


def test_one_result_has_a_finite_score_fus_3(index: Index) -> None:
    for fusion in Fusion:
        answer = search(index, "clone", fusion=fusion, path_prefix="docs/perfect.md")
        assert [math.isfinite(hit.score) for hit in answer.hits] == [True]


def test_equal_results_have_equal_finite_scores_and_one_order_fus_3(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    same: dict[str, str | bytes] = {
        f"docs/{name}.md": "# Clone\n\nretry the clone\n" for name in "dbc"
    }
    index = make_index(Project(slug="p", path=GitSource.make(tmp_path / "source", same).path))
    reindex(index)
    for fusion in Fusion:
        answer = search(index, "retry the clone", fusion=fusion)
        scores = [(hit.lexical_score, hit.vector_score, hit.confidence) for hit in answer.hits]
        assert len(scores) == 3
        assert len(set(scores)) == 1, fusion
        assert all(math.isfinite(hit.score) for hit in answer.hits)
        assert places(answer) == [f"p:docs/{name}.md" for name in "bcd"]


def test_unknown_filters_are_refused_fus_6(index: Index) -> None:
    for key in ("project' = 'x' OR 1=1 --", "sort", "fts_config"):
        with pytest.raises(ValidationError):
            search(index, "clone", **{key: "id; DROP TABLE chunks"})


def test_ten_thousand_projects_can_be_asked_for_only_if_they_are_known_fus_6(index: Index) -> None:
    answer = search(index, "clone", projects=["p"] * 10_000)
    assert answer.hits
    with pytest.raises(UnknownProject, match="nobody9999"):
        search(index, "clone", projects=["p", *(f"nobody{n}" for n in range(9_999, 0, -1))])


@pytest.mark.parametrize("fusion", list(Fusion))
def test_odd_values_of_filters_match_nothing_or_are_refused_fus_6(
    index: Index, fusion: Fusion
) -> None:
    for slug in ("o'neil", "x' OR 'a'='a", "p'; drop table chunks; --"):
        with pytest.raises(UnknownProject):
            search(index, "clone", fusion=fusion, projects=[slug])
    for prefix in ("x' OR 'a'='a", "docs/%", "%"):
        assert search(index, "clone", fusion=fusion, path_prefix=prefix).hits == ()
    for empty in ("projects", "scopes"):
        with pytest.raises(BadRequest, match="empty list"):
            search(index, "clone", fusion=fusion, **{empty: []})
    for name in ("projects", "scopes"):
        with pytest.raises(ValidationError):
            search(index, "clone", fusion=fusion, **{name: "adr"})


# --- legs that fail ------------------------------------------------------------------------------

FUSED = [Fusion.CONVEX, Fusion.RRF, Fusion.WEIGHTED]


def break_leg(url: str, table: str) -> None:
    """Make a leg's own table unreadable to everybody, as a lost right would."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = psycopg.sql.Identifier("concordance", table)
        away = psycopg.sql.Identifier(f"{table}_away")
        connection.execute(psycopg.sql.SQL("alter table {} rename to {}").format(name, away))


@pytest.fixture
def own(make_index: IndexMaker, tmp_path: Path) -> Index:
    """The same pages, for a test that breaks something."""
    source = GitSource.make(tmp_path / "source", PAGES)
    index = make_index(Project(slug="p", path=source.path))
    reindex(index)
    return index


@pytest.mark.timeout(60, func_only=True)
@pytest.mark.parametrize("fault", ["stopped", "slow", "broken"])
@pytest.mark.parametrize("fusion", FUSED)
def test_one_living_leg_answers_and_the_answer_says_what_is_missing_fus_5(
    own: Index, provider: FakeOllama, database_url: str, fusion: Fusion, fault: str
) -> None:
    if fault == "stopped":
        provider.stop()
    elif fault == "slow":
        provider.rule = lambda asked: Fault.hanging()
    else:
        break_leg(database_url, "lexical")
    answer = search(own, "how do we retry a clone on flaky wifi", fusion=fusion, deadline_seconds=2)
    assert answer.hits
    assert answer.degraded
    assert answer.degraded_reason
    assert answer.vector_available == (fault == "broken")
    (docs,) = [f for f in answer.freshness if f.chunks]
    assert docs.chunks_with_vector == docs.chunks > 0, "the share of passages with a vector"
    if fault == "broken":
        assert all(hit.lexical_score is None for hit in answer.hits)
        with pytest.raises(DatabaseError, match="lexical"):
            search(own, "clone", fusion="lexical")
    else:
        assert all(hit.vector_score is None for hit in answer.hits)
        with pytest.raises(ProviderError):
            search(own, "clone", fusion="vector", deadline_seconds=1)
        assert search(own, "clone", fusion="lexical").hits


@pytest.mark.parametrize("fusion", FUSED)
def test_two_dead_legs_are_an_error_fus_5(
    own: Index, provider: FakeOllama, database_url: str, fusion: Fusion
) -> None:
    provider.stop()
    break_leg(database_url, "lexical")
    with pytest.raises(DatabaseError, match="lexical leg failed"):
        search(own, "clone", fusion=fusion)


def test_a_scope_whose_vectors_are_not_there_yet_says_so_fus_5(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    source = GitSource.make(tmp_path / "source", PAGES)
    index = make_index(Project(slug="p", path=source.path))
    reindex(index, embed=False)
    answer = search(index, "retry the clone")
    assert (answer.degraded, answer.vector_available) == (True, False)
    assert "vector" in (answer.degraded_reason or "")
    assert answer.hits
    reindex(index)
    source.commit({"docs/new.md": "# New\n\nclone once more\n"})
    reindex(index, embed=False)
    partly = search(index, "retry the clone")
    assert partly.degraded
    assert "4 of 5 passages have a vector" in (partly.degraded_reason or "")


# --- filters -------------------------------------------------------------------------------------

TWINS = {
    "docs/guide.md": "# Guide\n\nretry the clone with backoff, in the {0} project\n",
    "docs/adr/0001-clone.md": "# 1. Clone\n\nretry the clone as decided in {0}\n",
}


@pytest.fixture(scope="module")
def twins(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Two projects of nearly the same text, each with a session of nearly the same words."""
    folder = tmp_path_factory.mktemp("twins")
    projects = []
    for slug in ("a", "b"):
        pages: dict[str, str | bytes] = {n: t.format(slug) for n, t in TWINS.items()}
        turns = [event(f"s{slug}", n, f"retry the clone, said {slug}, turn {n}") for n in range(4)]
        write_log(folder / f"logs-{slug}" / "log.jsonl", turns)
        projects.append(
            Project(
                slug=slug,
                path=GitSource.make(folder / slug, pages).path,
                sessions=(SessionSource(path=folder / f"logs-{slug}"),),
            )
        )
    with shared_index(server_url, "twins", folder / "home") as make:
        index = make(*projects)
        for project in projects:
            reindex(index, project.slug)
        yield index


FILTERS: list[dict[str, Any]] = [
    {"projects": ["a"]},
    {"projects": ["a"], "scopes": ["adr"]},
    {"projects": ["a"], "scopes": ["session"]},
    {"projects": ["a"], "path_prefix": "docs/adr/"},
    {"projects": ["a"], "since": "2026-03-01T10:02:00Z"},
    {"scopes": ["docs"]},
]


def outside(hits: Sequence[Hit], wanted: dict[str, Any]) -> list[str]:
    """Citations of hits that a filter should have kept out."""
    wrong = []
    for hit in hits:
        at = hit.origin
        fits = hit.project in wanted.get("projects", ["a", "b"])
        fits &= hit.scope.value in wanted.get("scopes", [hit.scope.value])
        if "path_prefix" in wanted:
            fits &= isinstance(at, FileOrigin) and at.path.startswith(wanted["path_prefix"])
        if "since" in wanted:
            since = datetime.fromisoformat(wanted["since"])
            fits &= isinstance(at, SessionOrigin) and (at.occurred_at or since) >= since
        if not fits:
            wrong.append(hit.citation)
    return wrong


@pytest.mark.parametrize("top_k", [1, 3, 50])
@pytest.mark.parametrize("fusion", list(Fusion))
def test_every_hit_of_every_fusion_satisfies_every_filter_fus_7(
    twins: Index, fusion: Fusion, top_k: int
) -> None:
    every = search(twins, "retry the clone", fusion=fusion, top_k=50)
    assert {hit.project for hit in every.hits} == {"a", "b"}
    for wanted in FILTERS:
        answer = search(twins, "retry the clone", fusion=fusion, top_k=top_k, **wanted)
        assert answer.hits, wanted
        assert outside(answer.hits, wanted) == []


@pytest.mark.parametrize("fault", ["no provider", "no words", "approximate"])
def test_filters_hold_when_a_leg_is_missing_or_approximate_fus_7(  # noqa: PLR0917 - fixtures
    make_index: IndexMaker,
    twins: Index,
    provider: FakeOllama,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
) -> None:
    index = make_index(*twins.configuration.projects)
    if fault == "approximate":
        monkeypatch.setattr(legs, "EXACT_UP_TO", 1)
        monkeypatch.setattr(embeddings, "INDEX_FROM", 1)
    for project in index.configuration.projects:
        reindex(index, project.slug)
    if fault == "no provider":
        provider.stop()
    elif fault == "no words":
        break_leg(database_url, "lexical")
    for fusion in FUSED:
        for wanted in FILTERS:
            answer = search(index, "retry the clone", fusion=fusion, top_k=2, **wanted)
            assert answer.degraded == (fault != "approximate")
            assert answer.hits, (fusion, wanted)
            assert outside(answer.hits, wanted) == []
