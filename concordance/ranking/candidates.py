"""What the legs of a search find, and how two finds become one candidate each.

What belongs here: values and their union. Where they come from is the adapters' work; how they are
ordered, `concordance.ranking.fusion`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from concordance.ranking.fusion import Candidate, OrderKey


@dataclass(frozen=True, slots=True)
class Scored:
    """A passage and what one leg makes of it."""

    chunk_id: int
    score: float


class Known(NamedTuple):
    """What the index holds of a passage: what both legs say of it, and its place.

    A tuple, as every search makes hundreds.

    `share` is the share of the question's idf that it holds, 0 to 1, None where its words are not
    known: not asked for, or not written yet. Slug, kind, name and ordinal put it into a total order
    that doesn't depend on row numbers.
    """

    chunk_id: int
    slug: str
    kind: str
    name: str
    ordinal: int
    lexical_score: float | None
    share: float | None
    vector_score: float | None


def join_legs(
    lexical: Sequence[Scored], vectors: Sequence[Scored], known: Sequence[Known]
) -> list[Candidate]:
    """The union of both pools, each candidate with its score on both legs; by chunk id."""
    pools = {s.chunk_id for s in (*lexical, *vectors)}
    by_id = {k.chunk_id: k for k in known if k.chunk_id in pools}
    order = {i: (k.slug, k.kind, k.name, k.ordinal) for i, k in by_id.items()}
    lexical_ranks, vector_ranks = _ranks(lexical, order), _ranks(vectors, order)
    return [
        Candidate(
            i,
            order[i],
            k.lexical_score,
            lexical_ranks.get(i),
            k.vector_score,
            vector_ranks.get(i),
            k.share,
        )
        for i, k in sorted(by_id.items())
    ]


def _ranks(leg: Sequence[Scored], order: Mapping[int, OrderKey]) -> dict[int, int]:
    """Ranks within a pool, from 1; equal scores go by place."""
    kept = [s for s in leg if s.chunk_id in order]
    ordered = sorted(kept, key=lambda s: (-s.score, order[s.chunk_id]))
    return {s.chunk_id: rank for rank, s in enumerate(ordered, start=1)}
