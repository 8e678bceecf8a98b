"""Filling in vectors as a task: it goes on where it was when it is tried again."""

from __future__ import annotations

from datetime import datetime

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from concordance.embedding import Embedded
from concordance.progress import announcer
from tasks.retrying import DELAYS, JITTER, worth_retrying
from tasks.shared import shared_index


@task(
    name="embed",
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
    subject = projects[0] if projects is not None and len(projects) == 1 else "texts"
    done = shared_index().fill_vectors(
        projects, started=started, limit=limit, progress=announcer("embed", subject)
    )
    get_run_logger().info(
        "%d texts embedded by %s, %d refused, %d pending",
        done.embedded,
        done.model,
        done.refused,
        done.pending,
    )
    return done


@task(
    name="check provider",
    retries=len(DELAYS),
    retry_delay_seconds=DELAYS,
    retry_jitter_factor=JITTER,
    retry_condition_fn=worth_retrying,
    cache_policy=NO_CACHE,
)
def prepare_space() -> str:
    """Ask the provider for its vector space, before anything is fetched."""
    return shared_index().prepare_space()
