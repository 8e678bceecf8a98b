"""Coverage by today's settings and today's program: right after a change nothing is complete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from concordance import surveying
from concordance.cli import run
from concordance.index import Index
from concordance.indexing import vector_space
from concordance.models import CoverageState, Scope, ScopeCoverage
from concordance.settings import Project, ScopeRules, SessionSource
from concordance.text import scrubbing
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeModel, FakeOllama
from tests.planted import planted
from tests.postgres.driver import ask, covered, documents_of, needs, passages_of, reindex
from tests.postgres.shop import FILES
from tests.sources import GitSource, event, write_log

FILE_SCOPES = {Scope.DOCS, Scope.ADR}
EVERY = {*Scope}


@dataclass(frozen=True)
class Change:
    """A setting or a rule that is another one now, and what of it can't be called complete."""

    project: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    version: tuple[Any, str] | None = None
    scopes: frozenset[Scope] = frozenset(EVERY)
    said: str = "the next run reads 2 files again"


CHANGES = {
    "scrub switched off": Change(project={"scrub": False}),
    "another language": Change(project={"language": "german"}),
    "languages are detected": Change(project={"language": "auto"}),
    "a folder more": Change(
        project={"scopes": ScopeRules(docs=("docs/", "src/"))},
        scopes=frozenset(FILE_SCOPES),
        said="the next run looks at its files again",
    ),
    "a folder is left out": Change(
        project={"scopes": ScopeRules(exclude=("docs/adr/",))},
        scopes=frozenset(FILE_SCOPES),
        said="the next run looks at its files again",
    ),
    "smaller files": Change(
        settings={"max_file_bytes": 1_024},
        scopes=frozenset(FILE_SCOPES),
        said="the next run looks at its files again",
    ),
    "agents among themselves": Change(
        project={"sessions": "subagents"},
        scopes=frozenset({Scope.SESSION}),
        said="the next run reads 1 session log again",
    ),
    "records are read otherwise": Change(version=(surveying, "RECORDS_VERSION")),
    "words are made otherwise": Change(version=(surveying, "LEXEMES_VERSION")),
    "secrets are found otherwise": Change(version=(scrubbing, "RULES_VERSION")),
    "turns are put together otherwise": Change(
        version=(surveying, "TURNS_VERSION"),
        scopes=frozenset({Scope.SESSION}),
        said="the next run reads 1 session again",
    ),
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    source = GitSource.make(tmp_path / "source", FILES)
    logs = tmp_path / "logs"
    write_log(logs / "a.jsonl", [event("s", n, f"turn {n} of the tea") for n in range(3)])
    return Project(slug="p", path=source.path, sessions=(SessionSource(path=logs),))


def states(index: Index) -> dict[Scope, CoverageState]:
    return {said.scope: said.state for said in index.coverage(["p"])}


def whole(index: Index) -> list[ScopeCoverage]:
    """The coverage, without the times that a look moves."""
    times = {"last_attempt": None, "last_success": None, "last_complete": None}
    return [said.model_copy(update=times) for said in index.coverage(["p"])]


def changed(project: Project, change: Change) -> Project:
    update = dict(change.project)
    if update.get("sessions") == "subagents":
        update["sessions"] = tuple(
            source.model_copy(update={"subagents": True}) for source in project.sessions
        )
    return project.model_copy(update=update)


@pytest.mark.parametrize("name", CHANGES)
def test_after_a_change_nothing_is_complete_until_the_next_run(
    make_index: IndexMaker,
    project: Project,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    change = CHANGES[name]
    before = make_index(project)
    reindex(before)
    assert set(states(before).values()) == {CoverageState.COMPLETE}
    complete_until = [c.last_complete for c in before.coverage()]
    if change.version is not None:
        module, constant = change.version
        monkeypatch.setattr(module, constant, getattr(module, constant) + 1)
    after = make_index(changed(project, change), **change.settings)

    stale = {scope for scope, state in states(after).items() if state is CoverageState.STALE}
    assert stale == change.scopes
    assert any(change.said in c.reason for c in after.coverage() if c.scope in stale), name
    after.note_embedding(None, None)
    moved = [c.last_complete for c in after.coverage() if c.scope in stale]
    assert set(moved) <= set(complete_until), "a backfill does not make it complete"
    answer = after.search("tea")
    assert {f.scope for f in answer.freshness if f.state is CoverageState.STALE} == stale

    assert needs(after) == "index"
    reindex(after)
    assert CoverageState.STALE not in states(after).values()
    assert needs(after) == "none"
    settled = whole(after), documents_of(database_url), passages_of(database_url)
    reindex(after)
    assert (whole(after), documents_of(database_url), passages_of(database_url)) == settled


def test_a_newer_reader_reads_its_logs_again(
    make_index: IndexMaker, project: Project, database_url: str
) -> None:
    index = make_index(project)
    reindex(index)
    readers = dict(index._resources.readers)
    readers["jsonl"] = replace(readers["jsonl"], version=readers["jsonl"].version + 1)
    index._resources.readers = readers
    said = covered(index, Scope.SESSION)
    assert said.state is CoverageState.STALE
    assert said.reason == "its rules changed: the next run reads 1 session log again"
    assert states(index)[Scope.DOCS] is CoverageState.COMPLETE
    old = ask(database_url, "select reader from session_logs")
    assert needs(index) == "index", "the logs did not change, their reader did"
    reindex(index)
    assert ask(database_url, "select reader from session_logs") != old
    assert states(index)[Scope.SESSION] is CoverageState.COMPLETE


def test_a_source_of_logs_that_is_new_is_not_called_absent(
    make_index: IndexMaker, project: Project
) -> None:
    bare = make_index(project.model_copy(update={"sessions": ()}))
    reindex(bare)
    assert states(bare)[Scope.SESSION] is CoverageState.ABSENT
    index = make_index(project)
    said = covered(index, Scope.SESSION)
    assert (said.state, said.reason) == (
        CoverageState.STALE,
        "its rules changed: the next run looks at its session logs again",
    )
    reindex(index)
    assert states(index)[Scope.SESSION] is CoverageState.COMPLETE
    gone = make_index(project.model_copy(update={"sessions": ()}))
    assert covered(gone, Scope.SESSION).reason == (
        "its rules changed: the next run looks at its session logs again"
    )


def test_another_repository_under_the_same_name_is_not_complete(
    make_index: IndexMaker, project: Project, tmp_path: Path
) -> None:
    reindex(make_index(project))
    other = GitSource.make(tmp_path / "other", {"docs/a.md": "# A\n\nOther.\n"})
    index = make_index(project.model_copy(update={"path": other.path}))
    assert states(index)[Scope.DOCS] is CoverageState.STALE
    assert states(index)[Scope.SESSION] is CoverageState.COMPLETE
    reindex(index)
    assert covered(index).found == 1
    assert states(index)[Scope.DOCS] is CoverageState.COMPLETE


def test_keys_that_decide_no_row_change_nothing(make_index: IndexMaker, project: Project) -> None:
    reindex(make_index(project))
    index = make_index(project.model_copy(update={"web_url": "https://example.org/p"}))
    assert set(states(index).values()) == {CoverageState.COMPLETE}
    assert needs(index) == "none"


def test_vectors_of_a_model_that_is_not_today_s_count_for_nothing(
    make_index: IndexMaker, project: Project, provider: FakeOllama
) -> None:
    provider.models["other:latest"] = FakeModel()
    reindex(make_index(project))
    index = make_index(project, embedding_model="ollama/other")
    said = covered(index)
    assert said.state is CoverageState.LEXICAL_ONLY
    assert said.reason == (
        "its vectors are of ollama/nomic-embed-text:latest, and today's model is "
        "ollama/other:latest: the next run makes them anew"
    )
    reindex(index)
    assert set(states(index).values()) == {CoverageState.COMPLETE}


def test_vectors_of_other_texts_than_today_s_count_for_nothing(
    make_index: IndexMaker, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make_index(project)
    reindex(index)
    for module in ("concordance.covering", "concordance.adapters.ollama"):
        monkeypatch.setattr(f"{module}.CHUNK_TEXT_VERSION", vector_space.CHUNK_TEXT_VERSION + 1)
    again = make_index(project)
    assert covered(again).state is CoverageState.LEXICAL_ONLY
    assert "from other texts than today's" in covered(again).reason
    reindex(again)
    assert set(states(again).values()) == {CoverageState.COMPLETE}


def test_a_purge_is_not_complete_until_the_next_run(
    make_index: IndexMaker, project: Project, tmp_path: Path
) -> None:
    GitSource(tmp_path / "source").commit(
        {"docs/key.md": f"# Key\n\nIt is {planted(1)['github']} today.\n"}
    )
    reindex(make_index(project.model_copy(update={"scrub": False})))
    index = make_index(project)
    (purged,) = index.purge_secrets(["p"])
    assert purged.changed == 1
    until = covered(index).last_complete
    assert states(index)[Scope.DOCS] is CoverageState.STALE
    assert "files again" in covered(index).reason
    reindex(index)
    assert states(index)[Scope.DOCS] is CoverageState.COMPLETE
    assert covered(index).last_complete != until


@pytest.fixture
def shell(
    tmp_path: Path, database_url: str, provider: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables that the command is called with."""
    for name, value in {
        "CONCORDANCE_HOME": str(tmp_path / "home"),
        "CONCORDANCE_DATABASE_URL": database_url,
        "CONCORDANCE_OLLAMA_URL": provider.url,
        "CONCORDANCE_EMBEDDING_MODEL": "ollama/nomic-embed-text",
        "CONCORDANCE_PROJECTS_FILE": str(tmp_path / "projects.toml"),
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("shell")
def test_the_command_says_so_too(
    tmp_path: Path, project: Project, make_index: IndexMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    reindex(make_index(project))
    _write_projects(tmp_path, project)
    assert run(["coverage", "--check"]) == 0
    _write_projects(tmp_path, project, "scrub = false\n")
    capsys.readouterr()
    assert run(["coverage", "--check"]) == 1
    text = capsys.readouterr().out
    assert "p docs: its rules changed: the next run reads 2 files again" in text
    assert "complete" not in text
    assert run(["coverage", "--json"]) == 0
    assert {c["state"] for c in json.loads(capsys.readouterr().out)} == {"stale"}


def _write_projects(folder: Path, project: Project, more: str = "") -> None:
    (folder / "projects.toml").write_text(
        f'[[projects]]\nslug = "p"\npath = "{project.path}"\n{more}'
        f'[[projects.sessions]]\npath = "{project.sessions[0].path}"\n',
        encoding="utf-8",
    )
