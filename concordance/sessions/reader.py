"""What a reader of session logs is, and what it is told of a log besides its bytes.

What belongs here: the contract. The readers that come with the program are in `registry`, others
are found by the entry point group `GROUP`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from concordance.sessions.documents import Document, read_document
from concordance.sessions.events import LineProblem, LogContent
from concordance.sessions.lines import BOM, LineError, objects

GROUP = "concordance.session_readers"
"""The entry point group in which other packages name a `Reader`."""

SAMPLED_LINES = 200
"""A format is told by its first lines; a log may begin with some that say little."""


class NotThisFormat(Exception):
    """The bytes are no log of the reader's format; the message says what was seen instead."""


@dataclass(frozen=True, slots=True)
class LogContext:
    """What a reader is told of a log besides its bytes.

    `name` is the path from the folder that is the source, that folder's own name included, with
    `/` between its parts. `beside` has the bytes of the files that the reader asked for. With
    `subagents`, what agents said to each other is kept as well. `export` tells the export apart
    that the log's folder lies in, and is empty where the project has no other.
    """

    name: str = "log"
    beside: Mapping[str, bytes] = field(default_factory=dict)
    subagents: bool = False
    export: str = ""

    @property
    def path(self) -> PurePosixPath:
        """The name as a path."""
        return PurePosixPath(self.name)

    @property
    def folder(self) -> str:
        """The name of the log's folder, for sessions that have no other."""
        return self.path.parent.name or self.path.stem

    @property
    def folder_id(self) -> str:
        """The same as the id of a session: two exports may have folders of one name."""
        return f"{self.export}/{self.folder}" if self.export else self.folder


class Sample:
    """A log as readers look at it to recognise their format."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.path = PurePosixPath(name)

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON objects of the first lines."""
        found = []
        for _, value in objects(self.data[: self._first_bytes]):
            if not isinstance(value, LineProblem):
                found.append(value)
            if len(found) == SAMPLED_LINES:
                break
        return found

    @cached_property
    def document(self) -> Any:
        """The file as one JSON value, as much of it as can be read; None where it is none."""
        return self._document[0]

    @property
    def damage(self) -> str | None:
        """Why the file, which begins like a JSON document, is none."""
        return self._document[1]

    @cached_property
    def _document(self) -> tuple[Any, str | None]:
        head = self.data[:64].removeprefix(BOM).lstrip()
        if not head.startswith((b"[", b"{")):
            return None, None
        try:
            return read_document(self.data).value, None
        except LineError as error:
            return None, str(error)

    @cached_property
    def text(self) -> str:
        """The beginning as text; what is no UTF-8 becomes U+FFFD."""
        return self.data[:4_096].removeprefix(BOM).decode("utf-8", "replace")

    @property
    def _first_bytes(self) -> int:
        """Whole lines, as far as they are looked at: one line may have megabytes."""
        end = 0
        for _ in range(SAMPLED_LINES):
            found = self.data.find(b"\n", end)
            if found < 0:
                return len(self.data)
            end = found + 1
        return end


def whole_document(data: bytes) -> Document:
    """One JSON value, for a reader whose format is one JSON document; see `read_document`.

    Raises:
        NotThisFormat: Nothing of it can be read.
    """
    try:
        return read_document(data)
    except LineError as error:
        raise NotThisFormat(f"no whole JSON document: {error}") from None


@dataclass(frozen=True, slots=True)
class Reader:
    """One format of session logs.

    Args:
        name: What `format` in projects.toml calls it: `a-z`, `0-9` and dashes.
        about: Whose logs these are, in a few words.
        patterns: The names under which they are written, from the folder of the source.
        recognises: Whether a log is of this format; asked in the order of the registry.
        read: From bytes to events. It raises `NotThisFormat` and nothing else, whatever the bytes.
        version: Goes up when the same bytes give other events.
        beside: Paths, from the log's own folder, of files that `read` wants to see as well.
        in_exports: Whether logs lie as `EXPORT/FOLDER/LOG` and `LogContext.folder_id` names their
            sessions.
        aside: Names of files in an export that are no logs.
    """

    name: str
    about: str
    patterns: tuple[str, ...]
    recognises: Callable[[Sample], bool]
    read: Callable[[bytes, LogContext], LogContent]
    version: int = 1
    beside: tuple[str, ...] = ()
    in_exports: bool = False
    aside: tuple[str, ...] = ()
