"""What Prefect must not hide, cache, repeat or keep: states, steps, secrets."""

from __future__ import annotations

import ast
import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import Flow, Task, flow
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import LogFilter
from prefect.client.schemas.objects import State
from prefect.futures import wait
from psycopg import sql
from pydantic import SecretStr, ValidationError

import flows
import flows.backfill_vectors
import flows.evaluate
import flows.reindex
import flows.reindex_project
import flows.search
import tasks.embedding
import tasks.evaluation
import tasks.indexing
import tasks.search
from concordance.adapters import breaker
from concordance.adapters.postgres.projects import Hold
from concordance.errors import ConcordanceError
from concordance.index import Index
from concordance.models import CoverageState, Scope
from concordance.settings import Credentials, Project
from flows.reindex import reindex, run_project
from tasks import retrying, shared
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.fake_ollama_faults import Fault
from tests.flows.conftest import harness, no_index_left
from tests.git_server import TOKEN
from tests.postgres import driver
from tests.sources import GitSource

__all__ = ["no_index_left"]

ROOT = Path(__file__).parents[2]
FLOWS = (
    flows.backfill_vectors,
    flows.evaluate,
    flows.reindex,
    flows.reindex_project,
    flows.search,
)
TASKS = (tasks.embedding, tasks.evaluation, tasks.indexing, tasks.search)
DOC = "# Guide\n\nRetry the clone with exponential backoff.\n"


@pytest.fixture(scope="module", autouse=True)
def prefect_server() -> Iterator[None]:
    """One Prefect server for this module."""
    with harness():
        yield


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tasks.embedding, tasks.indexing):
        for found in vars(module).values():
            if isinstance(found, Task):
                monkeypatch.setattr(found, "retry_delay_seconds", [0.0] * len(retrying.DELAYS))


def adopt(make_index: IndexMaker, *projects: Project, **settings: Any) -> Index:
    index = make_index(*projects, **settings)
    shared.adopt_index(index)
    return index


def three(folder: Path) -> list[Project]:
    return [
        Project(slug=slug, path=GitSource.make(folder / slug, {"docs/a.md": DOC}).path)
        for slug in ("one", "two", "three")
    ]


# --- states ----------------------------------------------------------------------------------


def test_a_project_that_fails_unexpectedly_fails_the_run_pre_1(
    make_index: IndexMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = adopt(make_index, *three(tmp_path))
    plan = index.plan_files

    def breaks(held: Hold, slug: str, *given: Any, **more: Any) -> Any:
        if slug == "two":
            raise ZeroDivisionError("a fault of the program")
        return plan(held, slug, *given, **more)

    monkeypatch.setattr(index, "plan_files", breaks)
    state = reindex(return_state=True)
    assert state.is_failed()
    assert (state.message or "").startswith("1 of 3 projects failed: two (")
    assert driver.covered(index, slug="two").state is CoverageState.FAILED
    assert driver.covered(index, slug="three").state is CoverageState.COMPLETE


def test_a_project_that_did_nothing_and_said_nothing_fails_the_run_pre_1(
    make_index: IndexMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that ends well counts for nothing: the tables are asked."""
    adopt(make_index, *three(tmp_path))
    monkeypatch.setattr(flows.reindex, "reindex_project", lambda **_: _Ended())
    state = reindex(return_state=True)
    assert state.is_failed()
    assert (state.message or "").startswith("3 of 3 projects failed: one (never indexed)")


class _Ended:
    """A flow's state that looks fine."""

    message = "all is well"

    def result(self, *, raise_on_failure: bool) -> None:
        assert raise_on_failure


@pytest.mark.parametrize("shape", ["nested", "dict", "text"])
def test_the_shape_of_what_is_returned_decides_nothing_pre_1(
    make_index: IndexMaker, tmp_path: Path, shape: str
) -> None:
    good, *_ = three(tmp_path)
    index = adopt(make_index, good, Project(slug="lost", path=tmp_path / "nowhere"))

    @flow(log_prints=False)
    def by_somebody() -> Any:
        index.start_run(flows.reindex_project.run_identifier(), "reindex")
        scopes = [Scope.DOCS]
        futures = [
            run_project.submit(slug, scopes, full=False, embed=True, deployed=False)
            for slug in ("one", "lost")
        ]
        wait(futures)
        shapes = {"nested": [[futures[0]], [futures[1]]], "dict": {"states": futures}, "text": "ok"}
        return shapes[shape]

    by_somebody(return_state=True)
    # Whatever that flow's state is: what ours decide on is the coverage.
    assert driver.covered(index, slug="lost").state is CoverageState.FAILED
    state = reindex(return_state=True)
    assert state.is_failed()
    assert "lost" in (state.message or "")


def test_every_flow_that_changes_something_returns_a_state_of_its_own_pre_1() -> None:
    """A `State` that a flow returns is its state; Prefect infers nothing from what it did."""
    read_only = {"search", "evaluate"}
    for module in FLOWS:
        for found in vars(module).values():
            if isinstance(found, Flow) and found.fn.__module__ == module.__name__:
                returns = str(found.fn.__annotations__["return"])
                assert returns.startswith("State[") != (found.name in read_only), found.name


# --- steps -----------------------------------------------------------------------------------


def test_a_commit_between_two_runs_of_one_flow_is_seen_pre_5(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    source = GitSource.make(tmp_path / "one", {"docs/a.md": DOC})
    index = adopt(make_index, Project(slug="one", path=source.path))
    commits: list[str] = []

    @flow(log_prints=False)
    def twice() -> str:
        for text in (DOC, "# Guide\n\nSomething about zeppelins.\n"):
            commits.append(source.commit({"docs/a.md": text}))
            run_project("one", [Scope.DOCS], full=False, embed=True, deployed=False)
        return "done"

    twice()
    assert driver.covered(index, slug="one").indexed_commit == commits[1]
    hits = index.search("zeppelins").hits
    assert [hit.origin.commit for hit in hits if hit.origin.kind == "file"] == [commits[1]]


def test_a_run_after_a_failed_one_sees_what_came_since_pre_5(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    source = GitSource.make(tmp_path / "one", {"docs/a.md": DOC})
    index = adopt(make_index, Project(slug="one", path=source.path))
    source.path.rename(tmp_path / "away")
    assert reindex(return_state=True).is_failed()
    (tmp_path / "away").rename(source.path)
    commit = source.commit({"docs/a.md": "# Guide\n\nSomething about zeppelins.\n"})
    assert reindex(return_state=True).is_completed()
    assert driver.covered(index, slug="one").indexed_commit == commit


def test_no_step_is_cached_and_no_live_thing_is_its_input_pre_5() -> None:
    found = [t for m in (*TASKS, *FLOWS) for t in vars(m).values() if isinstance(t, Task)]
    assert len({task.name for task in found}) >= 8
    plain = {"bool", "int", "str", "None", "list", "Path", "Scope", "datetime", "Hold"}
    plain |= {"SourcePlan", "SearchRequest"}
    for task in found:
        assert task.cache_policy == NO_CACHE, task.name
        for name, annotation in task.fn.__annotations__.items():
            if name != "return":
                names = {
                    n.id for n in ast.walk(ast.parse(str(annotation))) if isinstance(n, ast.Name)
                }
                assert names <= plain, f"{task.name} takes {name}: {annotation}"
    assert set(Hold.__dataclass_fields__) == {"project_id", "run_id"}, "two numbers"


def test_a_server_that_is_busy_twice_is_asked_a_third_time_oll_6(
    make_index: IndexMaker,
    tmp_path: Path,
    provider: FakeOllama,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert sorted(retrying.DELAYS) == retrying.DELAYS
    assert retrying.JITTER > 0
    project = three(tmp_path)[0]
    index = adopt(make_index, project)
    index.prepare_space()
    monkeypatch.setattr(breaker, "PAUSES", (0.0, 0.0, 60.0))
    texts = 0

    def busy_twice(asked: Any) -> Fault | None:
        nonlocal texts
        texts += any("exponential" in text for text in asked.inputs)
        return Fault.status(503) if 0 < texts <= 2 else None

    provider.rule = busy_twice
    state = reindex(return_state=True)
    assert (state.name, state.message) == ("Completed", "1 project, 1 chunk, all with a vector")
    assert texts == 3
    assert "1 texts embedded" in caplog.text


# --- repetition ------------------------------------------------------------------------------


def test_a_run_that_comes_twice_changes_nothing_pre_6(
    make_index: IndexMaker, tmp_path: Path, database_url: str, provider: FakeOllama
) -> None:
    adopt(make_index, *three(tmp_path))
    assert reindex(return_state=True).name == "Completed"
    before = driver.passages_of(database_url, "one")
    provider.forget()
    assert reindex(return_state=True).name == "Completed"
    assert driver.passages_of(database_url, "one") == before
    assert provider.calls == 0


# --- secrets ---------------------------------------------------------------------------------


async def kept() -> list[str]:
    """All that Prefect's API gives of runs: parameters, states, logs, artifacts."""
    async with get_client() as client:
        found: list[Any] = [
            *await client.read_logs(LogFilter(), limit=200),
            *await client.read_flow_runs(),
            *await client.read_task_runs(),
            *await client.read_artifacts(),
        ]
    return [f"{one!r} {one.model_dump_json()}" for one in found]


def test_a_token_is_in_no_parameter_log_or_state_pre_7(
    make_index: IndexMaker,
    tmp_path: Path,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ValidationError, match=r"user information.*credentials"):
        Project(slug="p", url=f"https://x-token:{TOKEN}@git.example.com/o/r.git")
    project = Project(
        slug="p",
        url="http://127.0.0.1:1/o/r.git",
        credentials=Credentials(env="READ_TOKEN", username="x-token"),
    )
    adopt(make_index, project, allowed_schemes=("http",), environment={"READ_TOKEN": TOKEN})
    state: State[Any] = reindex(projects=["p"], return_state=True)
    assert state.is_failed()
    told = [*asyncio.run(kept()), repr(state), caplog.text]
    assert any('"parameters":{"projects":["p"]' in text for text in told), "slugs, never addresses"
    tables = driver.ask(
        database_url, "select tablename as name from pg_tables where schemaname = 'concordance'"
    )
    for table in tables:
        query = sql.SQL("select t::text as row from {} t").format(sql.Identifier(table["name"]))
        told += [row["row"] for row in driver.ask(database_url, query)]
    assert any("http://127.0.0.1:1/o/r.git" in text for text in told), "the tables are looked at"
    assert [text for text in told if TOKEN in text] == []
    # An address that is given where a project's name belongs is refused, and not repeated.
    address = f"https://x-token:{TOKEN}@git.example.com/o/r.git"
    wrong: State[Any] = reindex(projects=[address], return_state=True)
    assert wrong.is_failed()
    assert TOKEN not in (wrong.message or "")


def test_a_password_in_the_database_s_address_is_told_nowhere_pre_7(
    make_index: IndexMaker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    word = "hunter2hunter2"
    for url in (
        f"postgresql://ada:{word}@127.0.0.1:1/concordance",
        f"host=127.0.0.1 port=1 user=ada password={word}",
        f"postgresql://ada@127.0.0.1:1/concordance?password={word}",
        f"postgresql://ada:{word}@[::1:1/broken",
    ):
        with pytest.raises(ConcordanceError) as caught:
            make_index(database_url=SecretStr(url))
        shown = f"{caught.value!r} {caught.value} {caught.value.__cause__!r}"
        assert word not in shown, shown
    assert word not in caplog.text
