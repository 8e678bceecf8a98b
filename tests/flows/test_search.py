"""The query as a function, as a task and as a flow: one answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from prefect import flow

from concordance.models import SearchRequest
from concordance.settings import Project
from flows.reindex import reindex
from flows.search import search
from tasks import shared
from tasks.search import hybrid_search, hybrid_search_task
from tests.conftest import IndexMaker
from tests.examples import example
from tests.sources import GitSource


@pytest.fixture(autouse=True)
def indexed(make_index: IndexMaker, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "docs/a.md": "# Guide\n\nRetry the clone with backoff.\n",
        "docs/b.md": "# Backup\n\nA backup is restored by `pg_restore`.\n",
    }
    GitSource.make(tmp_path / "a", files)
    shared.adopt_index(make_index(Project(slug="a", path=tmp_path / "a")))
    reindex()


def test_function_task_and_flow_give_the_same_hits() -> None:
    @flow
    def ask() -> list[str]:
        return [hit.citation for hit in hybrid_search_task("retry a clone").hits]

    plain = hybrid_search("retry a clone")
    expected = [hit.citation for hit in plain.hits]
    assert expected
    assert ask() == expected
    assert [
        (hit["rank"], hit["score"]) for hit in search(SearchRequest(text="retry a clone"))["hits"]
    ] == [(hit.rank, hit.score) for hit in plain.hits]


def test_the_documented_example_of_the_task_prints_citations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Prefect reads the source of a flow from its file.
    program = tmp_path / "report.py"
    program.write_text(example("downstream.md", "python", "hybrid_search_task"))
    exec(compile(program.read_text(), str(program), "exec"), {"__name__": "report"})  # noqa: S102
    assert capsys.readouterr().out.startswith("['a:docs/b.md:")


def test_a_wrong_value_is_refused_with_the_field_s_name() -> None:
    state = search({"text": "x", "top_k": 0}, return_state=True)
    assert state.is_failed()
    assert "top_k" in (state.message or "")
