"""The evaluation of a set as a task: rows and vectors that are there already are used again."""

from __future__ import annotations

from pathlib import Path

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from concordance.figures import Evaluation
from concordance.progress import announcer
from tasks.retrying import DELAYS, JITTER, worth_retrying
from tasks.shared import shared_index


@task(
    name="evaluate",
    task_run_name="evaluate {data}",
    retries=len(DELAYS),
    retry_delay_seconds=DELAYS,
    retry_jitter_factor=JITTER,
    retry_condition_fn=worth_retrying,
    cache_policy=NO_CACHE,
)
def evaluate_set(data: Path, language: str, vectors: bool) -> Evaluation:
    """Measure every ranking on the set in a folder."""
    found = shared_index().evaluate(
        data,
        language=language,
        vectors=vectors,
        progress=lambda stage, done, total: announcer(stage, data.name)(done, total),
    )
    get_run_logger().info("%s: %d questions asked", found.name, found.questions)
    return found
