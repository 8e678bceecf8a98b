"""A command whose Prefect server goes away: it ends soon, and says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import concordance
from concordance.cli import watching
from concordance.cli.watching import Absence, Connection, Watched
from concordance.errors import ServerLost
from concordance.interruption import abandoned, forget_request, stop_requested

SECONDS = 20
# Stands in for the `prefect` program: it makes anything, and its worker waits to be told to end.
FAKE_PREFECT = """
import os, sys, time
if "worker" in sys.argv and "start" in sys.argv:
    with open("worker.pid", "w") as file:
        file.write(str(os.getpid()))
    os.replace("worker.pid", "worker")
    time.sleep(600)
"""
SERVE = """
import sys
from pathlib import Path
from concordance.cli.orchestration import serve_deployments
from concordance.cli.watching import Connection
from concordance.errors import ServerLost
from concordance.settings import Configuration, Settings
here = Path.cwd()
there = Connection("http://127.0.0.1:1/api", lambda: (here / "up").exists())
try:
    serve_deployments(there, Configuration(settings=Settings(home=here)), here)
except ServerLost as error:
    sys.exit(str(error))
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.01)
    yield
    forget_request()


def never() -> None:
    raise AssertionError("it was given up")


@pytest.mark.timeout(SECONDS)
def test_a_run_whose_server_goes_away_is_interrupted() -> None:
    answers = iter([True, True])
    with (
        pytest.raises(ServerLost, match="the next run goes on") as caught,
        Watched(Connection("", lambda: next(answers, False)), never),
    ):
        threading.Event().wait(30 * SECONDS)
    assert isinstance(caught.value.__cause__, KeyboardInterrupt), "and not the test's timeout"
    assert stop_requested(), "loops end at their next whole unit"
    assert abandoned(), "nothing is handed on to a server that is gone"


def test_an_error_of_a_run_without_its_server_is_told_as_that() -> None:
    with (
        pytest.raises(ServerLost) as caught,
        Watched(Connection("", lambda: False, patience=SECONDS), never),
    ):
        raise RuntimeError("Failed to reach API")
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_error_beside_a_server_that_is_there_is_its_own() -> None:
    with pytest.raises(KeyError), Watched(Connection("", lambda: True), never):
        raise KeyError
    assert not abandoned()


def test_a_run_that_ends_is_not_interrupted_afterwards() -> None:
    up = threading.Event()
    up.set()
    with Watched(Connection("", up.is_set), never):
        pass
    up.clear()
    time.sleep(0.1)
    assert not stop_requested()


def stubborn(until: threading.Event) -> None:
    deadline = time.monotonic() + SECONDS
    while not until.is_set() and time.monotonic() < deadline:
        try:
            time.sleep(0.01)
        except KeyboardInterrupt:
            continue


def test_a_run_that_does_not_heed_its_interruption_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "GRACE_SECONDS", 0.05)
    given_up = threading.Event()
    with pytest.raises(ServerLost), Watched(Connection("", lambda: False), given_up.set):
        stubborn(given_up)
    assert given_up.is_set()


def test_a_server_of_somebody_s_own_may_be_away_for_a_while() -> None:
    answers = [False, True, False, False]
    absence = Absence(Connection("", lambda: answers.pop(0), patience=SECONDS))
    assert [absence.lasts() for _ in range(4)] == [False] * 4
    assert Absence(Connection("", lambda: False)).lasts()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that serves, with the stand-in for Prefect; its worker's number is in `worker`."""
    package = tmp_path / "lib" / "prefect"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(FAKE_PREFECT)
    # What deploys the automations would need the real one; it is looked for in the folder served.
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "__init__.py").touch()
    (tmp_path / "flows" / "automations.py").write_text("print('{}')\n")
    (tmp_path / "up").touch()
    checkout = Path(concordance.__file__).parents[1]
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{package.parent}{os.pathsep}{checkout}"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for((tmp_path / "worker").exists)
        yield process
        process.kill()
    if lives(worker := number(tmp_path)):
        os.kill(worker, signal.SIGKILL)


def number(folder: Path) -> int:
    return int((folder / "worker").read_text())


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that ended and that nobody has waited for is none any more.
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(state.stdout.strip()) and not state.stdout.startswith("Z")


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_ends_with_its_serve_however_that_ends(
    serving: subprocess.Popen[str], tmp_path: Path
) -> None:
    worker = number(tmp_path)
    assert lives(worker)
    serving.kill()
    wait_for(lambda: not lives(worker))


def test_serving_ends_with_its_server_and_says_so(
    serving: subprocess.Popen[str], tmp_path: Path
) -> None:
    worker = number(tmp_path)
    (tmp_path / "up").unlink()
    _, said = serving.communicate(timeout=SECONDS)
    assert serving.returncode == 1
    assert "the Prefect server went away" in said
    assert not lives(worker)
