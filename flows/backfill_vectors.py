"""Fill in vectors that are missing, in all projects or some; several runs may work at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from concordance.indexing.counting import counted
from concordance.models import CoverageState, ScopeCoverage
from flows.parameters import Projects, RetryRefused, check_projects
from flows.reindex_project import embed_projects
from tasks.announcing import announce_overdue, announce_provider
from tasks.presenting import run_name
from tasks.shared import shared_index


@flow(name="backfill-vectors", flow_run_name=run_name, log_prints=False)
def backfill_vectors(projects: Projects = None, retry_refused: RetryRefused = False) -> State[Any]:
    """Embed whatever waits for a vector, and say what is left.

    Args:
        projects: Slugs of the projects, as projects.toml has them; none given means all indexed.
        retry_refused: Also try the texts that the model refused too often.
    """
    check_projects("projects", projects or ())
    index = shared_index()
    started = index.now()
    if retry_refused:
        index.forgive_refused()
    error = embed_projects(index, projects, started)
    announce_overdue(index)
    announce_provider(index, error)
    return state_of_vectors(index.coverage(projects), error)


def state_of_vectors(covered: Sequence[ScopeCoverage], error: str | None) -> State[Any]:
    """The final state of a backfill, with the scopes that no backfill can bring up to date."""
    chunks = sum(c.chunks for c in covered)
    refused = sum(c.chunks_refused for c in covered)
    waiting = chunks - sum(c.chunks_with_vector for c in covered) - refused
    old = [c for c in covered if c.state in (CoverageState.STALE, CoverageState.FAILED)]
    more = "".join(f"; {c.project} {c.scope.value} is {c.state.value}: {c.reason}" for c in old)
    given_up = f"{counted(refused, 'chunk')} refused by the model"
    if refused and waiting:
        more = f"; {given_up}{more}"
    if error is not None and waiting:
        return Failed(message=f"{counted(waiting, 'chunk')} without a vector: {error}{more}")
    if waiting:
        message = f"{counted(waiting, 'chunk')} without a vector, left to the next run{more}"
        return Completed(name="Partial", message=message)
    if error is not None and chunks:
        # Nothing is left to embed, and all the same no question can be.
        also = f"; {given_up}" if refused else ""
        message = f"no chunk waits for a vector, but the provider fails: {error}{also}{more}"
        return Completed(name="LexicalOnly", message=message)
    if refused:
        return Completed(name="Partial", message=f"{given_up}{more}")
    return Completed(message=f"{counted(chunks, 'chunk')}, all with a vector{more}")
