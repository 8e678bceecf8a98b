"""Coverage: counted from the tables in the transaction that moves a marker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType

from psycopg.types.json import Jsonb

from concordance.adapters.postgres.database import Connection, Database, fetch_all, run_again
from concordance.adapters.postgres.projects import keep_models
from concordance.indexing.coverage import Counted, is_outdated, judge
from concordance.models import Scope, ScopeCoverage
from sql import queries

Rules = Mapping[tuple[str, str], str]
"""What decides which rows a scope has today, by project and scope."""

NO_RULES: Rules = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Marker:
    """Where a scope stands, as the survey compares it."""

    slug: str
    scope: str
    indexed_marker: str | None
    fingerprint: str | None
    last_success: datetime | None
    attempt_error: str | None
    attempt_open: bool
    chunks: int
    chunks_with_vector: int


class StoredCoverage(ScopeCoverage):
    """A scope's coverage as it was counted, and the rules that its rows were made by."""

    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class MadeBy:
    """What today's rules write beside a document and a log, by which older ones are told."""

    files: Sequence[str]
    sessions: Sequence[str]
    readers: Sequence[str]


@dataclass(frozen=True, slots=True)
class Outdated:
    """How many documents and logs of a scope are not as today's rules would read them."""

    scope: str
    documents: int
    logs: int


def ensure_scopes(
    connection: Connection, tenant: int, project_id: int, scopes: Sequence[Scope]
) -> None:
    """Make the rows of these scopes where they are missing."""
    connection.execute(
        queries("coverage")["ensure"],
        {"project": project_id, "tenant": tenant, "scopes": list(scopes)},
    )


def recount(
    connection: Connection,
    project_id: int,
    scopes: Sequence[Scope],
    *,
    now: datetime,
    rules: Rules = NO_RULES,
) -> None:
    """Count some scopes of a project anew, judge them, and store both.

    With `rules`, a scope whose rows were made by others is not noted as complete now.
    """
    ask = queries("coverage")
    key = {"project": project_id, "scopes": sorted(scopes)}
    # The lock comes first, in a statement of its own: the count then sees all that was committed
    # by whoever held it before.
    _lock(connection, project_id, scopes)
    for counted in fetch_all(connection, ask["count"], key, Counted):
        verdict = judge(counted)
        connection.execute(
            ask["save"],
            asdict(counted)
            | {
                "project_id": project_id,
                "secrets": Jsonb(dict(sorted(counted.secrets.items()))),
                "state": verdict.state,
                "reason": verdict.reason,
                "outdated": is_outdated(
                    counted.last_success,
                    counted.fingerprint,
                    rules.get((counted.project, counted.scope), counted.fingerprint),
                ),
                "now": now,
            },
        )


def recount_all(
    connection: Connection, tenant: int, *, now: datetime, rules: Rules = NO_RULES
) -> None:
    """Count every scope of a tenant anew."""
    key = {"tenant": tenant, "projects": None}
    for row in connection.execute(queries("coverage")["projects_of"], key).fetchall():
        recount(connection, row[0], list(Scope), now=now, rules=rules)


def open_attempt(
    connection: Connection,
    project_id: int,
    scopes: Sequence[Scope],
    *,
    marker: str | None,
    now: datetime,
) -> None:
    """Note that rows are about to change: from here on nothing is complete."""
    _lock(connection, project_id, scopes)
    connection.execute(
        queries("coverage")["open_attempt"],
        {"project": project_id, "scopes": list(scopes), "marker": marker, "now": now},
    )
    recount(connection, project_id, scopes, now=now)


def fail_attempt(
    connection: Connection, project_id: int, scopes: Sequence[Scope], *, error: str, now: datetime
) -> None:
    """Note a failed attempt; success and completeness keep their times."""
    _lock(connection, project_id, scopes)
    connection.execute(
        queries("coverage")["fail_attempt"],
        {"project": project_id, "scopes": list(scopes), "error": error, "now": now},
    )
    recount(connection, project_id, scopes, now=now)


def close_attempt(  # noqa: PLR0913 - one row's new values
    connection: Connection,
    project_id: int,
    scopes: Sequence[Scope],
    *,
    marker: str | None,
    fingerprint: str,
    now: datetime,
) -> None:
    """Note that the rows show the source as of `marker`."""
    _lock(connection, project_id, scopes)
    connection.execute(
        queries("coverage")["close_attempt"],
        {
            "project": project_id,
            "scopes": list(scopes),
            "marker": marker,
            "fingerprint": fingerprint,
            "now": now,
        },
    )
    recount(connection, project_id, scopes, now=now)


def confirm(
    database: Database, projects: Sequence[int], scopes: Sequence[Scope], *, now: datetime
) -> None:
    """Note that scopes were looked at and had not changed: that moves their success."""
    if projects:
        with database.transaction() as connection:
            connection.execute(
                queries("coverage")["confirm"],
                {"projects": list(projects), "scopes": list(scopes), "now": now},
            )


def note_embedding(  # noqa: PLR0913 - whose vectors, what was said, by which rules
    database: Database,
    tenant: int,
    *,
    projects: Sequence[int] | None,
    error: str | None,
    now: datetime,
    rules: Rules = NO_RULES,
) -> None:
    """Count again after embedding, and keep the provider's words where it failed."""
    ask = queries("coverage")
    key = {"tenant": tenant, "projects": None if projects is None else list(projects)}
    with database.transaction() as connection:
        touched = [row[0] for row in connection.execute(ask["projects_of"], key).fetchall()]

    # One project a transaction: no run waits for the whole tenant to be counted.
    def note(project_id: int) -> None:
        with database.transaction() as connection:
            _lock(connection, project_id, list(Scope))
            connection.execute(
                ask["set_embedding_error"],
                {"tenant": tenant, "projects": [project_id], "error": error},
            )
            recount(connection, project_id, list(Scope), now=now, rules=rules)

    # One project a transaction: no run waits for the whole tenant to be counted.
    for project_id in touched:
        run_again(partial(note, project_id))


def _lock(connection: Connection, project_id: int, scopes: Sequence[Scope]) -> None:
    """Keep the active space and these rows as they are, before anything is counted or changed."""
    keep_models(connection, project_id)
    connection.execute(queries("coverage")["lock"], {"project": project_id, "scopes": list(scopes)})


def list_coverage(
    database: Database, tenant: int, slugs: Sequence[str] | None
) -> list[StoredCoverage]:
    """The coverage of some projects, or of all, by slug and scope, as it was counted."""
    with database.transaction() as connection:
        return fetch_all(
            connection,
            database.statements("coverage")["list"],
            {"tenant": tenant, "slugs": None if slugs is None else list(slugs)},
            StoredCoverage,
        )


def count_outdated(
    database: Database, tenant: int, slug: str, made_by: MadeBy
) -> dict[str, Outdated]:
    """What of a project the next run reads again, by scope; a scope without any is left out."""
    key = {"tenant": tenant, "slug": slug}
    with database.transaction() as connection:
        found = fetch_all(
            connection,
            queries("coverage")["outdated"],
            key | {name: list(value) for name, value in asdict(made_by).items()},
            Outdated,
        )
    return {row.scope: row for row in found}


def list_markers(database: Database, tenant: int, slugs: Sequence[str] | None) -> list[Marker]:
    """Where the scopes of some projects, or of all, stand."""
    with database.transaction() as connection:
        return fetch_all(
            connection,
            queries("coverage")["markers"],
            {"tenant": tenant, "slugs": None if slugs is None else list(slugs)},
            Marker,
        )
