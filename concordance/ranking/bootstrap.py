"""How sure a difference of two means is: the paired bootstrap.

What belongs here: resampling. The same figures and the same seed give the same interval.

Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", section 13.3 (percentile
interval), over differences question by question, as in Sakai 2006, "Evaluating Evaluation Metrics
based on the Bootstrap".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

RESAMPLES = 4_000
LEVEL = 0.95
SEED = 20_240
# Indices drawn at a time, which bounds the memory.
_AT_A_TIME = 2_000_000
# What is left of rounding errors must not look like a difference.
_DECIMALS = 12


class Interval(BaseModel):
    """A difference of means, and the interval that holds it with 95 %."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    difference: float
    low: float
    high: float

    @property
    def better(self) -> bool:
        """Whether the difference is above 0 beyond noise."""
        return self.low > 0

    @property
    def worse(self) -> bool:
        """Whether the difference is below 0 beyond noise."""
        return self.high < 0


def paired_interval(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = SEED,
) -> Interval:
    """The interval of mean(ours) - mean(theirs), resampled by question.

    Args:
        ours: One figure a question, shape (n,), n at least 1.
        theirs: The other figures of the same questions, in the same order.
        resamples: How many samples of n questions are drawn with replacement.
        level: The share of samples inside the interval.
        seed: Of the random numbers.

    Raises:
        ValueError: The two differ in length, or are empty.
    """
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    if len(ours) != len(theirs) or differences.size == 0:
        raise ValueError(f"{len(ours)} and {len(theirs)} figures can't be paired")
    random = np.random.default_rng(seed)
    rows = max(1, _AT_A_TIME // differences.size)
    means: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    left = resamples
    while left > 0:
        drawn = random.integers(0, differences.size, (min(rows, left), differences.size))
        means.append(differences[drawn].mean(axis=1))
        left -= rows
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return Interval(
        difference=round(float(differences.mean()), _DECIMALS),
        low=round(float(low), _DECIMALS),
        high=round(float(high), _DECIMALS),
    )
