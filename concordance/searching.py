"""Answering a question: what both legs gathered, fused, judged, cut and cited.

What belongs here: from candidates to the typed answer, with an honest account of what was missing.
The arithmetic is in `concordance.ranking`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from concordance.accounting import Account
from concordance.adapters.postgres import search as legs
from concordance.adapters.postgres.database import run_again
from concordance.adapters.postgres.records import Standing
from concordance.choosing import BLENDED, Chosen, choose
from concordance.citing import file_origin, freshness, session_origin
from concordance.errors import BadRequest
from concordance.gathering import Gathered, gather
from concordance.indexing.counting import agreeing, counted
from concordance.models import (
    MAX_QUERY_CHARACTERS,
    Answer,
    Fusion,
    Hit,
    LexicalRanking,
    Scope,
    SearchRequest,
)
from concordance.ranking import confidence as judging
from concordance.ranking.confidence import Confidence
from concordance.ranking.fusion import Fused, fuse
from concordance.ranking.succession import successors_first
from concordance.reranking import rerank
from concordance.resources import Resources
from concordance.surveying import todays_rules


def as_request(request: SearchRequest | str) -> SearchRequest:
    """The request itself, or that of a question alone.

    Raises:
        BadRequest: The question is blank, or too long.
    """
    if isinstance(request, SearchRequest):
        return request
    if not request.strip():
        raise BadRequest("the question is blank", hint="Ask for a word at least")
    if len(request) > MAX_QUERY_CHARACTERS:
        raise BadRequest(
            f"the question has {len(request):,} characters",
            hint=f"Ask with {MAX_QUERY_CHARACTERS:,} at the most",
        )
    return SearchRequest(text=request)


def search(resources: Resources, request: SearchRequest) -> Answer:
    """The passages that answer a question, with an honest account of what was looked at.

    Raises:
        BadRequest: The question is blank, or an empty list of projects or scopes was given.
        UnknownProject: A project is neither configured nor indexed.
        ProviderError: `vector` fusion was asked for, and the question can't be embedded or nothing
            has a vector yet.
        DatabaseError: Postgres can't be asked, or both legs failed.
    """
    # A replica may give a question up for the sake of what it replays.
    until = time.monotonic() + request.deadline_seconds
    return run_again(lambda: _search(resources, request), until=until)


def _search(resources: Resources, request: SearchRequest) -> Answer:
    began = time.perf_counter()
    with gather(resources, request) as gathered:
        answer = _answer(resources, gathered)
    account = gathered.account
    account.milliseconds["total"] = round((time.perf_counter() - began) * 1_000, 3)
    return answer.model_copy(update={"milliseconds": account.milliseconds})


def _answer(resources: Resources, gathered: Gathered) -> Answer:
    request, account = gathered.request, gathered.account
    chosen = choose(gathered)
    fixed, fused = _orders(gathered, chosen.weight)
    judged = _judge(account, fixed, chosen.confidence)
    kept = [f for f in fused if judged[f.candidate.chunk_id] >= chosen.threshold]
    left = request.deadline_seconds - sum(account.milliseconds.values()) / 1_000
    ordered, reranked = account.timed(
        "reranking", lambda: rerank(resources, gathered, kept, seconds=left)
    )
    standing = account.timed("records", lambda: _standing(gathered, ordered))
    shown = successors_first(ordered, standing)[: request.top_k]
    hits = account.timed(
        "passages", lambda: _hits(resources, gathered, shown, judged, reranked, standing)
    )
    now = resources.clock()
    rules = todays_rules(resources, (target.slug for target in gathered.targets))
    return Answer(
        request=request,
        hits=tuple(hits),
        confidence=_confidence(judged, chosen.threshold),
        vector_available=account.vector_available,
        degraded=bool(account.reasons),
        degraded_reason="; ".join(account.reasons) or None,
        empty_reason=None if hits else _empty_reason(gathered, fused, chosen),
        notes=tuple(account.notes),
        model=gathered.space.name if gathered.space else None,
        fusion=request.fusion,
        fusion_parameters=_parameters(request, chosen),
        lexical_ranking=request.lexical_ranking,
        reranker=resources.reranker.name if resources.reranker and reranked else None,
        candidates=len(fused),
        cut_by_threshold=len(fused) - len(kept),
        milliseconds={},
        as_of=now,
        freshness=tuple(freshness(target, now, rules) for target in gathered.targets),
    )


def _parameters(request: SearchRequest, chosen: Chosen) -> dict[str, float]:
    parameters = {"threshold": chosen.threshold}
    if request.fusion in BLENDED:
        parameters["vector_weight"] = chosen.weight
    if request.fusion is Fusion.RRF:
        parameters["rrf_k"] = float(request.rrf_k)
    return parameters


def _orders(gathered: Gathered, weight: float) -> tuple[list[Fused], list[Fused]]:
    """The fixed order that confidence looks at, and that of the answer: often the same one."""
    request, account = gathered.request, gathered.account
    legs_asked = {"words": account.words_asked, "vectors": account.vector_available}
    share = gathered.vector_share
    fixed = judging.in_fixed_order(gathered.candidates, **legs_asked, share=share)
    if request.fusion is Fusion.CONVEX and weight == judging.fixed_weight(
        **legs_asked, share=share
    ):
        return fixed, fixed
    return fixed, fuse(gathered.candidates, request.fusion, weight=weight, rrf_k=request.rrf_k)


def _judge(account: Account, fixed: Sequence[Fused], model: Confidence) -> dict[int, float]:
    """How sure each candidate makes us, by chunk id."""
    assessed = judging.assess(fixed, words=account.words_asked, vectors=account.vector_available)
    return {
        chunk_id: round(judging.confidence(model, features), 6)
        for chunk_id, features in assessed.by_chunk.items()
    }


def _confidence(judged: dict[int, float], threshold: float) -> float:
    """That of the best candidate in the fixed order that is shown, or of the best one of all.

    Not the largest: the surest one of many would flatter.
    """
    shown = (sure for sure in judged.values() if sure >= threshold)
    return next(shown, next(iter(judged.values()), 0.0))


def _standing(gathered: Gathered, ordered: Sequence[Fused]) -> dict[int, Standing]:
    """The decision records among the finds; nothing is asked where none was searched."""
    if all(target.scope != Scope.ADR for target in gathered.targets):
        return {}
    return gathered.snapshot.records([f.candidate.chunk_id for f in ordered])


def _hits(  # noqa: PLR0913, PLR0917 - what a hit is made of
    resources: Resources,
    gathered: Gathered,
    shown: Sequence[Fused],
    judged: dict[int, float],
    reranked: dict[int, float],
    standing: dict[int, Standing],
) -> list[Hit]:
    ids = [f.candidate.chunk_id for f in shown]
    stored = gathered.snapshot.passages(resources.tenant, ids)
    return [
        _hit(
            rank,
            fused,
            stored[chunk_id],
            judged[chunk_id],
            reranked.get(chunk_id),
            standing.get(chunk_id),
        )
        for rank, fused in enumerate(shown, start=1)
        for chunk_id in [fused.candidate.chunk_id]
    ]


def _hit(  # noqa: PLR0913, PLR0917 - what a hit is made of
    rank: int,
    fused: Fused,
    passage: legs.StoredPassage,
    confidence: float,
    rerank_score: float | None,
    standing: Standing | None,
) -> Hit:
    c = fused.candidate
    state = None if standing is None else standing.state
    return Hit(
        rank=rank,
        score=fused.score,
        confidence=confidence,
        lexical_score=c.lexical_score,
        lexical_rank=c.lexical_rank,
        vector_score=c.vector_score,
        vector_rank=c.vector_rank,
        rerank_score=rerank_score,
        project=passage.project,
        scope=Scope(passage.scope),
        content=passage.content,
        origin=file_origin(passage, state) if passage.kind == "file" else session_origin(passage),
    )


def _empty_reason(gathered: Gathered, fused: Sequence[Fused], chosen: Chosen) -> str:
    request, account = gathered.request, gathered.account
    if sum(target.chunks for target in gathered.targets) == 0:
        return "nothing is indexed in what was searched"
    if fused:
        found = f"{counted(len(fused), 'passage')} {agreeing(len(fused), 'was', 'were')} found"
        return (
            f"{found}, and none makes it likely enough that the answer is there (a confidence of "
            f"{chosen.threshold:g} is asked for)"
        )
    if account.no_terms and not account.vector_available:
        return "the question has no word to look for, and no vector answered"
    narrowed = _narrowed_to_nothing(request)
    if narrowed is not None:
        return narrowed
    which = "all" if request.lexical_ranking is LexicalRanking.ALL_WORDS else "any"
    return f"no passage holds {which} of the words"


def _narrowed_to_nothing(request: SearchRequest) -> str | None:
    """Which filter left nothing, or None without one."""
    if request.adr_status is not None and Scope.ADR not in (request.scopes or tuple(Scope)):
        return "a state of decision records was asked for, and the scopes leave those out"
    if request.path_prefix is not None or request.since is not None:
        return "nothing that matches lies under that path or after that time"
    if request.adr_status is not None:
        return "no decision record of that status matches"
    return None
