"""Fill in vectors that are missing, in all projects or some; several runs may work at once."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.reindex_project import embed_projects
from tasks.shared import shared_index


@flow(name="backfill-vectors", log_prints=False)
def backfill_vectors(projects: list[str] | None = None, retry_refused: bool = False) -> State[Any]:
    """Embed whatever waits for a vector, and say what is left.

    Args:
        projects: Slugs of the projects; none given means all that are indexed.
        retry_refused: Also try the texts that the model refused too often.
    """
    index = shared_index()
    for slug in projects or ():
        index.project(slug)
    started = index.now()
    if retry_refused:
        index.forgive_refused()
    error = embed_projects(index, projects, started)
    covered = index.coverage(projects)
    missing = sum(c.chunks - c.chunks_with_vector for c in covered)
    refused = sum(c.chunks_refused for c in covered)
    if error is not None and missing > refused:
        return Failed(message=f"{missing:,} chunks still have no vector: {error}")
    if missing > refused:
        return Completed(name="Partial", message=f"{missing - refused:,} chunks still wait")
    if refused:
        return Completed(name="Partial", message=f"{refused:,} chunks were refused by the model")
    return Completed(message=f"{sum(c.chunks for c in covered):,} chunks, all with a vector")
