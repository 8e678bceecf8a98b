"""The documented example of the search as a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from concordance.settings import Project
from flows.reindex import reindex
from tasks import shared
from tests.conftest import IndexMaker
from tests.examples import example
from tests.sources import GitSource


def test_the_example_of_the_task_prints_citations(
    make_index: IndexMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    GitSource.make(tmp_path / "beacon", {"docs/a.md": "# Backup\n\nA backup is restored so.\n"})
    shared.adopt_index(make_index(Project(slug="beacon", path=tmp_path / "beacon")))
    reindex()
    program = tmp_path / "report.py"
    program.write_text(example("downstream.md", "python", "hybrid_search_task"))
    exec(compile(program.read_text(), str(program), "exec"), {"__name__": "report"})  # noqa: S102
    assert capsys.readouterr().out.startswith("['beacon:docs/a.md:")
