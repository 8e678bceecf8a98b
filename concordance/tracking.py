"""The commits of a project's branch, to which its sessions are linked by time.

What belongs here: when they are fetched and stored. What they are is git's matter.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from concordance.adapters.git import RemoteHead
from concordance.adapters.git_environment import Credential
from concordance.adapters.postgres import coverage, projects
from concordance.adapters.postgres.commits import has_commit, save_commits
from concordance.errors import SourceError, SourceUnavailable
from concordance.resources import Resources
from concordance.settings import Project
from concordance.surveying import FILE_SCOPES

T = TypeVar("T")

# Sessions are linked to commits that are no older.
HISTORY = timedelta(days=730)


def fetch_history(
    resources: Resources, project: Project, head: RemoteHead, credential: Credential | None
) -> None:
    """Bring the commits of the branch here, to which sessions are linked, unless they are.

    Without them a session is linked to none: that is no reason for a run to fail.
    """
    stored = projects.ensure_project(resources.database, resources.tenant, project)
    if head.branch is None or head.commit is None:
        return
    branch = resources.scrubber(project).text(head.branch)
    if _knows_history(resources, project, stored.id, branch, head.commit):
        return
    since = resources.clock() - HISTORY
    _in_two_tries(
        lambda: resources.mirror.fetch_history(
            project.slug, project.location, head, credential, since=since
        )
    )


def store_history(
    resources: Resources, project: Project, held: projects.Hold, commit: str, branch: str
) -> None:
    """Keep the commits that were fetched; as long as they are known, nothing is done."""
    if _knows_history(resources, project, held.project_id, branch, commit):
        return
    commits = _in_two_tries(lambda: resources.mirror.history(project.slug)) or []
    if any(known.id == commit for known in commits):
        save_commits(resources.database, held, branch, commits)


def _knows_history(
    resources: Resources, project: Project, project_id: int, branch: str, commit: str
) -> bool:
    """Whether the stored commits are those of the branch up to this one.

    A branch that was set back holds a commit that is stored, and not those after it.
    """
    markers = coverage.list_markers(resources.database, resources.tenant, [project.slug])
    last = {m.indexed_marker for m in markers if m.scope in FILE_SCOPES}
    return last == {commit} and has_commit(resources.database, project_id, branch, commit)


def _in_two_tries(step: Callable[[], T]) -> T | None:
    """What a step gives; None where it fails, and then no run asks before the branch moves."""
    for _ in range(2):
        try:
            return step()
        except SourceUnavailable:
            continue
        except SourceError:
            break
    return None
