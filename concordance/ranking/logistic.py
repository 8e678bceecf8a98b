"""Fitting a logistic model: few features, few cases, the same answer every time.

What belongs here: the fit. The model that it fits is `concordance.ranking.confidence.Logistic`.

Source: Hastie, Tibshirani, Friedman 2009, "The Elements of Statistical Learning", section 4.4.1
(Newton's method as iteratively reweighted least squares), with a ridge penalty on the weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from concordance.ranking.confidence import Logistic

RIDGE = 1.0
MOST_STEPS = 100
_CONVERGED = 1e-9
# A share that is neither 0 nor 1, so that Newton's matrix stays solvable.
_LEAST_CURVATURE = 1e-9


def fit(
    features: Sequence[Sequence[float]], labels: Sequence[bool], *, ridge: float = RIDGE
) -> Logistic:
    """The model that maximises the likelihood less `ridge`/2 times the squared weights.

    Features are brought to unit deviation for the penalty, and the weights back to the features'
    own units; the intercept is not penalised. A feature that never changes gets the weight 0.

    Args:
        features: Shape (n, k), finite.
        labels: Shape (n,), with at least one case of each kind.
        ridge: Above 0, so that cases that can be told apart without error give finite weights.

    Raises:
        ValueError: The shapes don't fit, or one kind of case is missing.
    """
    rows = np.asarray(features, dtype=np.float64)
    wanted = np.asarray(labels, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(wanted) or not 0 < wanted.sum() < len(wanted):  # noqa: PLR2004 - a table
        raise ValueError("a fit needs a row of features a label, and both kinds of label")
    middle, spread = rows.mean(axis=0), rows.std(axis=0)
    changing = spread > 0
    scaled = np.where(changing, (rows - middle) / np.where(changing, spread, 1.0), 0.0)
    found = _newton(np.column_stack([np.ones(len(rows)), scaled]), wanted, ridge)
    weights = np.where(changing, found[1:] / np.where(changing, spread, 1.0), 0.0)
    intercept = float(found[0] - weights @ middle)
    return Logistic(intercept, tuple(float(weight) for weight in weights))


def _newton(
    design: NDArray[np.float64], wanted: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Steps that are halved until the penalised likelihood no longer falls."""
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 0.0
    found = np.zeros(design.shape[1])
    loss = _loss(design, wanted, penalty, found)
    for _ in range(MOST_STEPS):
        probability = 1.0 / (1.0 + np.exp(-np.clip(design @ found, -60.0, 60.0)))
        curvature = np.maximum(probability * (1.0 - probability), _LEAST_CURVATURE)
        gradient = design.T @ (probability - wanted) + penalty * found
        matrix = (design.T * curvature) @ design + np.diag(penalty)
        step = np.linalg.solve(matrix, gradient)
        # Near the end the loss changes by rounding alone, which is no reason to go back.
        while _loss(design, wanted, penalty, found - step) > loss + _CONVERGED:
            step /= 2.0
        found = found - step
        loss = _loss(design, wanted, penalty, found)
        if np.abs(step).max() < _CONVERGED:
            break
    return found


def _loss(
    design: NDArray[np.float64],
    wanted: NDArray[np.float64],
    penalty: NDArray[np.float64],
    found: NDArray[np.float64],
) -> float:
    logit = design @ found
    unlikely = np.logaddexp(0.0, logit) - wanted * logit
    return float(unlikely.sum() + 0.5 * (penalty * found**2).sum())
