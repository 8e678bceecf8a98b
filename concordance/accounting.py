"""What happened on the way to an answer, and what was missing.

What belongs here: the account, and the sentences about vectors that are not there. Asking is
`concordance.gathering`'s matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from concordance.adapters.postgres import search as legs
from concordance.errors import ProviderUnavailable
from concordance.indexing.counting import agreeing, counted, counted_of
from concordance.models import Fusion, SearchRequest
from concordance.ranking.fusion import Candidate

T = TypeVar("T")


@dataclass(slots=True)
class Account:
    """What happened on the way to an answer."""

    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    milliseconds: dict[str, float] = field(default_factory=dict)
    vector_available: bool = False
    words_asked: bool = False
    words_known: bool = False
    no_terms: bool = False
    languages: dict[str, int] = field(default_factory=dict)

    def timed(self, name: str, work: Callable[[], T]) -> T:
        """Do some work and add its time to the account."""
        began = time.perf_counter()
        try:
            return work()
        finally:
            spent = (time.perf_counter() - began) * 1_000
            self.milliseconds[name] = round(self.milliseconds.get(name, 0.0) + spent, 3)


def note_missing_words(
    snapshot: legs.Snapshot,
    filters: legs.Filters,
    targets: Sequence[legs.Target],
    candidates: Sequence[Candidate],
    account: Account,
) -> None:
    """Passages that wait for their words are unseen by the lexical leg, as after an upgrade.

    They are counted only where it looks as if there were some: where the searched scopes hold more
    passages than their projects have with words, or one was found by its vector.
    """
    if not account.words_known:
        return
    chunks = sum(target.chunks for target in targets)
    fewer = sum(account.languages.values()) < chunks
    if not fewer and all(c.share is not None for c in candidates):
        return
    missing = snapshot.wordless(filters)
    if missing:
        least = " or more" if missing >= legs.COUNTED else ""
        account.reasons.append(
            f"{counted(missing, 'passage')}{least} {agreeing(missing, 'waits', 'wait')} for "
            f"{agreeing(missing, 'its', 'their')} words, which the next run writes: found by "
            f"{agreeing(missing, 'its vector', 'their vectors')} alone"
        )


def note_missing_vectors(
    request: SearchRequest,
    filters: legs.Filters,
    targets: Sequence[legs.Target],
    candidates: Sequence[Candidate],
    account: Account,
) -> None:
    """Passages that wait for a vector are unseen by the vector leg; refused ones stay so.

    How many have one was counted before the last vectors were filled in, or in another space: what
    was found is newer, and is believed first.
    """
    if not account.vector_available:
        return
    chunks = sum(target.chunks for target in targets)
    refused = sum(target.chunks_refused for target in targets)
    without = sum(c.vector_score is None for c in candidates)
    seen = len(candidates) - without
    held = max(sum(target.chunks_with_vector for target in targets), seen)
    alone = request.fusion is Fusion.VECTOR
    if seen == 0 and not alone and (held == 0 or not filters.narrow):
        # Without a filter each vector that there is would have been found.
        account.vector_available = False
        if chunks > refused:
            account.reasons.append(
                "words alone were searched: no passage of what was searched has a vector yet"
            )
    elif chunks - held - refused > 0:
        have = agreeing(chunks, "has", "have")
        others = "not searched" if alone else "found by words alone"
        account.reasons.append(
            f"at least {counted_of(held, chunks, 'passage')} {have} a vector, any without one were "
            f"{others}"
        )
    elif without > refused:
        account.reasons.append(
            f"{counted_of(without, len(candidates), 'passage')} that were found "
            f"{agreeing(without, 'has', 'have')} no vector yet: ranked by words alone"
        )
    if refused:
        account.notes.append(f"{counted(refused, 'passage')} could not be embedded by the model")


def require_vectors(
    snapshot: legs.Snapshot,
    request: SearchRequest,
    nearest: legs.Nearest,
    filters: legs.Filters,
    targets: Sequence[legs.Target],
) -> None:
    """Where `vector` fusion found nothing: raise unless a filter, and not the index, is why.

    Raises:
        ProviderUnavailable: Passages are there, and none of them has a vector.
    """
    held = sum(target.chunks for target in targets)
    if request.fusion is not Fusion.VECTOR or held == 0:
        return
    if filters.narrow:
        wide = replace(filters, path_prefix=None, since=None, adr_status=None)
        if snapshot.vector_leg(
            nearest.space, nearest.vector, wide, held=held, in_all=targets[0].in_all
        ):
            return
    raise ProviderUnavailable(
        "no passage of what was searched has a vector yet",
        hint="Wait for the vectors, or run 'concordance backfill'",
    )
