"""Points of a run that can be counted, and a kill at one of them.

What belongs here: counting, in the process that is to be a victim, the statements that it sends,
the requests it makes of the provider and the git commands it starts; and the kill itself. Only this
process is patched, and it is one that was started to be killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import psycopg

Trigger = Literal["statement", "request", "git"]
Victim = Literal["worker", "session", "backend", "postmaster", "git", "provider", "prefect"]
VICTIMS: dict[Trigger, tuple[Victim, ...]] = {
    "statement": ("worker", "worker", "session", "backend", "postmaster"),
    "request": ("worker", "provider", "postmaster"),
    "git": ("git", "git", "worker"),
}


@dataclass(frozen=True, slots=True)
class Kill:
    """Who is killed, by signal 9, how long after which point of a run.

    A `session` is ended as an administrator ends it; a `backend` as the machine does.
    """

    trigger: Trigger
    at: int
    victim: Victim
    delay: float = 0.0


@dataclass
class Points:
    """How many points of each kind this process has passed."""

    kill: Kill | None = None
    data: Path | None = None
    passed: Counter[str] = field(default_factory=Counter)
    struck: bool = False
    _backend: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, trigger: Trigger, process: int = 0) -> None:
        """Pass a point; the kill happens where it is the one."""
        with self._lock:
            self.passed[trigger] += 1
            if trigger == "statement" and process:
                self._backend = process
            kill = self.kill
            if kill is None or kill.trigger != trigger or self.passed[trigger] != kill.at:
                return
        if kill.delay:
            threading.Timer(kill.delay, self._strike, (kill, process)).start()
        else:
            self._strike(kill, process)

    def _strike(self, kill: Kill, process: int) -> None:
        number = signal.SIGTERM if kill.victim == "session" else signal.SIGKILL
        match kill.victim:
            case "worker":
                process = os.getpid()
            case "session" | "backend":
                process = self._backend
            case "postmaster" if self.data is not None:
                with suppress(FileNotFoundError, ValueError, IndexError):
                    process = int((self.data / "postmaster.pid").read_text().split()[0])
            case "git":
                pass
            case _:
                raise AssertionError(f"{kill.victim} is not killed from here")
        # Nought is this process's whole group, and one the machine's first process.
        if process > 1:
            with suppress(ProcessLookupError):
                self.struck = True
                os.kill(process, number)

    def install(self) -> None:
        """Count from now on, to the end of this process."""
        for name in ("execute", "executemany", "copy"):
            _before(psycopg.Cursor, name, lambda c: self._statement(c.connection))
        _before(psycopg.Connection, "commit", self._statement)
        _before(httpx.Client, "send", lambda _: self.note("request"))
        started = subprocess.Popen.__init__

        def start(process: subprocess.Popen[Any], args: Any, *more: Any, **named: Any) -> None:
            started(process, args, *more, **named)
            if not isinstance(args, str) and str(args[0]) == "git":
                self.note("git", process.pid)

        setattr(subprocess.Popen, "__init__", start)  # noqa: B010 - mypy knows what it is

    def _statement(self, connection: psycopg.Connection[Any]) -> None:
        process = 0
        with suppress(psycopg.Error):
            process = connection.info.backend_pid
        self.note("statement", process)


def _before(owner: type, name: str, do: Callable[[Any], None]) -> None:
    method = getattr(owner, name)

    def noted(self: Any, *arguments: Any, **named: Any) -> Any:
        do(self)
        return method(self, *arguments, **named)

    setattr(owner, name, noted)
