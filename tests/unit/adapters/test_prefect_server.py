"""One server that several commands share; no other process is ever taken for it."""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from concordance.adapters import prefect_server
from concordance.adapters.prefect_server import PrefectServer, RunningServer, is_healthy
from concordance.errors import OrchestrationError

SECRETS = ("CONCORDANCE_DATABASE_URL", "READ_TOKEN", "OLLAMA_API_KEY", "PREFECT_API_KEY")
# Stands in for the `prefect` program: it takes `server start --host H --port P`.
FAKE_PREFECT = """
import http.server, os, signal, sys, time
from pathlib import Path

def number(name):
    return int(sys.argv[sys.argv.index(name) + 1])

class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/api/health" and not Path("deaf").exists() else 503)
        self.end_headers()
    def log_message(self, *_):
        pass

with open("starts", "a") as file:
    file.write(f"{os.environ['PREFECT_HOME']} {os.environ.get('PREFECT_API_URL')}\\n")
Path("environment").write_text(repr(dict(os.environ)))
if Path("broken").exists():
    print("first words", flush=True)
    sys.exit("the database is locked")
if Path("stubborn").exists():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
assert sys.argv[1:4] == ["server", "start", "--host"] and sys.argv[4] == "127.0.0.1"
http.server.HTTPServer(("127.0.0.1", number("--port")), Health).serve_forever()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PrefectServer]:
    """A server under a state directory of its own, with the stand-in for Prefect."""
    package = tmp_path / "lib" / "prefect"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(FAKE_PREFECT)
    environment = {"PYTHONPATH": str(package.parent), "PREFECT_API_URL": "http://elsewhere/api"}
    environment |= {"PREFECT_LOGGING_LEVEL": "DEBUG"} | dict.fromkeys(SECRETS, "planted-secret")
    made = PrefectServer(tmp_path / "home", environment)
    made.folder.mkdir(parents=True)
    yield made
    made.stop()


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[int]:
    """The port of a web server of somebody else, which answers anything."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health) as fake:
        threading.Thread(target=fake.serve_forever, args=(0.01,), daemon=True).start()
        yield fake.server_address[1]
        fake.shutdown()


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody else, in a group of its own."""
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command, start_new_session=True) as process:
        yield process
        process.kill()


def record(server: PrefectServer, value: object) -> Path:
    path = server.folder / "server.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def starts(server: PrefectServer) -> int:
    return len((server.folder / "starts").read_text().splitlines())


# --- what is no server of ours ---------------------------------------------------------------


def test_nothing_runs_before_anything_was_started(tmp_path: Path) -> None:
    server = PrefectServer(tmp_path / "home", {})
    assert server.find() is None
    assert server.stop() is False
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "value",
    ["", "{", "[]", "3", "null", "{}", '{"pid": 5}', '{"pid": "5", "port": 5}', "\udcff"],
)
def test_a_record_that_can_not_be_read_is_no_server(server: PrefectServer, value: str) -> None:
    path = server.folder / "server.json"
    path.write_bytes(value.encode(errors="surrogateescape"))
    assert server.find() is None
    assert server.stop() is False
    assert not path.exists()


def test_a_record_of_a_process_that_ended_is_no_server(
    server: PrefectServer, stranger: int
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    record(server, {"pid": ended.pid, "port": stranger})
    assert server.find() is None
    assert server.stop() is False


def test_a_number_that_another_process_has_now_is_never_ended(
    server: PrefectServer, stranger: int, bystander: subprocess.Popen[bytes]
) -> None:
    path = record(server, {"pid": bystander.pid, "port": stranger})
    assert is_healthy(f"http://127.0.0.1:{stranger}/api")
    assert server.find() is None
    assert server.stop() is False
    assert bystander.poll() is None
    assert not path.exists()


def test_a_server_that_ended_since_frees_its_number(
    server: PrefectServer, stranger: int, bystander: subprocess.Popen[bytes]
) -> None:
    gone = server.ensure()
    os.killpg(gone.pid, signal.SIGKILL)
    os.waitpid(gone.pid, 0)
    record(server, {"pid": bystander.pid, "port": stranger})
    assert server.find() is None
    assert server.stop() is False
    assert bystander.poll() is None


@pytest.mark.parametrize("pid", [-1, 0, 1, True, 2.5, None])
def test_a_number_that_is_no_process_of_ours_is_refused(
    server: PrefectServer, stranger: int, pid: object
) -> None:
    record(server, {"pid": pid, "port": stranger})
    descriptor = os.open(server.folder / "server.alive", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert server.find() is None
        assert server.stop() is False
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("port", [0, -1, 65_536, "80", None])
def test_a_port_that_is_none_is_refused(server: PrefectServer, port: object) -> None:
    running = server.ensure()
    kept = (server.folder / "server.json").read_text()
    record(server, {"pid": running.pid, "port": port})
    assert server._recorded() is None
    record(server, kept)


# --- start, share, stop ----------------------------------------------------------------------


def test_a_server_is_started_once_shared_and_stopped(server: PrefectServer) -> None:
    told: list[str] = []
    running = server.ensure(on_start=lambda: told.append("starting"))
    again = server.ensure(on_start=lambda: told.append("starting"))
    assert server.find() == again == running
    assert told == ["starting"]
    assert running.api_url == f"http://127.0.0.1:{running.port}/api"
    assert running.ui_url == f"http://127.0.0.1:{running.port}"
    assert (server.folder / "starts").read_text() == f"{server.folder} None\n"

    assert server.stop() is True
    assert server.find() is None
    assert not is_healthy(running.api_url)
    assert server.stop() is False


def test_a_server_is_given_no_token_of_ours(server: PrefectServer) -> None:
    server.ensure()
    seen = (server.folder / "environment").read_text()
    assert "planted-secret" not in seen
    assert "'PREFECT_LOGGING_LEVEL': 'DEBUG'" in seen, "its own settings it has"


def test_a_server_that_is_started_again_has_its_address(server: PrefectServer) -> None:
    first = server.ensure()
    assert server.lives(first)
    assert server.owns(first.api_url)
    assert not server.owns("http://127.0.0.1:1/api")
    server.stop()
    assert not server.lives(first)
    assert server.owns(first.api_url), "a shell may hold it"
    second = server.ensure()
    assert (second.port, server.lives(first)) == (first.port, False)


def test_a_port_that_was_taken_meanwhile_is_left_alone(
    server: PrefectServer, stranger: int
) -> None:
    (server.folder / "server.port").write_text(str(stranger))
    assert server.ensure().port != stranger


def test_commands_that_ask_at_once_get_one_server(server: PrefectServer) -> None:
    found: list[RunningServer] = []
    threads = [threading.Thread(target=lambda: found.append(server.ensure())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert starts(server) == 1


def test_a_server_that_crashed_is_started_anew(server: PrefectServer) -> None:
    first = server.ensure()
    os.killpg(first.pid, signal.SIGKILL)
    os.waitpid(first.pid, 0)
    second = server.ensure()
    assert second.pid != first.pid
    assert starts(server) == 2


def test_a_server_that_does_not_come_up_says_its_last_words(server: PrefectServer) -> None:
    (server.folder / "broken").touch()
    with pytest.raises(OrchestrationError, match="did not start: the database is locked") as caught:
        server.ensure()
    assert str(server.log) in str(caught.value)
    assert server.find() is None
    assert not (server.folder / "server.json").exists()


def test_an_interrupt_leaves_no_server_behind(
    server: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[RunningServer] = []

    def interrupt(running: RunningServer) -> bool:
        started.append(running)
        raise KeyboardInterrupt

    monkeypatch.setattr(prefect_server, "_answers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        server.ensure()
    monkeypatch.undo()
    with pytest.raises(ProcessLookupError):
        os.kill(started[0].pid, 0)
    assert server.find() is None


def test_a_server_that_lives_and_is_silent_is_waited_for_then_named(
    server: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = server.ensure()
    (server.folder / "deaf").touch()
    assert server.find() is None
    monkeypatch.setattr(prefect_server, "DEAF_SECONDS", 0.0)
    with pytest.raises(OrchestrationError, match=f"process {running.pid}.*does not answer"):
        server.ensure()

    monkeypatch.setattr(prefect_server, "DEAF_SECONDS", 60.0)
    threading.Timer(0.2, (server.folder / "deaf").unlink).start()
    assert server.ensure() == running
    assert starts(server) == 1


def test_a_silent_server_is_stopped_too(server: PrefectServer) -> None:
    running = server.ensure()
    (server.folder / "deaf").touch()
    assert server.stop() is True
    assert not is_healthy(running.api_url)


def test_a_server_that_does_not_heed_is_ended(
    server: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (server.folder / "stubborn").touch()
    running = server.ensure()
    monkeypatch.setattr(prefect_server, "STOP_SECONDS", 0.5)
    assert server.stop() is True
    assert not is_healthy(running.api_url)


def test_a_server_that_can_not_be_ended_is_named(
    server: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = server.ensure()
    monkeypatch.setattr(prefect_server, "STOP_SECONDS", 0.05)
    monkeypatch.setattr(prefect_server, "_signal_group", lambda *_: None)
    with pytest.raises(OrchestrationError, match=f"process {running.pid}.*did not end"):
        server.stop()
    monkeypatch.undo()
    assert server.find() == running


def test_a_process_that_nobody_buried_does_not_count_as_running(server: PrefectServer) -> None:
    running = server.ensure()
    os.killpg(running.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while server._lives() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(running.pid, 0)  # its number is still taken
    assert server.find() is None
    os.waitpid(running.pid, 0)


# --- health ----------------------------------------------------------------------------------


def test_our_own_server_is_never_asked_through_a_proxy(
    server: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert server.ensure() == server.find()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/api", "no address", "http://[::1", "ftp://127.0.0.1:9", ""]
)
def test_what_does_not_answer_is_not_healthy(url: str) -> None:
    assert is_healthy(url) is False


def test_an_address_may_end_with_a_slash(stranger: int) -> None:
    assert is_healthy(f"http://127.0.0.1:{stranger}/api/")
