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
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.browser import chromium
from tests.acceptance.conftest import Person
from tests.examples import example
from tests.sources import GitSource

PATIENCE = 120


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, secret_rules: Path
) -> Iterator[tuple[Person, str]]:
    person = Person.new(tmp_path_factory, "served", secret_rules)
    folder = person.folder
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
    # A run that was started and not waited for counts as one at work.
    assert person.run("down", "--force").code == 0


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
    # As a job asks that knows Prefect only.
    done = subprocess.run(
        [sys.executable, "-c", example("downstream.md", "python", "run_deployment")],
        cwd=person.folder,
        env=person.environment()
        | {"PREFECT_API_URL": api, "PREFECT_HOME": str(person.home / "state" / "prefect")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("lamp docs/a.md ")


def test_a_run_is_started_over_http_on_the_server_of_this_machine(
    served: tuple[Person, str],
) -> None:
    person, api = served
    deployment(api, "reindex/reindex")
    with subprocess.Popen(
        [str(Path(sys.executable).with_name("concordance")), "http", "--port", "0"],
        cwd=person.folder,
        env=person.environment(),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        address = process.stderr.readline().strip()
        started = ask(address, "v1/reindex", {"projects": ["lamp"], "scopes": ["docs"]})
        process.send_signal(signal.SIGINT)
        process.wait(30)
    run = ask(api, f"/flow_runs/{started['flow_run_id']}")
    assert run["parameters"] == {"projects": ["lamp"], "scopes": ["docs"], "full": False}
    assert started["address"] == f"{api.removesuffix('/api')}/runs/flow-run/{run['id']}"


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


WEB = "https://git.example.org/team/lamp"
HOSTILE = "<img src=x onerror=alert(1)>"


def newest(api: str, key: str) -> dict[str, Any]:
    asked = {"artifacts": {"key": {"any_": [key]}}, "sort": "CREATED_DESC", "limit": 1}
    found: list[dict[str, Any]] = ask(api, "/artifacts/filter", asked)
    return found[0]


def ended(api: str, flow: str, since: str) -> dict[str, Any]:
    """The run of a flow that began last, once it is over."""
    over = {"any_": ["COMPLETED", "FAILED", "CRASHED", "CANCELLED"]}
    asked = {
        "flows": {"name": {"any_": [flow]}},
        "flow_runs": {"start_time": {"after_": since}, "state": {"type": over}},
        "sort": "START_TIME_DESC",
        "limit": 1,
    }
    deadline = time.monotonic() + PATIENCE
    while not (found := ask(api, "/flow_runs/filter", asked)):
        assert time.monotonic() < deadline, f"no run of {flow} has ended"
        time.sleep(0.3)
    return dict(found[0])


def test_a_person_fills_the_forms_and_reads_the_pages_in_chromium(
    served: tuple[Person, str], tmp_path: Path
) -> None:
    person, api = served
    reindexing, searching = (deployment(api, f"{name}/{name}") for name in ("reindex", "search"))
    source = GitSource(person.folder / "lamp")
    text = f"# Dim\n\nSend a level to dim it. {HOSTILE} https://evil.example\n"
    source.commit({"docs/bad.md": b"# Bad\n\n\xb2\xe2\n", "docs/dim.md": text})
    commit = source.git("rev-parse", "HEAD").strip()
    with (person.folder / "projects.toml").open("a", encoding="utf-8") as file:
        file.write(f'web_url = "{WEB}"\n')
    since = datetime.now(UTC).isoformat()
    with chromium(api.removesuffix("/api"), tmp_path) as browser:
        browser.open(f"/deployments/deployment/{reindexing}/run")
        browser.read("Everything anew", "Kinds of source to bring up to date; none given means all")
        assert browser.submit() == HTTPStatus.CREATED
        run = ended(api, "reindex", since)
        assert run["state_name"] == "Partial", run["state"]
        browser.open(f"/runs/flow-run/{run['id']}")
        browser.read("reindex all projects")
        browser.picture("run.png")
        browser.open(f"/artifacts/artifact/{newest(api, 'coverage')['id']}")
        browser.read("Not up to date: 1 scope", "not UTF-8: byte 0xb2 at offset 7, line 3")
        at = f"{WEB}/blob/{commit}/docs"
        assert browser.links(WEB) == [(f"{at}/bad.md?plain=1#L3-L3", "docs/bad.md")]
        browser.picture("coverage.png")
        browser.open(f"/deployments/deployment/{searching}/run")
        browser.page.locator("textarea").first.fill("how do I dim it?")
        browser.picture("form.png")
        browser.field("Hits").locator("input").fill("0")
        assert browser.submit() == HTTPStatus.CONFLICT
        browser.read("Validation failed for field 'request.top_k'")
        browser.field("Hits").locator("input").fill("1")
        assert browser.submit() == HTTPStatus.CREATED
        run = ended(api, "search", since)
        assert (run["state_type"], run["name"]) == ("COMPLETED", "search: how do I dim it?")
        browser.open(f"/artifacts/artifact/{newest(api, 'answer')['id']}")
        browser.read("how do I dim it?", HOSTILE)
        cited = f"lamp:docs/dim.md:1-3@{commit[:12]}"
        assert browser.links(WEB) == [(f"{at}/dim.md?plain=1#L1-L3", cited)]
        assert browser.links("evil") == []
        browser.picture("answer.png")
        assert browser.hosts == {api.split("/")[2]}, "nobody else is asked"
        browser.open(f"/v2/artifacts/artifact/{newest(api, 'answer')['id']}")
        browser.read("What was searched")
        assert browser.links("evil") == []
        assert browser.page.locator("img[src='x']").count() == 0
    assert browser.dialogs == []
