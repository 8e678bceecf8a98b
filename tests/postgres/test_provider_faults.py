"""What a run does when the provider is down, refuses a text, or dies on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from concordance.index import Index
from concordance.models import CoverageState, Scope
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.fake_ollama import Asked, FakeOllama, Fault
from tests.postgres.driver import (
    covered,
    documents_of,
    fill,
    needs,
    passages_of,
    reindex,
)
from tests.postgres.shop import FILES, found
from tests.sources import GitSource, event, write_log


@pytest.fixture
def source(tmp_path: Path) -> GitSource:
    return GitSource.make(tmp_path / "source", FILES)


@pytest.fixture
def project(source: GitSource) -> Project:
    return Project(slug="p", path=source.path)


@pytest.fixture
def index(make_index: IndexMaker, project: Project) -> Index:
    """An index of the source, up to date."""
    made = make_index(project)
    reindex(made)
    return made


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def _with_logs(project: Project, path: Path) -> Project:
    return project.model_copy(update={"sessions": (SessionSource(path=path),)})


def test_a_provider_that_is_down_costs_the_vectors_alone_inc_4(
    make_index: IndexMaker, project: Project, source: GitSource, provider: FakeOllama
) -> None:
    index = make_index(project)
    provider.stop()
    reindex(index)
    said = covered(index)
    assert said.state is CoverageState.LEXICAL_ONLY
    assert said.chunks_with_vector == 0
    assert "Ollama" in said.reason
    assert needs(index) == "embed"
    assert found(index, "kettles")
    provider.restart()
    fill(index)
    assert covered(index).state is CoverageState.COMPLETE
    provider.stop()
    source.commit({"docs/guide.md": "# Guide\n\nHow to brew.\n\n## Water\n\nAnother.\n"})
    reindex(index)
    said = covered(index)
    assert (said.state, said.chunks - said.chunks_with_vector) == (CoverageState.PARTIAL, 1)
    provider.restart()
    provider.forget()
    fill(index)
    assert len(provider.inputs) == 1
    assert covered(index).state is CoverageState.COMPLETE
    assert needs(index) == "none"


def test_every_vector_is_of_the_text_that_stands_there_inc_4(
    index: Index, source: GitSource, provider: FakeOllama, database_url: str
) -> None:
    source.commit({"docs/guide.md": "# Guide\n\nAll new.\n\n## Water\n\nOther words here.\n"})
    reindex(index)
    model = provider.models["nomic-embed-text:latest"]
    from concordance.indexing.vector_space import passage_text  # noqa: PLC0415

    titles = {d["name"]: d["title"] for d in documents_of(database_url)}
    for p in passages_of(database_url):
        text = passage_text(titles[p["name"]], p["heading_path"], p["content"])
        wanted = model.vector(f"search_document: {text}", model.digest("nomic-embed-text:latest"))
        assert json.loads(p["vector"]) == pytest.approx(wanted, abs=1e-5)
        assert "search_document" not in p["content"]


FIVE = "".join(f"## Part {n}\n\nText of part {n}.\n\n" for n in range(1, 6))


def test_a_text_that_is_refused_once_costs_one_call_in_the_next_run_inc_5(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    source = GitSource.make(tmp_path / "five", {"docs/five.md": FIVE})
    index = make_index(Project(slug="p", path=source.path))

    def refuses(asked: Asked) -> Fault | None:
        return Fault.nan_error() if any("part 3" in t for t in asked.inputs) else None

    provider.rule = refuses
    reindex(index)
    said = covered(index)
    assert (said.chunks, said.chunks_with_vector, said.chunks_refused) == (5, 4, 1)
    assert said.state is CoverageState.PARTIAL
    assert "NaN" in said.reason
    provider.rule = None
    provider.forget()
    assert needs(index) == "embed"
    fill(index)
    assert provider.calls == 1
    assert covered(index).state is CoverageState.COMPLETE
    provider.forget()
    assert needs(index) == "none"
    fill(index)
    assert provider.calls == 0


def test_one_turn_that_the_model_cannot_take_is_given_up_after_bounded_tries_oll_3(
    make_index: IndexMaker, project: Project, logs: Path, provider: FakeOllama
) -> None:
    bad = "Let me look at the next part:"
    turns = [event("s", n, bad if n == 5 else f"turn number {n}") for n in range(12)]
    write_log(logs / "a.jsonl", turns)
    provider.rule = lambda asked: (
        Fault.nan_error() if any(bad in text for text in asked.inputs) else None
    )
    index = make_index(_with_logs(project, logs), embedding_attempts=2)
    reindex(index)
    said = covered(index, Scope.SESSION)
    assert (said.chunks, said.chunks_with_vector, said.chunks_refused) == (12, 11, 1)
    second = fill(index)
    assert second is not None
    assert (second.refused, second.given_up) == (1, 1)
    provider.forget()
    third = fill(index)
    assert third is not None
    assert (third.pending, third.given_up, provider.calls) == (1, 1, 0)
    assert found(index, "look next", scopes=["session"]) == ["p:session s#s-5"]
    assert "NaN" in index.explain("p", "s").details[0]
    assert index.forgive_refused() == 1
    provider.rule = None
    fill(index)
    assert covered(index, Scope.SESSION).state is CoverageState.COMPLETE


def test_a_provider_that_dies_in_the_middle_keeps_what_it_gave(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    parts = "".join(f"## Part {n}\n\nText of part {n}.\n\n" for n in range(200))
    source = GitSource.make(tmp_path / "many", {"docs/many.md": parts})
    index = make_index(Project(slug="p", path=source.path))
    provider.dies_after = 5  # one for the space, two requests of 32 for each claim
    reindex(index)
    said = covered(index)
    assert 0 < said.chunks_with_vector < said.chunks == 200
    assert said.state is CoverageState.PARTIAL
    provider.dies_after = None
    provider.forget()
    fill(index)
    assert len(provider.inputs) <= 200 - said.chunks_with_vector
    assert covered(index).state is CoverageState.COMPLETE
