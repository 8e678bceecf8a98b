"""Starting the deployment of `reindex` from outside of Prefect."""

from __future__ import annotations

from typing import cast

import pytest
from prefect.client.orchestration import get_client
from prefect.deployments.runner import RunnerDeployment
from prefect.settings import PREFECT_API_URL, temporary_settings

from concordance.errors import OrchestrationError
from concordance.models import Scope
from flows.reindex import reindex
from tasks.deployments import start_reindex


def test_a_run_is_started_with_its_parameters_and_told_of_with_its_page() -> None:
    with pytest.raises(OrchestrationError, match="there is no deployment 'reindex/reindex'"):
        start_reindex(None, None, full=False)
    cast("RunnerDeployment", reindex.to_deployment("reindex")).apply()
    started = start_reindex(["beacon"], [Scope.DOCS], full=True)
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(started.flow_run_id)
        client.delete_deployment(run.deployment_id)  # type: ignore[arg-type]
    assert run.parameters == {"projects": ["beacon"], "scopes": ["docs"], "full": True}
    assert run.name == started.name
    assert str(started.address).endswith(f"/runs/flow-run/{run.id}")


def test_a_server_that_is_away_is_told_by_type() -> None:
    with (
        temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}),
        pytest.raises(OrchestrationError, match="did not start the run"),
    ):
        start_reindex(None, None, full=False)
