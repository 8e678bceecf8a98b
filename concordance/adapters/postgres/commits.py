"""The commits of a project's branch, to which its sessions are linked by time."""

from __future__ import annotations

from collections.abc import Sequence

from concordance.adapters.git_history import Commit
from concordance.adapters.postgres.database import Database
from concordance.adapters.postgres.projects import Hold, check_hold
from sql import queries


def has_commit(database: Database, project_id: int, branch: str, commit: str) -> bool:
    """Whether a commit is among those that are stored of a branch."""
    key = {"project": project_id, "branch": branch, "commit": commit}
    with database.transaction() as connection:
        row = connection.execute(queries("commits")["find"], key).fetchone()
    return row is not None


def save_commits(database: Database, held: Hold, branch: str, commits: Sequence[Commit]) -> None:
    """Make the stored commits of a project these, of that branch."""
    ask = queries("commits")
    key = {"project": held.project_id}
    ids = [commit.id for commit in commits]
    times = [commit.committed_at for commit in commits]
    with database.transaction() as connection:
        check_hold(connection, held)
        connection.execute(ask["forget"], key | {"ids": ids, "branch": branch})
        connection.execute(ask["save"], key | {"ids": ids, "times": times, "branch": branch})
