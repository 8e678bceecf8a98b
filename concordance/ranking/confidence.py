"""How likely it is that an answer is there at all: one number, 0 to 1, whatever the fusion.

What belongs here: features and the logistic model over them. Fused scores order an answer and are
relative to its best find; they say nothing of how good that find is.

A logistic model over three features of a passage: the share of the question's idf that it holds,
its cosine, and its lead: how far its words stand out from what the question finds anyway. The lead
is taken over the median document, since the next best passages are often of the same document, or
of another one that answers as well. Where one leg has nothing to say, the model of the other leg
alone is used. The candidates stand in a fixed order (the convex one, at its default weight), so
that the number doesn't depend on the fusion that the caller chose.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from concordance.models import Fusion
from concordance.ranking.fusion import CONVEX_WEIGHT, Candidate, Fused, OrderKey, fuse


@dataclass(frozen=True, slots=True)
class Logistic:
    """Intercept and weights, in the order of the features."""

    intercept: float
    weights: tuple[float, ...]

    def probability(self, features: Sequence[float]) -> float:
        """The model's probability for one passage."""
        logit = self.intercept
        for weight, value in zip(self.weights, features, strict=True):
            logit += weight * value
        # Beyond this the exponential would overflow, and the probability is 0 or 1 anyway.
        return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, logit))))


@dataclass(frozen=True, slots=True)
class Confidence:
    """One model for passages that both legs know, and one for each leg alone."""

    both: Logistic
    words: Logistic
    vector: Logistic


@dataclass(frozen=True, slots=True)
class Features:
    """What the model looks at; None where a leg has nothing to say of any passage."""

    share: float | None
    cosine: float | None
    lead: float


@dataclass(frozen=True, slots=True)
class Assessed:
    """Features of each candidate, by chunk id, in the fixed order: the best one first."""

    by_chunk: dict[int, Features] = field(default_factory=dict)


def in_fixed_order(
    candidates: Sequence[Candidate], *, words: bool, vectors: bool, share: float = CONVEX_WEIGHT
) -> list[Fused]:
    """The candidates as confidence looks at them, whatever the fusion of the answer.

    `words` and `vectors` say which legs were asked; `share` is the vector leg's by default.
    """
    weight = fixed_weight(words=words, vectors=vectors, share=share)
    return fuse(candidates, Fusion.CONVEX, weight=weight, rrf_k=1)


def fixed_weight(*, words: bool, vectors: bool, share: float = CONVEX_WEIGHT) -> float:
    """The vector leg's weight in the fixed order."""
    return share if words and vectors else float(vectors)


def assess(ordered: Sequence[Fused], *, words: bool, vectors: bool) -> Assessed:
    """The features of every candidate; they stand in the fixed order."""
    order = [f.candidate for f in ordered]
    worded = [c for c in order if c.share is not None] if words else []
    leads = _leads(worded, _words, max(map(_words, worded), default=0.0))
    if len(worded) < len(order):
        # What is judged by its vector alone leads by its vector.
        leads = _leads(order, _cosine, 1.0) | leads
    return Assessed(
        {
            c.chunk_id: Features(
                c.share if words else None,
                c.vector_score if vectors else None,
                leads[c.chunk_id],
            )
            for c in order
        }
    )


def _leads(
    order: Sequence[Candidate], leg: Callable[[Candidate], float], best: float
) -> dict[int, float]:
    """How far each candidate stands out on a leg, over the median document, by chunk id."""
    firsts: dict[tuple[str, ...], float] = {}
    for candidate in order:
        firsts.setdefault(_document(candidate.order_key), leg(candidate))
    values = sorted(firsts.values())
    others = {document: _median_without(values, own) for document, own in firsts.items()}
    return {c.chunk_id: (leg(c) - others[_document(c.order_key)]) / (best or 1.0) for c in order}


def _document(key: OrderKey) -> tuple[str, ...]:
    return key[:3]


def _words(c: Candidate) -> float:
    return c.lexical_score or 0.0


def _cosine(c: Candidate) -> float:
    return c.vector_score or 0.0


def _median_without(ordered: Sequence[float], own: float) -> float:
    """The median of sorted values, one of them left out; 0 where none is left."""
    left = len(ordered) - 1
    if left < 1:
        return 0.0
    gone = bisect_left(ordered, own)

    def at(place: int) -> float:
        return ordered[place if place < gone else place + 1]

    return (at((left - 1) // 2) + at(left // 2)) / 2


def confidence(model: Confidence, features: Features) -> float:
    """How likely it is that the question is answered by this passage."""
    share, cosine, lead = features.share, features.cosine, features.lead
    if share is not None and cosine is not None:
        return model.both.probability((share, cosine, lead))
    if share is not None:
        return model.words.probability((share, lead))
    if cosine is not None:
        return model.vector.probability((cosine, lead))
    return 0.0


# Round numbers, near what fits on public sets give. `concordance evaluate` measures what they are
# worth on a set (the AUC of "is the answer there"), `concordance calibrate` fits a project's own.
DEFAULT = Confidence(
    both=Logistic(-6.0, (4.0, 4.0, 3.0)),
    words=Logistic(-4.0, (5.0, 2.0)),
    vector=Logistic(-6.0, (10.0, 4.0)),
)

# The least confidence that a hit must have where neither the caller nor a calibration says. Of 100
# right passages 94 to 99 have it, measured on five public sets: one that is not shown costs more
# than a wrong one that is shown with its low confidence.
DEFAULT_THRESHOLD = 0.1
