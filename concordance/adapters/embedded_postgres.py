"""A PostgreSQL server of our own, for somebody who has none installed.

What belongs here: who uses the server, and so when it starts and stops. How that is done is
`concordance.adapters.embedded_server`'s matter, where its files are is `embedded_binaries`'s; what
is kept in its databases is not known here.

The processes of a user share the server of a home folder, and the last one stops it. Two files in
the run folder say who does what, both by `flock`, which ends with its holder however that one ends:

    start.lock   held for the short time in which a process starts, joins, leaves or stops
    users.lock   held shared by every process that uses the server

A process that is killed does not stop the server; the next one to leave does.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import logging
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from concordance.adapters.embedded_binaries import (
    STATE_ROOT,
    TEMP_DIR,
    EmbeddedLocation,
    locate,
    open_lock,
    prepare,
)
from concordance.adapters.embedded_server import START_SECONDS, Server, explained, try_lock
from concordance.errors import EmbeddedPostgresError

__all__ = ["EmbeddedLocation", "EmbeddedPostgres", "EmbeddedStatus", "locate"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EmbeddedStatus:
    """What is so at this moment about the server of a home folder."""

    location: EmbeddedLocation
    log: Path
    initialised: bool
    running: bool
    answering: bool


class EmbeddedPostgres:
    """The server of one home folder, as one user of it; any number of these may be open."""

    def __init__(
        self,
        home: Path,
        *,
        state_root: Path = STATE_ROOT,
        temp_dir: Path = TEMP_DIR,
        package: Path | None = None,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._state_root = state_root
        self._server = Server(
            locate(
                home,
                effective_user=os.geteuid(),
                state_root=state_root,
                temp_dir=temp_dir,
                package=package,
            ),
            start_seconds,
        )
        self._hold: _Hold | None = None

    @property
    def url(self) -> str:
        """The URL of the maintenance database, valid while the server runs."""
        return self._server.url

    def start(self) -> str:
        """Start or join the server, and give the URL of its maintenance database.

        Raises EmbeddedPostgresError where it can't be started within the deadline.
        """
        location = self._server.location
        with _HOLDS.mutex, explained(location):
            account = prepare(location, self._state_root)
            with self._server.gate() as gate:
                hold = self._hold if _HOLDS.knows(self._hold) else None
                with contextlib.ExitStack() as undo:
                    if hold is None:
                        hold = _HOLDS.take(self._server)
                        undo.callback(_HOLDS.give_back, hold)
                    self._server.ensure_running(gate, account)
                    undo.pop_all()
                self._hold = hold
        return self._server.url

    def stop(self, *, force: bool = False) -> None:
        """Leave the server, and stop it if nobody else uses it, or if it is forced.

        Raises EmbeddedPostgresError where it does not stop.
        """
        location = self._server.location
        with _HOLDS.mutex, explained(location):
            hold = self._hold if _HOLDS.knows(self._hold) else None
            self._hold = None
            if not location.run.is_dir() or (hold is None and not force):
                return
            with self._server.gate():
                last = hold is not None and _HOLDS.give_back(hold)
                if last or force:
                    self._server.halt()

    def status(self) -> EmbeddedStatus:
        """What is so about the server at this moment; starts and changes nothing.

        Raises EmbeddedPostgresError where its folders can't be read.
        """
        server = self._server
        with explained(server.location):
            return EmbeddedStatus(
                location=server.location,
                log=server.log,
                initialised=(server.location.data / "PG_VERSION").is_file(),
                running=server.is_alive(),
                answering=server.answers(),
            )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@dataclass(slots=True)
class _Hold:
    """This process's part in users.lock, however many objects share it."""

    server: Server
    users: int
    count: int = 0


@dataclass(slots=True)
class _Holds:
    """Every server that this process uses."""

    mutex: threading.RLock = field(default_factory=threading.RLock)
    _by_run: dict[Path, _Hold] = field(default_factory=dict)
    _hooked: bool = False

    def knows(self, hold: _Hold | None) -> bool:
        """Whether the hold is this process's own, and not one of the process it was forked from."""
        return hold is not None and self._by_run.get(hold.server.location.run) is hold

    def take(self, server: Server) -> _Hold:
        """Use the server once more."""
        run = server.location.run
        hold = self._by_run.get(run)
        if hold is None:
            users = open_lock(run / "users.lock")
            fcntl.flock(users, fcntl.LOCK_SH)  # held exclusively under start.lock only
            hold = self._by_run[run] = _Hold(server, users)
        hold.count += 1
        if not self._hooked:
            self._hooked = True
            atexit.register(self._leave_all)
            os.register_at_fork(after_in_child=self._forget_all)
        return hold

    def give_back(self, hold: _Hold) -> bool:
        """Use the server once less; whether nobody uses it any more."""
        hold.count -= 1
        if hold.count > 0:
            return False
        del self._by_run[hold.server.location.run]
        try:
            return try_lock(hold.users, fcntl.LOCK_EX)
        finally:
            os.close(hold.users)

    def _leave_all(self) -> None:
        with self.mutex:
            for hold in list(self._by_run.values()):
                hold.count = 1
                location = hold.server.location
                try:
                    with explained(location), hold.server.gate():
                        if self.give_back(hold):
                            hold.server.halt()
                except EmbeddedPostgresError as error:
                    # The process ends in any case, and the next user takes care of it.
                    logger.warning("%s", error)

    def _forget_all(self) -> None:
        # A forked child has copies of the descriptors; while it lives, they would keep the
        # parent's locks alive.
        self.mutex = threading.RLock()
        for hold in self._by_run.values():
            os.close(hold.users)
        self._by_run.clear()


_HOLDS = _Holds()
