"""Running a program to its end or to a deadline, and ending everything that it started.

What belongs here: starting in a process group of its own, reading both outputs, the deadline, the
end of the group. What doesn't belong here: anything about repositories, and what a failure means.

GitPython's `kill_after_timeout` lists descendants and then signals them one by one, and is not
applied to every command; a `git-remote-https` that slips through holds a connection for ever.
"""

from __future__ import annotations

import os
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


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    deadline: Deadline,
    longest_output: int = 1 << 26,
) -> Finished:
    """Run a program with exactly this environment, and wait for it and all that it started.

    Raises:
        DeadlinePassed: It had not finished; its whole process group was ended.
        OutputTooLong: It wrote more than `longest_output` bytes; likewise.
        SourceError: It could not be started.
    """
    process = _start(command, environment, directory)
    try:
        out, err = _read(process, deadline, longest_output)
    finally:
        # Also after success, and when this thread is interrupted: a helper that stays behind
        # would keep its connection and its half-written files.
        _end_group(process)
    return Finished(process.returncode, out, err.decode("utf-8", "replace"))


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
    process: subprocess.Popen[bytes], deadline: Deadline, longest: int
) -> tuple[bytes, bytes]:
    streams = _streams(process)
    out, err = bytearray(), bytearray()
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
