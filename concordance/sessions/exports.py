"""Names of exports whose sessions are known by their folders alone.

What belongs here: telling folders of one name apart that lie in several exports, such as the
channel `general` of two workspaces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePath

from concordance.sessions.reader import Reader


def lies_in_export(name: str, reader: Reader, named: str | None) -> bool:
    """Whether a file of that name would be a log of an export of the reader's.

    Args:
        name: The file's own name, without its folders.
        reader: A reader.
        named: The format that the file's source names, if it does.
    """
    if not reader.in_exports or name in reader.aside or named not in (None, reader.name):
        return False
    return named is not None or any(
        fnmatchcase(name, pattern.rpartition("/")[2]) for pattern in reader.patterns
    )


def export_names(exports: Iterable[PurePath]) -> Mapping[PurePath, str]:
    """A name for each of some folders: as much of the end of its path as no other has.

    Where there is only one, it has the empty name: nothing has to be told apart.
    """
    left = set(exports)
    if len(left) <= 1:
        return dict.fromkeys(left, "")
    found: dict[PurePath, str] = {}
    size = 0
    while left:
        size += 1
        # Those that have a name already could not have that of another, but with a longer one.
        ends = Counter(export.parts[-size:] for export in (*left, *found))
        for export in sorted(left):
            if ends[export.parts[-size:]] == 1:
                found[export] = "/".join(export.parts[-size:]).replace("//", "/")
        left -= found.keys()
    return found
