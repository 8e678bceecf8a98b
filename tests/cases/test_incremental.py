"""Runs after the first one: what is gone, what changed, what failed, and two at once."""

from __future__ import annotations

import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from concordance.adapters.postgres import documents
from concordance.index import Index
from concordance.indexing.vector_space import passage_text
from concordance.models import CoverageState, Scope
from concordance.settings import Project, ScopeRules, SessionSource
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.fake_ollama_faults import Fault
from tests.postgres.driver import (
    ask,
    better_than_the_truth,
    covered,
    documents_of,
    fill,
    names_of,
    passages_of,
    reindex,
)
from tests.postgres.library import places, search
from tests.sources import GitSource, event, write_log

A = "# Anchor\n\nthe anchor lies deep\n"
B = "# Beacon\n\nthe beacon blinks twice\n"


@pytest.fixture
def source(tmp_path: Path) -> GitSource:
    return GitSource.make(tmp_path / "source", {"docs/a.md": A, "docs/b.md": B})


@pytest.fixture
def project(source: GitSource) -> Project:
    return Project(slug="p", path=source.path)


def cited(index: Index, words: str) -> list[str]:
    return places(search(index, words, fusion="lexical"))


def test_what_was_deleted_or_renamed_is_cited_no_more_inc_1(
    make_index: IndexMaker, source: GitSource, project: Project, provider: FakeOllama
) -> None:
    index = make_index(project)
    reindex(index)
    provider.forget()
    source.git("mv", "docs/b.md", "docs/c.md")
    source.commit({}, delete=["docs/a.md"])
    reindex(index)
    assert cited(index, "anchor deep") == []
    assert cited(index, "beacon blinks") == ["p:docs/c.md"]
    assert "p:docs/a.md" not in places(search(index, "anchor deep", fusion="vector"))
    assert [text for text in provider.inputs if "search_document" in text] == [], "vectors are kept"


def test_what_moved_out_of_the_scopes_is_gone_inc_1(
    make_index: IndexMaker, source: GitSource, project: Project, database_url: str
) -> None:
    index = make_index(project)
    reindex(index)
    (source.path / "attic").mkdir()
    source.git("mv", "docs/a.md", "attic/a.md")
    source.commit({})
    reindex(index)
    assert set(names_of(database_url)) == {"docs/b.md"}
    rules = ScopeRules(docs=("attic/",), adr=(), root_readme=False)
    other = make_index(project.model_copy(update={"scopes": rules}))
    reindex(other)
    assert set(names_of(database_url)) == {"attic/a.md"}
    rows = "select (select count(*) from chunks) as c, (select count(*) from embeddings) as e"
    assert ask(database_url, rows) == [{"c": 1, "e": 1}]


def test_a_listing_that_fails_is_no_deletion_inc_1(
    make_index: IndexMaker, source: GitSource, tmp_path: Path, database_url: str
) -> None:
    logs = tmp_path / "logs"
    write_log(logs / "a.jsonl", [event("s", 1, "the otter said")])
    index = make_index(Project(slug="p", path=source.path, sessions=(SessionSource(path=logs),)))
    reindex(index)
    before = documents_of(database_url), passages_of(database_url)
    source.commit({"docs/a.md": A + "\nmore\n"})
    mirror = tmp_path / "home" / "repositories" / "p.git"
    fetch = index.fetch

    def fetch_and_lose(slug: str) -> object:
        fetched = fetch(slug)
        for pack in (mirror / "objects").rglob("*"):
            if pack.is_file():
                pack.unlink()
        return fetched

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "fetch", fetch_and_lose)
        logs.rename(logs.with_name("away"))
        reindex(index)
    assert (documents_of(database_url), passages_of(database_url)) == before
    for scope in (Scope.DOCS, Scope.SESSION):
        assert covered(index, scope).state is CoverageState.STALE
    logs.with_name("away").rename(logs)
    reindex(index)
    assert covered(index).state is CoverageState.COMPLETE
    assert any("more" in p["content"] for p in passages_of(database_url))


def untrue_vectors(url: str, provider: FakeOllama) -> list[str]:
    """Names of passages whose vector is another one than their text has today."""
    model = provider.models["nomic-embed-text:latest"]
    titles = {d["name"]: d["title"] for d in documents_of(url)}
    wrong = []
    for p in passages_of(url):
        text = passage_text(titles[p["name"]], p["heading_path"], p["content"])
        wanted = model.vector(f"search_document: {text}", model.digest("nomic-embed-text:latest"))
        if p["vector"] is None or json.loads(p["vector"]) != pytest.approx(wanted, abs=1e-5):
            wrong.append(p["name"])
    return wrong


def test_a_changed_text_does_not_keep_its_old_vector_inc_4(
    make_index: IndexMaker,
    source: GitSource,
    project: Project,
    provider: FakeOllama,
    database_url: str,
) -> None:
    index = make_index(project)
    reindex(index)
    assert untrue_vectors(database_url, provider) == []
    source.commit({"docs/a.md": "# Anchor\n\nthe anchor was lifted\n"})
    provider.stop()
    reindex(index)
    said = covered(index)
    assert (said.chunks, said.chunks_with_vector) == (2, 1)
    assert said.state is CoverageState.PARTIAL
    assert untrue_vectors(database_url, provider) == ["docs/a.md"]
    assert [p["vector"] for p in passages_of(database_url) if p["name"] == "docs/a.md"] == [None]
    assert cited(index, "lifted") == ["p:docs/a.md"]
    provider.restart()
    reindex(index)
    said = covered(index)
    assert (said.chunks, said.chunks_with_vector) == (2, 2)
    assert said.state is CoverageState.COMPLETE
    assert untrue_vectors(database_url, provider) == []


def test_a_vector_that_is_cleared_is_noticed_and_made_again_inc_4(
    make_index: IndexMaker, project: Project, provider: FakeOllama, database_url: str
) -> None:
    """A vector is a row of its own: no time says that it is there when it is not."""
    index = make_index(project)
    reindex(index)
    ask(
        database_url,
        "delete from embeddings where chunk_id = (select min(id) from chunks) returning 1",
    )
    fill(index)
    said = covered(index)
    assert (said.chunks, said.chunks_with_vector) == (2, 1)
    assert said.state is not CoverageState.COMPLETE
    assert better_than_the_truth(index, database_url) == []
    reindex(index, full=True)
    assert covered(index).state is CoverageState.COMPLETE
    assert untrue_vectors(database_url, provider) == []


FIVE = "".join(f"## Step {n}\n\nWhat step {n} does.\n\n" for n in range(1, 6))


def test_what_failed_once_is_the_only_thing_that_is_tried_again_inc_5(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    source = GitSource.make(tmp_path / "five", {"docs/five.md": FIVE})
    index = make_index(Project(slug="p", path=source.path))
    provider.rule = lambda asked: (
        Fault.nan_error() if any("step 3" in text for text in asked.inputs) else None
    )
    reindex(index)
    said = covered(index)
    assert (said.chunks, said.chunks_with_vector, said.state) == (5, 4, CoverageState.PARTIAL)
    provider.rule = None
    provider.forget()
    reindex(index)
    said = covered(index)
    assert (provider.calls, len(provider.inputs)) == (1, 1)
    assert (said.chunks, said.chunks_with_vector, said.state) == (5, 5, CoverageState.COMPLETE)
    provider.forget()
    reindex(index)
    assert provider.calls == 0
    assert covered(index).state is CoverageState.COMPLETE


def test_a_partial_project_stays_partial_however_often_it_is_run_inc_5(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    source = GitSource.make(tmp_path / "five", {"docs/five.md": FIVE})
    index = make_index(Project(slug="p", path=source.path), embedding_attempts=2)
    provider.rule = lambda asked: (
        Fault.nan_error() if any("step 3" in text for text in asked.inputs) else None
    )
    for _ in range(4):
        reindex(index)
        assert covered(index).state is CoverageState.PARTIAL


@pytest.mark.parametrize("slow", [True, False], ids=["slow writes", "at full speed"])
def test_two_runs_of_one_project_at_once_leave_the_rows_of_one_inc_7(
    make_index: IndexMaker,
    tmp_path: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    slow: bool,
) -> None:
    source = GitSource.make(tmp_path / "source", {"docs/a.md": A, "docs/b.md": B})
    project = Project(slug="p", path=source.path)
    # Two machines: each has an index, a pool and a state directory of its own.
    machines = [make_index(project, home=tmp_path / f"home{n}") for n in range(2)]
    write = documents.write_documents

    def write_slowly(*given: object) -> object:
        time.sleep(0.02)
        return write(*given)  # type: ignore[arg-type]

    if slow:
        monkeypatch.setattr(documents, "write_documents", write_slowly)
    together = threading.Barrier(2)

    def run(number: int) -> None:
        together.wait()
        reindex(machines[number])

    with ThreadPoolExecutor(2) as pool:
        for version in range(10):
            source.commit({"docs/a.md": f"{A}\nversion {version}\n", "docs/b.md": B})
            list(pool.map(run, range(2)))
            held = passages_of(database_url)
            assert [p["name"] for p in held] == ["docs/a.md", "docs/b.md"]
            assert better_than_the_truth(machines[0], database_url) == []
    for machine in machines:
        fill(machine)
    fresh = make_index(project.model_copy(update={"slug": "fresh"}), home=tmp_path / "fresh")
    reindex(fresh, "fresh")
    assert passages_of(database_url) == passages_of(database_url, "fresh")
    assert documents_of(database_url) == documents_of(database_url, "fresh")


def test_two_projects_of_the_same_files_do_not_stand_in_each_others_way_inc_7(
    make_index: IndexMaker, source: GitSource, database_url: str
) -> None:
    slugs = ["p", "q"]
    index = make_index(*(Project(slug=slug, path=source.path) for slug in slugs))
    with ThreadPoolExecutor(2) as pool:
        for version in range(5):
            source.commit({"docs/a.md": f"{A}\nversion {version}\n"})
            list(pool.map(lambda slug: reindex(index, slug), slugs))
    for slug in slugs:
        fill(index, slug)
    assert passages_of(database_url, "p") == passages_of(database_url, "q")
    assert all(p["vector"] for p in passages_of(database_url, "p"))


def test_each_scope_has_its_own_times_and_reason_inc_9(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    good = GitSource.make(tmp_path / "good", {"docs/a.md": A})
    lost = GitSource.make(tmp_path / "lost", {"docs/b.md": B})
    sessions = (SessionSource(path=tmp_path / "no-logs"),)
    index = make_index(
        Project(slug="p", path=good.path, sessions=sessions), Project(slug="lost", path=lost.path)
    )
    reindex(index, "lost")
    before = covered(index, slug="lost")
    shutil.move(lost.path, tmp_path / "away")
    seen = []
    for _ in range(2):
        reindex(index)
        reindex(index, "lost")
        docs, adr, session = (covered(index, scope) for scope in Scope)
        assert (docs.state, docs.indexed, docs.reason) == (CoverageState.COMPLETE, 1, docs.reason)
        assert docs.indexed_commit == good.git("rev-parse", "HEAD")
        assert (adr.state, adr.found) == (CoverageState.ABSENT, 0), "a missing folder is no success"
        assert session.state is CoverageState.FAILED
        assert (session.last_success, session.indexed) == (None, 0)
        assert str(tmp_path / "no-logs") in session.reason
        gone = covered(index, slug="lost")
        assert gone.state is CoverageState.STALE
        assert (gone.last_success, gone.indexed_commit) == (
            before.last_success,
            before.indexed_commit,
        )
        seen.append((docs.last_success, session.last_attempt, gone.last_attempt))
    for first, second in zip(*seen, strict=True):
        assert first is not None
        assert second is not None
        assert second > first, "an attempt moves its own time, and so does finding nothing new"
