"""Decision records: what files say of themselves, and which record replaced which."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from concordance.adapters.postgres.database import Connection, Database, Statements, fetch_all
from concordance.indexing.documents import Document
from concordance.indexing.succession import Entry, date_in_name, trace
from concordance.models import AdrStatus, RecordName, RecordState
from concordance.text.record_links import Reference
from sql import queries


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A decision record as it is stored; references are as written."""

    document_id: int
    name: str
    title: str | None
    commit: str | None
    status: str
    status_text: str | None
    decided_on: date | None
    deciders: list[str]
    supersedes: list[dict[str, str | None]]
    superseded_by: list[dict[str, str | None]]

    @property
    def entry(self) -> Entry:
        """The record as it is compared with the others."""
        return Entry(
            name=self.name,
            title=self.title,
            status=AdrStatus(self.status),
            supersedes=_references(self.supersedes),
            superseded_by=_references(self.superseded_by),
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """The record that a passage belongs to, and those that replaced it."""

    chunk_id: int
    document_id: int
    name: str
    status: str
    status_text: str | None
    decided_on: date | None
    newer: list[int]
    names: list[str]
    titles: list[str | None]

    @property
    def state(self) -> RecordState:
        """The record's state as an answer shows it."""
        return RecordState(
            status=AdrStatus(self.status),
            status_text=self.status_text,
            date=self.decided_on or date_in_name(self.name),
            superseded_by=tuple(
                RecordName(path=name, title=title)
                for name, title in zip(self.names, self.titles, strict=True)
            ),
        )


def write_records(
    connection: Connection,
    tenant: int,
    project_id: int,
    ids: Sequence[int],
    documents: Sequence[Document],
) -> None:
    """Replace what these documents say of themselves; `ids` are their rows."""
    connection.execute(queries("records")["forget"], {"documents": list(ids)})
    said = [_row(document) for document in documents if document.record is not None]
    if said:
        connection.execute(
            queries("records")["write"],
            {"tenant": tenant, "project": project_id, "records": json.dumps(said)},
        )


def settle_successions(connection: Connection, tenant: int, project_id: int) -> None:
    """Find anew which record of a project replaced which, from all that they say."""
    stored = _of_project(connection, project_id)
    numbers = {record.name: record.document_id for record in stored}
    found = trace([record.entry for record in stored])
    connection.execute(
        queries("records")["settle_successions"],
        {
            "tenant": tenant,
            "project": project_id,
            "older": [numbers[older] for older, _ in found.pairs],
            "newer": [numbers[newer] for _, newer in found.pairs],
        },
    )


def stored_records(database: Database, project_id: int) -> list[StoredRecord]:
    """Every decision record of a project, by path."""
    with database.transaction() as connection:
        return _of_project(connection, project_id)


def standing_of(
    connection: Connection, chunks: Sequence[int], ask: Statements
) -> dict[int, Standing]:
    """The records that some passages belong to, by the passage; others have none."""
    rows = fetch_all(connection, ask["of_chunks"], {"chunks": list(chunks)}, Standing)
    return {row.chunk_id: row for row in rows}


def _of_project(connection: Connection, project_id: int) -> list[StoredRecord]:
    return fetch_all(
        connection, queries("records")["of_project"], {"project": project_id}, StoredRecord
    )


def _row(document: Document) -> dict[str, Any]:
    record = document.record
    assert record is not None  # noqa: S101 - the caller chose those that have one
    return {
        "name": document.name,
        "status": record.status.value,
        "status_text": record.status_text,
        "decided_on": None if record.date is None else record.date.isoformat(),
        "deciders": list(record.deciders),
        "supersedes": [{"text": r.text, "target": r.target} for r in record.supersedes],
        "superseded_by": [{"text": r.text, "target": r.target} for r in record.superseded_by],
    }


def _references(stored: Sequence[dict[str, str | None]]) -> tuple[Reference, ...]:
    return tuple(Reference(one["text"] or "", one["target"]) for one in stored)
