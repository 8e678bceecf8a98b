from __future__ import annotations

import numpy as np
import pytest

from concordance.ranking import bootstrap
from concordance.ranking.bootstrap import paired_interval


def test_the_difference_is_that_of_the_means() -> None:
    found = paired_interval([1.0, 0.5, 0.0], [0.5, 0.5, 0.5])
    assert found.difference == pytest.approx(0.0)
    assert found.low <= found.difference <= found.high


def test_the_same_figures_and_seed_give_the_same_interval() -> None:
    ours, theirs = np.random.default_rng(1).random((2, 50)).tolist()
    assert paired_interval(ours, theirs) == paired_interval(ours, theirs)
    assert paired_interval(ours, theirs) != paired_interval(ours, theirs, seed=1)


def test_a_difference_that_never_changes_has_no_width() -> None:
    found = paired_interval([0.6, 0.7], [0.5, 0.6])
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))
    assert found.better
    assert not found.worse


def test_rounding_is_no_difference() -> None:
    found = paired_interval([0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2])
    assert (found.low, found.high) == (0.0, 0.0)
    assert not found.better


def test_noise_is_neither_better_nor_worse() -> None:
    random = np.random.default_rng(3)
    ours = random.random(200)
    found = paired_interval(list(ours), list(random.permutation(ours)))
    assert not found.better
    assert not found.worse


def test_the_interval_is_that_of_the_normal_law_for_many_figures() -> None:
    figures = np.random.default_rng(5).normal(0.2, 1.0, 1_000)
    found = paired_interval(list(figures), [0.0] * 1_000)
    error = figures.std() / np.sqrt(1_000)
    assert found.low == pytest.approx(figures.mean() - 1.96 * error, abs=0.006)
    assert found.high == pytest.approx(figures.mean() + 1.96 * error, abs=0.006)


def test_drawing_a_few_at_a_time_keeps_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_AT_A_TIME", 7)
    found = paired_interval([1.0, 0.0, 1.0], [0.0, 0.0, 0.0], resamples=10)
    assert 0.0 <= found.low <= found.high <= 1.0


@pytest.mark.parametrize(("ours", "theirs"), [([], []), ([1.0], []), ([1.0], [0.5, 0.5])])
def test_figures_that_are_no_pairs_are_refused(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(ValueError, match="can't be paired"):
        paired_interval(ours, theirs)
