"""The steps of one project's run as tasks: fetch, plan, write, record."""

from __future__ import annotations

from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from concordance.adapters.postgres.projects import Hold
from concordance.models import Scope
from concordance.progress import announcer
from concordance.surveying import Surveyed
from concordance.writing import Fetched, SourcePlan, Written
from tasks.presenting import step_name
from tasks.retrying import DELAYS, JITTER, worth_retrying
from tasks.shared import credential_of, shared_index

# No step is cached: the same arguments mean another source an hour later.
_retried: dict[str, Any] = {
    "retries": len(DELAYS),
    "retry_delay_seconds": DELAYS,
    "retry_jitter_factor": JITTER,
    "retry_condition_fn": worth_retrying,
    "cache_policy": NO_CACHE,
}


@task(name="survey", task_run_name="survey", **_retried)
def survey_projects(slugs: list[str], scopes: list[Scope], full: bool) -> list[Surveyed]:
    """Which projects have something to do, at one `ls-remote` each."""
    logger = get_run_logger()
    found = shared_index().survey(
        slugs,
        scopes=scopes,
        full=full,
        credential=credential_of,
        progress=announcer("survey", "projects"),
    )
    for project in found:
        if project.action != "none":
            logger.info("%s: %s (%s)", project.slug, project.action, project.reason)
    unchanged = sum(project.action == "none" for project in found)
    logger.info("%d of %d projects have nothing to do", unchanged, len(found))
    return found


@task(name="fetch", task_run_name="fetch {project}", **_retried)
def fetch_source(project: str) -> Fetched:
    """Bring the newest commit to this machine."""
    index = shared_index()
    fetched = index.fetch(project, credential_of(index.project(project)))
    get_run_logger().info("%s is at %s", project, (fetched.commit or "no commit")[:12])
    return fetched


@task(name="plan files", task_run_name=step_name("plan {project} files"), **_retried)
def plan_files(
    held: Hold, project: str, commit: str | None, scopes: list[Scope], full: bool
) -> SourcePlan:
    """What has to change so that the rows show the commit."""
    source = shared_index().plan_files(held, project, commit, scopes=scopes, full=full)
    get_run_logger().info("%s: %s", project, source.plan)
    return source


@task(name="plan sessions", task_run_name="plan {project} sessions", **_retried)
def plan_sessions(held: Hold, project: str, full: bool) -> SourcePlan:
    """What has to change so that the rows show the logs."""
    source = shared_index().plan_sessions(held, project, full=full)
    get_run_logger().info("%s sessions: %s", project, source.plan)
    return source


@task(name="write lexical rows", task_run_name=step_name("write {project}"), **_retried)
def write_rows(held: Hold, project: str, source: SourcePlan) -> Written:
    """Chunk and write; from here on the text is found by its words."""
    written = shared_index().write(held, project, source, announcer("write", project))
    get_run_logger().info("%s: %d documents, %d chunks", project, written.written, written.chunks)
    return written


@task(name="record coverage", task_run_name=step_name("record {project}"), **_retried)
def record_coverage(held: Hold, project: str, source: SourcePlan, branch: str | None) -> None:
    """Count, and say that the rows show the source."""
    shared_index().close_attempt(held, project, source, branch=branch)
