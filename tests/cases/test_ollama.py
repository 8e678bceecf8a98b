"""What an Ollama server can do to a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from concordance import covering
from concordance.adapters import ollama
from concordance.errors import ModelMissing
from concordance.models import CoverageState, Scope
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeModel, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.postgres.driver import ask, covered, fill, needs, passages_of, reindex
from tests.postgres.library import search
from tests.sources import GitSource, event, write_log


def _project(folder: Path, pages: dict[str, str | bytes]) -> Project:
    return Project(slug="p", path=GitSource.make(folder / "source", pages).path)


def test_texts_of_too_many_tokens_get_a_vector_too_oll_1(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    provider.models["nomic-embed-text:latest"] = FakeModel(context_tokens=512)
    pages: dict[str, str | bytes] = {
        "docs/hex.md": "# Dump\n\n" + "0123456789abcdef" * 250 + "\n",
        "docs/cjk.md": "# 手順\n\n" + "復旧手順はこちらです" * 400 + "\n",
    }
    index = make_index(_project(tmp_path, pages))
    reindex(index)
    assert covered(index).state is CoverageState.COMPLETE
    assert all(asked.body["truncate"] is False for asked in provider.embeds)
    provider.forget()
    fill(index)
    assert provider.calls == 0


def test_long_texts_that_differ_at_their_end_differ_oll_2(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, database_url: str
) -> None:
    provider.models["nomic-embed-text:latest"] = FakeModel(context_tokens=200)
    same = " ".join(f"word{n}" for n in range(300))
    pages: dict[str, str | bytes] = {
        f"docs/{end}.md": f"# Page\n\n{same} {end}\n" for end in ("one", "two")
    }
    reindex(make_index(_project(tmp_path, pages)))
    passages = passages_of(database_url)
    assert max(len(p["content"]) for p in passages) > 200 * 4, "longer than the model reads"
    vectors = {p["content"]: p["vector"] for p in passages}
    assert None not in vectors.values()
    assert len(set(vectors.values())) == len(vectors) > 2


def test_a_name_with_and_without_its_tag_is_one_model_oll_5_inc_6(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, database_url: str
) -> None:
    project = _project(tmp_path, {"docs/a.md": "# A\n\nkettle\n"})
    reindex(make_index(project))
    provider.forget()
    index = make_index(project, embedding_model="ollama/nomic-embed-text:latest")
    assert fill(index) is not None
    assert [text for text in provider.inputs if "kettle" in text] == []
    assert ask(database_url, "select count(*) as n from embedding_models") == [{"n": 1}]
    assert covered(index).state is CoverageState.COMPLETE


def test_a_model_that_is_missing_is_named_once_and_words_are_still_found_oll_5_oll_6(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    pages: dict[str, str | bytes] = {f"docs/{n}.md": f"# A\n\nkettle {n}\n" for n in range(50)}
    index = make_index(_project(tmp_path, pages), embedding_model="ollama/nomic-embed-txt")
    with pytest.raises(ModelMissing, match="nomic-embed-txt"):
        index.prepare_space()
    reindex(index)
    assert provider.calls <= 1
    said = covered(index)
    assert (said.state, said.chunks_with_vector) == (CoverageState.LEXICAL_ONLY, 0)
    assert "ollama pull nomic-embed-txt" in said.reason
    assert search(index, "kettle", fusion="lexical").hits


@pytest.mark.parametrize("code", [400, 404])
def test_an_error_that_stays_is_not_asked_for_each_text_oll_6(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, code: int
) -> None:
    pages: dict[str, str | bytes] = {f"docs/{n}.md": f"# A\n\nkettle {n}\n" for n in range(200)}
    index = make_index(_project(tmp_path, pages))
    index.prepare_space()
    provider.forget()
    provider.rule = lambda asked: Fault.status(code, "no such thing")
    reindex(index)
    assert provider.calls <= 4
    said = covered(index)
    assert said.state is CoverageState.LEXICAL_ONLY
    assert said.chunks_refused == 0, "the server is to blame, no text is"
    provider.rule = None
    fill(index)
    assert covered(index).state is CoverageState.COMPLETE


def test_each_role_has_its_prefix_and_no_answer_shows_it_oll_8(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    provider.models["all-minilm:latest"] = FakeModel()
    project = _project(tmp_path, {"docs/a.md": "# A\n\nkettle\n"})
    index = make_index(project)
    reindex(index)
    answer = search(index, "kettle")
    assert [t.split(":")[0] for t in provider.inputs[1:]] == ["search_document", "search_query"]
    assert "search_" not in answer.model_dump_json(exclude={"request"})
    provider.forget()
    other = make_index(project, embedding_model="ollama/all-minilm")
    assert needs(other) == "none", "the source did not change"
    fill(other)
    search(other, "kettle")
    assert [text for text in provider.inputs if "search_" in text] == []
    assert len(provider.inputs) == 3


def test_another_model_of_the_same_width_is_never_compared_with_inc_6(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama
) -> None:
    provider.models["b:latest"] = FakeModel()
    project = _project(tmp_path, {"docs/a.md": "# A\n\nkettle\n", "docs/b.md": "# B\n\ntea\n"})
    index = make_index(project)
    reindex(index)
    first = search(index, "kettle", fusion="vector").hits[0].vector_score
    other = make_index(project, embedding_model="ollama/b")
    before = search(other, "kettle")
    assert before.degraded, "no vector of its own yet"
    assert all(hit.vector_score is None for hit in before.hits)
    other.prepare_space()
    said = covered(other)
    assert (said.state, said.chunks_with_vector) == (CoverageState.LEXICAL_ONLY, 0)
    assert needs(other) == "embed"
    fill(other)
    after = search(other, "kettle", fusion="vector").hits[0].vector_score
    assert after == pytest.approx(first, abs=0.5)
    assert covered(other).model == "ollama/b:latest"
    provider.forget()
    back = make_index(project)
    fill(back)
    assert [text for text in provider.inputs if text.startswith("search_document")] == []
    assert search(back, "kettle", fusion="vector").hits[0].vector_score == first


def test_a_turn_that_spoils_its_batch_costs_itself_alone_oll_3(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, database_url: str
) -> None:
    bad = "Let me look at the next part:"
    turns = [event("s", n, bad if n == 5 else f"remark {n} on kettles") for n in range(1, 13)]
    write_log(tmp_path / "logs" / "a.jsonl", turns)
    provider.rule = lambda asked: (
        Fault.nan_error() if any(bad in text for text in asked.inputs) else None
    )
    project = _project(tmp_path, {"README.md": "# P\n\nwords\n"})
    sessions = (SessionSource(path=tmp_path / "logs"),)
    index = make_index(project.model_copy(update={"sessions": sessions}), embedding_attempts=3)
    reindex(index)
    said = covered(index, Scope.SESSION)
    # Two of those that have one wait for one of their whole text, of which the bad turn is a part.
    assert (said.chunks, said.chunks_with_vector, said.chunks_refused) == (12, 9, 3)
    assert said.state is CoverageState.PARTIAL
    assert "NaN" in said.reason
    without = ask(
        database_url,
        "select k.event_id from chunks k left join embeddings e on e.chunk_id = k.id "
        "where k.event_id is not null and e.chunk_id is null",
    )
    assert without == [{"event_id": "s-5"}]
    hits = search(index, "look next part", fusion="lexical", scopes=["session"]).hits
    assert [hit.content for hit in hits] == [bad]
    runs = 1
    while provider.calls:
        provider.forget()
        fill(index)
        runs += 1
        assert runs < 10, "it is tried for ever"
    assert runs == 4, "three runs tried it, the fourth asked for nothing"
    assert "NaN" in index.explain("p", "s").details[0]


def test_another_prefix_is_another_space_oll_8(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no setting of a prefix; a new version of the program may know another one."""
    project = _project(tmp_path, {"docs/a.md": "# A\n\nkettle\n", "docs/b.md": "# B\n\ntea\n"})
    reindex(make_index(project))
    for module in (ollama, covering):
        monkeypatch.setattr(module, "known_prefixes", lambda _: ("passage: ", "query: "))
    provider.forget()
    index = make_index(project)
    assert search(index, "kettle").degraded, "no vector of the new kind yet"
    fill(index)
    assert covered(index).state is CoverageState.COMPLETE
    sent = [text.partition(":")[0] for text in provider.inputs]
    assert sent.count("passage") == 2, "both are embedded again"
    answer = search(index, "kettle", fusion="vector")
    assert provider.inputs[-1] == "query: kettle"
    assert answer.hits[0].content == "# A\n\nkettle"


def test_the_same_tag_with_another_digest_is_embedded_again_inc_6(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, database_url: str
) -> None:
    project = _project(tmp_path, {"docs/a.md": "# A\n\nkettle\n"})
    reindex(make_index(project))
    (before,) = passages_of(database_url)
    provider.models["nomic-embed-text:latest"] = FakeModel(version="2")
    index = make_index(project)
    index.prepare_space()
    assert covered(index).chunks_with_vector == 0
    fill(index)
    (after,) = passages_of(database_url)
    assert after["vector"] not in (None, before["vector"])
    assert covered(index).state is CoverageState.COMPLETE
