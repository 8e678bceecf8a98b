"""The optional last step of a search: a model that reads question and passage together.

What belongs here: asking it within the deadline, and going on without it where it fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from concordance.errors import ProviderError
from concordance.gathering import Gathered
from concordance.ranking.fusion import Fused
from concordance.resources import Resources

# The same whatever `top_k` is, so that asking for more hits never changes the first ones.
DEPTH = 50


def rerank(
    resources: Resources, gathered: Gathered, kept: Sequence[Fused], *, seconds: float
) -> tuple[list[Fused], dict[int, float]]:
    """The same candidates, the best of them in the reranker's order, and its scores by chunk id.

    Where the reranker fails or is late the fused order stands, there are no scores, and the
    account says why.
    """
    reranker = resources.reranker
    if reranker is None and gathered.request.rerank:
        gathered.account.notes.append(
            "not reranked, the fused order stands: no reranker is set (CONCORDANCE_RERANKER)"
        )
    if reranker is None or gathered.request.rerank is False or not kept:
        return list(kept), {}
    head, tail = list(kept[:DEPTH]), list(kept[DEPTH:])
    ids = [f.candidate.chunk_id for f in head]
    stored = gathered.snapshot.passages(resources.tenant, ids)
    texts = [stored[chunk_id].content for chunk_id in ids]
    question = gathered.request.text
    if seconds <= 0:
        gathered.account.notes.append("not reranked, the fused order stands: no time was left")
        return list(kept), {}
    try:
        scores = reranker.scores(question, texts, deadline_seconds=seconds)
    except ProviderError as error:
        gathered.account.notes.append(f"not reranked, the fused order stands: {error}")
        return list(kept), {}
    by_chunk = dict(zip(ids, scores, strict=True))
    # Python's sort is stable: equal scores keep the fused order.
    head.sort(key=lambda f: -by_chunk[f.candidate.chunk_id])
    return head + tail, by_chunk
