"""Tenants and projects, and the hold that one run has on a project at a time."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from concordance.adapters.postgres.database import (
    Connection,
    Database,
    fetch_all,
    fetch_one,
    fetch_value,
    run_again,
)
from concordance.errors import DatabaseError, ProjectBusy, RunSuperseded, SettingsError
from concordance.settings import SLUG, Project
from concordance.text.language import AUTO
from sql import queries

PROJECT_LOCKS = 0x434F4E01  # first key of our advisory locks on projects
MODEL_LOCKS = 0x434F4E02  # the same, on a tenant's models
_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class StoredProject:
    """A project as the database knows it."""

    id: int
    slug: str
    location: str
    web_url: str | None
    branch: str | None
    language: str


@dataclass(frozen=True, slots=True)
class Hold:
    """The right of one run to write one project; void once another run takes over."""

    project_id: int
    run_id: uuid.UUID


def ensure_tenant(database: Database, slug: str) -> int:
    """The id of the tenant, made where it is missing; a replica will do for one that is there."""
    with database.transaction() as connection:
        found = fetch_value(connection, queries("projects")["find_tenant"], {"slug": slug})
        if found is None:
            found = fetch_value(connection, queries("projects")["ensure_tenant"], {"slug": slug})
        if found is None:
            # Another process made it between the two halves of the statement.
            found = fetch_value(connection, queries("projects")["ensure_tenant"], {"slug": slug})
    if found is None:
        raise DatabaseError(f"the tenant '{slug}' could not be made")
    return int(found)


def ensure_project(database: Database, tenant: int, project: Project) -> StoredProject:
    """The stored project, made or brought up to date from its settings."""
    ask = queries("projects")
    key = {"tenant": tenant, "slug": project.slug}
    with database.transaction() as connection:
        connection.execute(
            ask["ensure_project"],
            key
            | {
                "location": project.location,
                "web_url": project.web_url,
                "language": project.language,
            },
        )
        stored = fetch_one(connection, ask["find_project"], key, StoredProject)
    if stored is None:
        raise DatabaseError(f"project '{project.slug}' was removed while it was being set up")
    return stored


def check_language(database: Database, project: Project) -> None:
    """Make sure that the server can analyse the project's language, unless it is to be detected.

    Raises:
        SettingsError: It has no text-search configuration of that name.
    """
    if project.language != AUTO and project.language not in known_languages(database):
        raise SettingsError(
            f"project '{project.slug}': this Postgres has no text-search configuration "
            f"'{project.language}'",
            hint="Use one that 'select cfgname from pg_ts_config' lists, such as 'simple'",
        )


def known_languages(database: Database) -> frozenset[str]:
    """The text-search configurations that the server has."""
    with database.transaction() as connection:
        rows = connection.execute(queries("projects")["known_languages"]).fetchall()
    return frozenset(row[0] for row in rows)


def find_project(database: Database, tenant: int, slug: str) -> StoredProject | None:
    """The stored project of that slug, or None."""
    if SLUG.fullmatch(slug) is None:
        return None  # Postgres does not take every text
    with database.transaction() as connection:
        return fetch_one(
            connection,
            queries("projects")["find_project"],
            {"tenant": tenant, "slug": slug},
            StoredProject,
        )


def list_projects(database: Database, tenant: int) -> list[StoredProject]:
    """All stored projects of the tenant, by slug."""
    with database.transaction() as connection:
        return fetch_all(
            connection, queries("projects")["list_projects"], {"tenant": tenant}, StoredProject
        )


def forget_project(database: Database, tenant: int, slug: str) -> bool:
    """Remove a project with everything that hangs on it; tells whether it was there."""
    if SLUG.fullmatch(slug) is None:
        return False

    def remove() -> bool:
        with database.transaction() as connection:
            gone = connection.execute(
                queries("projects")["forget_project"], {"tenant": tenant, "slug": slug}
            )
            return gone.rowcount > 0

    return run_again(remove)


@contextmanager
def hold(
    database: Database,
    project: StoredProject,
    run_id: uuid.UUID,
    *,
    wait_seconds: float,
    on_wait: Callable[[], None],
) -> Iterator[Hold]:
    """Keep every other run off a project.

    The lock belongs to a session of its own, so it is gone the moment this process is; the run's
    id in the project's row keeps a run that lost its session from writing on.

    Raises:
        ProjectBusy: Another run held the project for `wait_seconds`.
    """
    ask = queries("projects")
    key = {"class": PROJECT_LOCKS, "project": project.id}
    with database.session() as connection:
        deadline = time.monotonic() + wait_seconds
        waited = False
        while not fetch_value(connection, ask["try_lock"], key):
            if time.monotonic() >= deadline:
                raise ProjectBusy(
                    f"project '{project.slug}' is held by another run",
                    hint="It was skipped; that run, or the next, brings it up to date",
                )
            if not waited:
                on_wait()
                waited = True
            time.sleep(_POLL_SECONDS)
        connection.execute(ask["hold_project"], {"run": run_id, "project": project.id})
        try:
            yield Hold(project.id, run_id)
        finally:
            # A broken session has let go of its lock already.
            with suppress(psycopg.OperationalError):
                connection.execute(ask["release_project"], {"run": run_id, "project": project.id})
                connection.execute(ask["unlock"], key)


def check_hold(connection: Connection, held: Hold) -> None:
    """Make sure, to the end of this transaction, that the run still holds its project.

    Raises:
        RunSuperseded: Another run has taken over, or the project was removed.
    """
    if not fetch_value(
        connection,
        queries("projects")["check_hold"],
        {"run": held.run_id, "project": held.project_id},
    ):
        raise RunSuperseded(
            "this run lost its hold on the project, and writes nothing more",
            hint="The run that took over finishes the work",
        )


def keep_models(connection: Connection, project_id: int) -> None:
    """See to it, to the end of this transaction, that the tenant's active space stays what it is.

    A statement of its own: those that follow see every space that was made active before.
    """
    connection.execute(
        queries("projects")["keep_models"], {"class": MODEL_LOCKS, "project": project_id}
    )


def set_branch(connection: Connection, project_id: int, branch: str | None) -> None:
    """Note which branch was indexed."""
    connection.execute(queries("projects")["set_branch"], {"project": project_id, "branch": branch})


def start_run(
    database: Database, tenant: int, run_id: uuid.UUID, *, kind: str, now: datetime
) -> None:
    """Note that a run began."""
    with database.transaction() as connection:
        connection.execute(
            queries("projects")["start_run"],
            {"id": run_id, "tenant": tenant, "kind": kind, "now": now},
        )


def finish_run(
    database: Database, run_id: uuid.UUID, *, summary: dict[str, Any], now: datetime
) -> None:
    """Note that a run ended, and with what."""
    with database.transaction() as connection:
        connection.execute(
            queries("projects")["finish_run"],
            {"id": run_id, "summary": Jsonb(summary), "now": now},
        )


def stored_slugs(found: Sequence[StoredProject]) -> dict[str, StoredProject]:
    """Stored projects by slug."""
    return {project.slug: project for project in found}
