"""What is read out of a mirror: the entries of a tree, and blobs.

What belongs here: reading the object store. A path is bytes, a symbolic link is an entry of its own
kind and its target never followed, and nothing is checked out. What doesn't belong here: fetching.

The batch process is GitPython's. Its own `stream_object_data` accepts ids of 40 digits only, so
the header is read here; and `Git.execute` adds this process's environment to the one that it is
given, so every variable of ours is emptied there: some hold tokens, and some point to another
repository.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Final, Literal

from concordance.adapters.environment import process_environment, process_variables
from concordance.adapters.git_policy import OBJECT_ID
from concordance.adapters.git_process import limit_memory
from concordance.errors import SourceError, SourceRefused

Kind = Literal["file", "symlink", "submodule"]

_KINDS: Final[Mapping[bytes, Kind]] = {b"120000": "symlink", b"160000": "submodule"}
_HEADER_PARTS: Final = 3
_LOADING: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One path of a commit; `size` is None where the repository holds no blob (a submodule)."""

    path: bytes
    kind: Kind
    blob_id: str
    size: int | None


class BlobUnreadable(Exception):
    """The object store lacks this blob, or can't give it back as it was stored."""


def parse_tree(listing: bytes) -> list[TreeEntry]:
    """The entries of `git ls-tree -r -z -l`."""
    return [_parse_entry(record) for record in listing.split(b"\0") if record]


def read_blobs(
    repository: Path,
    environment: Mapping[str, str],
    blob_ids: Sequence[str],
    *,
    memory_bytes: int | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Each blob in the order asked for, from one process, one blob in memory at a time.

    Raises:
        BlobUnreadable: A blob is missing or corrupt.
        SourceError: git or GitPython can't be used.
        SourceRefused: An id is not one.
    """
    for blob_id in blob_ids:
        if not OBJECT_ID.fullmatch(blob_id):
            raise SourceRefused(f"blob_ids holds {blob_id!r}, which is no object id")
    if not blob_ids:
        return
    process = _start_batch(repository, environment)
    with process:
        limit_memory(process.pid, memory_bytes)
        if process.stdin is None or process.stdout is None:
            raise AssertionError("input and output are pipes")
        for blob_id in blob_ids:
            yield blob_id, _ask(process.stdin, process.stdout, blob_id)


def _parse_entry(record: bytes) -> TreeEntry:
    about, _, path = record.partition(b"\t")
    mode, _, blob_id, size = about.split()
    return TreeEntry(
        path=path,
        kind=_KINDS.get(mode, "file"),
        blob_id=blob_id.decode("ascii"),
        size=None if size == b"-" else int(size),
    )


def _start_batch(repository: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    git = _load()
    emptied = dict.fromkeys(process_environment(), "")
    shielded = {**emptied, **environment, **_shield(repository)}
    try:
        process = git.Git(str(repository)).execute(
            ["git", "cat-file", "--batch"], istream=subprocess.PIPE, as_process=True, env=shielded
        )
    except git.GitCommandNotFound as error:
        raise SourceError(
            "GitPython found no git", hint="Install git 2.31 or newer and put it on the PATH"
        ) from error
    # The wrapper ends the process when it is collected; our `with` does so at a known moment.
    batch: subprocess.Popen[bytes] | None = process.proc
    process.proc = None
    if batch is None:
        raise AssertionError("the process was started")
    return batch


def _load() -> ModuleType:
    """GitPython, which runs git when it is imported, with all variables of this process.

    That git is spared: told to use a file that is no program, GitPython looks again at its use.
    """
    spared = {"GIT_PYTHON_GIT_EXECUTABLE": os.devnull, "GIT_PYTHON_REFRESH": "quiet"}
    with _LOADING:
        if "git" in sys.modules:
            return sys.modules["git"]
        with process_variables(spared):
            return import_module("git")


def _shield(repository: Path) -> dict[str, str]:
    return {
        "GIT_DIR": str(repository),
        "GIT_COMMON_DIR": str(repository),
        "GIT_OBJECT_DIRECTORY": str(repository / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_CONFIG_COUNT": "0",
        "GIT_TRACE": "0",
    }


def _ask(stdin: IO[bytes], stdout: IO[bytes], blob_id: str) -> bytes:
    try:
        # Past the buffer, which would try again to write when it is closed.
        os.write(stdin.fileno(), blob_id.encode("ascii") + b"\n")
    except BrokenPipeError:
        raise BlobUnreadable(blob_id) from None
    header = stdout.readline().split()
    if len(header) != _HEADER_PARTS or header[1] != b"blob":
        raise BlobUnreadable(blob_id)
    size = int(header[2])
    content = stdout.read(size + 1)
    if len(content) != size + 1:
        raise BlobUnreadable(blob_id)
    return content[:-1]
