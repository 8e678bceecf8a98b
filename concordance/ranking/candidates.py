"""What the legs of a search find, and how two finds become one candidate each.

What belongs here: values and their union. Where they come from is the adapters' work; how they are
ordered, `concordance.ranking.fusion`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from concordance.ranking.fusion import Candidate


@dataclass(frozen=True, slots=True)
class Scored:
    """A passage and what one leg makes of it."""

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class Worded:
    """A passage, its lexical score, and the share of the question's idf that it holds, 0 to 1."""

    chunk_id: int
    score: float | None
    share: float


@dataclass(frozen=True, slots=True)
class Place:
    """What puts a passage into a total order that doesn't depend on row numbers."""

    chunk_id: int
    slug: str
    kind: str
    name: str
    ordinal: int


def join_legs(
    lexical: Sequence[Scored],
    vectors: Sequence[Scored],
    worded: Sequence[Worded],
    cosines: Sequence[Scored],
    places: Mapping[int, Place],
) -> list[Candidate]:
    """The union of both pools, each candidate with its score on both legs."""
    found: dict[int, Candidate] = {}
    for chunk_id in sorted({s.chunk_id for s in (*lexical, *vectors)}):
        place = places.get(chunk_id)
        if place is not None:
            key = (place.slug, place.kind, place.name, place.ordinal)
            found[chunk_id] = Candidate(chunk_id, key)
    for word in worded:
        if word.chunk_id in found:
            found[word.chunk_id] = replace(
                found[word.chunk_id], lexical_score=word.score, share=word.share
            )
    for cosine in cosines:
        if cosine.chunk_id in found:
            found[cosine.chunk_id] = replace(found[cosine.chunk_id], vector_score=cosine.score)
    for rank, chunk_id in enumerate(_by_score(lexical, found), start=1):
        found[chunk_id] = replace(found[chunk_id], lexical_rank=rank)
    for rank, chunk_id in enumerate(_by_score(vectors, found), start=1):
        found[chunk_id] = replace(found[chunk_id], vector_rank=rank)
    return list(found.values())


def _by_score(leg: Sequence[Scored], found: dict[int, Candidate]) -> list[int]:
    kept = [s for s in leg if s.chunk_id in found]
    return [s.chunk_id for s in sorted(kept, key=lambda s: (-s.score, found[s.chunk_id].order_key))]
