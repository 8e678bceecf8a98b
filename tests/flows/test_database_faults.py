"""Runs whose database fails them: the run's end says what failed, and the next run mends it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prefect import Task

from concordance.errors import (
    ConcordanceError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    ProjectBusy,
)
from concordance.index import Index
from concordance.models import CoverageState
from concordance.settings import Project
from flows.reindex import reindex
from tasks import embedding, indexing, retrying, shared
from tests.conftest import IndexMaker
from tests.postgres.driver import covered, documents_of
from tests.sources import GitSource

STATES = (CoverageState.STALE, CoverageState.STALE, CoverageState.COMPLETE)
DOC = "# Guide\n\nRetry the clone with exponential backoff.\n"


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (embedding, indexing):
        for found in vars(module).values():
            if isinstance(found, Task):
                monkeypatch.setattr(found, "retry_delay_seconds", [0.0] * len(retrying.DELAYS))


def adopt(make_index: IndexMaker, folder: Path, *slugs: str) -> tuple[Index, list[GitSource]]:
    sources = [GitSource.make(folder / slug, {"docs/a.md": DOC}) for slug in slugs]
    index = make_index(
        *(Project(slug=slug, path=s.path) for slug, s in zip(slugs, sources, strict=True))
    )
    shared.adopt_index(index)
    return index, sources


def test_a_run_that_could_not_begin_is_not_called_complete_for_what_an_earlier_one_did(
    make_index: IndexMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    index, sources = adopt(make_index, tmp_path, "a", "b", "c")
    assert reindex(return_state=True).name == "Completed"
    for source in sources:
        source.commit({"docs/b.md": DOC + "More.\n"})
    hold = index.hold
    failures: dict[str, ConcordanceError] = {
        "a": DatabaseUnavailable("too many connections"),
        # The other run has not begun to look when this one ends: nobody may call it up to date.
        "b": ProjectBusy("project 'b' is held by another run"),
    }

    @contextmanager
    def no_connection(slug: str, *given: Any, **more: Any) -> Any:
        if slug in failures:
            raise failures[slug]
        with hold(slug, *given, **more) as held:
            yield held

    monkeypatch.setattr(index, "hold", no_connection)
    state = reindex(return_state=True)
    said = state.message or ""
    assert state.is_failed()
    assert said.startswith("2 of 3 projects failed: a (docs, adr, session: the last attempt")
    assert "its run did not begin: too many connections" in said
    assert said.endswith("skipped here, as another run holds it: b")
    states = {slug: covered(index, slug=slug).state for slug in "abc"}
    assert states == dict(zip("abc", STATES, strict=True))
    monkeypatch.undo()
    assert reindex(return_state=True).name == "Completed"
    for slug in "ab":
        assert [d["name"] for d in documents_of(database_url, slug)] == ["docs/a.md", "docs/b.md"]


def test_a_run_on_a_replica_ends_with_the_reason_alone(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    adopt(make_index, tmp_path, "a")
    index = make_index(
        *shared.shared_index().configuration.projects,
        database_url=f"{database_url} options='-c default_transaction_read_only=on'",
    )
    shared.adopt_index(index)
    state = reindex(return_state=True)
    assert state.is_failed()
    assert isinstance(state.result(raise_on_failure=False), DatabaseReadOnly)
    assert "to the primary" in (state.message or "")
