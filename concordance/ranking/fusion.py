"""Two rankings into one order: pure arithmetic on what both legs say of each candidate.

A candidate carries its true score on both legs, also where only one leg found it; a score is None
where that leg has nothing to say (no vector, no common word), which counts as the leg's least.

Sources: Bruch, Gai, Ingber 2022, "An analysis of fusion functions for hybrid retrieval",
section 4 (convex combination, theoretical minimum); Cormack, Clarke, Buettcher 2009,
"Reciprocal rank fusion outperforms Condorcet and individual rank learning methods".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concordance.models import Fusion

CONVEX_WEIGHT = 0.75
WEIGHTED_WEIGHT = 0.6
RRF_WEIGHT = 0.5

OrderKey = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage with what each leg says of it; ranks count from 1, within the leg's pool."""

    chunk_id: int
    order_key: OrderKey
    lexical_score: float | None = None
    lexical_rank: int | None = None
    vector_score: float | None = None
    vector_rank: int | None = None
    share: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate with its place in the fused order."""

    candidate: Candidate
    score: float


def default_weight(fusion: Fusion, most: float = 1.0) -> float:
    """The vector leg's share where the caller names none; in a blend no more than `most`.

    `most` is what `concordance.ranking.language_fit` makes of the languages that are searched.
    """
    match fusion:
        case Fusion.CONVEX:
            return min(CONVEX_WEIGHT, most)
        case Fusion.WEIGHTED:
            return min(WEIGHTED_WEIGHT, most)
        case Fusion.RRF:
            return min(RRF_WEIGHT, most)
        case Fusion.LEXICAL:
            return 0.0
        case Fusion.VECTOR:
            return 1.0


def fuse(
    candidates: Sequence[Candidate], fusion: Fusion, *, weight: float, rrf_k: int
) -> list[Fused]:
    """All candidates that the fusion can place, best first, in one total order.

    Equal scores are ordered by project, kind, name and ordinal, so that neither the order of the
    input nor the numbers of rows matter.
    """
    match fusion:
        case Fusion.CONVEX:
            scored = _convex(candidates, weight)
        case Fusion.RRF:
            scored = _rrf(candidates, weight, rrf_k)
        case Fusion.WEIGHTED:
            scored = [Fused(c, _weighted(c, weight)) for c in candidates]
        case Fusion.LEXICAL:
            scored = [Fused(c, c.lexical_score) for c in candidates if c.lexical_score is not None]
        case Fusion.VECTOR:
            scored = [Fused(c, c.vector_score) for c in candidates if c.vector_score is not None]
    return sorted(scored, key=lambda f: (-f.score, f.candidate.order_key))


def _convex(candidates: Sequence[Candidate], weight: float) -> list[Fused]:
    """Each score over the best of its leg, from the least that the leg can give.

    The least is 0 for words and -1 for the cosine; no score of another candidate but the best
    enters, so the depth of the pool changes nothing.
    """
    best_cosine = max((c.vector_score for c in candidates if c.vector_score is not None), default=0)
    best_words = max(
        (c.lexical_score for c in candidates if c.lexical_score is not None), default=0
    )

    def score(c: Candidate) -> float:
        cosine = 0.0 if c.vector_score is None else (c.vector_score + 1) / (best_cosine + 1 or 1.0)
        words = 0.0 if c.lexical_score is None else c.lexical_score / (best_words or 1.0)
        return weight * cosine + (1 - weight) * words

    return [Fused(c, score(c)) for c in candidates]


def _rrf(candidates: Sequence[Candidate], weight: float, k: int) -> list[Fused]:
    def share(rank: int | None) -> float:
        return 0.0 if rank is None else 1.0 / (k + rank)

    return [
        Fused(c, weight * share(c.vector_rank) + (1 - weight) * share(c.lexical_rank))
        for c in candidates
    ]


def _weighted(c: Candidate, weight: float) -> float:
    """Absolute scores: the cosine, and the words' score bent into 0 to 1, so as not to drown it.

    A negative cosine says no more than 0 does: that the two have nothing in common.
    """
    cosine = 0.0 if c.vector_score is None else max(0.0, c.vector_score)
    words = 0.0 if c.lexical_score is None else c.lexical_score / (1.0 + c.lexical_score)
    return weight * cosine + (1 - weight) * words
