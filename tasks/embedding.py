"""Filling in vectors as a task: it goes on where it was when it is tried again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from concordance.embedding import Embedded
from concordance.indexing.counting import counted
from concordance.progress import announcer
from tasks.presenting import EmbeddingProgress
from tasks.retrying import DELAYS, JITTER, worth_retrying
from tasks.shared import shared_index


def _subject(projects: list[str] | None) -> str:
    """Whose texts these are, in a word or two."""
    if projects is None:
        return "all projects"
    return projects[0] if len(projects) == 1 else counted(len(projects), "project")


def _name(parameters: dict[str, Any]) -> str:
    return f"embed {_subject(parameters['projects'])}"


_named: Callable[..., str] = _name


@task(
    name="embed",
    task_run_name=_named,
    retries=len(DELAYS),
    retry_delay_seconds=DELAYS,
    retry_jitter_factor=JITTER,
    retry_condition_fn=worth_retrying,
    cache_policy=NO_CACHE,
)
def fill_vectors(
    projects: list[str] | None, started: datetime, limit: int | None = None
) -> Embedded:
    """Embed what is pending in these projects, or in all."""
    subject = _subject(projects)
    announce, show = announcer("embed", subject), EmbeddingProgress(subject)

    def progress(texts: int, total: int) -> None:
        announce(texts, total)
        show(texts, total)

    done = shared_index().fill_vectors(projects, started=started, limit=limit, progress=progress)
    get_run_logger().info(
        "%d texts embedded by %s, %d refused, %d pending",
        done.embedded,
        done.model,
        done.refused,
        done.pending,
    )
    for trouble in done.troubles:
        get_run_logger().warning("left out while the others embed: %s", trouble)
    return done


@task(
    name="check provider",
    task_run_name="check provider",
    retries=len(DELAYS),
    retry_delay_seconds=DELAYS,
    retry_jitter_factor=JITTER,
    retry_condition_fn=worth_retrying,
    cache_policy=NO_CACHE,
)
def prepare_space() -> str:
    """Ask the provider for its vector space, before anything is fetched."""
    index = shared_index()
    name = index.prepare_space()
    for trouble in index.provider_servers()[1]:
        get_run_logger().warning("left out while the others embed: %s", trouble)
    return name
