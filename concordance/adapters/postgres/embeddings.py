"""Vector spaces, the backlog of texts that want a vector, and the vectors themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from concordance.adapters.postgres.coverage import NO_RULES, Rules, recount_all
from concordance.adapters.postgres.database import (
    Connection,
    Database,
    fetch_all,
    fetch_one,
    fetch_value,
    run_again,
)
from concordance.adapters.postgres.projects import MODEL_LOCKS
from concordance.errors import DatabaseError
from concordance.indexing.vector_space import VectorSpace
from sql import queries

WORKER_LOCKS = 0x434F4E03  # first key of our advisory locks on embedding workers
CLAIM_LOCKS = 0x434F4E04  # the same, on the backlog of one model
INDEX_LOCKS = 0x434F4E05  # the same, on the making of one model's index
# Below this many vectors an exact scan takes a few milliseconds; the approximate index would only
# slow every write.
INDEX_FROM = 10_000


@dataclass(frozen=True, slots=True)
class StoredSpace:
    """A vector space as the database knows it."""

    id: int
    provider: str
    model: str
    digest: str
    dimensions: int
    document_prefix: str
    query_prefix: str
    chunk_text_version: int
    fingerprint: str

    @property
    def name(self) -> str:
        """The model's name with its provider, as settings write it."""
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A text that a worker has taken from the backlog."""

    content_hash: bytes
    position: int = 0


@dataclass(frozen=True, slots=True)
class PassageText:
    """The parts of the text to embed."""

    content_hash: bytes
    title: str | None
    heading_path: list[str]
    content: str
    preceding: str | None


@dataclass(frozen=True, slots=True)
class Pending:
    """How many texts want a vector, and how many of them were refused too often."""

    pending: int
    given_up: int


def active_space(
    database: Database, tenant: int, *, wait_seconds: float | None = None
) -> StoredSpace | None:
    """The space that is searched, or None before the first vector."""
    ask = database.statements("embeddings")["active_model"]
    with database.statement(wait_seconds=wait_seconds) as connection:
        return fetch_one(connection, ask, {"tenant": tenant}, StoredSpace)


def active_space_in(connection: Connection, tenant: int) -> StoredSpace | None:
    """The same, over a connection of the caller's."""
    return fetch_one(
        connection, queries("embeddings")["active_model"], {"tenant": tenant}, StoredSpace
    )


def activate_space(
    database: Database,
    tenant: int,
    space: VectorSpace,
    *,
    now: datetime,
    rules: Rules = NO_RULES,
) -> StoredSpace:
    """Make `space` the one that is filled and searched; queue every text that lacks a vector in it.

    The space that was active before is retired: its vectors stay, and are never compared with.
    Vectors of the same model under another name are taken over.
    Coverage is counted anew in the same transaction, as it speaks of the active space.
    """
    stored = active_space(database, tenant)
    if stored is not None and stored.fingerprint == space.fingerprint:
        return stored
    return run_again(lambda: _activate(database, tenant, space, now=now, rules=rules))


def _activate(
    database: Database, tenant: int, space: VectorSpace, *, now: datetime, rules: Rules
) -> StoredSpace:
    ask = queries("embeddings")
    key = {"tenant": tenant, "fingerprint": space.fingerprint}
    with database.transaction() as connection:
        connection.execute(ask["lock_models"], {"class": MODEL_LOCKS, "tenant": tenant})
        connection.execute(
            ask["register_model"],
            key
            | {
                "provider": space.provider,
                "model": space.model,
                "digest": space.digest,
                "dimensions": space.dimensions,
                "document_prefix": space.document_prefix,
                "query_prefix": space.query_prefix,
                "chunk_text_version": space.chunk_text_version,
            },
        )
        connection.execute(ask["retire_others"], key)
        model = fetch_value(connection, ask["activate"], key)
        if model is not None:
            connection.execute(ask["lock_backlog"], {"model": model})
            connection.execute(ask["adopt_vectors"], {"tenant": tenant, "model": model})
            connection.execute(ask["queue_missing"], {"tenant": tenant, "model": model})
            recount_all(connection, tenant, now=now, rules=rules)
        found = active_space_in(connection, tenant)
    if found is None:
        raise DatabaseError("the vector space was removed while it was made the active one")
    return found


class Backlog:
    """One worker's view of the texts that want a vector in one space.

    The worker's number is an advisory lock of its own session: when the process dies the lock is
    gone, and what it had claimed is free again at once.
    """

    def __init__(self, database: Database, tenant: int, space: StoredSpace, worker: int) -> None:
        self._database = database
        self._tenant = tenant
        self._space = space
        self._worker = worker
        self._after = 0

    def claim(
        self, *, projects: Sequence[int] | None, most: int, attempts: int, before: datetime
    ) -> list[tuple[Claimed, PassageText]]:
        """Take up to `most` texts that nobody else has; none of them was refused since `before`.

        Texts that got a vector by another way since they were queued are settled on the spot, so
        fewer may come back; only when nothing could be claimed is the list empty.
        """
        key = {
            "model": self._space.id,
            "projects": None if projects is None else list(projects),
            "most": most,
            "attempts": attempts,
            "before": before,
            "worker": self._worker,
            "worker_class": WORKER_LOCKS,
        }
        while True:
            taken = self._take(key | {"after": self._after})
            if not taken and self._after == 0:
                return []
            # At the end once more from the start: others may have given something back.
            self._after = max((claim.position for claim in taken), default=0)
            texts = self._wanted([claim.content_hash for claim in taken]) if taken else {}
            batch = [(c, texts[c.content_hash]) for c in taken if c.content_hash in texts]
            if batch:
                return batch

    def _take(self, key: Mapping[str, object]) -> list[Claimed]:
        ask = queries("embeddings")
        with self._database.transaction() as connection:
            connection.execute(ask["lock_model"], {"class": CLAIM_LOCKS, "model": self._space.id})
            return fetch_all(connection, ask["claim"], key, Claimed)

    def _wanted(self, hashes: list[bytes]) -> dict[bytes, PassageText]:
        """The texts of claimed hashes, but for those that are settled by copying a vector."""
        ask = queries("embeddings")
        key = {"model": self._space.id, "tenant": self._tenant, "hashes": hashes}
        with self._database.transaction() as connection:
            connection.execute(ask["settle"], key)
            settled = {row[0] for row in connection.execute(ask["drop_settled"], key).fetchall()}
            rest = [content_hash for content_hash in hashes if content_hash not in settled]
            found = fetch_all(connection, ask["texts"], key | {"hashes": rest}, PassageText)
        return {text.content_hash: text for text in found}

    def store(self, vectors: Sequence[tuple[Claimed, NDArray[np.float32]]]) -> int:
        """Write vectors onto every passage that still has their text; returns the rows written."""
        ask = queries("embeddings")
        key = {
            "model": self._space.id,
            "tenant": self._tenant,
            "hashes": [claim.content_hash for claim, _ in vectors],
            "vectors": [vector_as_text(vector) for _, vector in vectors],
        }
        with self._database.transaction() as connection:
            written = connection.execute(ask["store"], key).rowcount
            connection.execute(ask["drop_settled"], key)
        return written

    def store_less(self, vectors: Mapping[bytes, tuple[bytes, NDArray[np.float32]]]) -> None:
        """Write vectors of less than a text, which stays in the backlog, where it has none yet.

        Args:
            vectors: By the hash of the text: the hash of what was embedded, and its vector.
        """
        key = {
            "model": self._space.id,
            "tenant": self._tenant,
            "hashes": list(vectors),
            "sources": [source for source, _ in vectors.values()],
            "vectors": [vector_as_text(vector) for _, vector in vectors.values()],
        }
        with self._database.transaction() as connection:
            connection.execute(queries("embeddings")["store_less"], key)

    def refuse(self, reasons: Mapping[bytes, str], *, now: datetime) -> None:
        """Note that the model could not take these texts, in the provider's words."""
        hashes = sorted(reasons)
        with self._database.transaction() as connection:
            connection.execute(
                queries("embeddings")["refuse"],
                {
                    "model": self._space.id,
                    "hashes": hashes,
                    "reasons": [reasons[content_hash] for content_hash in hashes],
                    "now": now,
                },
            )

    def release(self) -> None:
        """Give back what this worker has claimed and not finished; drop what nobody wants."""
        ask = queries("embeddings")
        key = {"model": self._space.id, "worker": self._worker, "hashes": None}
        with self._database.transaction() as connection:
            connection.execute(ask["release"], key)
            connection.execute(ask["drop_settled"], key)


@contextmanager
def open_backlog(database: Database, tenant: int, space: StoredSpace) -> Iterator[Backlog]:
    """A worker's place at the backlog, given up at the end."""
    ask = queries("embeddings")
    with database.session() as connection:
        worker = int(fetch_value(connection, ask["next_worker"], {}))
        connection.execute(ask["lock_worker"], {"class": WORKER_LOCKS, "worker": worker})
        yield Backlog(database, tenant, space, worker)


def forgive(database: Database, space: StoredSpace) -> int:
    """Let texts that were refused too often be tried again; returns how many."""
    with database.transaction() as connection:
        return connection.execute(queries("embeddings")["forgive"], {"model": space.id}).rowcount


def pending(
    database: Database, space: StoredSpace, *, projects: Sequence[int] | None, attempts: int
) -> Pending:
    """What is left to embed in a space."""
    with database.transaction() as connection:
        found = fetch_one(
            connection,
            queries("embeddings")["pending"],
            {
                "model": space.id,
                "projects": None if projects is None else list(projects),
                "attempts": attempts,
            },
            Pending,
        )
    return found or Pending(0, 0)


def ensure_vector_index(database: Database, space: StoredSpace) -> bool:
    """Make the approximate index once a space is large enough to gain by it; tells if it did."""
    ask = queries("embeddings")
    name = f"embeddings_hnsw_{space.id}"
    with database.transaction() as connection:
        if fetch_value(connection, ask["vector_index_exists"], {"name": name}):
            return False
        # Two workers that make it at once would both fail to see the other's.
        connection.execute(ask["lock_model"], {"class": INDEX_LOCKS, "model": space.id})
        if fetch_value(connection, ask["vector_index_exists"], {"name": name}):
            return False
        if fetch_value(connection, ask["vector_count"], {"model": space.id}) < INDEX_FROM:
            return False
        connection.execute(
            ask["create_vector_index"], {"model": space.id, "dimensions": space.dimensions}
        )
    return True


def vector_as_text(vector: NDArray[np.float32]) -> str:
    """A vector as pgvector reads it, no digit lost."""
    return _as_text(vector.astype(np.float32).tobytes())


@lru_cache(maxsize=4)
def _as_text(values: bytes) -> str:
    """Kept for a moment: the statements of one search ask with the same vector."""
    return "[" + ",".join(map(repr, np.frombuffer(values, np.float32).tolist())) + "]"
