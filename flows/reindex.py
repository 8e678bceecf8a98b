"""All projects: survey them cheaply, run those that have something to do, say what it came to."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from concordance.indexing.outcome import judge_run, never_begun
from concordance.models import Scope
from concordance.settings import ALL_SCOPES
from flows.parameters import Full, Projects, Scopes, check_projects
from flows.reindex_project import SKIPPED, embed_projects, reindex_project, run_identifier
from flows.states import state_of, words_of
from tasks.announcing import announce_overdue, announce_provider
from tasks.embedding import prepare_space
from tasks.indexing import survey_projects
from tasks.presenting import run_name, show_coverage
from tasks.shared import shared_index


@dataclass(frozen=True, slots=True)
class Ended:
    """How the run of one project ended: words for a report, and nothing that decides."""

    name: str
    words: str


@flow(name="reindex", flow_run_name=run_name, log_prints=False)
def reindex(projects: Projects = None, scopes: Scopes = None, full: Full = False) -> State[Any]:
    """Bring projects up to date; one that fails stops no other, and is named at the end.

    Args:
        projects: Slugs of the projects, as projects.toml has them; none given means all of them.
        scopes: Kinds of source to bring up to date; none given means all.
        full: Read and write every document anew, changed or not.
    """
    check_projects("projects", projects or ())
    index = shared_index()
    slugs = projects or [p.slug for p in index.configuration.projects]
    wanted = list(scopes or ALL_SCOPES)
    started = index.now()
    run_id = run_identifier()
    index.start_run(run_id, "reindex")
    provider_error = _check_provider()
    surveyed = survey_projects(slugs, wanted, full)
    changed = [project.slug for project in surveyed if project.action == "index"]
    before = index.coverage(changed)
    ended = _run_projects(index, changed, wanted, full=full, embed=provider_error is None)
    after = [c for c in index.coverage(changed) if c.scope in wanted]
    for slug, scopes_left in never_begun(changed, before, after).items():
        index.fail_attempt(slug, scopes_left, f"its run did not begin: {ended[slug].words}")
    provider_error = _embed_the_rest(index, slugs, started, provider_error)
    _note_provider(index, slugs, provider_error)
    covered = [c for c in index.coverage(slugs) if c.scope in wanted]
    verdict = judge_run(slugs, covered)
    skipped = [slug for slug in changed if ended[slug].name == SKIPPED]
    if skipped:
        more = f"skipped here, as another run holds it: {', '.join(skipped)}"
        verdict = replace(verdict, message=f"{verdict.message}; {more}")
    index.finish_run(run_id, {"outcome": verdict.outcome.value, "message": verdict.message})
    show_coverage(index, verdict)
    announce_overdue(index)
    announce_provider(index, provider_error)
    return state_of(verdict)


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
) -> dict[str, Ended]:
    """Run projects side by side; how the run of each ended, for the words of a report."""
    if not slugs:
        return {}
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
    return {slug: _ended(future.state) for slug, future in zip(slugs, futures, strict=True)}


def _ended(state: State[Any]) -> Ended:
    found = state.result(raise_on_failure=False) if state.is_completed() else None
    return found if isinstance(found, Ended) else Ended(state.name or "", words_of(state))


def _embed_the_rest(
    index: Index, slugs: list[str], started: datetime, error: str | None
) -> str | None:
    """Texts left over: of unchanged projects, and of a provider that came back since.

    Returns what is known of the provider then: it may have failed since it was asked at the start.
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
) -> Ended:
    """Run one project's flow, in this process or through its deployment; how it ended."""
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
        return Ended("", "") if run.state is None else _told(run.state)
    # The parent's heartbeat speaks for a flow in its own process; one more costs a second each.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        state = reindex_project(**parameters, return_state=True)
    state.result(raise_on_failure=True)
    return _told(state)


def _told(state: State[Any]) -> Ended:
    return Ended(state.name or "", words_of(state))
