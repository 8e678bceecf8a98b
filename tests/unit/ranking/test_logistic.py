from __future__ import annotations

import numpy as np
import pytest

from concordance.ranking.logistic import fit


def test_a_model_is_found_again_from_what_it_made() -> None:
    random = np.random.default_rng(11)
    rows = random.random((20_000, 2))
    chance = 1 / (1 + np.exp(-(-1.0 + 3.0 * rows[:, 0] - 2.0 * rows[:, 1])))
    found = fit(rows.tolist(), list(random.random(20_000) < chance))
    assert found.intercept == pytest.approx(-1.0, abs=0.1)
    assert found.weights == pytest.approx((3.0, -2.0), abs=0.15)


def test_without_features_that_tell_anything_the_share_is_the_probability() -> None:
    found = fit([[1.0], [1.0], [1.0], [1.0]], [True, False, False, False])
    assert found.weights == (0.0,)
    assert found.probability([1.0]) == pytest.approx(0.25)


def test_the_gradient_is_nothing_at_the_end() -> None:
    rows = np.array([[0.0, 2.0], [1.0, 0.0], [2.0, 5.0], [3.0, 1.0], [1.5, 1.0]])
    labels = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    found = fit(rows.tolist(), list(labels > 0), ridge=0.5)
    spread = rows.std(axis=0)
    errors = np.array([found.probability(list(row)) for row in rows]) - labels
    assert errors.sum() == pytest.approx(0.0, abs=1e-7)
    scaled = (rows - rows.mean(axis=0)) / spread
    penalty = 0.5 * np.array(found.weights) * spread
    assert scaled.T @ errors + penalty == pytest.approx(np.zeros(2), abs=1e-7)


def test_cases_that_can_be_told_apart_without_error_give_finite_weights() -> None:
    found = fit([[0.0], [0.1], [0.9], [1.0]], [False, False, True, True])
    assert np.isfinite(found.weights).all()
    assert found.probability([0.95]) > 0.5 > found.probability([0.05])


def test_units_change_nothing_but_the_weights() -> None:
    rows = [[0.1], [0.4], [0.5], [0.9], [0.3]]
    labels = [False, True, False, True, False]
    small = fit(rows, labels)
    large = fit([[1_000 * value for value in row] for row in rows], labels)
    assert large.probability([400.0]) == pytest.approx(small.probability([0.4]))


def test_the_order_of_cases_changes_nothing() -> None:
    rows, labels = [[0.1], [0.4], [0.5], [0.9]], [False, True, False, True]
    there, back = fit(rows, labels), fit(rows[::-1], labels[::-1])
    assert there.weights == pytest.approx(back.weights)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [([[1.0]], [True]), ([[1.0], [2.0]], [False, False]), ([[1.0], [2.0]], [True]), ([], [])],
)
def test_what_can_t_be_fitted_is_refused(rows: list[list[float]], labels: list[bool]) -> None:
    with pytest.raises(ValueError, match="a fit needs"):
        fit(rows, labels)
