"""How relevant a find is by itself, on one scale for every fusion.

What belongs here: the measure that `threshold` cuts on. Fused scores order an answer; they say
nothing of how good its first hit is, since each is relative to the best find of its own answer.
"""

from __future__ import annotations


def relevance(vector_score: float | None, matched_terms: int, terms: int) -> float:
    """The larger of the cosine and the share of the question's words that the passage holds.

    Both are absolute and lie in 0 to 1 (a negative cosine counts as 0), so a threshold means the
    same in every fusion, and in an answer from one leg alone.
    """
    share = matched_terms / terms if terms else 0.0
    cosine = 0.0 if vector_score is None else vector_score
    return min(1.0, max(0.0, cosine, share))
