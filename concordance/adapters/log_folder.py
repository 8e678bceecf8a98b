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
from fnmatch import fnmatchcase
from pathlib import Path

from concordance.errors import LogsUnreadable
from concordance.settings import SessionSource
from concordance.text.scrubbing import Scrubber


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file as the folder lists it."""

    path: Path
    size: int
    modified_ns: int


def list_logs(sources: Sequence[SessionSource]) -> list[LogFile]:
    """Every log file of the sources, by path; links are followed for the source itself only.

    What is no regular file, such as a pipe, is no log.

    Raises:
        LogsUnreadable: A source is missing, or a folder or file below it can't be looked at.
    """
    found: dict[Path, LogFile] = {}
    for source in sources:
        for path in _walk(source):
            status = _look(path, follow=path == source.path)
            if stat.S_ISREG(status.st_mode):
                found[path] = LogFile(path, status.st_size, status.st_mtime_ns)
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
    """The bytes of a log, up to its listed size: what came later is read next time.

    Raises:
        LogsUnreadable: The file went away or can't be read.
    """
    try:
        with log.path.open("rb") as file:
            return file.read(log.size)
    except OSError as error:
        raise _unreadable(log.path, error) from None  # its own words name the path


def _walk(source: SessionSource) -> list[Path]:
    if stat.S_ISREG(_look(source.path, follow=True).st_mode):
        return [source.path]

    def stop(error: OSError) -> None:
        raise _unreadable(Path(str(error.filename)), error) from None

    found = []
    for folder, folders, names in os.walk(source.path, onerror=stop):
        folders.sort()
        for name in names:
            path = Path(folder) / name
            if _matches(path.relative_to(source.path).parts, tuple(source.pattern.split("/"))):
                found.append(path)
    return found


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a path fits the pattern; `**/` stands for any number of folders, none included."""
    if not parts or not pattern:
        return not parts and set(pattern) <= {"**"}
    if pattern[0] == "**":
        return _matches(parts[1:], pattern) or _matches(parts, pattern[1:])
    return fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _look(path: Path, *, follow: bool) -> os.stat_result:
    try:
        return path.stat(follow_symlinks=follow)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> LogsUnreadable:
    named = Scrubber().name(str(path).encode(errors="backslashreplace").decode())
    return LogsUnreadable(
        f"session logs at {named} can't be read: {error.strerror or type(error).__name__}",
        hint="Nothing was deleted. Check the path and its rights",
    )
