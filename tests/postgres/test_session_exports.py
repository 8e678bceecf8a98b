"""Several exports in one project, the folders of which have the same names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from concordance.index import Index
from concordance.models import Scope
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.postgres.driver import passages_of, reindex
from tests.sources import GitSource


def slack(export: Path, text: str, channel: str = "general") -> None:
    path = export / channel / "2030-01-02.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    message = {"type": "message", "ts": "1893556801.1", "user": "U1", "text": text}
    path.write_text(json.dumps([message]))


def cline(export: Path, text: str, task: str = "17") -> None:
    path = export / task / "ui_messages.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([{"ts": 1, "type": "say", "say": "task", "text": text}]))


class Shelf:
    def __init__(self, make_index: IndexMaker, folder: Path, url: str) -> None:
        self._make, self._url = make_index, url
        self.logs = folder / "logs"
        self.logs.mkdir()
        self._git = GitSource.make(folder / "source", {"README.md": "# Beacon\n\nText.\n"}).path

    def turns(self, *paths: Path, full: bool = False) -> dict[str, list[str]]:
        """What is said in each session, after a run over the sources."""
        sources = tuple(SessionSource(path=path) for path in paths or (self.logs,))
        index: Index = self._make(Project(slug="p", path=self._git, sessions=sources))
        reindex(index, scopes=[Scope.SESSION], full=full, embed=False)
        found: dict[str, list[str]] = {}
        passages: list[dict[str, Any]] = passages_of(self._url)
        for passage in passages:
            found.setdefault(passage["name"], []).append(passage["content"])
        return found


@pytest.fixture
def shelf(make_index: IndexMaker, tmp_path: Path, database_url: str) -> Shelf:
    return Shelf(make_index, tmp_path, database_url)


def test_channels_of_two_workspaces_are_never_one_session(shelf: Shelf) -> None:
    logs = shelf.logs
    slack(logs / "a", "words of a")
    slack(logs / "a", "more of a", "random")
    one = {"general": ["words of a"], "random": ["more of a"]}
    assert shelf.turns() == one
    slack(logs / "b", "words of b")
    of_a = {"a/general": ["words of a"], "a/random": ["more of a"]}
    two = of_a | {"b/general": ["words of b"]}
    assert shelf.turns() == two
    assert shelf.turns(full=True) == two
    # The two are told apart as two sources as well, and a third one changes no name.
    assert shelf.turns(logs / "a", logs / "b") == two
    slack(logs / "c", "words of c")
    assert shelf.turns() == two | {"c/general": ["words of c"]}
    shutil.rmtree(logs / "b")
    shutil.rmtree(logs / "c")
    assert shelf.turns() == one


def test_tasks_of_two_extensions_are_never_one_session(shelf: Shelf) -> None:
    cline(shelf.logs / "cline" / "tasks", "words of cline")
    slack(shelf.logs / "a", "words of a")
    assert shelf.turns() == {"17": ["words of cline"], "general": ["words of a"]}
    cline(shelf.logs / "roo" / "tasks", "words of roo")
    assert shelf.turns() == {
        "cline/tasks/17": ["words of cline"],
        "roo/tasks/17": ["words of roo"],
        "general": ["words of a"],
    }
