"""Runs of the flows: what is written, what is said, and the state they end in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State

from concordance.models import CoverageState, Scope
from concordance.settings import Project, SessionSource
from flows.backfill_vectors import backfill_vectors
from flows.reindex import reindex
from flows.reindex_project import reindex_project
from tasks import embedding, indexing, retrying, shared
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.fake_ollama_faults import Fault
from tests.sources import GitSource, event, write_log

DOC = "# Guide\n\nRetry the clone with exponential backoff.\n"


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries wait seconds in earnest; here the number of them is what matters."""
    for module in (embedding, indexing):
        for name in dir(module):
            task = getattr(module, name)
            if hasattr(task, "retry_delay_seconds"):
                monkeypatch.setattr(task, "retry_delay_seconds", [0.0] * len(retrying.DELAYS))


def adopt(make_index: IndexMaker, *projects: Project, **settings: Any) -> None:
    """Give the tasks of this process an index over these projects."""
    shared.adopt_index(make_index(*projects, **settings))


def states(slug: str) -> dict[str, CoverageState]:
    return {c.scope.value: c.state for c in shared.shared_index().coverage([slug])}


def run(**parameters: Any) -> State[Any]:
    return reindex(**parameters, return_state=True)


def test_a_first_run_is_complete_and_a_second_does_nothing(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    GitSource.make(tmp_path / "b", {"doc/b.md": DOC + "More of it.\n", "README.md": "# B\n\nHi.\n"})
    adopt(
        make_index, Project(slug="a", path=tmp_path / "a"), Project(slug="b", path=tmp_path / "b")
    )
    first = run()
    assert first.is_completed()
    assert first.name == "Completed"
    assert states("a")["docs"] is CoverageState.COMPLETE
    assert states("b")["adr"] is CoverageState.ABSENT
    embedded = len(provider.inputs)
    second = run()
    assert second.is_completed()
    assert len(provider.inputs) == embedded


async def runs_of(slug: str) -> int:
    async with get_client() as client:
        names = [run.name for run in await client.read_flow_runs(limit=200)]
    return sum(name.startswith(f"reindex {slug} at ") for name in names)


def test_an_unchanged_project_costs_no_flow_run(make_index: IndexMaker, tmp_path: Path) -> None:
    GitSource.make(tmp_path / "quiet", {"docs/a.md": DOC})
    adopt(make_index, Project(slug="quiet", path=tmp_path / "quiet"))
    run()
    before = asyncio.run(runs_of("quiet"))
    run()
    assert before == 1
    assert asyncio.run(runs_of("quiet")) == before


def test_one_project_that_fails_stops_no_other_and_fails_the_run_by_name(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    GitSource.make(tmp_path / "good", {"docs/a.md": DOC})
    adopt(
        make_index,
        Project(slug="bad", path=tmp_path / "nowhere"),
        Project(slug="good", path=tmp_path / "good"),
    )
    state = run()
    assert state.is_failed()
    assert state.message is not None
    assert state.message.startswith("1 of 2 projects failed: bad (")
    assert states("good")["docs"] is CoverageState.COMPLETE
    assert states("bad")["docs"] is CoverageState.FAILED


def test_sessions_that_cannot_be_read_leave_the_files_indexed(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    sessions = (SessionSource(path=tmp_path / "no-logs"),)
    adopt(make_index, Project(slug="a", path=tmp_path / "a", sessions=sessions))
    state = run()
    assert state.is_failed()
    assert states("a") == {
        "docs": CoverageState.COMPLETE,
        "adr": CoverageState.ABSENT,
        "session": CoverageState.FAILED,
    }


def test_a_provider_that_is_down_costs_the_vectors_alone(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    adopt(make_index, Project(slug="a", path=tmp_path / "a"))
    provider.stop()
    state = run()
    assert state.is_completed()
    assert state.name == "LexicalOnly"
    assert states("a")["docs"] is CoverageState.LEXICAL_ONLY
    answer = shared.shared_index().search("exponential backoff")
    assert answer.degraded
    assert answer.hits
    provider.restart()
    shared.shared_index().reset_breaker()
    filled = backfill_vectors(return_state=True)
    assert filled.name == "Completed"
    assert states("a")["docs"] is CoverageState.COMPLETE


def test_a_provider_that_dies_in_mid_run_is_quoted_in_the_coverage(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    parts = "".join(f"## Part {n}\n\nText of part {n}.\n\n" for n in range(80))
    GitSource.make(tmp_path / "a", {"docs/a.md": f"# A\n\n{parts}"})
    adopt(make_index, Project(slug="a", path=tmp_path / "a"))
    provider.dies_after = 3  # one for the space, then two batches
    state = run()
    assert not (state.is_completed() and state.name == "Completed")
    (docs, *_) = shared.shared_index().coverage(["a"])
    assert docs.state is CoverageState.PARTIAL
    assert "can't be reached" in (docs.embedding_error or "")
    assert "can't be reached" in docs.reason


def test_a_run_without_its_provider_says_so_though_nothing_waits(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    """Every passage has its vector, but no question gets one."""
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    adopt(make_index, Project(slug="a", path=tmp_path / "a"))
    assert run().name == "Completed"
    provider.stop()
    state = run()
    assert state.name != "Completed"
    assert "so questions are answered by words alone" in (state.message or "")
    assert "can't be reached" in (shared.shared_index().coverage(["a"])[0].embedding_error or "")
    provider.restart()
    shared.shared_index().reset_breaker()
    assert run().name == "Completed"
    assert shared.shared_index().coverage(["a"])[0].embedding_error is None


def test_a_backfill_without_its_provider_says_so_though_nothing_waits(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    project = Project(slug="a", path=tmp_path / "a")
    adopt(make_index, project)
    run()
    provider.stop()
    shared.close_shared()
    adopt(make_index, project)
    down = backfill_vectors(return_state=True)
    assert (down.type.value, down.name) == ("COMPLETED", "LexicalOnly")
    assert "no chunk waits for a vector, but the provider fails" in (down.message or "")
    assert shared.shared_index().coverage(["a"])[0].embedding_error is not None
    provider.restart()
    shared.shared_index().reset_breaker()
    assert backfill_vectors(return_state=True).name == "Completed"


def test_after_a_rule_changed_no_run_but_the_next_one_says_complete(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    project = Project(slug="a", path=tmp_path / "a")
    adopt(make_index, project)
    run()
    shared.close_shared()
    adopt(make_index, project.model_copy(update={"scrub": False}))
    filled = backfill_vectors(return_state=True)
    assert "a docs is stale: its rules changed: the next run reads 1 file again" in (
        filled.message or ""
    )
    assert states("a")["docs"] is CoverageState.STALE
    done = run()
    assert (done.name, states("a")["docs"]) == ("Completed", CoverageState.COMPLETE)


def test_all_that_failed_in_one_run_is_named_each_with_its_own_reason(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    for name in ("embeds-not", "silent", "good"):
        GitSource.make(tmp_path / name, {"docs/a.md": f"# {name}\n\nAbout {name}.\n"})
    adopt(
        make_index,
        Project(slug="lost", path=tmp_path / "nowhere"),
        Project(
            slug="silent",
            path=tmp_path / "silent",
            sessions=(SessionSource(path=tmp_path / "no-logs"),),
        ),
        Project(slug="embeds-not", path=tmp_path / "embeds-not"),
        Project(slug="good", path=tmp_path / "good"),
    )
    provider.rule = lambda asked: (
        Fault.status(503, "overloaded by embeds-not")
        if any("embeds-not" in text for text in asked.inputs)
        else None
    )
    state = run()
    assert state.is_failed()
    message = state.message or ""
    assert message.startswith("2 of 4 projects failed: lost (docs, adr: ")
    assert "does not appear to be a git repository" in message or "nowhere" in message
    assert "; silent (session: " in message
    assert "no-logs" in message
    waiting = message.partition(" for a vector, in ")[2]
    assert "embeds-not" in waiting.partition(":")[0]
    assert waiting.endswith("answered 503: overloaded by embeds-not")
    (docs,) = [c for c in shared.shared_index().coverage(["embeds-not"]) if c.scope is Scope.DOCS]
    assert "overloaded by embeds-not" in (docs.embedding_error or ""), "and it is kept"


def test_a_dead_provider_costs_a_run_of_many_projects_a_few_requests(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    projects = [Project(slug=f"p{n}", path=tmp_path / f"p{n}") for n in range(3)]
    for number, project in enumerate(projects):
        parts = "".join(f"## Part {n}\n\nText {n} of {number}.\n\n" for n in range(40))
        GitSource.make(tmp_path / project.slug, {"docs/a.md": parts})
    adopt(make_index, *projects)
    provider.rule = lambda asked: (
        Fault.status(503, "overloaded") if any("Text" in text for text in asked.inputs) else None
    )
    state = run()
    assert state.name == "LexicalOnly"
    assert (state.message or "").startswith("120 chunks wait for a vector, in p0, p1, p2: ")
    assert (state.message or "").endswith("answered 503: overloaded")
    assert sum(any("Text" in text for text in asked.inputs) for asked in provider.embeds) <= 6
    assert len(provider.paths) <= 20


def test_a_missing_model_is_named_once_and_words_are_indexed_all_the_same(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    adopt(
        make_index,
        Project(slug="a", path=tmp_path / "a"),
        embedding_model="ollama/nomic-embed-txt",
    )
    state = run()
    assert state.name == "LexicalOnly"
    assert "ollama pull nomic-embed-txt" in (state.message or "")
    assert provider.inputs == []


def test_only_the_scopes_asked_for_are_brought_up_to_date(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC, "docs/adr/0001-x.md": "# X\n\nWhy not.\n"})
    adopt(make_index, Project(slug="a", path=tmp_path / "a"))
    state = reindex_project(project="a", scopes=[Scope.ADR], return_state=True)
    assert state.is_completed()
    assert states("a") == {"adr": CoverageState.COMPLETE}


def test_an_unknown_project_is_refused_before_anything_starts(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    adopt(make_index, Project(slug="a", path=tmp_path / "a"))
    state = run(projects=["a", "typo"])
    assert state.is_failed()
    assert "there is no project 'typo'" in (state.message or "")
    assert shared.shared_index().coverage() == []


def test_a_commit_pushed_between_two_runs_of_one_process_is_seen(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    """PRE-5: no step is cached."""
    source = GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    adopt(make_index, Project(slug="a", path=tmp_path / "a"))
    run()
    commit = source.commit({"docs/a.md": "# Guide\n\nSomething about zeppelins.\n"})
    run()
    answer = shared.shared_index().search("zeppelins")
    assert [hit.origin.commit for hit in answer.hits if hit.origin.kind == "file"] == [commit]


def test_session_turns_are_found_and_cited(make_index: IndexMaker, tmp_path: Path) -> None:
    GitSource.make(tmp_path / "a", {"docs/a.md": DOC})
    write_log(tmp_path / "logs" / "one.jsonl", [event("s1", n, f"turn {n}") for n in range(3)])
    sessions = (SessionSource(path=tmp_path / "logs"),)
    adopt(make_index, Project(slug="a", path=tmp_path / "a", sessions=sessions))
    assert run().name == "Completed"
    assert states("a")["session"] is CoverageState.COMPLETE
    hit = shared.shared_index().search("turn 2").hits[0]
    assert hit.citation.startswith("a:session s1#s1-")
