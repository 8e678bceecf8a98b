"""Rows made by hand: documents of a few passages, spaces, and what the tables then hold."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import dict_row

from concordance.adapters.postgres import documents, embeddings, projects
from concordance.adapters.postgres.database import Database
from concordance.indexing.documents import Document, Kind, Passage
from concordance.indexing.vector_space import VectorSpace, content_hash
from concordance.models import DocumentStatus, Scope
from concordance.settings import Project

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def document(
    name: str,
    *texts: str,
    scope: Scope = Scope.DOCS,
    kind: Kind = "file",
    title: str | None = None,
    commit: str = "c1",
    language: str = "english",
) -> Document:
    """A document whose passages are these texts, a line each."""
    passages = tuple(
        Passage(
            ordinal=number,
            heading_path=(),
            start_char=number * 100,
            end_char=number * 100 + len(text),
            content=text,
            content_hash=content_hash(title, (), text),
            start_line=number + 1 if kind == "file" else None,
            end_line=number + 1 if kind == "file" else None,
            event_id=f"e{number}" if kind == "session" else None,
            last_event_id=f"e{number}" if kind == "session" else None,
            speaker="human" if kind == "session" else None,
        )
        for number, text in enumerate(texts)
    )
    return Document(
        scope=scope,
        kind=kind,
        name=name,
        content_id=hashlib.sha256("\0".join(texts).encode()).hexdigest(),
        bytes=sum(map(len, texts)),
        status=DocumentStatus.INDEXED if texts else DocumentStatus.EMPTY,
        chunker="1",
        title=title,
        commit=commit if kind == "file" else None,
        language=language if texts else None,
        passages=passages,
    )


def space(model: str = "m", *, digest: str | None = None, dimensions: int = 8) -> VectorSpace:
    """The space of a model; two models are not the same one, unless they are given one digest."""
    return VectorSpace("fake", model, digest or f"1 of {model}", dimensions, "", "", 1)


def vector_of(text: str | bytes, salt: str = "", dimensions: int = 8) -> NDArray[np.float32]:
    """The vector of a text in the space of that salt: unit length, and another for each text."""
    data = text if isinstance(text, bytes) else content_hash(None, (), text)
    seed = hashlib.sha256(salt.encode() + data).digest()
    numbers = np.random.default_rng(list(seed)).standard_normal(dimensions)
    return (numbers / np.linalg.norm(numbers)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Row:
    """A passage as it is stored."""

    id: int
    name: str
    scope: str
    ordinal: int
    content: str
    lexemes: str
    lexical_scope: str
    vector: str | None
    vector_scope: str | None


class Shelf:
    """One tenant's rows in the test's database."""

    def __init__(self, database: Database, tenant: str = "default") -> None:
        self.database = database
        self.tenant = projects.ensure_tenant(database, tenant)

    def project(self, slug: str = "p", *, language: str = "english") -> projects.StoredProject:
        project = Project(slug=slug, url="https://example.org/p.git", language=language)
        return projects.ensure_project(self.database, self.tenant, project)

    @contextmanager
    def hold(self, slug: str = "p") -> Iterator[projects.Hold]:
        with projects.hold(
            self.database,
            self.project(slug),
            uuid.uuid4(),
            wait_seconds=10,
            on_wait=lambda: None,
        ) as held:
            yield held

    def write(self, *batch: Document, project: str = "p") -> None:
        with self.hold(project) as held:
            documents.write_documents(self.database, self.tenant, held, batch)

    def activate(self, wanted: VectorSpace | None = None) -> embeddings.StoredSpace:
        return embeddings.activate_space(self.database, self.tenant, wanted or space(), now=NOW)

    def fill(
        self, stored: embeddings.StoredSpace, *, started: datetime = NOW + timedelta(days=1)
    ) -> list[str]:
        """Give every pending text its vector; the texts that were claimed, sorted."""
        claimed: list[str] = []
        with embeddings.open_backlog(self.database, self.tenant, stored) as backlog:
            while batch := backlog.claim(projects=None, most=10, attempts=5, before=started):
                claimed += [text.content for _, text in batch]
                backlog.store([(c, vector_of(c.content_hash, stored.digest)) for c, _ in batch])
            backlog.release()
        return sorted(claimed)

    def rows(self, project: str = "p", model: int | None = None) -> list[Row]:
        found = self.ask(
            """
            select k.id, d.name, d.scope, k.ordinal, k.content, l.lexemes::text as lexemes,
                   l.scope as lexical_scope, e.embedding::text as vector, e.scope as vector_scope
            from concordance.chunks k
            join concordance.documents d on d.id = k.document_id
            join concordance.projects p on p.id = d.project_id
            left join concordance.lexical l on l.chunk_id = k.id
            left join concordance.embedding_models m on m.tenant_id = k.tenant_id
                and case when %(model)s::integer is null then m.state = 'active'
                    else m.id = %(model)s end
            left join concordance.embeddings e on e.chunk_id = k.id and e.model_id = m.id
            where p.slug = %(project)s
            order by d.name, k.ordinal
            """,
            {"project": project, "model": model},
        )
        return [Row(**row) for row in found]

    def ids(self, project: str = "p") -> dict[tuple[str, int], int]:
        return {(row.name, row.ordinal): row.id for row in self.rows(project)}

    def backlog(self) -> list[dict[str, Any]]:
        return self.ask("select * from concordance.embedding_backlog order by position")

    def count(self, table: str) -> int:
        return int(self.ask(f"select count(*) as n from concordance.{table}")[0]["n"])  # noqa: S608

    def ask(self, query: Any, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        with self.database.transaction() as connection:
            return connection.cursor(row_factory=dict_row).execute(query, parameters).fetchall()


def contents(rows: Sequence[Row]) -> list[str]:
    return [row.content for row in rows]
