"""What a run leaves to be read: names, pages, tables, progress; and that none of it can fail it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect import Task, flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State, TaskRun

from concordance.models import CoverageState, Fusion, SearchRequest
from concordance.settings import Project
from flows.reindex import reindex
from flows.reindex_project import reindex_project
from flows.search import search
from tasks import embedding, indexing, presenting, retrying, shared
from tasks.presenting import UPDATE_SECONDS, EmbeddingProgress
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.flows.conftest import artifacts
from tests.sources import GitSource


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (embedding, indexing):
        for found in vars(module).values():
            if isinstance(found, Task):
                monkeypatch.setattr(found, "retry_delay_seconds", [0.0] * len(retrying.DELAYS))


DOC = "# Guide\n\nRetry the clone with exponential backoff.\n"
WEB = "https://git.example.org/team/lamp"


def adopt(make_index: IndexMaker, *projects: Project, **settings: Any) -> None:
    shared.adopt_index(make_index(*projects, **settings))


def lamp(folder: Path, **files: bytes | str) -> tuple[Project, GitSource]:
    source = GitSource.make(folder / "lamp", {"docs/a.md": DOC} | files)
    return Project(slug="lamp", path=source.path, web_url=WEB), source


def head_of(source: GitSource) -> str:
    return source.git("rev-parse", "HEAD").strip()


def run_of(state: State[Any]) -> UUID:
    found = state.state_details.flow_run_id
    assert found is not None
    return found


async def told_of(run: UUID) -> tuple[str, list[TaskRun]]:
    async with get_client() as client:
        steps = await client.read_task_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run]))
        )
        return (await client.read_flow_run(run)).name, steps


def test_a_run_and_its_steps_say_project_and_commit(make_index: IndexMaker, tmp_path: Path) -> None:
    project, source = lamp(tmp_path)
    adopt(make_index, project)
    state = reindex_project(project="lamp", return_state=True)
    name, steps = asyncio.run(told_of(run_of(state)))
    commit = head_of(source)[:12]
    assert name == f"reindex lamp at {commit}"
    names = {step.name for step in steps}
    assert {f"{what} lamp at {commit}" for what in ("write", "record")} <= names
    assert f"plan lamp files at {commit}" in names
    assert "write lamp sessions" in names
    name, _ = asyncio.run(told_of(run_of(reindex(projects=["lamp"], return_state=True))))
    assert name == "reindex lamp"
    name, _ = asyncio.run(told_of(run_of(reindex(return_state=True))))
    assert name == "reindex all projects"
    asked = search(SearchRequest(text="backoff\n" + "x" * 500), return_state=True)
    name, _ = asyncio.run(told_of(run_of(asked)))
    assert name.startswith("search: backoff xxx")
    assert len(name) <= presenting.NAME_CHARACTERS


def test_after_a_run_one_page_says_what_is_fresh_and_links_what_failed(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    project, source = lamp(tmp_path, **{"docs/bad.md": b"# Bad\n\n\xb2\xe2\xca\xd4\n"})
    adopt(make_index, project, Project(slug="gone", path=tmp_path / "nowhere"))
    provider.stop()
    state = reindex(return_state=True)
    assert state.is_failed()
    (page, *_) = artifacts("coverage")
    assert page.flow_run_id == run_of(state)
    assert page.type == "markdown"
    text = str(page.data)
    assert "This run came to **failed**" in text
    assert "> **Degraded**" in text
    assert "`docs` of `gone`: **failed**, last up to date never" in text
    line = f"{WEB}/blob/{head_of(source)}/docs/bad.md?plain=1#L3-L3"
    assert (
        f"[docs/bad.md]({line}) (docs of `lamp`): `not UTF-8: byte 0xb2 at offset 7, line 3`"
        in text
    )
    (table, *_) = artifacts("coverage-docs")
    assert table.type == "table"
    rows = json.loads(str(table.data))
    assert [(row["project"], row["state"]) for row in rows] == [
        ("gone", "failed"),
        ("lamp", "partial"),
    ]
    assert rows[1]["checked"].startswith("2026-03-01 12:")
    assert " UTC (" in rows[1]["checked"]


def test_a_search_leaves_a_page_with_hits_or_the_reason_for_none(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    project, source = lamp(tmp_path)
    adopt(make_index, project)
    reindex()
    search(SearchRequest(text="exponential backoff"))
    text = str(artifacts("answer")[0].data)
    commit = head_of(source)
    cited = f"[lamp:docs/a.md:1-3@{commit[:12]}]({WEB}/blob/{commit}/docs/a.md?plain=1#L1-L3)"
    assert f"## 1. {cited}" in text
    assert "Retry the clone with exponential backoff." in text
    search(SearchRequest(text="zeppelin", fusion=Fusion.LEXICAL))
    assert "> **Nothing was found**: `no passage holds any of the words`" in str(
        artifacts("answer")[0].data
    )


def test_embedding_says_how_far_it_is_and_writes_no_more_than_it_should(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    parts = "".join(f"## Part {n}\n\nText of part {n}.\n\n" for n in range(80))
    project, _ = lamp(tmp_path, **{"docs/b.md": parts})
    adopt(make_index, project)
    before = len(artifacts("embedding"))
    state = reindex(return_state=True)
    assert state.name == "Completed"
    (made, *_) = artifacts("embedding")
    assert len(artifacts("embedding")) == before + 1
    assert (made.type, made.data) == ("progress", 100.0)
    assert (made.description or "").startswith("81 of 81 texts (lamp), ")
    assert (made.description or "").endswith("nothing left")
    assert reindex(return_state=True).name == "Completed"
    assert len(artifacts("embedding")) == before + 1, "nothing to embed leaves nothing"


def test_progress_is_written_at_a_bounded_pace() -> None:
    now = 0.0
    told: list[tuple[float, str]] = []

    class Kept(EmbeddingProgress):
        def _write(self, percent: float, told_now: str) -> None:
            self._artifact = UUID(int=1)
            told.append((percent, told_now))

    @flow
    def embeds() -> None:
        nonlocal now
        progress = Kept("lamp", clock=lambda: now)
        for done in range(100, 10_001, 100):
            now += 0.5
            progress(done, 10_000)

    embeds.fn()
    assert len(told) == 1 + 50 // UPDATE_SECONDS
    assert told[0] == (1.0, "100 of 10,000 texts (lamp), 200.0 a second, about 50 s left")
    assert told[-1] == (100.0, "10,000 of 10,000 texts (lamp), 200.0 a second, nothing left")


def test_what_cannot_be_shown_is_logged_and_changes_no_state(
    make_index: IndexMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    project, _ = lamp(tmp_path)
    adopt(make_index, project)
    # A Prefect server that nobody can reach, for all that is shown and for nothing else.
    monkeypatch.setattr(
        presenting, "get_client", lambda **_: SyncPrefectClient("http://127.0.0.1:1/api")
    )
    state = reindex(return_state=True)
    assert (state.type.value, state.name) == ("COMPLETED", "Completed")
    assert shared.shared_index().coverage(["lamp"])[0].state is CoverageState.COMPLETE
    assert search(SearchRequest(text="backoff"), return_state=True).is_completed()
    for what in (
        "the run's name",
        "the progress of the embedding",
        "the page of coverage",
        "the page of the answer",
    ):
        assert f"{what} could not be written, the run goes on: ConnectError" in caplog.text
