"""Answering a question: both legs in one snapshot, fused, cut, cited.

What belongs here: the order of steps and the account of what was missing. The arithmetic is in
`concordance.ranking`, the statements are the Postgres adapter's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from concordance.adapters.embedding import Vector, within_deadline
from concordance.adapters.postgres import embeddings
from concordance.adapters.postgres import search as legs
from concordance.citing import file_origin, freshness, session_origin
from concordance.errors import (
    BadRequest,
    DatabaseError,
    ProviderError,
    ProviderUnavailable,
    UnknownProject,
)
from concordance.models import (
    Answer,
    Fusion,
    Hit,
    Scope,
    SearchRequest,
)
from concordance.ranking.candidates import Scored, join_legs
from concordance.ranking.fusion import Candidate, Fused, default_weight, fuse
from concordance.ranking.relevance import relevance
from concordance.resources import Resources
from concordance.settings import SLUG

# The share of the deadline that embedding the question may use; Postgres gets the rest.
EMBEDDING_SHARE = 0.6

T = TypeVar("T")


@dataclass(slots=True)
class _Account:
    """What happened on the way to an answer."""

    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    milliseconds: dict[str, float] = field(default_factory=dict)
    vector_available: bool = False
    terms: int = 0
    no_terms: bool = False

    def timed(self, name: str, work: Callable[[], T]) -> T:
        began = time.perf_counter()
        try:
            return work()
        finally:
            spent = (time.perf_counter() - began) * 1_000
            self.milliseconds[name] = round(self.milliseconds.get(name, 0.0) + spent, 3)


@dataclass(frozen=True, slots=True)
class _Question:
    """A question made ready: its text, and its vector where there is one."""

    request: SearchRequest
    text: str
    space: embeddings.StoredSpace | None
    vector: Vector | None


def search(resources: Resources, request: SearchRequest) -> Answer:
    """The passages that answer a question, with an honest account of what was looked at.

    Raises:
        BadRequest: The question is blank, or an empty list of projects or scopes was given.
        UnknownProject: A project is neither configured nor indexed.
        ProviderError: `vector` fusion was asked for, and the question can't be embedded.
        DatabaseError: Postgres can't be asked, or both legs failed.
    """
    began = time.perf_counter()
    _check(request)
    _check_slugs(resources, request)
    account = _Account()
    question = account.timed("embedding", lambda: _embed(resources, request, account))
    left = request.deadline_seconds - (time.perf_counter() - began)
    with legs.open_snapshot(resources.database, timeout_seconds=left) as snapshot:
        targets = snapshot.targets(
            resources.tenant, request.projects, request.scopes or tuple(Scope)
        )
        _check_projects(resources, request, targets)
        answer = _answer(resources, snapshot, question, targets, account)
    account.milliseconds["total"] = round((time.perf_counter() - began) * 1_000, 3)
    return answer.model_copy(update={"milliseconds": account.milliseconds})


def _check(request: SearchRequest) -> None:
    if not request.text.replace("\0", " ").strip():
        raise BadRequest("the question is blank", hint="Ask for a word at least")
    if "\0" in (request.path_prefix or ""):
        raise BadRequest("the path prefix holds a NUL, which no path can")
    if request.projects is not None and not request.projects:
        raise BadRequest("an empty list of projects", hint="Leave it out to search all")
    if request.scopes is not None and not request.scopes:
        raise BadRequest("an empty list of scopes", hint="Leave it out to search all")


def _check_slugs(resources: Resources, request: SearchRequest) -> None:
    """Refuse what can be no slug; Postgres does not even take every text."""
    for slug in request.projects or ():
        if SLUG.fullmatch(slug) is None:
            resources.project(slug)


def _check_projects(
    resources: Resources, request: SearchRequest, targets: Sequence[legs.Target]
) -> None:
    indexed = {target.slug for target in targets}
    for slug in request.projects or ():
        if slug not in indexed:
            resources.project(slug)  # configured and never indexed is no error: nothing is found
    if request.projects is None and not targets and not resources.configuration.projects:
        raise UnknownProject("nothing is indexed yet", hint="Run 'concordance reindex'")


def _embed(resources: Resources, request: SearchRequest, account: _Account) -> _Question:
    """The question's vector in the active space, or the reason why there is none."""
    text = request.text.replace("\0", " ").encode(errors="replace").decode()
    space = embeddings.active_space(resources.database, resources.tenant)
    if request.fusion is Fusion.LEXICAL:
        return _Question(request, text, space, None)
    seconds = request.deadline_seconds * EMBEDDING_SHARE
    try:
        if space is None:
            raise ProviderUnavailable("nothing has a vector yet")
        vector = within_deadline(seconds, lambda: _query_vector(resources, space, text, seconds))
    except ProviderError as error:
        if request.fusion is Fusion.VECTOR:
            raise
        account.reasons.append(f"words alone were searched: {error}")
        return _Question(request, text, space, None)
    account.vector_available = True
    return _Question(request, text, space, vector)


def _query_vector(
    resources: Resources, space: embeddings.StoredSpace, text: str, seconds: float
) -> Vector:
    now = resources.embedder.space()
    if now.fingerprint != space.fingerprint:
        raise ProviderError(
            f"the index has vectors of {space.name} ({space.digest[:12]}), the provider serves "
            f"{now.provider}/{now.model} ({now.digest[:12]})",
            hint="Run 'concordance backfill' to embed with the new one",
        )
    return resources.embedder.embed_query(text, deadline_seconds=seconds)


def _answer(
    resources: Resources,
    snapshot: legs.Snapshot,
    question: _Question,
    targets: Sequence[legs.Target],
    account: _Account,
) -> Answer:
    request = question.request
    candidates = _candidates(snapshot, question, targets, account)
    _note_missing_vectors(request, targets, account)
    weight = (
        request.vector_weight
        if request.vector_weight is not None
        and request.fusion not in (Fusion.LEXICAL, Fusion.VECTOR)
        else default_weight(request.fusion)
    )
    fused = fuse(candidates, request.fusion, weight=weight, rrf_k=request.rrf_k)
    kept = [f for f in fused if _relevance(f.candidate, account) >= request.threshold]
    shown = kept[: request.top_k]
    hits = account.timed("passages", lambda: _hits(resources, snapshot, shown, account))
    now = resources.clock()
    parameters = {"threshold": request.threshold}
    if request.fusion in (Fusion.CONVEX, Fusion.WEIGHTED, Fusion.RRF):
        parameters["vector_weight"] = weight
    if request.fusion is Fusion.RRF:
        parameters["rrf_k"] = float(request.rrf_k)
    return Answer(
        request=request,
        hits=tuple(hits),
        vector_available=account.vector_available,
        degraded=bool(account.reasons),
        degraded_reason="; ".join(account.reasons) or None,
        empty_reason=None if hits else _empty_reason(request, targets, fused, account),
        notes=tuple(account.notes),
        model=question.space.name if question.space else None,
        fusion=request.fusion,
        fusion_parameters=parameters,
        lexical_ranking=legs.LEXICAL_RANKING,
        candidates=len(fused),
        cut_by_threshold=len(fused) - len(kept),
        milliseconds={},
        as_of=now,
        freshness=tuple(freshness(target, now) for target in targets),
    )


def _candidates(
    snapshot: legs.Snapshot,
    question: _Question,
    targets: Sequence[legs.Target],
    account: _Account,
) -> list[Candidate]:
    """Both legs' finds, joined; a leg that fails is noted, two that fail are an error."""
    failures: list[str] = []
    lexical: list[Scored] = []
    vectors: list[Scored] = []
    terms: dict[str, list[str]] = {}
    if question.request.fusion is not Fusion.VECTOR:
        try:
            terms = _terms(snapshot, question, targets, account)
            lexical = account.timed(
                "lexical", lambda: _lexical_leg(snapshot, question, targets, terms)
            )
        except legs.LegFailed as error:
            terms = {}
            failures.append(f"the lexical leg failed: {error.message}")
    if question.vector is not None:
        try:
            vectors = account.timed("vector", lambda: _vector_leg(snapshot, question, targets))
        except legs.LegFailed as error:
            failures.append(f"the vector leg failed: {error.message}")
            account.vector_available = False
    asked = (question.request.fusion is not Fusion.VECTOR) + (question.vector is not None)
    if failures and len(failures) == asked:
        raise DatabaseError("; ".join(failures))
    account.reasons += failures
    return account.timed(
        "scores", lambda: _join(snapshot, question, targets, lexical, vectors, terms, account)
    )


def _terms(
    snapshot: legs.Snapshot,
    question: _Question,
    targets: Sequence[legs.Target],
    account: _Account,
) -> dict[str, list[str]]:
    """The question's words, by language of the projects searched."""
    languages = sorted({target.language for target in targets})
    terms = {language: snapshot.terms(language, question.text) for language in languages}
    account.terms = max((len(words) for words in terms.values()), default=0)
    if languages and account.terms == 0:
        account.no_terms = True
        account.notes.append("the question has no word that the lexical leg could look for")
    if account.terms >= legs.MOST_TERMS:
        account.notes.append(f"only the first {legs.MOST_TERMS} different words were looked for")
    return terms


def _lexical_leg(
    snapshot: legs.Snapshot,
    question: _Question,
    targets: Sequence[legs.Target],
    terms: dict[str, list[str]],
) -> list[Scored]:
    found: list[Scored] = []
    for language, words in terms.items():
        of_language = [target for target in targets if target.language == language]
        found += snapshot.lexical_leg(words, _filters(question.request, of_language))
    return found


def _vector_leg(
    snapshot: legs.Snapshot, question: _Question, targets: Sequence[legs.Target]
) -> list[Scored]:
    if question.space is None or question.vector is None or not targets:
        return []
    # Not the count of vectors: while a worker fills them in, it lags behind.
    held = sum(target.chunks for target in targets)
    return snapshot.vector_leg(
        question.space, question.vector, _filters(question.request, targets), held=held
    )


def _join(  # noqa: PLR0913, PLR0917 - what both legs and the question came to
    snapshot: legs.Snapshot,
    question: _Question,
    targets: Sequence[legs.Target],
    lexical: Sequence[Scored],
    vectors: Sequence[Scored],
    terms: dict[str, list[str]],
    account: _Account,
) -> list[Candidate]:
    ids = sorted({found.chunk_id for found in (*lexical, *vectors)})
    places = snapshot.places(ids)
    language_of = {target.slug: target.language for target in targets}
    worded = []
    for language, words in terms.items():
        of_language = [i for i in ids if i in places and language_of[places[i].slug] == language]
        if words and of_language:
            worded += snapshot.lexical_scores(words, of_language)
    cosines: list[Scored] = []
    if account.vector_available and question.space is not None and question.vector is not None:
        cosines = snapshot.vector_scores(question.space, question.vector, ids)
    return join_legs(lexical, vectors, worded, cosines, places)


def _filters(request: SearchRequest, targets: Sequence[legs.Target]) -> legs.Filters:
    return legs.Filters(
        projects=tuple(sorted({target.project_id for target in targets})),
        scopes=tuple(sorted({target.scope for target in targets})),
        path_prefix=request.path_prefix,
        since=request.since,
    )


def _note_missing_vectors(
    request: SearchRequest, targets: Sequence[legs.Target], account: _Account
) -> None:
    """Passages that wait for a vector are unseen by the vector leg; refused ones stay so."""
    if request.fusion is Fusion.LEXICAL or not account.vector_available:
        return
    chunks = sum(target.chunks for target in targets)
    held = sum(target.chunks_with_vector for target in targets)
    refused = sum(target.chunks_refused for target in targets)
    if chunks - held - refused > 0:
        account.reasons.append(
            f"{held:,} of {chunks:,} passages have a vector, the others were found by words alone"
        )
    if held == 0:
        account.vector_available = False
    if refused:
        account.notes.append(f"{refused:,} passages could not be embedded by the model")


def _relevance(candidate: Candidate, account: _Account) -> float:
    return relevance(candidate.vector_score, candidate.matched_terms, account.terms)


def _hits(
    resources: Resources, snapshot: legs.Snapshot, shown: Sequence[Fused], account: _Account
) -> list[Hit]:
    stored = snapshot.passages(resources.tenant, [f.candidate.chunk_id for f in shown])
    return [
        _hit(rank, fused, stored[fused.candidate.chunk_id], account)
        for rank, fused in enumerate(shown, start=1)
    ]


def _hit(rank: int, fused: Fused, passage: legs.StoredPassage, account: _Account) -> Hit:
    c = fused.candidate
    return Hit(
        rank=rank,
        score=fused.score,
        relevance=round(_relevance(c, account), 6),
        lexical_score=c.lexical_score,
        lexical_rank=c.lexical_rank,
        vector_score=c.vector_score,
        vector_rank=c.vector_rank,
        project=passage.project,
        scope=Scope(passage.scope),
        content=passage.content,
        origin=file_origin(passage) if passage.kind == "file" else session_origin(passage),
    )


def _empty_reason(
    request: SearchRequest,
    targets: Sequence[legs.Target],
    fused: Sequence[Fused],
    account: _Account,
) -> str:
    if sum(target.chunks for target in targets) == 0:
        return "nothing is indexed in what was searched"
    if fused:
        return (
            f"{len(fused)} passages were found and none reaches the relevance of "
            f"{request.threshold:g}"
        )
    if request.path_prefix is not None or request.since is not None:
        return "nothing that matches lies under that path or after that time"
    if account.no_terms:
        return "the question has no word to look for, and no vector answered"
    return "no passage holds any of the words"
