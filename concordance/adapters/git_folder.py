"""The folder of one mirror on disk: its lock, its left-overs, its removal.

What belongs here: files around and inside a bare repository, handled without git. What doesn't
belong here: running git, and what a repository holds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from concordance.adapters.git_process import Deadline, DeadlinePassed
from concordance.errors import DiskFull, SourceError

_DAMAGED: Final = "concordance-damaged"
_LOCK_PAUSE_SECONDS: Final = 0.05


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn trouble with our own files into an error of ours.

    Raises:
        DiskFull: There was no room.
        SourceError: The files could not be read or written for another reason.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"{what}: no room in the state directory") from error
        raise SourceError(f"{what}: {error.strerror} ({error.filename})") from error


@contextmanager
def held(lock: Path, deadline: Deadline) -> Iterator[None]:
    """Hold a lock that one process on this machine, and one thread in it, can hold at a time.

    It is gone with the process, whatever ends it.

    Raises:
        DeadlinePassed: Another one held it all the time.
        OSError: The lock's file can't be opened.
    """
    while True:
        with lock.open("ab") as file:
            _wait_for(file, deadline)
            # discard() may have removed the file while we waited: then it locks nothing.
            if _still_there(file, lock):
                yield
                return


def discard(folder: Path) -> None:
    """Remove a file or a folder with all that is in it; nothing there is fine.

    Raises:
        OSError: Something of it can't be removed.
    """
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)


def sweep(repository: Path) -> None:
    """Remove locks and unfinished files that a git that was ended has left.

    Only to be called while the lock is held: nobody else can be using them.

    Raises:
        OSError: Something of them can't be removed.
    """
    for folder, _, names in os.walk(repository):
        for name in names:
            if name.endswith(".lock") or name.startswith("tmp_") or name == "gc.pid":
                (Path(folder) / name).unlink(missing_ok=True)
    for path in repository.glob("shallow_*"):
        path.unlink(missing_ok=True)


def mark_damaged(repository: Path) -> None:
    """Note that this mirror can't be read in full; the next fetch makes it anew."""
    # Without a mark the caller still gets its error, and the next reader notes it again.
    with suppress(OSError):
        (repository / _DAMAGED).touch()


def is_damaged(repository: Path) -> bool:
    """Whether `mark_damaged` was called for this mirror since it was made."""
    return (repository / _DAMAGED).exists()


def _wait_for(file: IO[bytes], deadline: Deadline) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if deadline.remaining() <= 0:
                raise DeadlinePassed from None
            time.sleep(_LOCK_PAUSE_SECONDS)
        else:
            return


def _still_there(file: IO[bytes], lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), lock.stat())
    except FileNotFoundError:
        return False
