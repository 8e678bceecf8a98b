"""One space, whatever a model is called; no two models in one answer, while one follows another."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from concordance.errors import ProviderError
from concordance.indexing.vector_space import passage_text
from concordance.models import CoverageState
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.fake_ollama import Asked, FakeModel, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.postgres.driver import (
    ask,
    covered,
    fill,
    passages_of,
    reindex,
)
from tests.postgres.library import search
from tests.postgres.shop import large_projects
from tests.sources import GitSource


def test_another_name_of_the_same_model_changes_nothing(
    make_index: IndexMaker, project: Project, provider: FakeOllama, database_url: str
) -> None:
    reindex(make_index(project))
    before = passages_of(database_url)
    first = "nomic-embed-text:latest"
    provider.models["nomic-embed-text:v1.5"] = FakeModel(copy_of=first)
    provider.models["team/embed:prod"] = FakeModel(copy_of=first)
    assert all(row["vector"] for row in before)
    index = make_index(project, embedding_model="ollama/nomic-embed-text:v1.5")
    provider.forget()
    answer = search(index, "kettles")
    assert not answer.degraded, "before any run: it is the same model"
    assert answer.hits[0].vector_score is not None
    fill(index)
    assert [text for text in provider.inputs if "search_document" in text] == []
    assert covered(index).state is CoverageState.COMPLETE
    assert passages_of(database_url) == before
    # A model whose name says other prefixes gives other vectors, though its digest is the same.
    other = make_index(project, embedding_model="ollama/team/embed:prod")
    provider.forget()
    fill(other)
    assert len([text for text in provider.inputs if text]) > len(before)


def test_a_model_that_is_replaced_while_it_works_leaves_no_vector_of_the_wrong_one(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, database_url: str
) -> None:
    (project,) = large_projects(tmp_path, projects=1, parts=300)
    index = make_index(project)
    reindex(index, project.slug, embed=False)
    index.prepare_space()
    name = "nomic-embed-text:latest"
    newer = FakeModel(version="2")
    provider.forget()

    def replaced(asked: Asked) -> Fault | None:
        if provider.calls == 4:
            provider.models[name] = newer
        return None

    provider.rule = replaced
    with pytest.raises(ProviderError, match="another model than a moment ago"):
        index.fill_vectors([project.slug], started=index.now())
    index.reset_breaker()
    done = index.fill_vectors([project.slug], started=index.now())
    assert (done.embedded, done.pending) == (300, 0), "all of them, by the new one"
    rows = ask(
        database_url,
        "select m.digest, d.title, k.heading_path, k.content, e.embedding::text as vector "
        "from embeddings e join embedding_models m on m.id = e.model_id "
        "join chunks k on k.id = e.chunk_id join documents d on d.id = k.document_id",
    )
    by_digest = {model.digest(name): model for model in (FakeModel(), newer)}
    assert {row["digest"] for row in rows} == set(by_digest)
    for row in rows:
        text = passage_text(row["title"], row["heading_path"], row["content"])
        model = by_digest[row["digest"]]
        wanted = model.vector(f"search_document: {text}", row["digest"])
        assert json.loads(row["vector"]) == pytest.approx(wanted, abs=1e-5)


ENOUGH = 4


def test_no_search_during_a_switch_compares_two_models(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    pages: dict[str, str | bytes] = {f"docs/{n}.md": f"# {n}\n\nkettle {n}\n" for n in range(60)}
    source = GitSource.make(tmp_path / "pages", pages)
    project = Project(slug="p", path=source.path)
    provider.models["b:latest"] = FakeModel()
    first = make_index(project)
    reindex(first)
    text = "kettle 7"
    alone = {
        hit.citation: hit.vector_score
        for hit in search(first, text, fusion="vector", top_k=60).hits
    }
    second = make_index(project, embedding_model="ollama/b")
    seen: list[dict[str, float | None]] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            for index in (first, second):
                answer = search(index, text, top_k=60)
                seen.append({hit.citation: hit.vector_score for hit in answer.hits})

    reader = threading.Thread(target=look)
    reader.start()
    # Passages take their time until questions were asked meanwhile.
    provider.rule = lambda asked: Fault.slow(
        0.02 if len(seen) > ENOUGH or len(asked.inputs) == 1 else 0.25
    )
    fill(second)
    done.set()
    reader.join()
    provider.rule = None
    other = {
        hit.citation: hit.vector_score
        for hit in search(second, text, fusion="vector", top_k=60).hits
    }
    assert alone.keys() == other.keys()
    assert alone != other
    assert len(seen) > ENOUGH
    for scores in seen:
        told = {place: score for place, score in scores.items() if score is not None}
        sides = [
            side
            for side in (alone, other)
            if all(score == pytest.approx(side[place], abs=1e-5) for place, score in told.items())
        ]
        assert sides, "the scores of one answer are all of one model"
