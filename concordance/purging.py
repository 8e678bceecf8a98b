"""Today's rules applied to what is stored, without the source.

What belongs here: the order of the steps and their account. What a row becomes is decided in
`concordance.indexing.purge`.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from concordance.adapters.postgres import calibrations, projects, purges
from concordance.errors import ProjectBusy
from concordance.indexing.purge import scrub_stored
from concordance.resources import Resources
from concordance.text.scrubbing import Scrubber

BATCH_DOCUMENTS = 100

Progress = Callable[[str, int, int], None]
"""Told the project, and how many of its documents were looked at of how many."""


@dataclass(frozen=True, slots=True)
class Purged:
    """What became of one project; `secrets` counts by kind, `left` says why it was left alone."""

    project: str
    documents: int = 0
    changed: int = 0
    secrets: dict[str, int] = field(default_factory=dict)
    left: str | None = None


def purge_secrets(
    resources: Resources,
    slugs: Sequence[str] | None,
    *,
    progress: Progress | None = None,
    rewrite: bool = False,
) -> list[Purged]:
    """Scrub all that is stored of some projects, or of all: rows, words and vectors.

    A changed passage waits for a vector of its new text. With `rewrite`, the tables' files are
    written anew afterwards, so that old versions of rows are gone from them; that locks the tables.

    Raises:
        UnknownProject: A project is neither configured nor indexed.
        DatabaseError: Postgres can't be asked.
    """
    stored = projects.stored_slugs(projects.list_projects(resources.database, resources.tenant))
    for slug in slugs or ():
        if slug not in stored:
            resources.project(slug)  # raises UnknownProject, with what there is
    chosen = [project for slug, project in stored.items() if slugs is None or slug in slugs]
    done = [_purge_project(resources, project, progress) for project in chosen]
    purges.purge_tenant(resources.database, resources.tenant, resources.scrubber().text)
    if rewrite:
        purges.rewrite_tables(resources.database)
    return done


def _purge_project(
    resources: Resources, project: projects.StoredProject, progress: Progress | None
) -> Purged:
    configured = resources.configuration.project(project.slug)
    if configured is not None and not configured.scrub:
        return Purged(project.slug, left="its scrub is false in projects.toml")
    wait = resources.settings.project_lock_seconds
    try:
        with projects.hold(
            resources.database, project, uuid.uuid4(), wait_seconds=wait, on_wait=lambda: None
        ) as held:
            return _purge_held(resources, project, held, progress)
    except ProjectBusy as busy:
        return Purged(project.slug, left=str(busy))


def _purge_held(
    resources: Resources,
    project: projects.StoredProject,
    held: projects.Hold,
    progress: Progress | None,
) -> Purged:
    scrubber = resources.scrubber()
    ids = purges.document_ids(resources.database, project.id)
    found: Counter[str] = Counter()
    changed = 0
    for start in range(0, len(ids), BATCH_DOCUMENTS):
        batch = ids[start : start + BATCH_DOCUMENTS]
        changes = purges.purge_documents(
            resources.database,
            resources.tenant,
            held,
            batch,
            lambda document, passages: scrub_stored(document, passages, scrubber),
            now=resources.clock(),
        )
        changed += len(changes)
        for change in changes:
            found.update(change.replaced)
        if progress is not None:
            progress(project.slug, start + len(batch), len(ids))
    _purge_questions(resources, project.id, scrubber)
    purges.purge_logs(resources.database, held, scrubber)
    purges.purge_account(
        resources.database,
        held,
        scrubber.text,
        branch=project.branch,
        now=resources.clock(),
    )
    return Purged(project.slug, len(ids), changed, dict(sorted(found.items())))


def _purge_questions(resources: Resources, project_id: int, scrubber: Scrubber) -> None:
    """Recorded questions, and the places they name, follow what they speak of."""
    for row in calibrations.recorded_questions(resources.database, resources.tenant, project_id):
        place = replace(
            row.place,
            name=scrubber.name(row.name),
            event_id=None if row.event_id is None else scrubber.name(row.event_id),
        )
        question = scrubber.text(row.question)
        if (place, question) != (row.place, row.question):
            calibrations.record_question(
                resources.database,
                resources.tenant,
                project_id,
                question,
                place,
                now=row.recorded_at,
            )
            calibrations.forget_question(resources.database, resources.tenant, row.id)
