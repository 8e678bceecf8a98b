from __future__ import annotations

import pytest

from concordance.ranking.metrics import area_under_curve, brier, keeping_threshold


@pytest.mark.parametrize(
    ("positive", "negative", "area"),
    [
        ([0.9, 0.8], [0.1, 0.2], 1.0),
        ([0.1], [0.9], 0.0),
        ([0.5, 0.5], [0.5], 0.5),
        ([0.9, 0.3], [0.5, 0.3], (1 + 1 + 0 + 0.5) / 4),
    ],
)
def test_area_counts_pairs_in_the_right_order(
    positive: list[float], negative: list[float], area: float
) -> None:
    assert area_under_curve(positive, negative) == pytest.approx(area)


def test_there_is_no_area_without_both_kinds() -> None:
    assert area_under_curve([], [0.1]) is None
    assert area_under_curve([0.1], []) is None


def test_brier_is_the_squared_error() -> None:
    assert brier(0.8, happened=True) == pytest.approx(0.04)
    assert brier(0.8, happened=False) == pytest.approx(0.64)


@pytest.mark.parametrize(
    ("share", "threshold"), [(1.0, 0.1), (0.75, 0.2), (0.5, 0.3), (0.51, 0.2), (0.01, 0.4)]
)
def test_the_largest_threshold_that_keeps_a_share(share: float, threshold: float) -> None:
    scores = [0.3, 0.1, 0.4, 0.2]
    assert keeping_threshold(scores, share) == threshold
    assert sum(score >= threshold for score in scores) >= share * len(scores)


def test_a_share_that_rounding_pushes_up_is_still_itself() -> None:
    scores = [n / 100 for n in range(100)]
    assert keeping_threshold(scores, 0.95) == 0.05


@pytest.mark.parametrize(("scores", "share"), [([], 0.9), ([0.1], 0.0), ([0.1], 1.1)])
def test_no_threshold_can_be_found(scores: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="no threshold"):
        keeping_threshold(scores, share)
