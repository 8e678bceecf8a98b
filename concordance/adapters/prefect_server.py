"""The Prefect server that this user's commands share: started on demand, stopped on request.

What belongs here: the process, its address and its health, over plain HTTP. Prefect itself is not
imported; the server is the `prefect` program of this installation.

A server inherits a lock and holds it as long as it lives. So a number of a process that was given
to another one since, after a crash or a restart of the machine, is never taken for the server's.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path

from concordance.adapters.environment import program_environment
from concordance.errors import OrchestrationError

START_SECONDS = 90.0
STOP_SECONDS = 15.0
DEAF_SECONDS = 30.0
_HEALTH_SECONDS = 2.0
_PORTS = range(1, 65_536)
# A proxy can't reach this machine's loopback, whatever the environment says of it.
_LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))

# What every Prefect process of ours is told. The recorder settings keep it from dropping task runs
# under load; the V2 pages ask an outside host even with analytics off.
PREFECT_VARIABLES = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "100",
    "PREFECT_CLI_PROMPT": "false",
    # The least that Prefect takes: a run whose process died is known by its silence.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
}


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answers."""

    pid: int
    port: int

    @property
    def api_url(self) -> str:
        """The address for `PREFECT_API_URL`."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def ui_url(self) -> str:
        """The address of the pages."""
        return f"http://127.0.0.1:{self.port}"


class PrefectServer:
    """This user's server under the state directory; several processes may use one."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._folder = home / "prefect"
        self._state = self._folder / "server.json"
        self._alive = self._folder / "server.alive"
        self._port = self._folder / "server.port"
        self._environment = program_environment(environment) | PREFECT_VARIABLES
        self._environment["PREFECT_HOME"] = str(self._folder)
        # It is asked, and asks nobody.
        for name in ("PREFECT_API_URL", "PREFECT_API_KEY"):
            self._environment.pop(name, None)

    @property
    def folder(self) -> Path:
        """Prefect's own home, with its database and the server's log."""
        return self._folder

    @property
    def log(self) -> Path:
        """What the server printed."""
        return self._folder / "server.log"

    def find(self) -> RunningServer | None:
        """The server, if it runs and answers."""
        found = self._recorded()
        return found if found is not None and _answers(found) else None

    def owns(self, api_url: str) -> bool:
        """Whether an address is that of the server that was started here last."""
        port = self._last_port()
        return port is not None and api_url.rstrip("/") == RunningServer(0, port).api_url

    def lives(self, server: RunningServer) -> bool:
        """Whether a server that was found before is still the one that runs; it need not answer."""
        return self._recorded() == server

    def ensure(self, *, on_start: Callable[[], None] = lambda: None) -> RunningServer:
        """The server, started if it isn't there; processes that ask at once start one.

        Raises:
            OrchestrationError: It did not answer in time; the message ends with its last words.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked():
            found = self._recorded()
            if found is not None:
                return _patiently(found)
            on_start()
            return self._start()

    def stop(self) -> bool:
        """End the server, if it runs; tells whether there was one.

        Raises:
            OrchestrationError: It did not end.
        """
        if not self._folder.exists():
            return False
        with self._locked():
            found = self._recorded()
            if found is None:
                self._state.unlink(missing_ok=True)
                return False
            for number in (signal.SIGTERM, signal.SIGKILL):
                _signal_group(found.pid, number)
                if self._gone(found, STOP_SECONDS):
                    self._state.unlink(missing_ok=True)
                    return True
        raise OrchestrationError(f"the Prefect server (process {found.pid}) did not end")

    def _start(self) -> RunningServer:
        # The same as before, where it is free: somebody's shell or bookmark may hold the address.
        port = _free_port(self._last_port() or 0) or _free_port(0) or 0
        command = [sys.executable, "-m", "prefect", "server", "start"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        with self.log.open("wb") as log, self._life() as life:
            process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                # The pages ask the API from the browser; without this they ask port 4200.
                env=self._environment
                | {"PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api"},
                start_new_session=True,
                pass_fds=(life,),
            )
        server = RunningServer(process.pid, port)
        try:
            # At once: should this process be killed now, the next one finds the server.
            self._state.write_text(json.dumps(asdict(server)), encoding="utf-8")
            self._port.write_text(str(port), encoding="utf-8")
            self._await(server, process)
        except BaseException:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
            self._state.unlink(missing_ok=True)
            raise
        process.returncode = 0  # it outlives this process, which need not wait for it
        return server

    def _await(self, server: RunningServer, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(server):
            if process.poll() is not None or time.monotonic() > deadline:
                raise OrchestrationError(
                    f"the Prefect server did not start: {self._last_words()}",
                    hint=f"Its log is {self.log}",
                )
            time.sleep(0.1)

    def _recorded(self) -> RunningServer | None:
        """The server that was started last, if it lives; it need not answer."""
        try:
            value = json.loads(self._state.read_text(encoding="utf-8"))
            pid, port = value["pid"], value["port"]
        except (OSError, ValueError, TypeError, KeyError):
            return None
        # 0 and 1 would be this process's own group, and the machine's first process.
        if type(pid) is not int or type(port) is not int or pid <= 1 or port not in _PORTS:
            return None
        return RunningServer(pid, port) if self._lives() else None

    def _last_port(self) -> int | None:
        try:
            port = int(self._port.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return port if port in _PORTS else None

    def _lives(self) -> bool:
        """Whether a server holds its lock."""
        try:
            descriptor = os.open(self._alive, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    @contextmanager
    def _life(self) -> Iterator[int]:
        """A locked file for a server to inherit; a new one each time, so that no old one counts."""
        self._alive.unlink(missing_ok=True)
        descriptor = os.open(self._alive, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def _gone(self, server: RunningServer, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(ChildProcessError):  # another process started it
                os.waitpid(server.pid, os.WNOHANG)
            if not self._lives():
                return True
            time.sleep(0.1)
        return False

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "it said nothing"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time starts or stops; the lock dies with its process."""
        descriptor = os.open(self._folder / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def runs_at_work(server: RunningServer) -> int:
    """How many flow runs of a server are running."""
    body = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}}
    request = urllib.request.Request(  # noqa: S310 - our own server on loopback
        f"{server.api_url}/flow_runs/count",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with _LOCAL.open(request, timeout=_HEALTH_SECONDS) as answer:
            return int(json.loads(answer.read()))
    except (OSError, ValueError):
        return 0


def is_healthy(api_url: str) -> bool:
    """Whether a Prefect API answers at an address."""
    return _health(api_url, urllib.request.build_opener())


def _answers(server: RunningServer) -> bool:
    return _health(server.api_url, _LOCAL)


def _health(api_url: str, opener: urllib.request.OpenerDirector) -> bool:
    try:
        with opener.open(f"{api_url.rstrip('/')}/health", timeout=_HEALTH_SECONDS) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except (OSError, ValueError, HTTPException):
        return False


def _patiently(server: RunningServer) -> RunningServer:
    """Wait for a server that lives: a busy machine can make it late."""
    deadline = time.monotonic() + DEAF_SECONDS
    while not _answers(server):
        if time.monotonic() > deadline:
            raise OrchestrationError(
                f"the Prefect server (process {server.pid}) runs and does not answer",
                hint="Stop it with 'concordance down', then try again",
            )
        time.sleep(0.1)
    return server


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended already
        os.killpg(pid, number)


def _free_port(wanted: int) -> int | None:
    """A port that nobody listens on: the wanted one or none, and with 0 any."""
    with socket.socket() as probe:
        # Connections of the server before may linger on its port; nobody listens there.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return None
        return int(probe.getsockname()[1])
