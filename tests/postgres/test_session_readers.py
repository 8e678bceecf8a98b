"""Logs that a reader of another package read, after that package went away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from concordance.index import Index
from concordance.models import CoverageState, Scope
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.postgres.driver import covered, documents_of, reindex
from tests.session_package import install, names
from tests.sources import GitSource, event, write_log


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    points = install(folder, monkeypatch)
    names(points, "diary_logs:READER")
    return points


class Shelf:
    """A project with a diary and a log that the program itself reads."""

    def __init__(self, make_index: IndexMaker, folder: Path, url: str) -> None:
        self._make, self._folder, self._url = make_index, folder, url
        GitSource.make(folder / "source", {"README.md": "# Beacon\n\nText.\n"})
        self.logs = folder / "logs"
        (self.logs / "notes").mkdir(parents=True)
        self.diary = self.logs / "notes" / "monday.diary"
        self.diary.write_text("me: Why is the otter here?\nit: It likes fish.\n")
        write_log(self.logs / "a.jsonl", [event("s", 1, "words of the seal")])

    def index(self, **source: Any) -> Index:
        sources = (SessionSource(**({"path": self.logs} | source)),)
        return self._make(Project(slug="p", path=self._folder / "source", sessions=sources))

    @property
    def sessions(self) -> set[str]:
        return {d["name"] for d in documents_of(self._url) if d["kind"] == "session"}


@pytest.fixture
def shelf(make_index: IndexMaker, tmp_path: Path, database_url: str, package: Path) -> Shelf:
    shelf = Shelf(make_index, tmp_path, database_url)
    reindex(shelf.index(), embed=False)
    assert shelf.sessions == {"monday", "s"}
    package.unlink()
    return shelf


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("source", [{}, {"pattern": "**/*"}, {"path": "notes/monday.diary"}])
def test_nothing_is_deleted_and_the_reader_is_named(
    shelf: Shelf, source: dict[str, Any], full: bool
) -> None:
    if "path" in source:
        source = {"path": shelf.diary}
    index = shelf.index(**source)
    assert reindex(index, scopes=[Scope.SESSION], full=full, embed=False) == []
    assert shelf.sessions == {"monday", "s"}
    said = covered(index, Scope.SESSION)
    assert said.state in (CoverageState.STALE, CoverageState.FAILED)
    assert "there is no session reader 'diary', which read 1 log. Nothing was" in said.reason


def test_the_next_run_with_the_package_is_whole_again(shelf: Shelf, package: Path) -> None:
    reindex(shelf.index(), scopes=[Scope.SESSION], embed=False)
    names(package, "diary_logs:READER")
    index = shelf.index()
    (written,) = reindex(index, scopes=[Scope.SESSION], embed=False)
    assert (written.deleted, written.unchanged) == (0, 2)
    assert covered(index, Scope.SESSION).state is CoverageState.LEXICAL_ONLY


@pytest.mark.parametrize("source", [{"pattern": "**/*.jsonl"}, {"format": "jsonl"}])
def test_logs_that_are_not_wanted_any_more_need_no_reader(
    shelf: Shelf, source: dict[str, Any]
) -> None:
    index = shelf.index(**source)
    reindex(index, scopes=[Scope.SESSION], embed=False)
    assert shelf.sessions == {"s"}
    assert covered(index, Scope.SESSION).state is CoverageState.LEXICAL_ONLY


def test_a_log_that_was_deleted_needs_no_reader(shelf: Shelf) -> None:
    shelf.diary.unlink()
    reindex(shelf.index(), scopes=[Scope.SESSION], embed=False)
    assert shelf.sessions == {"s"}
