"""A run over several projects, step by step as the flow `reindex` makes it, without Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from concordance.errors import ConcordanceError, ProviderError
from concordance.index import Index
from concordance.models import Scope
from concordance.settings import ALL_SCOPES
from tests.postgres.driver import reindex

AT_ONCE = 2


def run_all(
    index: Index,
    slugs: Sequence[str],
    *,
    scopes: Sequence[Scope] = ALL_SCOPES,
    full: bool = False,
) -> list[ConcordanceError]:
    """Bring projects up to date; the failures that were not noted in their coverage."""
    started = index.now()
    provider: str | None = None
    try:
        index.prepare_space()
    except ProviderError as error:
        provider = str(error)
    found = index.survey(slugs, scopes=scopes, full=full)
    changed = [one.slug for one in found if one.action == "index"]

    def run(slug: str) -> ConcordanceError | None:
        try:
            reindex(index, slug, scopes=scopes, full=full, embed=provider is None)
        except ConcordanceError as error:
            return error
        return None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        errors = [error for error in pool.map(run, changed) if error is not None]
    left = [c.project for c in index.coverage(slugs) if c.chunks_with_vector < c.chunks]
    if left:
        provider = _embed(index, sorted(set(left)), started)
    other = {c.project for c in index.coverage(slugs) if c.embedding_error != provider}
    if other:
        index.note_embedding(sorted(other), provider)
    return errors


def _embed(index: Index, slugs: Sequence[str], started: datetime) -> str | None:
    error = None
    # One that remembers for a minute would make the soak wait for one.
    index.reset_breaker()
    try:
        index.fill_vectors(slugs, started=started)
    except ProviderError as failure:
        error = str(failure)
    index.note_embedding(slugs, error)
    return error
