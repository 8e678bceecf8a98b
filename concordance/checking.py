"""The statistics of words, compared with the rows that they speak of.

What belongs here: which projects are looked at. The comparison is in
`concordance.adapters.postgres.words`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from concordance.adapters.postgres import projects, words
from concordance.resources import Resources


def check_statistics(
    resources: Resources,
    slugs: Sequence[str] | None,
    *,
    rebuild: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[words.Difference]:
    """Every difference, of some projects or of all; with `rebuild` they are made anew.

    Raises:
        UnknownProject: A project is neither configured nor indexed.
        DatabaseError: Postgres can't be asked.
    """
    stored = projects.stored_slugs(projects.list_projects(resources.database, resources.tenant))
    for slug in slugs or ():
        if slug not in stored:
            resources.project(slug)  # raises UnknownProject, with what there is
    chosen = [project for slug, project in stored.items() if slugs is None or slug in slugs]
    found: list[words.Difference] = []
    for done, project in enumerate(chosen, start=1):
        found += words.check_statistics(resources.database, project.id, rebuild=rebuild)
        if progress is not None:
            progress(done, len(chosen))
    return found
