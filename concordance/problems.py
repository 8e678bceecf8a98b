"""What of the whole index is not as it should be, gathered for a page.

What belongs here: the questions to the index, and links to what failed. How a page looks is
`concordance.coverage_page`'s matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from concordance.adapters.postgres.documents import Problem
from concordance.index import Index
from concordance.indexing.links import line_link, web_address
from concordance.indexing.overdue import Overdue, overdue
from concordance.models import DocumentStatus, Scope, ScopeCoverage
from concordance.settings import Project
from concordance.text.decoding import line_of
from concordance.text.scrubbing import has_mark

# Projects whose failed files are asked for, at a statement each, and files of each.
MOST_PROJECTS = 40
MOST_FILES = 10
MOST_ASKED = 1_000


@dataclass(frozen=True, slots=True)
class FailedFile:
    """A file or log that was found and could not be indexed."""

    project: str
    scope: str
    name: str
    reason: str
    link: str | None


@dataclass(frozen=True, slots=True)
class Account:
    """All that a page of coverage tells, as of one moment."""

    now: datetime
    covered: tuple[ScopeCoverage, ...]
    never: tuple[str, ...]
    failed: tuple[FailedFile, ...]
    failed_elsewhere: int
    overdue: tuple[Overdue, ...] = ()

    @property
    def provider_errors(self) -> list[str]:
        """What the embedding provider said where it failed last, each once."""
        return list(dict.fromkeys(c.embedding_error for c in self.covered if c.embedding_error))


def take_account(index: Index) -> Account:
    """The coverage of every project, and the first of the files that failed.

    Raises:
        DatabaseError: Postgres can't be asked.
    """
    covered = tuple(index.coverage())
    known = {scope.project for scope in covered}
    never = tuple(p.slug for p in index.configuration.projects if p.slug not in known)
    failed = _failed_files(index, covered)
    counted = sum(c.failed for c in covered)
    late = tuple(overdue(covered, _limits(index), index.now()))
    return Account(index.now(), covered, never, failed, max(0, counted - len(failed)), late)


def take_overdue(index: Index) -> list[Overdue]:
    """The scopes of configured projects that are overdue.

    Raises:
        DatabaseError: Postgres can't be asked.
    """
    return overdue(index.coverage(), _limits(index), index.now())


def _limits(index: Index) -> dict[str, float]:
    usual = index.configuration.settings.overdue_after_hours
    return {p.slug: p.overdue_after_hours or usual for p in index.configuration.projects}


def _failed_files(index: Index, covered: Sequence[ScopeCoverage]) -> tuple[FailedFile, ...]:
    slugs = sorted({scope.project for scope in covered if scope.failed})[:MOST_PROJECTS]
    found: list[FailedFile] = []
    for slug in slugs:
        project = index.configuration.project(slug)
        failed = [
            p
            for p in index.problems(slug, most=MOST_ASKED)
            if p.status == DocumentStatus.FAILED.value
        ]
        found += [_told(slug, project, problem) for problem in failed[:MOST_FILES]]
    return tuple(found)


def _told(slug: str, project: Project | None, problem: Problem) -> FailedFile:
    reason = problem.reason or "no reason was kept"
    link = None
    # Under a name that lost a secret there is no page, and a log has none.
    if project is not None and problem.commit and problem.scope != Scope.SESSION.value:
        line = line_of(reason) or 1
        web = None if has_mark(problem.name) else web_address(project.location, project.web_url)
        link = line_link(web, path=problem.name, commit=problem.commit, start=line, end=line)
    return FailedFile(slug, problem.scope, problem.name, reason, link)
