"""Starting a deployment from outside of Prefect: nothing here waits for the run.

What belongs here: asking Prefect's API, and its failures as errors of ours.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import httpx
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.utilities.urls import url_for

from concordance.errors import OrchestrationError
from concordance.models import Scope

REINDEX = "reindex/reindex"


@dataclass(frozen=True, slots=True)
class Started:
    """A run that was started, and its page in the Prefect UI."""

    flow_run_id: uuid.UUID
    name: str
    address: str | None


def start_reindex(
    projects: Sequence[str] | None, scopes: Sequence[Scope] | None, full: bool
) -> Started:
    """Have a worker bring projects up to date, at once or after the run that is under way.

    Raises:
        OrchestrationError: There is no such deployment, or the API does not answer.
    """
    parameters = {
        "projects": None if projects is None else list(projects),
        "scopes": None if scopes is None else [scope.value for scope in scopes],
        "full": full,
    }
    try:
        # In a thread without an event loop the call is made at once.
        run = cast(
            "FlowRun",
            run_deployment(REINDEX, parameters=parameters, timeout=0, as_subflow=False),
        )
    except ObjectNotFound as error:
        raise OrchestrationError(
            f"there is no deployment '{REINDEX}'",
            hint="Deploy it: 'concordance serve', or 'prefect deploy --all'",
        ) from error
    except httpx.HTTPError as error:
        raise OrchestrationError("the Prefect API did not start the run") from error
    return Started(run.id, run.name, url_for(run))
