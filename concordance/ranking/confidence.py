"""How likely it is that an answer is there at all: one number, 0 to 1, whatever the fusion.

What belongs here: features and the logistic model over them. Fused scores order an answer and are
relative to its best find; they say nothing of how good that find is.

A logistic model over three features of a passage: the share of the question's idf that it holds,
its cosine, and its lead over the next four in a fixed order (the convex one, at its default
weight), so that the number doesn't depend on the fusion that the caller chose. Where one leg has
nothing to say, the model of the other leg alone is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from concordance.models import Fusion
from concordance.ranking.fusion import CONVEX_WEIGHT, Candidate, fuse

NEXT = 4


@dataclass(frozen=True, slots=True)
class Logistic:
    """Intercept and weights, in the order of the features."""

    intercept: float
    weights: tuple[float, ...]

    def probability(self, features: Sequence[float]) -> float:
        """The model's probability for one passage."""
        logit = self.intercept + sum(
            weight * value for weight, value in zip(self.weights, features, strict=True)
        )
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


def assess(candidates: Sequence[Candidate], *, words: bool, vectors: bool) -> Assessed:
    """The features of every candidate; `words` and `vectors` say which legs were asked."""
    order = fuse(candidates, Fusion.CONVEX, weight=_weight(words, vectors), rrf_k=1)
    found: dict[int, Features] = {}
    for place, fused in enumerate(order):
        following = [f.score for f in order[place + 1 : place + 1 + NEXT]]
        mean = sum(following) / len(following) if following else 0.0
        candidate = fused.candidate
        found[candidate.chunk_id] = Features(
            share=candidate.share if words else None,
            cosine=candidate.vector_score if vectors else None,
            lead=fused.score - mean,
        )
    return Assessed(found)


def confidence(model: Confidence, features: Features) -> float:
    """How likely it is that the question is answered by this passage."""
    match features:
        case Features(share=None, cosine=None):
            return 0.0
        case Features(share=float(share), cosine=None, lead=lead):
            return model.words.probability((share, lead))
        case Features(share=None, cosine=float(cosine), lead=lead):
            return model.vector.probability((cosine, lead))
        case Features(share=share, cosine=cosine, lead=lead):
            return model.both.probability((share or 0.0, cosine or 0.0, lead))


def _weight(words: bool, vectors: bool) -> float:
    if words and vectors:
        return CONVEX_WEIGHT
    return 1.0 if vectors else 0.0


# Starting points, not fitted: round numbers. `concordance evaluate` measures what they are worth on
# a set (the AUC of "is the answer there"), `concordance calibrate` fits a project's own.
DEFAULT = Confidence(
    both=Logistic(-3.0, (2.0, 4.0, 4.0)),
    words=Logistic(-2.0, (3.0, 2.0)),
    vector=Logistic(-3.0, (5.0, 4.0)),
)

# The least confidence that a hit must have where neither the caller nor a calibration says.
DEFAULT_THRESHOLD = 0.2
