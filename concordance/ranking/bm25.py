"""BM25 as this index computes it: the arithmetic, and the numbers it is done with.

What belongs here: idf, bounds and lengths. Weights of passages are computed in the database by the
same formula (`bm25_weight` in `sql/migrations/0002_bm25.sql`), where they are stored.

Source: Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond",
section 3.4; the idf is the non-negative one of Lucene, ln(1 + (N - df + 0.5) / (df + 0.5)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

K1 = 1.2
B = 0.75
# Passages without a word that stand behind those of a small project.
ELSEWHERE = 100
# One step of the grid that average lengths are rounded to: a quarter more or less.
_GRID_STEPS_PER_DOUBLING = 3


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a question with what the searched projects know of it.

    `passages_with` counts the passages of one language, `document_frequency` those of all that are
    searched (see `concordance.ranking.collection`); `largest` is the largest weight that the word
    has in any passage of the one language, or more.
    """

    lexeme: str
    dimension: int
    count: int
    passages_with: int
    document_frequency: int
    largest: float


@dataclass(frozen=True, slots=True)
class Weighted:
    """A word with its share in a passage's score: at most `bound`, and `idf` per unit of weight."""

    lexeme: str
    dimension: int
    idf: float
    bound: float
    passages_with: int


def idf(passages: int, passages_with: int) -> float:
    """How much a word tells: ln(1 + (N - df + 0.5) / (df + 0.5)), never negative."""
    return math.log1p((passages - passages_with + 0.5) / (passages_with + 0.5))


def weigh(terms: Sequence[Term], passages: int) -> list[Weighted]:
    """The words that some passage holds, strongest first; a word asked for twice counts twice.

    `passages` are those of all languages that are searched.
    """
    found = [
        Weighted(t.lexeme, t.dimension, value, value * t.largest, t.passages_with)
        for t in terms
        if t.passages_with > 0
        for value in [t.count * idf(passages, min(t.document_frequency, passages))]
    ]
    return sorted(found, key=lambda w: (-w.bound, w.lexeme))


def idf_shares(terms: Sequence[Term], passages: int) -> dict[str, float]:
    """The share of a question's idf that each of its words makes, 0 to 1; together 1.

    Words that no passage holds count in full: a question about something that is not there should
    not look answered. A few passages say little of how rare a word is: they count as if there were
    `ELSEWHERE` more without it, else the subject of a small project would count for nothing there.
    """
    values = {
        t.lexeme: t.count * idf(passages + ELSEWHERE, min(t.document_frequency, passages))
        for t in terms
    }
    whole = math.fsum(values.values())
    return {lexeme: value / whole if whole else 0.0 for lexeme, value in values.items()}


def grid_length(average: float) -> float:
    """An average length rounded to a grid, so that small changes of a project move no weight.

    The same passages give the same value, whatever the order in which they were written.
    """
    if average <= 0:
        return 1.0
    steps = round(math.log2(average) * _GRID_STEPS_PER_DOUBLING)
    return float(2.0 ** (steps / _GRID_STEPS_PER_DOUBLING))


def query_vector(weighted: Sequence[Weighted]) -> str:
    """The question as pgvector's `sparsevec` reads it; two words of one dimension are summed."""
    values: dict[int, float] = {}
    for word in weighted:
        values[word.dimension] = values.get(word.dimension, 0.0) + word.idf
    pairs = ",".join(f"{dimension}:{values[dimension]!r}" for dimension in sorted(values))
    return f"{{{pairs}}}/{DIMENSIONS}"


DIMENSIONS = 1_000_000_000
