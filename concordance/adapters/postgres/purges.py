"""Stored rows without the secrets that today's rules find in them.

What belongs here: reading and changing rows. Rows, words, statistics and vectors of a document
change in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from concordance.adapters.postgres import coverage
from concordance.adapters.postgres.database import Connection, Database, fetch_all, fetch_value
from concordance.adapters.postgres.documents import queue_texts
from concordance.adapters.postgres.projects import Hold, check_hold, keep_models
from concordance.adapters.postgres.session_logs import log_values, stored_logs_in
from concordance.adapters.postgres.words import (
    analyse_passages,
    forget_words,
    settle_weights,
    write_words,
)
from concordance.indexing.logs import without_secrets
from concordance.indexing.purge import Change, KeptDocument, KeptPassage
from concordance.models import Scope
from concordance.text.scrubbing import Scrubber
from sql import queries

_REWRITES = (
    "rewrite_documents",
    "rewrite_chunks",
    "rewrite_lexical",
    "rewrite_term_stats",
    "rewrite_embeddings",
    "rewrite_coverage",
    "rewrite_embedding_backlog",
    "rewrite_recorded_questions",
    "rewrite_runs",
    "rewrite_projects",
    "rewrite_records",
    "rewrite_session_logs",
    "rewrite_project_commits",
    "rewrite_calibrations",
)

Look = Callable[[KeptDocument, Sequence[KeptPassage]], Change | None]
Scrub = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Account:
    scope: str
    attempt_error: str | None
    embedding_error: str | None


@dataclass(frozen=True, slots=True)
class _Refusal:
    model_id: int
    content_hash: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class _Run:
    id: UUID
    summary: Any


@dataclass(frozen=True, slots=True)
class _Record:
    document_id: int
    status_text: str | None
    deciders: list[str]
    supersedes: Any
    superseded_by: Any


@dataclass(frozen=True, slots=True)
class _Calibration:
    project_id: int
    set_name: str


def document_ids(database: Database, project_id: int) -> list[int]:
    """Every document of a project, by the number of its row."""
    with database.transaction() as connection:
        rows = connection.execute(queries("purges")["document_ids"], {"project": project_id})
        return [row[0] for row in rows.fetchall()]


def purge_documents(  # noqa: PLR0913 - what is changed, and by what
    database: Database, tenant: int, held: Hold, ids: Sequence[int], look: Look, *, now: datetime
) -> list[Change]:
    """Change some documents by what `look` says of each, in one transaction.

    Coverage is counted in it as well: no moment and no end of this process leaves it saying more.
    """
    ask = queries("purges")
    key = {"documents": list(ids)}
    with database.transaction() as connection:
        check_hold(connection, held)
        keep_models(connection, held.project_id)
        connection.execute(ask["lock_passages"], key)
        found = fetch_all(connection, ask["documents"], key, KeptDocument)
        passages: dict[int, list[KeptPassage]] = {document.id: [] for document in found}
        for passage in fetch_all(connection, ask["passages"], key, KeptPassage):
            passages[passage.document_id].append(passage)
        changes = [
            change
            for document in found
            if (change := look(document, passages[document.id])) is not None
        ]
        if changes:
            titles = {document.id: document.title for document in found}
            _change(connection, tenant, held, changes, passages, titles)
            coverage.recount(connection, held.project_id, list(Scope), now=now)
            connection.execute(ask["unsettle"], {"project": held.project_id})
    return changes


def _change(  # noqa: PLR0913, PLR0917 - what was there and what becomes of it
    connection: Connection,
    tenant: int,
    held: Hold,
    changes: Sequence[Change],
    before: dict[int, list[KeptPassage]],
    titles: dict[int, str | None],
) -> None:
    ask = queries("purges")
    changed = [change.document.id for change in changes]
    forget_words(connection, held.project_id, changed)
    for change in changes:
        _make_way(connection, held, change.document)
        connection.execute(
            ask["change_document"],
            asdict(change.document) | {"secrets": Jsonb(change.document.secrets)},
        )
        known = {passage.id: passage for passage in before[change.document.id]}
        for passage in change.passages:
            old = known[passage.id]
            hashed = passage.hash_under(change.document.title)
            if passage != old or hashed != old.hash_under(titles[change.document.id]):
                connection.execute(
                    ask["change_passage"], asdict(passage) | {"content_hash": hashed}
                )
    connection.execute(ask["drop_vectors"], {"documents": changed})
    connection.execute(queries("documents")["reuse_vectors"], {"documents": changed})
    analyse_passages(connection, held.project_id, changed)
    write_words(connection, tenant, held.project_id)
    # A word that no passage holds any more stays as a row with the count 0: it may be the secret.
    connection.execute(queries("lexical")["sweep"], {"project": held.project_id})
    queue_texts(connection, changed)


def _make_way(connection: Connection, held: Hold, document: KeptDocument) -> None:
    """Where a run has written the document under its new name already, that row goes."""
    key = {"project": held.project_id, "kind": document.kind, "name": document.name}
    other = fetch_value(connection, queries("purges")["same_name"], key)
    if other is not None and other != document.id:
        forget_words(connection, held.project_id, [other])
        connection.execute(
            queries("documents")["delete"], {"project": held.project_id, "ids": [other]}
        )


def purge_account(
    database: Database, held: Hold, scrub: Scrub, *, branch: str | None, now: datetime
) -> None:
    """Scrub what is told of a project: errors, branch, calibration, what its records say.

    Its words are settled and its coverage counted.
    """
    ask = queries("purges")
    key = {"project": held.project_id}
    with database.transaction() as connection:
        check_hold(connection, held)
        keep_models(connection, held.project_id)
        settle_weights(connection, held.project_id)
        for account in fetch_all(connection, ask["account"], key, _Account):
            errors = {
                name: None if told is None else scrub(told)
                for name, told in asdict(account).items()
                if name != "scope"
            }
            connection.execute(ask["change_account"], key | errors | {"scope": account.scope})
        for one in fetch_all(connection, ask["calibrations"], key, _Calibration):
            connection.execute(ask["change_calibration"], key | {"set_name": scrub(one.set_name)})
        _purge_records(connection, held, scrub)
        connection.execute(ask["drop_commits"], key)
        for (old,) in connection.execute(ask["branches"], key).fetchall():
            if scrub(old) != old:
                named = key | {"old": old, "branch": scrub(old)}
                connection.execute(ask["change_commits"], named)
        if branch is not None and scrub(branch) != branch:
            connection.execute(ask["change_branch"], key | {"branch": scrub(branch)})
        coverage.recount(connection, held.project_id, list(Scope), now=now)


def _purge_records(connection: Connection, held: Hold, scrub: Scrub) -> None:
    ask = queries("purges")
    for record in fetch_all(connection, ask["records"], {"project": held.project_id}, _Record):
        said = asdict(record)
        changed = {name: _scrubbed(value, scrub) for name, value in said.items()}
        if changed != said:
            links = {name: Jsonb(changed[name]) for name in ("supersedes", "superseded_by")}
            connection.execute(ask["change_record"], changed | links)


def purge_logs(database: Database, held: Hold, scrubber: Scrubber) -> None:
    """Scrub what is kept of a project's session logs; the next run reads the changed ones again."""
    with database.transaction() as connection:
        check_hold(connection, held)
        for state in stored_logs_in(connection, held.project_id).values():
            named = replace(without_secrets(state, scrubber), path=scrubber.name(state.path))
            if named != state:
                connection.execute(
                    queries("purges")["change_session_log"],
                    log_values(named) | {"project": held.project_id, "old": state.path},
                )


def purge_tenant(database: Database, tenant: int, scrub: Scrub) -> None:
    """Scrub what belongs to no project: providers' words and the summaries of runs."""
    ask = queries("purges")
    key = {"tenant": tenant}
    with database.transaction() as connection:
        for refusal in fetch_all(connection, ask["refusals"], key, _Refusal):
            if scrub(refusal.reason) != refusal.reason:
                changed = asdict(refusal) | {"reason": scrub(refusal.reason)}
                connection.execute(ask["change_refusal"], changed)
        for run in fetch_all(connection, ask["runs"], key, _Run):
            summary = _scrubbed(run.summary, scrub)
            if summary != run.summary:
                connection.execute(ask["change_run"], {"id": run.id, "summary": Jsonb(summary)})


def rewrite_tables(database: Database) -> None:
    """Write the tables' files anew, without old versions of rows; nobody reads them meanwhile."""
    ask = queries("purges")
    with database.session() as connection:
        for name in _REWRITES:
            connection.execute(ask[name])


def _scrubbed(value: Any, scrub: Scrub) -> Any:
    match value:
        case str():
            return scrub(value)
        case dict():
            return {name: _scrubbed(inner, scrub) for name, inner in value.items()}
        case list():
            return [_scrubbed(inner, scrub) for inner in value]
        case _:
            return value
