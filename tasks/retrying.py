"""Which failures of a task are worth another try: decided by type, in one place."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from concordance.errors import ProjectBusy, Retryable

# Seconds before each further try, spread by up to this share so that many tasks don't come at once.
DELAYS = [2.0, 8.0]
JITTER = 0.5


def worth_retrying(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether the failure may be gone in a moment."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, Retryable) and not isinstance(error, ProjectBusy)
