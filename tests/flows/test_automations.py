"""Automations: deployed twice they are there once, and they fire on a real Prefect server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml  # type: ignore[import-untyped]
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.events.schemas.automations import AutomationCore
from prefect.events.utilities import emit_event
from prefect.states import Failed, Pending, Running, Submitting

from concordance.errors import SettingsError
from concordance.indexing.overdue import overdue
from concordance.models import CoverageState, Scope
from concordance.settings import Project
from flows.automations import deploy_automations
from flows.backfill_vectors import backfill_vectors
from flows.reindex import reindex
from tasks import announcing, embedding, retrying, shared
from tests.conftest import Clock, IndexMaker
from tests.fake_ollama import FakeOllama
from tests.sources import GitSource
from tests.unit.cli.test_printing import coverage

FILE = Path(__file__).parents[2] / "deployments" / "automations.yaml"
DESCRIBED = yaml.safe_load(FILE.read_text(encoding="utf-8"))["automations"]
NAMES = [one["name"] for one in DESCRIBED]
DIED, NEVER_BEGAN, FAILED, OVERDUE, PROVIDER = NAMES
PATIENCE = 60.0
NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding.fill_vectors, "retry_delay_seconds", [0.0] * len(retrying.DELAYS))


@pytest.fixture
def automations(tmp_path: Path) -> Iterator[Path]:
    """The file, with the shortest silence that Prefect takes, and no automation afterwards."""
    found = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    for number, seconds in enumerate((120, 300)):
        assert found["automations"][number]["trigger"]["within"] == seconds
        found["automations"][number]["trigger"]["within"] = 10
    file = tmp_path / "automations.yaml"
    file.write_text(yaml.safe_dump(found), encoding="utf-8")
    yield file
    with get_client(sync_client=True) as client:
        for automation in client.read_automations():
            client.delete_automation(automation.id)


def fired() -> list[dict[str, Any]]:
    """Every firing that the server tells of."""
    asked = {"filter": {"event": {"name": ["prefect.automation.triggered"]}}, "limit": 50}
    with get_client(sync_client=True) as client:
        events = client.request("POST", "/events/filter", json=asked).json()["events"]
    return [event["resource"] | {"occurred": event["occurred"]} for event in events]


def named(found: list[dict[str, Any]]) -> list[str]:
    return sorted(str(one["prefect.resource.name"]) for one in found)


def wait_for(what: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.25)
    return found


def test_what_is_deployed_twice_is_there_once_and_stays_switched_off(automations: Path) -> None:
    assert deploy_automations(automations) == dict.fromkeys(NAMES, "created")
    assert deploy_automations(automations) == dict.fromkeys(NAMES, "unchanged")
    with get_client(sync_client=True) as client:
        (one,) = client.read_automations_by_name(FAILED)
        client.pause_automation(one.id)
        (died,) = client.read_automations_by_name(DIED)
        client.create_automation(AutomationCore.model_validate(died.model_dump(mode="json")))
    changed = automations.read_text(encoding="utf-8").replace("Crashed", "Dead")
    automations.write_text(changed, encoding="utf-8")
    again = deploy_automations(automations)
    assert again[DIED] == "updated"
    assert again[OVERDUE] == "unchanged"
    with get_client(sync_client=True) as client:
        found = client.read_automations()
    assert sorted(a.name for a in found) == sorted(NAMES)
    assert {a.name for a in found if not a.enabled} == {FAILED}


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_a_notification_goes_through_the_block_that_is_named(automations: Path) -> None:
    with pytest.raises(SettingsError, match="no Prefect block 'slack-webhook/ops'"):
        deploy_automations(automations, "slack-webhook/ops")
    from prefect.blocks.notifications import SlackWebhook  # noqa: PLC0415 - it loads much

    block = SlackWebhook(url="http://127.0.0.1:1/hook").save("ops")  # type: ignore[arg-type]
    assert set(deploy_automations(automations, "slack-webhook/ops")) == set(NAMES)
    with get_client(sync_client=True) as client:
        for automation in client.read_automations():
            kinds = [action.type for action in automation.actions]
            (described,) = [d for d in DESCRIBED if d["name"] == automation.name]
            assert ("send-notification" in kinds) == ("notification" in described)
            assert "hook" not in automation.model_dump_json()
    assert block is not None


@flow(name="reindex")
def pretended() -> None:
    """A flow of that name, so that a run of it is one of ours."""


def begun() -> UUID:
    """A run that is at work, as far as the server knows."""
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(pretended, state=Running())
        return run.id


def beat(run: UUID) -> None:
    """What a run's own heartbeat thread sends."""
    with get_client(sync_client=True) as client:
        at = client.read_flow_run(run)
    emit_event(
        "prefect.flow-run.heartbeat",
        resource={"prefect.resource.id": f"prefect.flow-run.{run}"},
        related=[
            {
                "prefect.resource.id": f"prefect.flow.{at.flow_id}",
                "prefect.resource.role": "flow",
                "prefect.resource.name": "reindex",
            }
        ],
    )


def state_of(run: UUID) -> str:
    with get_client(sync_client=True) as client:
        found = client.read_flow_run(run).state
    return "" if found is None else str(found.name)


def test_each_fires_and_a_dead_run_is_called_crashed(
    automations: Path, make_index: IndexMaker, tmp_path: Path, clock: Clock, provider: FakeOllama
) -> None:
    deploy_automations(automations)
    time.sleep(2)  # the server reads its automations anew when it is told of them
    dead, ended = begun(), begun()
    beat(dead)
    beat(ended)
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(ended, Failed(message="as it should be told"), force=True)
        # Two that workers took; one of them began, whether or not it sends a heartbeat.
        taken, working = (client.create_flow_run(pretended, state=Pending()).id for _ in range(2))
        for run in (taken, working):
            client.set_flow_run_state(run, Submitting(), force=True)
        client.set_flow_run_state(working, Running(), force=True)
    GitSource.make(tmp_path / "lamp", {"docs/a.md": "# Lamp\n\nIt speaks MQTT.\n"})
    shared.adopt_index(make_index(Project(slug="lamp", path=tmp_path / "lamp")))
    reindex()
    clock.now += timedelta(hours=47)
    backfill_vectors()
    assert OVERDUE not in named(fired())
    clock.now += timedelta(hours=2)
    provider.stop()
    shared.shared_index().reset_breaker()
    for _ in range(2):  # an hour later it is told again, and fires no second time
        backfill_vectors(return_state=True)
    wait_for(lambda: state_of(dead) == "Crashed")
    wait_for(lambda: state_of(taken) == "Crashed")
    assert [state_of(run) for run in (ended, working)] == ["Failed", "Running"]
    found = wait_for(lambda: (now := fired()) and len(now) >= 9 and now)
    # Three scopes of one project, each once; runs that were found dead have failed as well.
    expected = [DIED, NEVER_BEGAN, PROVIDER, *([FAILED] * 3), *([OVERDUE] * 3)]
    assert named(found) == sorted(expected)


def test_a_scope_is_overdue_by_its_project_s_limit() -> None:
    hours = {"usual": 48.0, "slow": 100.0}
    covered = [
        coverage(project="usual", last_success=NOW - timedelta(hours=49)),
        coverage(project="usual", scope=Scope.ADR, last_success=NOW - timedelta(hours=48)),
        coverage(project="slow", last_success=NOW - timedelta(hours=99)),
        coverage(project="gone", last_success=NOW - timedelta(hours=999)),
        coverage(CoverageState.FAILED, project="usual", scope=Scope.SESSION, last_success=None),
        coverage(project="slow", scope=Scope.ADR, last_success=NOW - timedelta(hours=101)),
    ]
    found = overdue(covered, hours, NOW)
    assert [(o.project, o.scope.value) for o in found] == [("slow", "adr"), ("usual", "docs")]


def test_the_events_that_are_sent_are_those_that_are_waited_for() -> None:
    expected = {event for one in DESCRIBED for event in one["trigger"]["expect"]}
    assert {announcing.SCOPE_OVERDUE, announcing.PROVIDER_FAILED} <= expected
