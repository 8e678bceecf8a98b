"""`concordance serve`: deployments that the Prefect UI can start, run by a real worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Person
from tests.sources import GitSource

PATIENCE = 120


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Person, str]]:
    folder = tmp_path_factory.mktemp("served")
    person = Person(folder, tmp_path_factory.mktemp("served-home"))
    GitSource.make(folder / "lamp", {"docs/a.md": "# Lamp\n\nLamps speak MQTT.\n"})
    (folder / "projects.toml").write_text(
        '[settings]\nallowed_schemes = ["file"]\n[[projects]]\nslug = "lamp"\npath = "lamp"\n',
        encoding="utf-8",
    )
    api = person.run("ui").out.strip() + "/api"
    serving = subprocess.Popen(
        [str(Path(sys.executable).with_name("concordance")), "serve"],
        cwd=folder,
        env=person.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    yield person, api
    os.killpg(serving.pid, signal.SIGINT)
    try:
        serving.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(serving.pid, signal.SIGKILL)
        serving.wait(10)
    person.run("down")


def ask(api: str, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 - our own server on loopback
        f"{api}{path}", data=data, headers={"Content-Type": "application/json"}
    )
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - likewise
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            # The server's SQLite is locked for a moment when several write; clients try again.
            if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def deployment(api: str, name: str) -> str:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return str(ask(api, f"/deployments/name/{name}")["id"])
        except urllib.error.HTTPError:
            assert time.monotonic() < deadline, f"{name} was never deployed"
            time.sleep(0.5)


def run_to_end(api: str, name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    created = ask(
        api, f"/deployments/{deployment(api, name)}/create_flow_run", {"parameters": parameters}
    )
    deadline = time.monotonic() + PATIENCE
    while True:
        run: dict[str, Any] = ask(api, f"/flow_runs/{created['id']}")
        if run["state_type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"):
            return run
        assert time.monotonic() < deadline, f"{name} is still {run['state_name']}"
        time.sleep(0.5)


def test_a_run_started_through_its_deployment_indexes_and_can_be_searched(
    served: tuple[Person, str],
) -> None:
    person, api = served
    run = run_to_end(api, "reindex/reindex", {})
    assert (run["state_type"], run["state_name"]) == ("COMPLETED", "Completed"), run["state"]
    assert person.run("coverage", "--check").code == 0
    searched = run_to_end(api, "search/search", {"request": {"text": "what do lamps speak?"}})
    assert searched["state_type"] == "COMPLETED"


def test_the_pages_ask_the_server_that_they_came_from(served: tuple[Person, str]) -> None:
    _, api = served
    settings = ask(api.removesuffix("/api"), "/ui-settings")
    assert settings["api_url"] == api


def test_to_deploy_again_warns_of_nothing(served: tuple[Person, str]) -> None:
    person, api = served
    deployment(api, "search/search")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [
            *(sys.executable, "-W", "always", "-m", "prefect", "--no-prompt", "deploy", "--all"),
            *("--prefect-file", "deployments/prefect.yaml"),
        ],
        cwd=root,
        env=person.environment() | {"PREFECT_API_URL": api, "CONCORDANCE_ROOT": str(root)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert "FutureWarning" not in done.stdout + done.stderr


def test_every_deployment_of_the_file_is_there_with_its_schedule(
    served: tuple[Person, str],
) -> None:
    _, api = served
    for name in (
        "reindex/reindex",
        "reindex-project/reindex-project",
        "backfill-vectors/backfill-vectors",
        "search/search",
    ):
        deployment(api, name)
    nightly = ask(api, "/deployments/name/reindex/reindex")
    (schedule,) = nightly["schedules"]
    assert schedule["schedule"]["cron"] == "30 2 * * *"
    assert schedule["schedule"]["timezone"] == "Europe/Berlin"
    form = nightly["parameter_openapi_schema"]["properties"]
    assert all(form[name]["description"] for name in ("projects", "scopes", "full"))


def test_serving_deploys_the_automations_and_doing_it_again_changes_nothing(
    served: tuple[Person, str],
) -> None:
    person, api = served
    deployed = ask(api, "/deployments/name/reindex/reindex")
    assert deployed["job_variables"]["env"] == {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}
    done = person.run("automations", "deploy", "--json")
    assert done.code == 0, done.err
    assert set(done.json["automations"].values()) == {"unchanged"}
    assert {a["name"] for a in ask(api, "/automations/filter", {})} == set(done.json["automations"])
    wrong = person.run("automations", "deploy", CONCORDANCE_NOTIFICATION_BLOCK="slack-webhook/no")
    assert wrong.code == 1
    assert "there is no Prefect block 'slack-webhook/no'" in wrong.err


def test_a_wrong_value_is_refused_by_the_server_with_its_field_s_name(
    served: tuple[Person, str],
) -> None:
    _, api = served
    asked = {"parameters": {"request": {"text": "x", "top_k": 0}}}
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(api, f"/deployments/{deployment(api, 'search/search')}/create_flow_run", asked)
    assert caught.value.code == HTTPStatus.CONFLICT
    assert "request.top_k" in caught.value.read().decode()
