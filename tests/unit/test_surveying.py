"""What tells that a scope has to be read again though its source has not changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from concordance.models import Scope
from concordance.sessions.registry import by_name
from concordance.settings import Project, SessionSource, Settings
from concordance.surveying import rules_fingerprint


def rules(project: Project, scope: Scope, change: str = "") -> str:
    readers = by_name()
    if change == "newer":
        readers["codex"] = replace(readers["codex"], version=readers["codex"].version + 1)
    if change == "fewer":
        del readers["codex"]
    return rules_fingerprint(project, scope, Settings(home=Path("/h")), readers)


def test_a_reader_that_reads_otherwise_makes_unchanged_logs_be_read() -> None:
    project = Project(slug="p", path=Path("/p"), sessions=(SessionSource(path=Path("/logs")),))
    found = {rules(project, Scope.SESSION, change) for change in ("", "newer", "fewer")}
    assert len(found) == 3
    assert rules(project, Scope.SESSION) == rules(project, Scope.SESSION)


def test_a_reader_decides_nothing_of_files_or_of_a_project_without_logs() -> None:
    logged = Project(slug="p", path=Path("/p"), sessions=(SessionSource(path=Path("/logs")),))
    bare = Project(slug="p", path=Path("/p"))
    for project, scope in ((logged, Scope.DOCS), (logged, Scope.ADR), (bare, Scope.SESSION)):
        assert rules(project, scope) == rules(project, scope, "newer")
