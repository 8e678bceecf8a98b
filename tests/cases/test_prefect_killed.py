"""A run that is killed while it makes vectors, and the next one, on a real server and worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Person
from tests.acceptance.test_serve import ask, deployment
from tests.fake_ollama import Asked, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.sources import GitSource

PATIENCE = 120
ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


@dataclass
class Desk:
    """A person's folder with a Prefect server, a worker, and an embedding provider."""

    person: Person
    api: str
    provider: FakeOllama

    def start(self) -> str:
        path = f"/deployments/{deployment(self.api, 'reindex/reindex')}/create_flow_run"
        return str(ask(self.api, path, {"parameters": {}})["id"])

    def run(self, number: str) -> dict[str, Any]:
        found: dict[str, Any] = ask(self.api, f"/flow_runs/{number}")
        return found

    def coverage(self) -> dict[str, Any]:
        rows = self.person.run("coverage", "--json").json
        return next(row for row in rows if row["scope"] == "docs")


@pytest.fixture
def desk(
    tmp_path_factory: pytest.TempPathFactory, secret_rules: Path, provider: FakeOllama
) -> Iterator[Desk]:
    person = Person.new(tmp_path_factory, "killed", secret_rules)
    folder = person.folder
    parts = "".join(f"## Part {n}\n\nText of part {n}.\n\n" for n in range(300))
    GitSource.make(folder / "lamp", {"docs/a.md": f"# Lamp\n\n{parts}"})
    (folder / "projects.toml").write_text(
        '[settings]\nallowed_schemes = ["file"]\n'
        'embedding_model = "ollama/nomic-embed-text"\n'
        f'ollama_url = "{provider.url}"\n'
        '[[projects]]\nslug = "lamp"\npath = "lamp"\n',
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
    yield Desk(person, api, provider)
    os.killpg(serving.pid, signal.SIGINT)
    try:
        serving.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(serving.pid, signal.SIGKILL)
        serving.wait(10)
    assert person.run("down", "--force").code == 0


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def processes_of(run: str) -> list[int]:
    """Processes that work on a flow run, by the variable that Prefect gives them."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            held = (place / "environ").read_bytes()
        except OSError:
            continue
        if run.encode() in held:
            found.append(int(place.name))
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_a_run_that_is_killed_holds_up_no_later_one_pre_4(desk: Desk) -> None:
    sent = 0

    def stalls(asked: Asked) -> Fault | None:
        nonlocal sent
        sent += sum("Text of part" in text for text in asked.inputs)
        return Fault.hanging() if sent > 100 else None

    desk.provider.rule = stalls
    first = desk.start()
    eventually(lambda: sent > 100, "no vectors were asked for")
    killed = processes_of(first)
    assert killed
    for process in killed:
        os.kill(process, signal.SIGKILL)
    said = desk.coverage()
    assert said["state"] != "complete", "what was cut off is not shown as complete"
    assert said["chunks_with_vector"] < 300
    desk.provider.rule = None
    second = desk.start()
    eventually(lambda: desk.run(second)["state_type"] in ENDED, "the second run never ended")
    assert desk.run(second)["state_name"] == "Completed", desk.run(second)["state"]
    said = desk.coverage()
    assert (said["state"], said["chunks"]) == ("complete", said["chunks_with_vector"])
    assert said["chunks"] >= 300
    eventually(lambda: desk.run(first)["state_type"] == "CRASHED", "the first still runs")
