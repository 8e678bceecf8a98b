"""What has to be done to make the stored documents those of the source.

What belongs here: the comparison of what is stored with what was found, as a plan that can be
printed. Nothing is read or written here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from concordance.indexing.documents import Kind
from concordance.models import DocumentStatus, Scope
from concordance.text.formats import Format, format_of


@dataclass(frozen=True, slots=True)
class Found:
    """A file or session at the source; `skip` is the reason where it is not to be read."""

    scope: Scope
    kind: Kind
    name: str
    content_id: str
    bytes: int
    skip: str | None = None
    source: str | None = None


class Stored(Protocol):
    """What the planner needs to know of a stored document."""

    @property
    def id(self) -> int:
        """The number of its row."""
        ...

    @property
    def scope(self) -> Scope:
        """The scope that it is stored in."""
        ...

    @property
    def kind(self) -> Kind:
        """Whether it is a file or a session."""
        ...

    @property
    def name(self) -> str:
        """Its path, or its session's id."""
        ...

    @property
    def content_id(self) -> str:
        """What tells its content from another."""
        ...

    @property
    def status(self) -> DocumentStatus:
        """What became of it."""
        ...

    @property
    def chunker(self) -> str:
        """The fingerprint of how it was cut."""
        ...


@dataclass(frozen=True, slots=True)
class Rename:
    """A stored document that stands under another name or in another scope now."""

    id: int
    old: str
    name: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Plan:
    """Renames come first, then documents to read and write, deletions last."""

    renames: tuple[Rename, ...] = ()
    writes: tuple[Found, ...] = ()
    deletes: tuple[int, ...] = ()
    deleted_names: tuple[str, ...] = ()
    unchanged: int = 0
    added: int = field(default=0)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.renames or self.writes or self.deletes)

    def __str__(self) -> str:
        return (
            f"{self.added} to add, {len(self.writes) - self.added} to change, "
            f"{len(self.renames)} to rename, {len(self.deletes)} to delete, "
            f"{self.unchanged} unchanged"
        )


def make_plan(
    stored: Sequence[Stored], found: Iterable[Found], *, chunker: str, full: bool = False
) -> Plan:
    """Compare by name first, then by content: a file that moved keeps its chunks and vectors.

    With `full`, every document is read and written again, whatever is stored.
    """
    by_name = {(s.kind, s.name): s for s in stored}
    wanted = {(f.kind, f.name): f for f in found}
    gone = {key: s for key, s in by_name.items() if key not in wanted}
    new = [f for key, f in wanted.items() if key not in by_name]
    renames, moved = ([], set[tuple[Kind, str]]()) if full else _renames(gone, new, chunker)
    writes = [f for f in new if (f.kind, f.name) not in moved]
    added = len(writes)
    unchanged = 0
    for key, f in wanted.items():
        s = by_name.get(key)
        if s is None:
            continue
        if full or not _same(s, f, chunker):
            writes.append(f)
        elif s.scope != f.scope:
            renames.append(Rename(s.id, s.name, f.name, f.scope))
        else:
            unchanged += 1
    taken = {rename.id for rename in renames}
    deletes = sorted((s for s in gone.values() if s.id not in taken), key=lambda s: s.id)
    return Plan(
        renames=tuple(sorted(renames, key=lambda r: r.name)),
        writes=tuple(sorted(writes, key=lambda f: (f.kind, f.name))),
        deletes=tuple(s.id for s in deletes),
        deleted_names=tuple(s.name for s in deletes),
        unchanged=unchanged,
        added=added,
    )


def _same(stored: Stored, found: Found, chunker: str) -> bool:
    made_by = skipped_by(chunker) if found.skip is not None else chunker
    return stored.content_id == found.content_id and stored.chunker == made_by


def skipped_by(chunker: str) -> str:
    """The fingerprint of a document that a rule kept from being read.

    It tells a file that is too large by today's limit from one whose content says that there is
    nothing to read, such as a pointer to a file kept elsewhere: the first may be read tomorrow.
    """
    return f"{chunker}/skipped"


def _renames(
    gone: dict[tuple[Kind, str], Stored], new: Sequence[Found], chunker: str
) -> tuple[list[Rename], set[tuple[Kind, str]]]:
    """Pair files that went with files that came, where the content is the same.

    A file that is read in another format under its new name has other passages. Only indexed files
    are paired: the reason of a failed or skipped one may speak of its name.
    """
    by_content: dict[tuple[str, Format], list[Stored]] = defaultdict(list)
    for s in gone.values():
        if s.kind == "file" and s.status is DocumentStatus.INDEXED and s.chunker == chunker:
            by_content[s.content_id, format_of(s.name)].append(s)
    for candidates in by_content.values():
        candidates.sort(key=lambda s: s.name, reverse=True)
    renames: list[Rename] = []
    moved: set[tuple[Kind, str]] = set()
    for f in sorted(new, key=lambda f: f.name):
        same = by_content.get((f.content_id, format_of(f.name)))
        if f.kind == "file" and f.skip is None and same:
            s = same.pop()
            renames.append(Rename(s.id, s.name, f.name, f.scope))
            moved.add((f.kind, f.name))
    return renames, moved
