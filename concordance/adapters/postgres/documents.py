"""Documents and chunks: what is stored, and how a batch of documents replaces it.

A document's chunks are replaced in one transaction: a reader sees all of the old or all of the new.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from concordance.adapters.postgres.database import Connection, Database, fetch_all, fetch_one
from concordance.adapters.postgres.projects import Hold, check_hold, keep_models
from concordance.adapters.postgres.records import write_records
from concordance.adapters.postgres.words import analyse_passages, forget_words, write_words
from concordance.indexing.documents import Document, Kind
from concordance.models import DocumentStatus, Scope
from sql import queries


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as the planner compares it."""

    id: int
    scope: Scope
    kind: Kind
    name: str
    content_id: str
    status: DocumentStatus
    chunker: str

    def __post_init__(self) -> None:
        """Rows come with plain text; make enumerations of it."""
        object.__setattr__(self, "scope", Scope(self.scope))
        object.__setattr__(self, "status", DocumentStatus(self.status))


@dataclass(frozen=True, slots=True)
class DocumentDetail:
    """All that is known of one document."""

    id: int
    scope: Scope
    status: DocumentStatus
    reason: str | None
    commit: str | None
    chunker: str
    chunks: int
    chunks_with_vector: int
    chunks_refused: int
    refusal: str | None


@dataclass(frozen=True, slots=True)
class Problem:
    """A document that was found and is not indexed, with the reason."""

    name: str
    scope: str
    status: str
    reason: str | None
    commit: str | None


def stored_documents(
    database: Database, project_id: int, scopes: Sequence[Scope]
) -> list[StoredDocument]:
    """Every stored document of some scopes of a project."""
    with database.transaction() as connection:
        return fetch_all(
            connection,
            queries("documents")["stored"],
            {"project": project_id, "scopes": list(scopes)},
            StoredDocument,
        )


def write_documents(
    database: Database, tenant: int, held: Hold, documents: Sequence[Document]
) -> None:
    """Replace or add documents, in one transaction: rows, lexemes, reused vectors, backlog."""
    ask = queries("documents")
    with database.transaction() as connection:
        _begin(connection, held)
        connection.execute(ask["create_incoming_documents"])
        connection.execute(ask["create_incoming_chunks"])
        _copy(connection, documents)
        key = {"project": held.project_id, "tenant": tenant}
        for name in (
            "upsert_documents",
            "number_incoming",
            "match_kept",
            "number_new",
            "lock_unmatched",
            "move_kept",
            "insert_chunks",
        ):
            connection.execute(ask[name], key)
        ids = [row[0] for row in connection.execute(ask["incoming_ids"], key).fetchall()]
        write_records(connection, tenant, held.project_id, ids, documents)
        connection.execute(ask["reuse_vectors"], {"documents": ids})
        analyse_passages(connection, held.project_id, None)
        forget_words(connection, held.project_id, ids)
        connection.execute(ask["delete_unmatched"], key)
        write_words(connection, tenant, held.project_id)
        queue_texts(connection, ids)


def rename_documents(
    database: Database,
    tenant: int,
    held: Hold,
    renames: Sequence[tuple[int, str, Scope]],
    *,
    commit: str | None = None,
) -> None:
    """Give documents another name or scope; their chunks and vectors stay as they are.

    With `commit`, they are cited at it from now on: the old one does not have the new name.
    """
    ids = [identifier for identifier, _, _ in renames]
    with database.transaction() as connection:
        _begin(connection, held)
        connection.execute(
            queries("documents")["rename"],
            {
                "project": held.project_id,
                "commit": commit,
                "ids": ids,
                "names": [name for _, name, _ in renames],
                "scopes": [scope for _, _, scope in renames],
            },
        )
        connection.execute(queries("documents")["reuse_vectors"], {"documents": ids})
        analyse_passages(connection, held.project_id, ids)
        forget_words(connection, held.project_id, ids)
        write_words(connection, tenant, held.project_id)
        queue_texts(connection, ids)


def delete_documents(database: Database, held: Hold, ids: Sequence[int]) -> None:
    """Remove documents with all that hangs on them."""
    with database.transaction() as connection:
        check_hold(connection, held)
        forget_words(connection, held.project_id, ids)
        connection.execute(
            queries("documents")["delete"], {"project": held.project_id, "ids": list(ids)}
        )


def stamp_commit(
    connection: Connection, project_id: int, scopes: Sequence[Scope], commit: str
) -> None:
    """Say of every file of these scopes that it stands at `commit`."""
    connection.execute(
        queries("documents")["stamp_commit"],
        {"project": project_id, "scopes": list(scopes), "commit": commit},
    )


def find_document(
    database: Database, project_id: int, kind: Kind, name: str
) -> DocumentDetail | None:
    """What is stored of one file or session, or None."""
    with database.transaction() as connection:
        return fetch_one(
            connection,
            queries("documents")["find"],
            {"project": project_id, "kind": kind, "name": name},
            DocumentDetail,
        )


def problem_documents(database: Database, project_id: int, *, most: int) -> list[Problem]:
    """Documents that failed or were skipped, at most `most` of them."""
    with database.transaction() as connection:
        return fetch_all(
            connection,
            queries("documents")["problems"],
            {"project": project_id, "most": most},
            Problem,
        )


def _begin(connection: Connection, held: Hold) -> None:
    check_hold(connection, held)
    keep_models(connection, held.project_id)


def queue_texts(connection: Connection, ids: Sequence[int]) -> None:
    """Ask for the vectors that documents lack, and give those they have their scope."""
    key = {"documents": list(ids)}
    for name in ("rescope_vectors", "queue_texts"):
        connection.execute(queries("documents")[name], key)


def _copy(connection: Connection, documents: Sequence[Document]) -> None:
    ask = queries("documents")
    with connection.cursor() as cursor:
        with cursor.copy(ask["copy_documents"]) as copy:
            for position, d in enumerate(documents):
                place = (position, d.scope, d.kind, d.name, d.source, d.title)
                state = (d.content_id, d.bytes, d.status, d.reason, d.chunker, d.commit)
                secrets = json.dumps(dict(sorted(d.secrets.items())))
                session = (d.directory, d.branch, d.turns)
                copy.write_row((*place, *state, d.language, secrets, *session))
        with cursor.copy(ask["copy_chunks"]) as copy:
            for position, d in enumerate(documents):
                for p in d.passages:
                    start = (position, p.ordinal, json.dumps(p.heading_path), p.titled)
                    span = (p.start_line, p.end_line, p.start_char, p.end_char)
                    turn = (p.event_id, p.last_event_id, p.speaker, p.occurred_at)
                    copy.write_row((*start, *span, *turn, p.content, p.content_hash, p.preceding))
