"""What both legs know of a question: candidates with their true scores, in one snapshot.

What belongs here: asking the legs. What was missing is `concordance.accounting`'s matter, how
candidates become an answer `concordance.searching`'s; `concordance.evaluating` starts here, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from concordance.accounting import (
    Account,
    note_missing_vectors,
    note_missing_words,
    require_vectors,
)
from concordance.adapters.embedding import Vector, within_deadline
from concordance.adapters.postgres import embeddings
from concordance.adapters.postgres import search as legs
from concordance.adapters.postgres.lexical import FEW_PLACES, MOST_WORDS, Question, place_lexeme
from concordance.errors import (
    BadRequest,
    DatabaseError,
    NothingIndexed,
    ProviderError,
    ProviderUnavailable,
)
from concordance.indexing.model_families import known_languages
from concordance.models import Fusion, Scope, SearchRequest
from concordance.ranking.candidates import Known, Scored, join_legs
from concordance.ranking.fusion import Candidate
from concordance.ranking.language_fit import vector_share
from concordance.resources import Resources
from concordance.settings import SLUG

# The share of the deadline that embedding the question may use; Postgres gets the rest.
EMBEDDING_SHARE = 0.6

# A passage nearer than this rank of the vector leg, and not in its pool, was missed by the index.
NEAREST = 10
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything that is known of a question, and the snapshot that it was asked of."""

    request: SearchRequest
    snapshot: legs.Snapshot
    targets: tuple[legs.Target, ...]
    candidates: tuple[Candidate, ...]
    space: embeddings.StoredSpace | None
    account: Account

    @property
    def vector_share(self) -> float:
        """The vector leg's share by default: how far the model knows what was searched."""
        known = None if self.space is None else known_languages(self.space.model)
        return vector_share(self.account.languages, self.request.text, known)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question made ready: its text, and its vector where there is one."""

    request: SearchRequest
    text: str
    space: embeddings.StoredSpace | None
    vector: Vector | None


@contextmanager
def gather(resources: Resources, request: SearchRequest) -> Iterator[Gathered]:
    """Ask both legs; the snapshot is open while the block runs.

    Raises:
        BadRequest: The question is blank, or an empty list of projects or scopes was given.
        UnknownProject: A project is neither configured nor indexed.
        ProviderError: `vector` fusion was asked for, and the question can't be embedded or nothing
            has a vector yet.
        DatabaseError: Postgres can't be asked, or both legs failed.
    """
    began = time.perf_counter()
    _check(request)
    _check_slugs(resources, request)
    account = Account()
    asked = account.timed("embedding", lambda: _embed(resources, request, account))
    left = request.deadline_seconds - (time.perf_counter() - began)
    with legs.open_snapshot(resources.database, timeout_seconds=left) as snapshot:
        scopes = request.scopes or tuple(Scope)
        targets = snapshot.targets(resources.tenant, request.projects, scopes)
        _check_projects(resources, request, targets)
        candidates = _candidates(snapshot, asked, targets, account)
        filters = _filters(request, targets)
        if asked.space is not None and asked.vector is not None and not candidates:
            nearest = legs.Nearest(asked.space, asked.vector, ())
            require_vectors(snapshot, request, nearest, filters, targets)
        note_missing_words(snapshot, filters, targets, candidates, account)
        note_missing_vectors(request, filters, targets, candidates, account)
        yield Gathered(request, snapshot, tuple(targets), tuple(candidates), asked.space, account)


def _check(request: SearchRequest) -> None:
    if not request.text.replace("\0", " ").strip():
        raise BadRequest("the question is blank", hint="Ask for a word at least")
    if "\0" in (request.path_prefix or ""):
        raise BadRequest("the path prefix holds a NUL, which no path can")
    if request.projects is not None and not request.projects:
        raise BadRequest("an empty list of projects", hint="Leave it out to search all")
    if request.scopes is not None and not request.scopes:
        raise BadRequest("an empty list of scopes", hint="Leave it out to search all")
    if request.adr_status is not None and not request.adr_status:
        raise BadRequest("an empty list of states", hint="Leave it out to search every source")


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
        raise NothingIndexed(
            "nothing is indexed yet",
            hint="Add a project with 'concordance projects add', then run 'concordance reindex'",
        )


def _embed(resources: Resources, request: SearchRequest, account: Account) -> _Asked:
    """The question's vector in the active space, or the reason why there is none."""
    text = request.text.replace("\0", " ").encode(errors="replace").decode()
    space = embeddings.active_space(
        resources.database, resources.tenant, wait_seconds=request.deadline_seconds
    )
    if request.fusion is Fusion.LEXICAL:
        return _Asked(request, text, space, None)
    seconds = request.deadline_seconds * EMBEDDING_SHARE
    try:
        if space is None:
            raise ProviderUnavailable("nothing has a vector yet")
        vector = within_deadline(seconds, lambda: _query_vector(resources, space, text, seconds))
    except ProviderError as error:
        if request.fusion is Fusion.VECTOR:
            raise
        account.reasons.append(f"words alone were searched: {error}")
        return _Asked(request, text, space, None)
    account.vector_available = True
    return _Asked(request, text, space, vector)


def _query_vector(
    resources: Resources, space: embeddings.StoredSpace, text: str, seconds: float
) -> Vector:
    now = resources.embedder.space()
    if now.named(space.model).fingerprint != space.fingerprint:
        raise ProviderError(
            f"the index has vectors of {space.name} ({space.digest[:12]}), the provider serves "
            f"{now.provider}/{now.model} ({now.digest[:12]})",
            hint="Run 'concordance backfill' to embed with the new one",
        )
    return resources.embedder.embed_query(text, deadline_seconds=seconds)


def _candidates(
    snapshot: legs.Snapshot,
    asked: _Asked,
    targets: Sequence[legs.Target],
    account: Account,
) -> list[Candidate]:
    """Both legs' finds, joined; a leg that fails is noted, two that fail are an error."""
    failures: list[str] = []
    lexical: list[Scored] = []
    vectors: list[Scored] = []
    worded: list[Question] = []
    if asked.request.fusion is not Fusion.VECTOR:
        try:
            worded = account.timed("words", lambda: _read(snapshot, asked, targets, account))
            lexical = account.timed(
                "lexical", lambda: _lexical_leg(snapshot, asked, targets, worded)
            )
            account.words_known = True
        except legs.LegFailed as error:
            worded = []
            failures.append(f"the lexical leg failed: {error.message}")
    if asked.vector is not None:
        try:
            vectors = account.timed("vector", lambda: _vector_leg(snapshot, asked, targets))
        except legs.LegFailed as error:
            failures.append(f"the vector leg failed: {error.message}")
            account.vector_available = False
    legs_asked = (asked.request.fusion is not Fusion.VECTOR) + (asked.vector is not None)
    if failures and len(failures) == legs_asked:
        raise DatabaseError("; ".join(failures))
    account.reasons += failures
    account.words_asked = any(one.terms for one in worded)
    return account.timed(
        "scores", lambda: _join(snapshot, asked, targets, lexical, vectors, worded, account)
    )


def _read(
    snapshot: legs.Snapshot,
    asked: _Asked,
    targets: Sequence[legs.Target],
    account: Account,
) -> list[Question]:
    """The question's words, in each language of the projects searched."""
    read = snapshot.questions(asked.text, _filters(asked.request, targets))
    account.languages = {one.language: one.passages for one in read}
    if read and not any(one.terms for one in read):
        account.no_terms = True
        account.notes.append("the question has no word that the lexical leg could look for")
    if any(one.cut for one in read):
        account.notes.append(f"only the strongest {MOST_WORDS} different words were looked for")
    return read


def _lexical_leg(
    snapshot: legs.Snapshot,
    asked: _Asked,
    targets: Sequence[legs.Target],
    worded: Sequence[Question],
) -> list[Scored]:
    filters = _filters(asked.request, targets)
    return snapshot.lexical_leg(worded, filters, asked.request.lexical_ranking)


def _vector_leg(
    snapshot: legs.Snapshot,
    asked: _Asked,
    targets: Sequence[legs.Target],
    *,
    exact: bool = False,
) -> list[Scored]:
    if asked.space is None or asked.vector is None or not targets:
        return []
    # Not the count of vectors: while a worker fills them in, it lags behind.
    held = 0 if exact else sum(target.chunks for target in targets)
    return snapshot.vector_leg(
        asked.space,
        asked.vector,
        _filters(asked.request, targets),
        held=held,
        in_all=targets[0].in_all,
    )


def _missed(vectors: Sequence[Scored], known: Sequence[Known]) -> bool:
    """Whether the words found a passage that should have been among the nearest.

    An approximate index can lose a neighbourhood, such as one of near-duplicates. A passage that is
    nearer than the leg's tenth and not in its pool shows it.
    """
    if len(vectors) < NEAREST:
        return False
    pool = {found.chunk_id for found in vectors}
    bound = vectors[NEAREST - 1].score + ROUNDING
    return any(
        k.vector_score is not None and k.vector_score > bound and k.chunk_id not in pool
        for k in known
    )


def _join(  # noqa: PLR0913, PLR0917 - what both legs and the question came to
    snapshot: legs.Snapshot,
    asked: _Asked,
    targets: Sequence[legs.Target],
    lexical: Sequence[Scored],
    vectors: Sequence[Scored],
    worded: Sequence[Question],
    account: Account,
) -> list[Candidate]:
    vector = asked.vector if account.vector_available else None

    def known() -> list[Known]:
        ids = sorted({found.chunk_id for found in (*lexical, *vectors)})
        nearest = None
        if asked.space is not None and vector is not None:
            nearest = legs.Nearest(asked.space, vector, vectors)
        return snapshot.candidates(ids, worded, asked.request.lexical_ranking, nearest)

    found = known()
    if vector is not None and _missed(vectors, found):
        vectors = _vector_leg(snapshot, asked, targets, exact=True)
        found = known()
    return join_legs(lexical, vectors, found)


def _filters(request: SearchRequest, targets: Sequence[legs.Target]) -> legs.Filters:
    return legs.Filters(
        projects=tuple(sorted({target.project_id for target in targets})),
        scopes=tuple(sorted({target.scope for target in targets})),
        path_prefix=request.path_prefix,
        since=request.since,
        adr_status=request.adr_status,
        places=_places(request, targets),
    )


def _places(request: SearchRequest, targets: Sequence[legs.Target]) -> tuple[str, ...]:
    """The lexemes of the searched scopes, where they are few enough to narrow anything."""
    everything = request.projects is None and request.scopes is None
    if everything or len(targets) > FEW_PLACES:
        return ()
    return tuple(sorted(place_lexeme(target.project_id, target.scope) for target in targets))
