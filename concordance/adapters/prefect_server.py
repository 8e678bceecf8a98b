"""The Prefect server that this user's commands share: started on demand, stopped on request.

What belongs here: the process, its address and its health, over plain HTTP. Prefect itself is not
imported; the server is the `prefect` program of this installation.
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
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from concordance.errors import OrchestrationError

START_SECONDS = 90.0
STOP_SECONDS = 15.0
_HEALTH_SECONDS = 2.0

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
        self._environment = dict(environment) | PREFECT_VARIABLES
        self._environment["PREFECT_HOME"] = str(self._folder)
        self._environment.pop("PREFECT_API_URL", None)

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
        try:
            found = RunningServer(**json.loads(self._state.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return found if _answers(found) else None

    def ensure(self, *, on_start: Callable[[], None] = lambda: None) -> RunningServer:
        """The server, started if it isn't there; processes that ask at once start one.

        Raises:
            OrchestrationError: It did not answer in time; the message ends with its last words.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked():
            found = self.find()
            if found is not None:
                return found
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
            found = self.find()
            if found is None:
                self._state.unlink(missing_ok=True)
                return False
            for number in (signal.SIGTERM, signal.SIGKILL):
                _signal_group(found.pid, number)
                if _gone(found, STOP_SECONDS):
                    self._state.unlink(missing_ok=True)
                    return True
        raise OrchestrationError(f"the Prefect server (process {found.pid}) did not end")

    def _start(self) -> RunningServer:
        port = _free_port()
        command = [sys.executable, "-m", "prefect", "server", "start"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        with self.log.open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=self._environment,
                start_new_session=True,
            )
        server = RunningServer(process.pid, port)
        deadline = time.monotonic() + START_SECONDS
        while not _answers(server):
            if process.poll() is not None or time.monotonic() > deadline:
                _signal_group(process.pid, signal.SIGKILL)
                raise OrchestrationError(
                    f"the Prefect server did not start: {self._last_words()}",
                    hint=f"Its log is {self.log}",
                )
            time.sleep(0.1)
        self._state.write_text(json.dumps(asdict(server)), encoding="utf-8")
        return server

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


def is_healthy(api_url: str) -> bool:
    """Whether a Prefect API answers at an address."""
    try:
        with urllib.request.urlopen(  # noqa: S310 - an address of the user's own settings
            f"{api_url.rstrip('/')}/health", timeout=_HEALTH_SECONDS
        ) as answer:
            return bool(answer.status == 200)  # noqa: PLR2004 - HTTP's own number
    except (OSError, ValueError, urllib.error.URLError):
        return False


def _answers(server: RunningServer) -> bool:
    return is_healthy(server.api_url)


def _gone(server: RunningServer, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.waitpid(server.pid, os.WNOHANG)
        except ChildProcessError:
            pass  # another process started it
        if not _answers(server) and not _exists(server.pid):
            return True
        time.sleep(0.1)
    return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        pass  # it has ended already


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
