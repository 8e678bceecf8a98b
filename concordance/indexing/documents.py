"""What is written to the index: a document and its passages, as values.

What belongs here: the shape of a row before it is stored. How it was read is `concordance.text`'s
and `concordance.sessions`' work; how it is stored, the Postgres adapter's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from concordance.models import DocumentStatus, Scope
from concordance.text.records import Record

Kind = Literal["file", "session"]


@dataclass(frozen=True, slots=True)
class Passage:
    """One chunk: `content` is the slice `start_char` to `end_char` of its text.

    That is the source's text with marks in place of secrets; its lines are the source's own.

    `titled` says whether the document's title and path are indexed with it: they are not with front
    matter, which would be found by them and has nothing to say.
    """

    ordinal: int
    heading_path: tuple[str, ...]
    start_char: int
    end_char: int
    content: str
    content_hash: bytes
    start_line: int | None = None
    end_line: int | None = None
    event_id: str | None = None
    last_event_id: str | None = None
    titled: bool = True
    speaker: str | None = None
    occurred_at: datetime | None = None
    preceding: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A file or a session with its passages, or the reason why it has none.

    `record` is what a file says of itself as a decision, whatever its scope: one that is moved into
    a folder of decisions is not read again.
    `directory` and `branch` are where a session was at work, `commit` what it started from. `turns`
    is how often something was said in it.
    """

    scope: Scope
    kind: Kind
    name: str
    content_id: str
    bytes: int
    status: DocumentStatus
    chunker: str
    source: str | None = None
    title: str | None = None
    reason: str | None = None
    commit: str | None = None
    language: str | None = None
    directory: str | None = None
    branch: str | None = None
    turns: int | None = None
    passages: tuple[Passage, ...] = ()
    secrets: Mapping[str, int] = field(default_factory=dict, hash=False)
    """How many secrets of each kind were replaced in it."""
    record: Record | None = None
