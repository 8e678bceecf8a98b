"""All projects: survey them cheaply, run those that have something to do, say what it came to."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment
from prefect.futures import PrefectFuture, wait
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.task_runners import ThreadPoolTaskRunner

from concordance.errors import ProviderError
from concordance.index import Index
from concordance.indexing.outcome import judge_run
from concordance.models import Scope
from concordance.settings import ALL_SCOPES
from flows.reindex_project import embed_projects, reindex_project, run_identifier
from flows.states import state_of
from tasks.embedding import prepare_space
from tasks.indexing import survey_projects
from tasks.shared import shared_index


@flow(name="reindex", log_prints=False)
def reindex(
    projects: list[str] | None = None, scopes: list[Scope] | None = None, full: bool = False
) -> State[Any]:
    """Bring projects up to date; one that fails stops no other, and is named at the end.

    Args:
        projects: Slugs of the projects; none given means all of projects.toml.
        scopes: Kinds of source to bring up to date; none given means all.
        full: Read and write every document anew, changed or not.
    """
    index = shared_index()
    slugs = projects or [p.slug for p in index.configuration.projects]
    for slug in slugs:
        index.project(slug)
    wanted = list(scopes or ALL_SCOPES)
    started = index.now()
    run_id = run_identifier()
    index.start_run(run_id, "reindex")
    provider_error = _check_provider()
    surveyed = survey_projects(slugs, wanted, full)
    changed = [project.slug for project in surveyed if project.action == "index"]
    before = _attempts(index, changed, wanted)
    _run_projects(index, changed, wanted, full=full, embed=provider_error is None)
    _note_provider(index, slugs, _embed_the_rest(index, slugs, started, provider_error))
    after = _attempts(index, changed, wanted)
    covered = [c for c in index.coverage(slugs) if c.scope in wanted]
    # A run that ended before it touched its project leaves yesterday's coverage as it was.
    untouched = {slug for slug in changed if after.get(slug) == before.get(slug)}
    verdict = judge_run(slugs, covered, untouched=untouched)
    index.finish_run(run_id, {"outcome": verdict.outcome.value, "message": verdict.message})
    return state_of(verdict)


def _attempts(
    index: Index, slugs: list[str], scopes: list[Scope]
) -> dict[str, list[datetime | None]]:
    """When each scope of some projects was last touched, by whichever run."""
    found: dict[str, list[datetime | None]] = {}
    for scope in index.coverage(slugs) if slugs else ():
        if scope.scope in scopes:
            found.setdefault(scope.project, []).append(scope.last_attempt)
    return found


def _check_provider() -> str | None:
    """Notice once, before any fetch, that the provider is down or lacks the model."""
    try:
        prepare_space()
    except ProviderError as error:
        get_run_logger().warning("no vectors for now: %s", error)
        return str(error)
    return None


def _note_provider(index: Index, slugs: list[str], error: str | None) -> None:
    """Keep a provider's failure though nothing waited for it, and forget one that is over."""
    changed = [c.project for c in index.coverage(slugs) if c.embedding_error != error]
    if changed:
        index.note_embedding(sorted(set(changed)), error)


def _run_projects(
    index: Index, slugs: list[str], scopes: list[Scope], *, full: bool, embed: bool
) -> None:
    if not slugs:
        return
    settings = index.configuration.settings
    pool: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(settings.max_parallel_projects)
    with pool as runner:
        futures: list[PrefectFuture[Any]] = [
            runner.submit(
                run_project,
                parameters={
                    "project": slug,
                    "scopes": scopes,
                    "full": full,
                    "embed": embed,
                    "deployed": settings.work_pool,
                },
            )
            for slug in slugs
        ]
        wait(futures)


def _embed_the_rest(
    index: Index, slugs: list[str], started: datetime, error: str | None
) -> str | None:
    """Texts left over: of unchanged projects, and of a provider that came back since.

    Returns:
        What the provider said last, to whoever asked it: `error` where nothing was left to ask.
    """
    left = [
        scope.project
        for scope in index.coverage(slugs)
        if scope.chunks_with_vector + scope.chunks_refused < scope.chunks or scope.chunks_refused
    ]
    return embed_projects(index, sorted(set(left)), started) if left else error


@task(name="project", task_run_name="run {project}", cache_policy=NO_CACHE)
def run_project(
    project: str, scopes: list[Scope], full: bool, embed: bool, deployed: bool
) -> str | None:
    """Run one project's flow, in this process or through its deployment; its state's message."""
    parameters: dict[str, Any] = {
        "project": project,
        "scopes": [scope.value for scope in scopes],
        "full": full,
        "embed": embed,
    }
    if deployed:
        run = cast(
            "FlowRun", run_deployment("reindex-project/reindex-project", parameters=parameters)
        )
        return run.state.message if run.state else None
    # The parent's heartbeat speaks for a flow in its own process; one more costs a second each.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        state = reindex_project(**parameters, return_state=True)
    state.result(raise_on_failure=True)
    return state.message
