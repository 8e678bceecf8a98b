"""Runs that meet: of one project, and of projects that share their files."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from concordance.errors import ProjectBusy
from concordance.models import CoverageState
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.postgres.driver import (
    better_than_the_truth,
    covered,
    documents_of,
    fill,
    passages_of,
    reindex,
)
from tests.sources import GitSource

TEXT = "# Page {0}\n\nShared words.\n\n## Part\n\nText {0} of version {1}.\n"


def _version(number: int) -> dict[str, str | bytes]:
    return {f"docs/{n}.md": TEXT.format(n, number if n % 2 else 0) for n in range(6)}


def test_two_runs_of_one_project_at_once_give_the_rows_of_one_inc_7(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(tmp_path / "source", _version(0))
    project = Project(slug="p", path=source.path)
    # The first run of a process compiles rules of secrets, which takes seconds on a busy machine.
    index = make_index(project, Project(slug="fresh", path=source.path), project_lock_seconds=60)
    together = threading.Barrier(2)

    def run(_: int) -> None:
        together.wait()
        reindex(index)

    with ThreadPoolExecutor(2) as pool:
        for number in range(20):
            if number % 4 == 3:
                source.commit(_version(number))
            list(pool.map(run, range(2)))
            assert better_than_the_truth(index, database_url) == []
    reindex(index, "fresh")
    assert documents_of(database_url) == documents_of(database_url, "fresh")
    assert passages_of(database_url) == passages_of(database_url, "fresh")
    assert covered(index).state is CoverageState.COMPLETE


def test_projects_that_share_their_files_run_at_once_inc_7(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(tmp_path / "source", _version(0))
    slugs = ["p", "q", "r"]
    index = make_index(*(Project(slug=slug, path=source.path) for slug in slugs))
    with ThreadPoolExecutor(3) as pool:
        for number in range(6):
            list(pool.map(lambda slug: reindex(index, slug), slugs))
            source.commit(_version(number))
        list(pool.map(lambda slug: reindex(index, slug), slugs))
    # A text whose vector another run had in hand is filled in by the next worker, or by this one.
    for slug in slugs:
        fill(index, slug)
    pictures = [passages_of(database_url, slug) for slug in slugs]
    assert pictures[0] == pictures[1] == pictures[2]
    assert all(p["vector"] for p in pictures[0])
    assert {covered(index, slug=slug).state for slug in slugs} == {CoverageState.COMPLETE}


def test_a_run_that_cannot_wait_says_that_another_one_holds_the_project(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    import uuid  # noqa: PLC0415

    source = GitSource.make(tmp_path / "source", _version(0))
    index = make_index(Project(slug="p", path=source.path), project_lock_seconds=0.3)
    told: list[str] = []
    with (
        index.hold("p", uuid.uuid4(), on_wait=lambda: None),
        pytest.raises(ProjectBusy, match="'p' is held by another run"),
        index.hold("p", uuid.uuid4(), on_wait=lambda: told.append("waiting")),
    ):
        pass
    assert told == ["waiting"]
    reindex(index)
