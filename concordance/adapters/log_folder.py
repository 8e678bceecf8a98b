"""Session logs on disk: which files there are, and their bytes.

What belongs here: listing and reading. A folder that can't be read is an error, never an empty
folder. What the bytes mean is `concordance.sessions`' matter.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from concordance.errors import LogsUnreadable
from concordance.settings import SessionSource


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file as the folder lists it."""

    path: Path
    size: int
    modified_ns: int


def list_logs(sources: Sequence[SessionSource]) -> list[LogFile]:
    """Every log file of the sources, by path; links are followed for the source itself only.

    Raises:
        LogsUnreadable: A source is missing, or a folder or file below it can't be looked at.
    """
    found: dict[Path, LogFile] = {}
    for source in sources:
        for path in _walk(source):
            found[path] = _look(path)
    return [found[path] for path in sorted(found)]


def marker(logs: Iterable[LogFile]) -> str:
    """A short text that changes when a log is added, removed, grown or written anew."""
    digest = hashlib.sha256()
    for log in logs:
        digest.update(
            f"{log.path}\0{log.size}\0{log.modified_ns}\n".encode(errors="surrogateescape")
        )
    return f"logs-{digest.hexdigest()[:24]}"


def read_log(log: LogFile) -> bytes:
    """The bytes of a log, up to the size that it was listed with: what came later is read next time.

    Raises:
        LogsUnreadable: The file went away or can't be read.
    """
    try:
        with log.path.open("rb") as file:
            return file.read(log.size)
    except OSError as error:
        raise _unreadable(log.path, error) from error


def _walk(source: SessionSource) -> list[Path]:
    try:
        mode = source.path.stat().st_mode
    except OSError as error:
        raise _unreadable(source.path, error) from error
    if stat.S_ISREG(mode):
        return [source.path]

    def stop(error: OSError) -> None:
        raise _unreadable(Path(str(error.filename)), error)

    found = []
    for folder, folders, names in os.walk(source.path, onerror=stop):
        folders.sort()
        for name in names:
            path = Path(folder) / name
            if _matches(path.relative_to(source.path), source.pattern) and not path.is_symlink():
                found.append(path)
    return found


def _matches(relative: Path, pattern: str) -> bool:
    """Whether a path fits the pattern; `**/` stands for any number of folders, none included."""
    path = PurePosixPath(relative.as_posix())
    return path.match(pattern.removeprefix("**/"))


def _look(path: Path) -> LogFile:
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return LogFile(path, status.st_size, status.st_mtime_ns)


def _unreadable(path: Path, error: OSError) -> LogsUnreadable:
    return LogsUnreadable(
        f"session logs at {path} can't be read: {error.strerror or type(error).__name__}",
        hint="Nothing was deleted. Check the path and its rights",
    )
