"""One project, from its source to its vectors.

The order: fetch, plan, chunk and write lexical rows (searchable at once), record coverage, embed,
record coverage. Files and session logs fail apart: the one that can be read is indexed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, cast

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed
from prefect.utilities.annotations import quote

from concordance.adapters.postgres.projects import Hold
from concordance.errors import ConcordanceError, ProjectBusy, ProviderError, RunSuperseded
from concordance.index import Index
from concordance.indexing.outcome import judge_run
from concordance.models import Scope
from concordance.settings import ALL_SCOPES
from concordance.surveying import FILE_SCOPES
from concordance.writing import SourcePlan
from flows.parameters import Embed, Full, OneProject, Scopes, check_projects
from flows.states import state_of
from tasks.embedding import fill_vectors
from tasks.indexing import fetch_source, plan_files, plan_sessions, record_coverage, write_rows
from tasks.presenting import name_run
from tasks.shared import shared_index

SKIPPED = "Skipped"


@flow(name="reindex-project", flow_run_name="reindex {project}", log_prints=False)
def reindex_project(
    project: OneProject, scopes: Scopes = None, full: Full = False, embed: Embed = True
) -> State[Any]:
    """Bring one project up to date and say what its coverage came to.

    Args:
        project: A project's slug, as projects.toml has it.
        scopes: Kinds of source to bring up to date; none given means all.
        full: Read and write every document anew, changed or not.
        embed: Fill in vectors afterwards; if off, the text is found by its words alone.
    """
    check_projects("project", [project])
    index = shared_index()
    wanted = list(scopes or ALL_SCOPES)
    started = index.now()
    logger = get_run_logger()
    run_id = run_identifier()
    try:
        with index.hold(
            project, run_id, on_wait=lambda: logger.info("another run holds %s, waiting", project)
        ) as held:
            _index_files(index, held, project, wanted, full=full)
            _index_sessions(index, held, project, wanted, full=full)
    except ProjectBusy as busy:
        return Completed(name=SKIPPED, message=str(busy))
    if embed:
        embed_projects(index, [project], started)
    covered = [c for c in index.coverage([project]) if c.scope in wanted]
    return state_of(judge_run([project], covered))


def run_identifier() -> uuid.UUID:
    """The flow run's own id, by which the database knows the run as well."""
    return uuid.UUID(flow_run.id) if flow_run.id else uuid.uuid4()


def embed_projects(index: Index, projects: list[str] | None, started: datetime) -> str | None:
    """Fill in vectors and count them; a provider that is down costs the vectors alone."""
    error: str | None = None
    try:
        fill_vectors(projects, started)
    except ProviderError as failure:
        error = str(failure)
        get_run_logger().warning("lexical half only: %s", error)
    index.note_embedding(projects, error)
    return error


def _index_files(
    index: Index, held: Hold, project: str, wanted: Sequence[Scope], *, full: bool
) -> None:
    scopes = [scope for scope in FILE_SCOPES if scope in wanted]
    if not scopes:
        return
    with _failure_recorded(index, project, scopes):
        fetched = fetch_source(project)
        if fetched.commit:
            name_run(f"reindex {project} at {fetched.commit[:12]}")
        source = unvisited(plan_files(held, project, fetched.commit, scopes, full))
        write_rows(held, project, source)
        record_coverage(held, project, source, fetched.branch)


def _index_sessions(
    index: Index, held: Hold, project: str, wanted: Sequence[Scope], *, full: bool
) -> None:
    if Scope.SESSION not in wanted:
        return
    with _failure_recorded(index, project, [Scope.SESSION]):
        source = unvisited(plan_sessions(held, project, full))
        write_rows(held, project, source)
        record_coverage(held, project, source, None)


def unvisited(source: SourcePlan) -> SourcePlan:
    """The plan, marked so that Prefect does not walk through each of its files for futures."""
    return cast("SourcePlan", quote(source))


@contextmanager
def _failure_recorded(index: Index, project: str, scopes: Sequence[Scope]) -> Iterator[None]:
    """Keep a failure in the coverage of its scopes, and go on with the others."""
    try:
        yield
    except RunSuperseded:
        raise  # the run that took over keeps the account
    except ConcordanceError as error:
        get_run_logger().error("%s: %s", project, error)
        index.fail_attempt(project, scopes, str(error))
    except Exception as error:
        index.fail_attempt(project, scopes, f"unexpected {type(error).__name__}, see the run's log")
        raise
