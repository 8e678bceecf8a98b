"""Running a program to its end or to a limit, and ending everything that it started.

What belongs here: starting in a process group of its own, reading both outputs, the deadline, what
may be written and held in memory, the end of the group. What doesn't belong here: anything about
repositories, and what a failure means.

A group is signalled as a whole: who lists descendants and signals them one by one may miss a
`git-remote-https`, which then holds a connection for ever.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

from concordance.errors import SourceError

_GRACE_SECONDS: Final = 1.0
_ORPHAN_SECONDS: Final = 0.1
_TICK_SECONDS: Final = 0.2
_SHORT_TICK_SECONDS: Final = 0.005
_READ_BYTES: Final = 1 << 16
_KEPT_OF_STDERR: Final = 1 << 16


class DeadlinePassed(Exception):
    """The time was up; nothing of what had been started is left."""


class OutputTooLong(Exception):
    """The program wrote more than the caller wanted to hold; nothing of it is left."""


class QuotaExceeded(Exception):
    """A folder grew by more than it may; nothing of what wrote there is left running."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How many bytes a program may add to a folder that held some before."""

    folder: Path
    most: int
    before: int

    @classmethod
    def of(cls, folder: Path, most: int) -> Self:
        """That many bytes more than the folder holds now."""
        return cls(folder, most, _bytes_in(folder))

    def check(self) -> None:
        """Look how much was added.

        Raises:
            QuotaExceeded: Too much.
        """
        if _bytes_in(self.folder) - self.before > self.most:
            raise QuotaExceeded


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock, and how far away it was when it was set."""

    seconds: float
    ends: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """The moment that many seconds from now."""
        return cls(seconds, time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds until then; zero or less once it has passed."""
        return self.ends - time.monotonic()


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program left behind."""

    code: int
    out: bytes
    err: str


def run(  # noqa: PLR0913 - what may be limited
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    deadline: Deadline,
    longest_output: int = 1 << 26,
    memory_bytes: int | None = None,
    quota: Quota | None = None,
) -> Finished:
    """Run a program with exactly this environment, and wait for it and all that it started.

    Raises:
        DeadlinePassed: It had not finished; its whole process group was ended.
        OutputTooLong: It wrote more than `longest_output` bytes; likewise.
        QuotaExceeded: It wrote more than the quota into the quota's folder; likewise.
        SourceError: It could not be started.
    """
    process = _start(command, environment, directory)
    try:
        limit_memory(process.pid, memory_bytes)
        out, err = _read(process, deadline, longest_output, quota)
        if quota is not None:
            quota.check()
    finally:
        # Also after success, and when this thread is interrupted: a helper that stays behind
        # would keep its connection and its half-written files.
        _end_group(process)
    return Finished(process.returncode, out, err.decode("utf-8", "replace"))


def limit_memory(process: int, most: int | None) -> None:
    """Let a process, and each that it starts from now on, hold that many bytes of its own data.

    Files that are mapped don't count. Where the system can't limit another process (macOS), nothing
    happens.
    """
    if most is not None and hasattr(resource, "prlimit"):
        # It may be over already.
        with suppress(ProcessLookupError):
            resource.prlimit(process, resource.RLIMIT_DATA, (most, most))


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            # git renames its files as it goes.
            with suppress(FileNotFoundError):
                total += (Path(place) / name).lstat().st_size
    return total


def _start(
    command: Sequence[str], environment: Mapping[str, str], directory: Path
) -> subprocess.Popen[bytes]:
    try:
        # Never through a shell; the adapter makes the arguments, and policy has checked them.
        return subprocess.Popen(  # noqa: S603
            command,
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise SourceError(
            f"{command[0]} could not be started: {error.strerror}",
            hint="Install git 2.31 or newer and put it on the PATH",
        ) from error


def _read(
    process: subprocess.Popen[bytes], deadline: Deadline, longest: int, quota: Quota | None
) -> tuple[bytes, bytes]:
    streams = _streams(process)
    out, err = bytearray(), bytearray()
    look = Deadline.after(_TICK_SECONDS)
    with selectors.DefaultSelector() as selector:
        for stream, buffer in zip(streams, (out, err), strict=True):
            selector.register(stream, selectors.EVENT_READ, buffer)
        while True:
            exited = _has_exited(process)
            ready = selector.select(_patience(deadline, bool(selector.get_map())))
            for key, _ in ready:
                data = os.read(key.fd, _READ_BYTES)
                key.data.extend(data)
                if not data:
                    selector.unregister(key.fileobj)
            if len(out) > longest:
                raise OutputTooLong
            del err[:-_KEPT_OF_STDERR]
            if quota is not None and look.remaining() <= 0:
                quota.check()
                look = Deadline.after(_TICK_SECONDS)
            # A process left behind may hold the pipes open after the program itself is gone.
            if exited and not ready:
                return bytes(out), bytes(err)


def _patience(deadline: Deadline, reading: bool) -> float:
    left = deadline.remaining()
    if left <= 0:
        raise DeadlinePassed
    return min(left, _TICK_SECONDS if reading else _SHORT_TICK_SECONDS)


def _streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdout is None or process.stderr is None:
        raise AssertionError("both outputs are pipes")
    return process.stdout, process.stderr


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    # WNOWAIT leaves it a zombie: as long as it is one, the number of its group can't be reused,
    # and a signal to the group can't reach a stranger.
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(process: subprocess.Popen[bytes]) -> None:
    forced = not _has_exited(process)
    if forced:
        # git removes its temporary files when asked politely.
        _signal(process, signal.SIGTERM)
        _wait_until(_GRACE_SECONDS, lambda: _has_exited(process))
    _signal(process, signal.SIGKILL)
    process.wait()
    if forced:
        # Its orphans die a moment later; whoever cleans up after them should not meet them. Only
        # a moment: as zombies they count as a group until somebody else reaps them.
        _wait_until(_ORPHAN_SECONDS, lambda: not _group_exists(process))
    for stream in _streams(process):
        stream.close()


def _wait_until(seconds: float, condition: Callable[[], bool]) -> None:
    patience = Deadline.after(seconds)
    while not condition() and patience.remaining() > 0:
        time.sleep(_SHORT_TICK_SECONDS)


def _group_exists(process: subprocess.Popen[bytes]) -> bool:
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # PermissionError: macOS, when only the zombie is left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
