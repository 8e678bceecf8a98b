"""Initialising, starting and stopping the embedded PostgreSQL server, whoever uses it.

What belongs here: what is done to the server, its settings, and the questions whether it lives
and answers. Who uses it, and when it may therefore be stopped, is
`concordance.adapters.embedded_postgres`'s matter.

`server.lock` in the run folder is held by the server itself: the locked descriptor is handed to
the postmaster, and by it to its children, so that it is free if and only if no process of the
server is left. That is what `postmaster.pid` can't tell: after a crash or a reboot its number may
belong to an unrelated process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from psycopg import pq

from concordance.adapters.embedded_binaries import (
    MAJOR,
    OWN_SERVER,
    PORT,
    TOOLS,
    Account,
    EmbeddedLocation,
    check_private,
    find_account,
    make_folder,
    open_lock,
)
from concordance.errors import EmbeddedPostgresError

START_SECONDS = 30.0
STOP_SECONDS = 60.0
INITDB_SECONDS = 120.0
PAUSE_SECONDS = 0.02
LOG_LINES = 15
ENVIRONMENT = {"PATH": TOOLS, "LANG": "C", "LC_ALL": "C", "TZ": "UTC"}

INITDB = (
    "--username=postgres",
    "--auth=trust",  # who may connect is decided by the socket's folder
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
)
SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "256MB",
    "work_mem": "16MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "1GB",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] ",
    "cluster_name": "concordance",
}
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # its size is asked for, nothing is written
SHARED_MEMORY_NEEDED = 512 * 1024 * 1024


class Server:
    """The server itself, whoever uses it; callers hold its gate."""

    def __init__(self, location: EmbeddedLocation, start_seconds: float) -> None:
        self.location = location
        self.log = location.run / "server.log"
        self.url = f"postgresql://postgres@/postgres?host={quote(str(location.socket), safe='')}"
        self.url += f"&port={PORT}"
        self._start_seconds = start_seconds

    @contextlib.contextmanager
    def gate(self) -> Iterator[int]:
        """Hold start.lock: between its holders, nothing about the server changes."""
        lock = open_lock(self.location.run / "start.lock")
        deadline = time.monotonic() + self._start_seconds + STOP_SECONDS
        try:
            while not try_lock(lock, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise EmbeddedPostgresError(
                        "Another process has been starting or stopping the embedded PostgreSQL "
                        "for too long",
                        hint=f"Its log is {self.log}",
                    )
                time.sleep(PAUSE_SECONDS)
            yield lock
        finally:
            os.close(lock)

    def is_alive(self) -> bool:
        """Whether any process of the server is left."""
        try:
            lock = os.open(self.location.run / "server.lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not try_lock(lock, fcntl.LOCK_SH)
        finally:
            os.close(lock)

    def answers(self) -> bool:
        """Whether the server takes connections, for the data that lie there now."""
        if not (self.location.data / "postmaster.pid").exists():
            return False
        return pq.PGconn.ping(f"{self.url}&connect_timeout=5".encode()) == pq.Ping.OK

    def ensure_running(self, gate: int, account: Account | None) -> None:
        """Initialise, recover and start whatever is needed for the server to answer."""
        self._ensure_data(gate, account)
        deadline = time.monotonic() + self._start_seconds
        while not self.answers():
            if time.monotonic() > deadline:
                raise self._failure("does not answer")
            lock = open_lock(self.location.run / "server.lock")
            try:
                # Held by a server that is just starting, just stopping, or that has lost its
                # postmaster: each of these passes.
                if try_lock(lock, fcntl.LOCK_EX):
                    self._launch(lock, account)
                else:
                    time.sleep(PAUSE_SECONDS)
            finally:
                os.close(lock)

    def halt(self) -> None:
        """Stop the server, for all its users."""
        # Without this question, pg_ctl might signal an unrelated process of the same number.
        if not self.is_alive():
            return
        account = None
        if self.location.system_user is not None:
            account = find_account(self.location.system_user)
        with self._open_log(self.log) as log:
            for mode in ("fast", "immediate"):
                arguments = ("stop", "--silent", f"--mode={mode}", f"--timeout={STOP_SECONDS:.0f}")
                self._run("pg_ctl", arguments, STOP_SECONDS, account=account, log=log)
                if self._is_gone_soon():
                    return
        raise self._failure("does not stop")

    def _is_gone_soon(self) -> bool:
        # postmaster.pid, which pg_ctl waits for, goes a little before the last process.
        deadline = time.monotonic() + 5
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE_SECONDS / 4)
        return True

    def _ensure_data(self, gate: int, account: Account | None) -> None:
        data = self.location.data
        if not data.is_dir() or not any(data.iterdir()):
            self._initialise(gate, account)
            return
        try:
            version = (data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise EmbeddedPostgresError(
                f"{data} is no PostgreSQL data folder",
                hint="Move it away to begin with an empty one",
            ) from None
        if version != str(MAJOR):
            raise EmbeddedPostgresError(
                f"{data} was made by PostgreSQL {version}, and this is PostgreSQL {MAJOR}",
                hint=f"Move it away and index again, or use PostgreSQL {version} on it and set "
                "CONCORDANCE_DATABASE_URL",
            )

    def _initialise(self, gate: int, account: Account | None) -> None:
        """Make the data folder beside its place and move it there when it is whole."""
        staging = self.location.base / "data.new"
        if staging.exists():
            shutil.rmtree(staging)
        make_folder(staging, account=account)
        log_path = self.location.run / "initdb.log"
        with self._open_log(log_path, anew=True) as log:
            # Should we be killed, start.lock stays held until initdb has ended as well.
            code = self._run(
                "initdb", INITDB, INITDB_SECONDS, account=account, log=log, data=staging, keep=gate
            )
        if code != 0:
            shutil.rmtree(staging, ignore_errors=True)
            raise self._failure("could not be initialised", log_path)
        conf = os.open(staging / "postgresql.conf", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        with open(conf, "a", encoding="utf-8") as stream:  # noqa: PTH123  # a descriptor
            stream.write("\ninclude '../server.conf'\n")
            stream.flush()
            os.fsync(stream.fileno())
        staging.rename(self.location.data)
        _sync_folder(self.location.base)

    def _launch(self, lock: int, account: Account | None) -> None:
        """Start the postmaster, which from then on holds the lock."""
        socket = self.location.socket
        make_folder(socket, account=account)
        check_private(socket, os.geteuid() if account is None else account.uid)
        self._clear_stale()
        self._write_settings()
        with self._open_log(self.log, anew=True) as log:
            arguments = ("start", "--silent", "--wait", f"--timeout={self._start_seconds:.0f}")
            code = self._run(
                "pg_ctl", arguments, self._start_seconds, account=account, log=log, keep=lock
            )
        if code != 0:
            # A server that is still recovering goes on: stopped now, it would never get through.
            raise self._failure("could not be started")

    def _clear_stale(self) -> None:
        """Remove the files of a dead server whose process numbers may have been given anew.

        No process of a server of ours is left, for its lock is held here. A server that somebody
        started by hand would answer on this socket, or have another one in its file.
        """
        recorded = self.location.data / "postmaster.pid"
        socket = self.location.socket
        try:
            lines = recorded.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        if not self._refuses() or (lines and str(socket) not in lines):
            return
        for path in (recorded, socket / f".s.PGSQL.{PORT}", socket / f".s.PGSQL.{PORT}.lock"):
            path.unlink(missing_ok=True)

    def _refuses(self) -> bool:
        return pq.PGconn.ping(f"{self.url}&connect_timeout=5".encode()) == pq.Ping.NO_RESPONSE

    def _write_settings(self) -> None:
        settings = SETTINGS | {"unix_socket_directories": str(self.location.socket)}
        # Containers often have 64 MB there, in which a parallel index build would fail.
        if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).total < SHARED_MEMORY_NEEDED:
            settings["dynamic_shared_memory_type"] = "mmap"
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        path = self.location.base / "server.conf"
        fresh = path.with_suffix(".new")
        fresh.write_text("# Written at every start.\n" + "".join(lines), encoding="utf-8")
        fresh.chmod(0o644)  # another user may run the server; nothing in it is secret
        fresh.replace(path)

    @contextlib.contextmanager
    def _open_log(self, path: Path, *, anew: bool = False) -> Iterator[int]:
        if anew and path.exists():
            path.replace(path.with_suffix(".log.1"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(path, flags, 0o600)
        try:
            yield log
        finally:
            os.close(log)

    def _run(  # noqa: PLR0913  # one place where programs are started, and what differs
        self,
        program: str,
        arguments: tuple[str, ...],
        seconds: float,
        *,
        account: Account | None,
        log: int,
        data: Path | None = None,
        keep: int | None = None,
    ) -> int:
        """Run a program of PostgreSQL as the server's user, and give its exit code.

        Its output goes to a file: the server inherits it, and would keep a pipe of ours open.
        The data folder goes by environment, since pg_ctl would pass an option through a shell.
        """
        try:
            done = subprocess.run(  # noqa: S603  # programs and arguments are our own
                [self.location.binaries / program, *arguments],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=ENVIRONMENT | {"PGDATA": str(data or self.location.data)},
                pass_fds=() if keep is None else (keep,),
                timeout=seconds + 10,  # pg_ctl keeps the deadline itself
                umask=0o077,
                user=None if account is None else account.uid,
                group=None if account is None else account.gid,
                extra_groups=None if account is None else [],
            )
        except subprocess.TimeoutExpired:
            return -1
        return done.returncode

    def _failure(self, what: str, log: Path | None = None) -> EmbeddedPostgresError:
        log = self.log if log is None else log
        lines: list[str] = []
        with contextlib.suppress(OSError):
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        said = "\n".join(lines) or "(nothing)"
        return EmbeddedPostgresError(
            f"The embedded PostgreSQL {what}; the end of {log}:\n{said}\n",
            hint=_hint(said, self.location.base),
        )


def try_lock(lock: int, operation: int) -> bool:
    """Lock a descriptor if that is possible at once; whether it was."""
    try:
        fcntl.flock(lock, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _hint(said: str, base: Path) -> str:
    if any(os.strerror(code) in said for code in (errno.ENOSPC, errno.EDQUOT)):
        return f"There is no room left at {base}: free some and try again"
    if "recovery in progress" in said or "redo in progress" in said:
        return "It is still recovering from a crash: try again in a minute"
    return OWN_SERVER


@contextlib.contextmanager
def explained(location: EmbeddedLocation) -> Iterator[None]:
    """Turn what the operating system refuses into an error that a person can act on."""
    try:
        yield
    except OSError as error:
        raise EmbeddedPostgresError(
            f"The embedded PostgreSQL can't be used: {error}",
            hint=_hint(str(error), location.base),
        ) from error
