"""A superseded decision comes after what replaced it: pure order, whatever the fusion.

What belongs here: one rule on a list that is ordered already. Which record replaced which is found
in `concordance.indexing.succession`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from concordance.ranking.fusion import Fused


class Succeeded(Protocol):
    """What is known of the record that a passage belongs to."""

    @property
    def document_id(self) -> int:
        """The record."""
        ...

    @property
    def newer(self) -> Sequence[int]:
        """The records that replaced it."""
        ...


def successors_first(ordered: Sequence[Fused], records: Mapping[int, Succeeded]) -> list[Fused]:
    """The same finds; before the first passage of a superseded record stands one of each successor.

    `records` are by chunk id; a passage without one stays where it is. The best passage of a
    successor is lifted to right before the passage that has to follow it, so neither is lost to a
    small `top_k`; all others keep their order. The whole list is ordered, before any cut, so that
    the answer for fewer hits is the beginning of the answer for more. In a circle of records
    nobody is lifted over the passage that was met first.
    """
    if not records:
        return list(ordered)
    record_at = [records.get(find.candidate.chunk_id) for find in ordered]
    best: dict[int, int] = {}
    for place, record in enumerate(record_at):
        if record is not None:
            best.setdefault(record.document_id, place)
    placed: dict[int, None] = {}
    for place in range(len(ordered)):
        # The passages that wait for one another, the last for none that is not placed.
        path = [place]
        while path:
            record = record_at[path[-1]]
            newer = () if record is None else record.newer
            before = [
                best[one]
                for one in newer
                if one in best and best[one] not in placed and best[one] not in path
            ]
            if before:
                path.append(min(before))
            else:
                placed.setdefault(path.pop())
    return [ordered[place] for place in placed]
