"""Bytes to text, or the reason why not.

What belongs here: everything that can be said of a file before its format matters. A file that
can't be read is a value with a reason, since one such file must not stop the others.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final, Literal

MAX_NULS: Final = 8
"""So many NULs are forgiven in a text of any length, and one in a hundred characters in a long one.

Quoted binary output leaves a few in a text that is otherwise sound; an object file, an image or
UTF-16 without a byte order mark has them everywhere.
"""

_LINE_END: Final = re.compile(rb"\r\n?|\n")
_LFS_PREFIX: Final = b"version https://git-lfs.github.com/spec/"
_LFS_LIMIT: Final = 1024  # the specification's own bound; a longer file only quotes a pointer
_LFS_SIZE: Final = re.compile(rb"^size (\d+)\s*$", re.MULTILINE)
_FOREIGN_MARKS: Final = (
    # UTF-32 LE starts with the mark of UTF-16 LE, so it is asked first
    (codecs.BOM_UTF32_LE, "UTF-32 LE"),
    (codecs.BOM_UTF32_BE, "UTF-32 BE"),
    (codecs.BOM_UTF16_LE, "UTF-16 LE"),
    (codecs.BOM_UTF16_BE, "UTF-16 BE"),
)
_LINE = re.compile(r", line (\d{1,9})$")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text, without its byte order mark; `notes` say what was changed in it."""

    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that gives no text, with the status of its row and the reason in words."""

    status: Literal["empty", "failed", "skipped"]
    reason: str


def decode(data: bytes) -> SourceText | Unreadable:
    """Read `data` as UTF-8.

    A byte order mark is dropped, so offsets count after it. A few NULs (see `MAX_NULS`) become
    U+FFFD one for one, so lines and offsets stay, and a note says so.
    """
    if not data:
        return Unreadable("empty", "the file has no bytes")
    if data.startswith(_LFS_PREFIX) and len(data) <= _LFS_LIMIT:
        return _lfs_pointer(data)
    foreign = foreign_mark(data)
    if foreign is not None:
        return Unreadable("failed", f"not UTF-8: the file starts with the mark of {foreign}")
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        return _not_utf8(data, error.start)
    return _without_nuls(text)


def foreign_mark(data: bytes) -> str | None:
    """The encoding whose byte order mark a file starts with, where it is not UTF-8."""
    return next((encoding for mark, encoding in _FOREIGN_MARKS if data.startswith(mark)), None)


def looks_binary(data: bytes) -> bool:
    """Whether a text, in UTF-8, has more NULs than are forgiven; see `MAX_NULS`."""
    return data.count(b"\0") > max(MAX_NULS, len(data) // 100)


def _lfs_pointer(data: bytes) -> Unreadable:
    size = _LFS_SIZE.search(data)
    of_size = f" to {int(size[1])} bytes" if size else ""
    return Unreadable("skipped", f"Git LFS pointer{of_size}; the content is not in the repository")


def _not_utf8(data: bytes, offset: int) -> Unreadable:
    line = len(_LINE_END.findall(data, 0, offset)) + 1
    return Unreadable(
        "failed", f"not UTF-8: byte 0x{data[offset]:02x} at offset {offset}, line {line}"
    )


def line_of(reason: str) -> int | None:
    """The line that a reason of this module names, for a link to it."""
    found = _LINE.search(reason)
    return None if found is None else int(found[1])


def _without_nuls(text: str) -> SourceText | Unreadable:
    if not text or text.isspace():
        return Unreadable("empty", "the file has only white space")
    nuls = text.count("\0")
    if nuls == 0:
        return SourceText(text, ())
    if nuls > max(MAX_NULS, len(text) // 100):
        return Unreadable("failed", f"looks like a binary file: {nuls} NUL characters")
    plural = "" if nuls == 1 else "s"
    return SourceText(text.replace("\0", "\ufffd"), (f"{nuls} NUL character{plural} replaced",))
