"""Filling in vectors: claim texts, embed them, store them, until none is left.

What belongs here: the loop and its account. Which texts are pending is the backlog's matter; how a
text becomes a vector, the provider's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime

from concordance.adapters.embedding import TextFailure, Vector
from concordance.adapters.postgres import coverage, embeddings, projects
from concordance.adapters.postgres.slots import Slots, open_slots
from concordance.errors import ProviderError
from concordance.indexing.vector_space import content_hash, passage_text
from concordance.interruption import stop_requested
from concordance.resources import Resources
from concordance.surveying import todays_rules

# Texts in one claim for each server of the provider: what a killed worker may have embedded for
# nothing.
CLAIM_TEXTS = 64

Progress = Callable[[int, int], None]
Batch = list[tuple[embeddings.Claimed, embeddings.PassageText]]


@dataclass(frozen=True, slots=True)
class Embedded:
    """What a worker did, and what it leaves."""

    embedded: int
    refused: int
    pending: int
    given_up: int
    model: str
    troubles: tuple[str, ...] = ()
    """What failed of the provider while the rest of it worked, in its own words."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to embed."""
        return self.pending == 0


def prepare_space(resources: Resources) -> embeddings.StoredSpace:
    """Ask the provider for its space and make it the active one.

    Raises:
        ProviderError: The provider is down, or lacks the model.
    """
    space = _asked_for_space(resources)
    # Whether it embeds as well is not known: what failed before still counts.
    resources.breaker.answered()
    return space


def _asked_for_space(resources: Resources) -> embeddings.StoredSpace:
    resources.breaker.check()
    try:
        # Anew: a name may mean another model since this process asked.
        space = resources.embedder.space(anew=True)
    except ProviderError as error:
        resources.breaker.trip(error)
        raise
    return embeddings.activate_space(
        resources.database,
        resources.tenant,
        space,
        now=resources.clock(),
        rules=todays_rules(resources, (p.slug for p in resources.configuration.projects)),
    )


def fill_vectors(
    resources: Resources,
    slugs: Sequence[str] | None,
    *,
    started: datetime,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Embedded:
    """Embed what is pending in some projects, or in all; several workers may do so at once.

    A text that the model refuses costs itself alone. It is tried again in later runs, not in this
    one (`started` tells them apart), and given up after `embedding_attempts` of them.

    Raises:
        ProviderError: The provider is down or refuses everything; what was stored stays.
    """
    space = _asked_for_space(resources)
    ids = None if slugs is None else _project_ids(resources, slugs)
    most = resources.settings.embedding_concurrency
    with (
        open_slots(resources.database, space.provider, most) as slots,
        embeddings.open_backlog(resources.database, resources.tenant, space) as backlog,
    ):
        worker = _Worker(resources, space, backlog, slots, ids, started, limit, progress)
        try:
            worker.run()
        except ProviderError as error:
            resources.breaker.trip(error)
            raise
        finally:
            resources.breaker.answered()
            backlog.release()
    embeddings.ensure_vector_index(resources.database, space)
    left = embeddings.pending(
        resources.database, space, projects=ids, attempts=resources.settings.embedding_attempts
    )
    return Embedded(
        worker.embedded,
        worker.refused,
        left.pending,
        left.given_up,
        space.name,
        resources.embedder.troubles(),
    )


def note_outcome(resources: Resources, slugs: Sequence[str] | None, error: str | None) -> None:
    """Count the vectors of some projects, or of all, and keep the provider's words."""
    error = resources.scrubber().optional(error)
    coverage.note_embedding(
        resources.database,
        resources.tenant,
        projects=None if slugs is None else _project_ids(resources, slugs),
        error=error,
        now=resources.clock(),
        rules=todays_rules(resources, (p.slug for p in resources.configuration.projects)),
    )


class _Worker:
    """One pass over the backlog: while a batch is embedded, the one before is being stored."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of one pass, used nowhere else
        self,
        resources: Resources,
        space: embeddings.StoredSpace,
        backlog: embeddings.Backlog,
        slots: Slots,
        ids: Sequence[int] | None,
        started: datetime,
        limit: int | None,
        progress: Progress | None,
    ) -> None:
        self.embedded = 0
        self.refused = 0
        self._resources = resources
        self._space = space
        self._backlog = backlog
        self._slots = slots
        self._most = CLAIM_TEXTS * resources.embedder.parallel
        self._ids = ids
        self._started = started
        self._limit = limit
        self._progress = progress
        self._attempts = resources.settings.embedding_attempts

    def run(self) -> None:
        total = embeddings.pending(
            self._resources.database, self._space, projects=self._ids, attempts=self._attempts
        ).pending
        claimed = 0
        storing: Future[None] | None = None
        # One thread beside the embedder stores the last batch and claims the next one meanwhile.
        with ThreadPoolExecutor(1, thread_name_prefix="store-vectors") as pool:
            batch = self._claim(claimed)
            while batch and not stop_requested():
                claimed += len(batch)
                coming = pool.submit(self._claim, claimed)
                try:
                    with self._slots.taken(given_up=stop_requested) as mine:
                        results = self._embed(batch) if mine else None
                finally:
                    # Also where that failed: a failure to store the batch before is told first.
                    if storing is not None:
                        storing.result()
                if results is None:
                    return
                storing = pool.submit(self._store, batch, results)
                if self._progress is not None:
                    self._progress(claimed, max(total, claimed))
                batch = coming.result()
            if storing is not None:
                storing.result()

    def _claim(self, claimed: int) -> Batch:
        most = self._most if self._limit is None else min(self._most, self._limit - claimed)
        if most <= 0:
            return []
        return self._backlog.claim(
            projects=self._ids, most=most, attempts=self._attempts, before=self._started
        )

    def _embed(self, batch: Batch) -> list[_Result]:
        """Vectors of passages; one that fails with what was said before it has one without that."""
        embedder = self._resources.embedder
        results = embedder.embed_documents([_text(passage) for _, passage in batch])
        self._resources.breaker.reset()
        found = [_Result(result) for result in results]
        again = [
            number
            for number, ((_, passage), result) in enumerate(zip(batch, results, strict=True))
            if isinstance(result, TextFailure) and passage.preceding is not None
        ]
        if again:
            alone = [replace(batch[number][1], preceding=None) for number in again]
            vectors = embedder.embed_documents([_text(passage) for passage in alone])
            for number, passage, result in zip(again, alone, vectors, strict=True):
                found[number] = _Result(results[number], passage, result)
        return found

    def _store(self, batch: Batch, results: Sequence[_Result]) -> None:
        whole: list[tuple[embeddings.Claimed, Vector]] = []
        less: dict[bytes, tuple[bytes, Vector]] = {}
        reasons: dict[bytes, str] = {}
        for (claim, _), result in zip(batch, results, strict=True):
            if not isinstance(result.whole, TextFailure):
                whole.append((claim, result.whole))
                continue
            # What is embedded without what was said before it is tried whole again, too.
            reasons[claim.content_hash] = self._resources.scrubber().text(result.whole.reason)
            if result.alone is not None and not isinstance(result.less, TextFailure | None):
                less[claim.content_hash] = (_hash(result.alone), result.less)
        if whole:
            self._backlog.store(whole)
        if less:
            self._backlog.store_less(less)
        if reasons:
            self._backlog.refuse(reasons, now=self._resources.clock())
        self.embedded += len(whole) + len(less)
        self.refused += len(reasons) - len(less)


@dataclass(frozen=True, slots=True)
class _Result:
    """What came of a passage; where it failed whole, what came of it `alone`."""

    whole: Vector | TextFailure
    alone: embeddings.PassageText | None = None
    less: Vector | TextFailure | None = None


def _hash(passage: embeddings.PassageText) -> bytes:
    return content_hash(passage.title, passage.heading_path, passage.content, passage.preceding)


def _text(passage: embeddings.PassageText) -> str:
    return passage_text(passage.title, passage.heading_path, passage.content, passage.preceding)


def _project_ids(resources: Resources, slugs: Sequence[str]) -> list[int]:
    stored = projects.stored_slugs(projects.list_projects(resources.database, resources.tenant))
    return [stored[slug].id for slug in slugs if slug in stored]
