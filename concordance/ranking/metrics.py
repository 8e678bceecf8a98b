"""How well a number tells two kinds of cases apart.

What belongs here: arithmetic on scores and labels. Measures of rankings are computed by
`concordance.adapters.measures`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from concordance.indexing.counting import counted


def area_under_curve(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """How often a positive case scores above a negative one, ties counted half; None without any.

    This is the area under the ROC curve. Source: Hanley and McNeil 1982, "The meaning and use of
    the area under a receiver operating characteristic (ROC) curve".
    """
    if not positive or not negative:
        return None
    below = np.sort(np.asarray(negative, dtype=np.float64))
    scores = np.asarray(positive, dtype=np.float64)
    lower = np.searchsorted(below, scores, side="left")
    upper = np.searchsorted(below, scores, side="right")
    return float((lower + upper).sum() / (2 * len(scores) * len(below)))


def brier(probability: float, *, happened: bool) -> float:
    """The squared error of a probability, 0 to 1. Source: Brier 1950."""
    return (probability - float(happened)) ** 2


def keeping_threshold(scores: Sequence[float], share: float) -> float:
    """The largest threshold that at least a share of these scores reach.

    Args:
        scores: At least one score; a score is kept where it is at or above the threshold.
        share: Between 0 (exclusive) and 1.

    Raises:
        ValueError: There is no score, or the share is out of range.
    """
    if not scores or not 0 < share <= 1:
        raise ValueError(f"no threshold keeps {share:g} of {counted(len(scores), 'score')}")
    ranked = sorted(scores, reverse=True)
    needed = int(np.ceil(share * len(ranked) - 1e-9))
    return ranked[needed - 1]
