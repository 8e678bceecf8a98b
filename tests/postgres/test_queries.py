"""Every named query runs on the real server."""

from __future__ import annotations

import re
import uuid
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

import concordance.adapters.postgres
from concordance.adapters.postgres import documents, embeddings
from concordance.adapters.postgres.database import Connection, Database
from concordance.adapters.postgres.lexical import MOST_WORDS
from sql import queries
from tests.postgres.rows import NOW, Shelf, document

ROOMS = sorted(
    entry.name.removesuffix(".sql")
    for entry in (files("sql") / "queries").iterdir()
    if entry.name.endswith(".sql")
)
ALL = [(room, name) for room in ROOMS for name in queries(room)]
# These make something that no transaction can take back, or that the server may have already; other
# tests run them.
OUTSIDE = {("connection", "create_database"), ("tenants", "make_functions")} | {
    ("purges", name) for name in queries("purges") if name.startswith("rewrite_")
}
VECTORS = {"vectors": ["{1:0.5}/1000000000"]}
# Where one name means two things.
INSTEAD: dict[tuple[str, str], dict[str, Any]] = {
    ("coverage", "save"): {"chunks": 3, "project_id": 1, "outdated": False},
    ("lexical", "top"): VECTORS,
    ("lexical", "top_ts_rank_cd"): VECTORS,
    ("search", "candidates"): VECTORS,
    ("search", "candidates_by_words"): VECTORS,
    ("tenants", "bind"): {"tenant": "default"},
    ("tenants", "make_login"): {"login": "query_made"},
    ("purges", "change_document"): {"id": 1},
    ("purges", "change_commits"): {"old": "main"},
    ("purges", "change_session_log"): {"old": "logs/a.jsonl", "path": "logs/a.jsonl"},
    ("purges", "change_record"): {
        "document_id": 1,
        "status_text": "accepted",
        "deciders": ["Ann"],
        "supersedes": Jsonb([]),
        "superseded_by": Jsonb([]),
    },
    ("purges", "change_passage"): {"id": 1},
    ("commits", "forget"): {"ids": ["c1"]},
    ("commits", "save"): {"ids": ["c1"]},
    ("session_logs", "read_events"): {"after": "s"},
}
# What an installation asks of a database of its own.
GIVEN = "select 's' as session_id, 1 as event_id, 'x' as type, 'y' as text, now() as occurred_at"
RUN = uuid.uuid4()
HASH = b"\1" * 32
LOGIN = "query_guest"


def _values(project: int, model: int, tenant: int) -> dict[str, Any]:
    """A plausible value for every parameter of every query."""
    return {
        "after": 0,
        "attempt_error": None,
        "attempts": 5,
        "average": 2.0,
        "before": NOW,
        "adr_status": ["accepted", "unknown"],
        "around": 5,
        "beside": None,
        "bm25": True,
        "branch": "main",
        "checked_on": 10,
        "chunk_text_version": 1,
        "chunks": [1, 2],
        "near": [2],
        "least": 1,
        "share": 0.2,
        "chunks_refused": 0,
        "chunks_with_vector": 0,
        "class": 7,
        "commit": "c2",
        "confidence": None,
        "content": "a passage",
        "content_hash": HASH,
        "conditions": ["'queue'"],
        "digest": "d",
        "dimensions": 8,
        "document_prefix": "",
        "directory": None,
        "documents": [1],
        "ef_search": 200,
        "embedding_error": None,
        "empty": 0,
        "end_char": 9,
        "end_line": 9,
        "error": "it was down",
        "event": "e",
        "event_id": None,
        "failed": 0,
        "figures": Jsonb({}),
        "files": ["f"],
        "fingerprint": "f",
        "first": 1,
        "fitted_on": 10,
        "format": "codex",
        "found": 1,
        "hashes": [HASH],
        "heading_path": ["A"],
        "id": RUN,
        "ids": [1],
        "indexed": 1,
        "key": 7,
        "kind": "file",
        "language": "english",
        "languages": ["english"],
        "last": 9,
        "last_event_id": None,
        "last_event": NOW,
        "left_out": Jsonb({}),
        "location": "https://example.org/p.git",
        "login": LOGIN,
        "marker": "c2",
        "milliseconds": 1_000,
        "model": model,
        "model_id": model,
        "model_name": "fake/m",
        "most": MOST_WORDS,
        "name": "docs/a.md",
        "names": ["docs/b.md"],
        "narrow": True,
        "newer": [],
        "now": NOW,
        "number": 9_999,
        "operands": ["'queue'", "'it''s'"],
        "older": [],
        "parts": Jsonb([]),
        "path": "/logs/a.jsonl",
        "paths": ["/logs/a.jsonl"],
        "pgvector_schema": "public",
        "pool": 200,
        "preceding": None,
        "prefix": "docs/",
        "problems": Jsonb([]),
        "project": project,
        "projects": [project],
        "provider": "fake",
        "query_prefix": "",
        "readers": ["r"],
        "question": "what is the queue",
        "questions_hash": "h",
        "reader": "r",
        "reason": "because",
        "reasons": ["unsupported value: NaN"],
        "records": "[]",
        "refused": None,
        "run": RUN,
        "scope": "docs",
        "scopes": ["docs", "adr"],
        "secrets": Jsonb({}),
        "sessions": ["f"],
        "set_name": "faq",
        "sha256": "0" * 64,
        "since": NOW,
        "slot": 7,
        "skipped": 0,
        "slug": "p",
        "slugs": ["p"],
        "source": None,
        "speaker": None,
        "start_char": 3,
        "start_line": 3,
        "stamp": "s",
        "state": "complete",
        "summary": Jsonb({}),
        "tenant": tenant,
        "term_languages": ["english", "english"],
        "shares": [0.75, 0.25],
        "sources": [HASH],
        "threshold": 0.2,
        "title": None,
        "times": [NOW],
        "turns": 3,
        "vector": "[1,0,0,0,0,0,0,0]",
        "vectors": ["[1,0,0,0,0,0,0,0]"],
        "vector_weight": 0.7,
        "wanted": ["s"],
        "web_url": None,
        "words": ["'queue'"],
        "worker": 1,
        "worker_class": embeddings.WORKER_LOCKS,
    }


def _twin(room: str, name: str) -> tuple[str, str]:
    """The statement that a reader's one stands for; any other stands for itself."""
    if room == "readers":
        for own in ROOMS:
            asked = name.removeprefix(f"{own}_")
            if asked != name and asked in queries(own):
                return own, asked
    return room, name


def _run(connection: Connection, room: str, name: str, values: dict[str, Any]) -> None:
    text = queries(room)[name]
    if text.startswith("copy"):
        with connection.cursor().copy(text):
            pass
        return
    shaped = re.search(r"\{(type|model|dimensions|milliseconds|query|login|me)\}", text)
    query: Any = text
    if shaped:
        query = sql.SQL(text).format(
            type=sql.SQL("vector"),
            model=sql.Literal(values["model"]),
            dimensions=sql.Literal(values["dimensions"]),
            milliseconds=sql.Literal(values["milliseconds"]),
            sort=sql.SQL("on"),
            plans=sql.SQL("auto"),
            login=sql.Identifier(values["login"]),
            owner=sql.Identifier("postgres"),
            me=sql.Identifier("postgres"),
            query=sql.SQL(GIVEN if name == "read_events" else "select 1"),
        )
    if "savepoint" in text:
        connection.execute("savepoint leg")
        connection.execute(query)  # two statements in one message can't be prepared
        return
    # The server checks each parameter's type when it prepares, whether or not rows are met.
    connection.execute(query, values, prepare=True)


@pytest.fixture
def seeded(shelf: Shelf) -> dict[str, Any]:
    model = shelf.activate().id
    shelf.write(document("docs/a.md", "the queue", "another"))
    return _values(shelf.project().id, model, shelf.tenant)


def test_every_query_runs_on_the_server(database: Database, seeded: dict[str, Any]) -> None:
    failed: dict[str, str] = {}
    for room, name in ALL:
        if (room, name) in OUTSIDE:
            continue
        with database.session() as connection, connection.transaction(force_rollback=True):
            if room in ("documents", "lexical"):
                for step in ("create_incoming_documents", "create_incoming_chunks"):
                    connection.execute(queries("documents")[step])
            if room == "lexical":
                connection.execute(queries("lexical")["create_analysed"])
                if name == "rebuild_terms":
                    _run(connection, room, "drop_terms", seeded)
            if room in ("readers", "tenants"):
                connection.execute(f"create role {LOGIN} login")
                connection.execute(queries("tenants")["arrange"])
                connection.execute(
                    "insert into tenant_access (login, tenant_id, granted_at) "
                    "values (session_user, %(tenant)s, now())",
                    seeded,
                )
            if (room, name) == ("search", "begin"):
                continue  # opens a snapshot, below
            try:
                _run(connection, room, name, seeded | INSTEAD.get(_twin(room, name), {}))
            except (psycopg.Error, KeyError) as error:
                failed[f"{room}.{name}"] = repr(error)
    assert failed == {}


def test_a_snapshot_is_the_first_thing_that_a_transaction_asks_for(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(queries("search")["begin"])
        assert connection.execute("show transaction_isolation").fetchone() == ("repeatable read",)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("delete from concordance.documents")


def test_every_query_is_asked_by_an_adapter() -> None:
    room = Path(concordance.adapters.postgres.__file__).parent.parent
    source = "".join(path.read_text() for path in room.rglob("*.py"))
    assert [key for key in ALL if f'"{_twin(*key)[1]}"' not in source] == []


def test_every_parameter_that_an_adapter_does_not_name_is_missed(
    database: Database, seeded: dict[str, Any]
) -> None:
    """The table above is what makes the first test whole: without a value it fails."""
    with database.session() as connection, pytest.raises(psycopg.ProgrammingError):
        _run(connection, "documents", "delete", {"project": seeded["project"]})


def test_no_statement_prepares_a_cost_that_grows_with_other_documents(shelf: Shelf) -> None:
    """A batch touches the rows of its own documents: the others keep their place on disk."""
    shelf.write(*(document(f"docs/{n}.md", f"text {n}") for n in range(20)))
    before = shelf.ask("select id, ctid::text, xmin::text from concordance.chunks order by id")
    with shelf.hold() as held:
        documents.write_documents(
            shelf.database, shelf.tenant, held, [document("docs/3.md", "text 3", "more")]
        )
    after = shelf.ask("select id, ctid::text, xmin::text from concordance.chunks order by id")
    assert after[: len(before)] == before
