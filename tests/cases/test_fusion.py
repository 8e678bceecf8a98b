"""Scores and thresholds of the fused answer."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from concordance.index import Index
from concordance.models import Fusion
from concordance.settings import Project
from tests.postgres.driver import reindex
from tests.postgres.library import places, search, shared_index
from tests.sources import GitSource

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


def test_one_result_and_equal_results_have_finite_scores_fus_3(index: Index) -> None:
    for fusion in Fusion:
        answer = search(index, "clone", fusion=fusion, path_prefix="docs/perfect.md")
        assert [math.isfinite(hit.score) for hit in answer.hits] == [True]


def test_unknown_filters_are_refused_fus_6(index: Index) -> None:
    for key in ("project' = 'x' OR 1=1 --", "sort", "fts_config"):
        with pytest.raises(ValidationError):
            search(index, "clone", **{key: "id; DROP TABLE chunks"})


def test_ten_thousand_projects_can_be_asked_for_only_if_they_are_known_fus_6(index: Index) -> None:
    answer = search(index, "clone", projects=["p"] * 10_000)
    assert answer.hits
