"""Session logs on disk: which files there are, and their bytes.

What belongs here: listing and reading, unpacked where they are compressed. A folder that can't be
read is an error, never an empty folder. What the bytes mean is `concordance.sessions`' matter.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from concordance.adapters.unpacking import SUFFIX, breaks_off, unpack
from concordance.errors import LogsUnreadable
from concordance.sessions.exports import export_names, lies_in_export
from concordance.sessions.reader import Reader
from concordance.sessions.registry import by_name
from concordance.settings import SessionSource
from concordance.text.scrubbing import Scrubber

# What stands beside logs, such as a list of users, is small.
MOST_BESIDE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file as the folder lists it.

    `beside` changes when what stands beside it does. `export` names the export that it may lie in,
    where the project has more than one.
    """

    path: Path
    size: int
    modified_ns: int
    name: str = ""
    source: SessionSource | None = None
    beside: str = ""
    export: str = ""

    @property
    def around(self) -> str:
        """A text that changes with what else than its bytes is read with a log."""
        return f"{self.beside}\0\0{self.export}" if self.export else self.beside


@dataclass(frozen=True, slots=True)
class LogBytes:
    """The bytes of a log, unpacked; with `cut`, what it is packed in breaks off."""

    data: bytes
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in some sources, by path: logs, and links that are not followed."""

    logs: Sequence[LogFile]
    links: Sequence[Path]


def list_logs(
    sources: Sequence[SessionSource], readers: Mapping[str, Reader] | None = None
) -> list[LogFile]:
    """Every log file of the sources, by path; see `look_for_logs`."""
    return list(look_for_logs(sources, readers).logs)


def look_for_logs(
    sources: Sequence[SessionSource], readers: Mapping[str, Reader] | None = None
) -> Found:
    """Every log file of the sources; links are followed for the source itself only.

    Others are named: those to folders, and those that have the name of a log. What is no regular
    file, such as a pipe, is no log. A log is named from its source's own folder, which is part of
    the name. Without a pattern, the names count that the readers know.

    Raises:
        LogsUnreadable: A source is missing, or a folder or file below it can't be looked at.
    """
    found: dict[Path, LogFile] = {}
    links: set[Path] = set()
    known = by_name() if readers is None else readers
    near = _Near(sorted({name for reader in known.values() for name in reader.beside}))
    for source in sources:
        if source.path is None:
            continue
        for path in _walk(source.path, _patterns(source, known), links):
            status = _look(path, follow=path == source.path)
            if stat.S_ISLNK(status.st_mode):
                links.add(path)
            elif stat.S_ISREG(status.st_mode):
                name = _name(path, source.path)
                times = (status.st_size, status.st_mtime_ns)
                found[path] = LogFile(path, *times, name, source, near.stamp(path.parent))
    exports = _exports(found.values(), known)
    logs = [replace(found[path], export=exports.get(path, "")) for path in sorted(found)]
    # Another source may name what a link stands for by the link itself.
    return Found(logs, sorted(links - found.keys() - {source.path for source in sources}))


def marker(logs: Iterable[LogFile], links: Iterable[Path] = ()) -> str:
    """A short text that changes when a log is added, removed, grown or written anew, or a link."""
    digest = hashlib.sha256()
    for log in logs:
        digest.update(
            f"{log.path}\0{log.size}\0{log.modified_ns}{log.around}\n".encode(
                errors="surrogateescape"
            )
        )
    for link in links:
        digest.update(f"link {link}\n".encode(errors="surrogateescape"))
    return f"logs-{digest.hexdigest()[:24]}"


def read_log(log: LogFile) -> LogBytes:
    """The bytes of a log, up to its listed size: what came later is read next time.

    Raises:
        LogsUnreadable: The file went away or can't be read.
        Damaged: It is compressed, and can't be unpacked.
    """
    try:
        with log.path.open("rb") as file:
            data = file.read(log.size)
    except OSError as error:
        raise _unreadable(log.path, error) from None  # its own words name the path
    if log.path.suffix != SUFFIX:
        return LogBytes(data)
    return LogBytes(unpack(data), cut=breaks_off(data))


def read_beside(log: LogFile, wanted: Iterable[str]) -> dict[str, bytes]:
    """The files beside a log that a reader wants to see, where they are there and can be read."""
    found = {}
    for name in wanted:
        path = log.path.parent / name
        try:
            if stat.S_ISREG(path.stat(follow_symlinks=False).st_mode):
                with path.open("rb") as file:
                    found[name] = file.read(MOST_BESIDE_BYTES)
        except OSError:
            continue
    return found


class _Near:
    """Sizes and times of files that readers want to see beside the logs of a folder."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._found: dict[Path, str] = {}

    def stamp(self, folder: Path) -> str:
        """A text that is empty where there are none."""
        if folder not in self._found:
            stamps = []
            for name in self._names:
                with suppress(OSError):
                    status = (folder / name).stat(follow_symlinks=False)
                    stamps.append(f"\0{name}\0{status.st_size}\0{status.st_mtime_ns}")
            self._found[folder] = "".join(stamps)
        return self._found[folder]


def _exports(logs: Iterable[LogFile], readers: Mapping[str, Reader]) -> dict[Path, str]:
    """The names of the exports that logs lie in, where a reader has more than one."""
    found: dict[Path, str] = {}
    named = {
        log.path: (log.path.name.removesuffix(SUFFIX), log.source.format if log.source else None)
        for log in logs
    }
    for reader in (reader for reader in readers.values() if reader.in_exports):
        inside = {
            path: path.parent.parent
            for path, (name, of) in named.items()
            if lies_in_export(name, reader, of)
        }
        names = export_names(inside.values())
        found |= {path: _text(names[export]) for path, export in inside.items()}
    return found


def _text(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()


def _name(path: Path, source: Path) -> str:
    folder = source.parent if path == source else source
    inner = path.relative_to(folder).as_posix()
    return _text(f"{folder.name}/{inner}")


def _patterns(source: SessionSource, readers: Mapping[str, Reader]) -> tuple[str, ...]:
    if source.pattern is not None:
        return (source.pattern,)
    if source.format is not None and source.format in readers:
        return readers[source.format].patterns
    return tuple(dict.fromkeys(p for reader in readers.values() for p in reader.patterns))


def _walk(source: Path, patterns: Sequence[str], links: set[Path]) -> list[Path]:
    """What has the name of a log; links to folders are added to `links`."""
    if stat.S_ISREG(_look(source, follow=True).st_mode):
        return [source]

    def stop(error: OSError) -> None:
        raise _unreadable(Path(str(error.filename)), error) from None

    found = []
    split = [tuple(pattern.split("/")) for pattern in patterns]
    for folder, folders, names in os.walk(source, onerror=stop):
        folders.sort()
        links.update(
            path for path in (Path(folder) / name for name in folders) if path.is_symlink()
        )
        above = Path(folder).relative_to(source).parts
        for name in names:
            if any(_matches((*above, name), pattern) for pattern in split):
                found += [Path(folder) / name]
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
