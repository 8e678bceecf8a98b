"""Sessions and the commits that they worked on: from the log, or by branch, folder and time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concordance.index import Index
from concordance.models import CoverageState, Scope, SearchRequest, SessionOrigin
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.postgres.driver import ask, covered, reindex
from tests.sources import GitSource, event, write_log


@pytest.fixture
def source(tmp_path: Path) -> GitSource:
    return GitSource.make(tmp_path / "beacon", {"README.md": "# Beacon\n"})


@pytest.fixture
def made(make_index: IndexMaker, tmp_path: Path, source: GitSource) -> Callable[[], Index]:
    project = Project(
        slug="p",
        path=source.path,
        web_url="https://github.com/team/beacon",
        sessions=(SessionSource(path=tmp_path / "logs"),),
    )
    return lambda: make_index(project)


def commit(source: GitSource, when: str) -> str:
    environment = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), when)
    names = {"GIT_AUTHOR_NAME": "Ada", "GIT_COMMITTER_NAME": "Ada"}
    mails = {"GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_EMAIL": "a@example.org"}
    subprocess.run(
        ["git", "commit", "-q", "--allow-empty", "-m", when],
        cwd=source.path,
        env=os.environ | environment | names | mails,
        check=True,
    )
    return source.git("rev-parse", "HEAD")


def origin_of(index: Index) -> SessionOrigin:
    request = SearchRequest(text="otter", scopes=(Scope.SESSION,), threshold=0)
    origin = index.search(request).hits[0].origin
    assert isinstance(origin, SessionOrigin)
    return origin


def talk(tmp_path: Path, **more: Any) -> None:
    place = {"directory": "/home/ana/beacon", "branch": "main"}
    said = event("s", 1, "the otter said", occurred_at="2026-02-10T12:00:00Z")
    write_log(tmp_path / "logs" / "a.jsonl", [said | place | more])


def test_a_session_is_linked_to_the_last_commit_of_its_branch_before_it(
    made: Callable[[], Index], source: GitSource, tmp_path: Path
) -> None:
    commit(source, "2026-02-01T10:00:00Z")
    right = commit(source, "2026-02-10T11:00:00Z")
    later = commit(source, "2026-02-10T13:00:00Z")
    talk(tmp_path)
    index = made()
    reindex(index)
    found = origin_of(index)
    assert (found.commit, found.commit_by) == (right, "time")
    assert found.commit_link == f"https://github.com/team/beacon/commit/{right}"
    assert later != right


def test_what_the_log_says_itself_comes_first(
    made: Callable[[], Index], source: GitSource, tmp_path: Path
) -> None:
    commit(source, "2026-02-10T11:00:00Z")
    talk(tmp_path, commit="c0ffee" * 6 + "c0ff")
    index = made()
    reindex(index)
    found = origin_of(index)
    assert (found.commit, found.commit_by) == ("c0ffee" * 6 + "c0ff", "log")


@pytest.mark.parametrize(
    "place",
    [{"branch": "spike"}, {"branch": None}, {"directory": "/home/ana/other"}, {"directory": None}],
    ids=str,
)
def test_where_branch_or_folder_are_others_no_commit_is_known(
    made: Callable[[], Index], source: GitSource, tmp_path: Path, place: dict[str, str | None]
) -> None:
    commit(source, "2026-02-10T11:00:00Z")
    talk(tmp_path, **place)
    index = made()
    reindex(index)
    found = origin_of(index)
    assert (found.commit, found.commit_by, found.commit_link) == (None, None, None)


def test_commits_follow_the_branch(
    made: Callable[[], Index], source: GitSource, tmp_path: Path, database_url: str
) -> None:
    commit(source, "2026-02-01T10:00:00Z")
    talk(tmp_path)
    index = made()
    reindex(index)
    source.git("reset", "-q", "--hard", "HEAD~1")
    new = commit(source, "2026-02-05T10:00:00Z")
    reindex(index)
    assert origin_of(index).commit == new
    stored = {row["id"] for row in ask(database_url, "select id from project_commits")}
    assert stored == set(source.git("rev-list", "HEAD").split())
    reindex(index)
    assert origin_of(index).commit == new


def test_a_branch_that_was_set_back_has_no_later_commit(
    made: Callable[[], Index], source: GitSource, tmp_path: Path, database_url: str
) -> None:
    left = commit(source, "2026-02-01T10:00:00Z")
    commit(source, "2026-02-09T10:00:00Z")
    talk(tmp_path)
    index = made()
    reindex(index)
    source.git("reset", "-q", "--hard", "HEAD~1")
    reindex(index)
    assert origin_of(index).commit == left
    stored = {row["id"] for row in ask(database_url, "select id from project_commits")}
    assert stored == set(source.git("rev-list", "HEAD").split())


def test_a_history_that_can_not_be_had_stops_nothing(
    made: Callable[[], Index], tmp_path: Path, source: GitSource, database_url: str
) -> None:
    source.git("checkout", "-q", "--orphan", "old")
    commit(source, "2019-02-01T10:00:00Z")
    source.git("branch", "-D", "main")
    talk(tmp_path, branch="old")
    index = made()
    reindex(index)
    assert ask(database_url, "select id from project_commits") == []
    assert origin_of(index).commit is None
    assert covered(index, Scope.SESSION).state is CoverageState.COMPLETE
