"""A set is measured through the pipeline itself, apart from the installation's own projects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from concordance.errors import BadTestSet, ProviderError, SettingsError
from concordance.figures import Evaluation, Ranking
from concordance.index import Index
from concordance.loading import slug_of
from concordance.models import SearchRequest
from concordance.reporting import page, rows
from concordance.settings import SLUG, Project
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import ask, reindex
from tests.postgres.sets import manuals, write_set
from tests.sources import GitSource


@pytest.fixture
def index(make_index: IndexMaker) -> Index:
    return make_index()


def mean(found: Evaluation, ranking: Ranking) -> float:
    ranked = found.of(ranking)
    assert ranked is not None
    return ranked.ndcg_10.mean


def test_every_ranking_is_measured_from_the_same_candidates(index: Index, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    found = index.evaluate(
        manuals(tmp_path / "manuals", 12), progress=lambda *news: told.append(news)
    )
    assert (found.name, found.project) == ("manuals", "evaluation-manuals")
    assert (found.questions, found.unanswered, found.documents, found.passages) == (12, 1, 100, 100)
    assert [ranked.ranking for ranked in found.rankings] == list(Ranking)
    assert mean(found, Ranking.LEXICAL) == mean(found, Ranking.CONVEX) == 1.0
    assert mean(found, Ranking.ALL_WORDS) == 0.0
    for ranked in found.rankings:
        assert (ranked.ndcg_10.against_baseline is None) == (ranked.ranking is Ranking.CONVEX)
    missed = found.of(Ranking.ALL_WORDS)
    assert missed is not None
    assert missed.ndcg_10.against_baseline is not None
    assert missed.ndcg_10.against_baseline.worse
    assert found.better_leg in {Ranking.LEXICAL, Ranking.VECTOR}
    assert found.confidence.auc is not None
    assert found.confidence.auc > 0.5
    assert {"embedding", "lexical", "vector", "whole search"} <= {p.part for p in found.latency}
    assert {stage for stage, _, _ in told} == {"write", "embed", "ask"}
    assert told[-1] == ("ask", 12, 12)
    assert Evaluation.model_validate_json(found.model_dump_json()) == found


def test_a_second_evaluation_writes_and_embeds_nothing(
    index: Index, tmp_path: Path, provider: FakeOllama
) -> None:
    folder = manuals(tmp_path / "manuals", 5)
    first = index.evaluate(folder)
    assert (first.documents_written, first.texts_embedded) == (100, 100)
    second = index.evaluate(folder)
    assert (second.documents_written, second.texts_embedded) == (0, 0)
    assert second.rankings == first.rankings
    lines = (folder / "corpus.jsonl").read_text().splitlines()
    changed = json.loads(lines[0]) | {"text": "Another text altogether."}
    (folder / "corpus.jsonl").write_text("\n".join([json.dumps(changed), *lines[1:-1]]))
    third = index.evaluate(folder)
    assert (third.documents, third.documents_written, third.texts_embedded) == (99, 1, 1)
    assert third.passages == 99


def test_another_language_is_another_analysis_of_the_same_vectors(
    index: Index, tmp_path: Path
) -> None:
    folder = manuals(tmp_path / "manuals", 5)
    index.evaluate(folder, language="german")
    found = index.evaluate(folder, language="english")
    assert (found.documents_written, found.texts_embedded) == (100, 0)
    with pytest.raises(SettingsError, match="'klingon'"):
        index.evaluate(folder, language="klingon")


def test_no_search_coverage_or_run_sees_the_set(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(
        tmp_path / "p", {"docs/a.md": "# Valves\n\nClean the valve of birch.\n"}
    )
    index = make_index(Project(slug="p", path=source.path))
    reindex(index)
    index.evaluate(manuals(tmp_path / "manuals", 5))
    answer = index.search(SearchRequest(text="clean the valve of birch", threshold=0.0))
    assert {hit.project for hit in answer.hits} == {"p"}
    assert index.stored_slugs() == ["p"]
    assert {c.project for c in index.coverage()} == {"p"}
    tenants = ask(database_url, "select slug from tenants order by slug")
    assert [row["slug"] for row in tenants] == ["_evaluation", "default"]


def test_without_vectors_words_alone_are_measured(
    index: Index, tmp_path: Path, provider: FakeOllama
) -> None:
    found = index.evaluate(manuals(tmp_path / "manuals", 5), vectors=False)
    assert found.baseline is Ranking.LEXICAL
    assert found.model is None
    assert found.better_leg is None
    assert found.against_better_leg is None
    assert [r.ranking for r in found.rankings] == [
        Ranking.LEXICAL,
        Ranking.TS_RANK_CD,
        Ranking.ALL_WORDS,
    ]
    assert provider.embeds == []


def test_a_provider_that_is_down_is_noticed_before_any_work(
    index: Index, tmp_path: Path, provider: FakeOllama, database_url: str
) -> None:
    provider.stop()
    with pytest.raises(ProviderError):
        index.evaluate(manuals(tmp_path / "manuals", 5))
    assert ask(database_url, "select count(*) as n from documents") == [{"n": 0}]


def test_the_answer_of_a_scoped_question_lies_in_its_scope(index: Index, tmp_path: Path) -> None:
    corpus = [
        {"id": f"{scope}{n}", "text": f"{text} {scope}", "scope": scope}
        for scope in ("a/b", "a", "a%2Fb")
        for n, text in enumerate(("we met on monday", "the soup was cold", "she likes chess"))
    ]
    questions = [
        {"id": scope, "text": "what did we eat? the soup", "scope": scope} for scope in ("a/b", "a")
    ]
    folder = write_set(tmp_path / "talk", corpus, questions, [("a/b", "a/b1"), ("a", "a1")])
    # Some of these texts are too short for their language to be detected, the others are English.
    found = index.evaluate(folder, language="auto")
    assert mean(found, Ranking.LEXICAL) == mean(found, Ranking.CONVEX) == 1.0


def test_titles_and_long_texts_and_nothing_at_all(index: Index, tmp_path: Path) -> None:
    corpus = [
        {"id": "titled", "title": "Walrus", "text": "A large animal."},
        {"id": "only", "title": "Zebra crossing", "text": ""},
        {"id": "none", "title": "", "text": ""},
        {"id": "long", "title": "Log", "text": "\n\n".join(f"entry {n} " * 90 for n in range(20))},
    ]
    questions = [
        {"id": str(n), "text": text}
        for n, text in enumerate(("walrus?", "zebra?", "what is entry 17?"))
    ]
    relevant = [("0", "titled"), ("1", "only"), ("2", "long")]
    found = index.evaluate(write_set(tmp_path / "odd", corpus, questions, relevant), vectors=False)
    assert mean(found, Ranking.LEXICAL) == 1.0
    assert found.passages > found.documents == 4


def test_a_folder_that_holds_no_set_is_refused(index: Index, tmp_path: Path) -> None:
    with pytest.raises(BadTestSet, match="no folder"):
        index.evaluate(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["scifact", "A Set", "ü", "x" * 80, "a.b-c_d", "-", "x-"])
def test_every_folder_has_a_slug_of_its_own(name: str) -> None:
    slug = slug_of(name)
    assert SLUG.fullmatch(slug)
    assert slug != slug_of(f"{name}2")
    assert slug != slug_of(name.upper() + "!")


def test_a_folder_and_a_set_may_hold_bytes_that_are_no_text(index: Index, tmp_path: Path) -> None:
    folder = tmp_path / "set-\udcff"
    folder.mkdir()
    corpus = [
        {"_id": name, "scope": f"{name[0]}\ud800", "text": f"tea {name[0]}"}
        for name in ("a", "b\udcff")
    ]
    questions = [{"_id": "q", "scope": "a\ud800", "text": "tea \ud800"}]
    for name, given in (("corpus.jsonl", corpus), ("queries.jsonl", questions)):
        (folder / name).write_text("\n".join(map(json.dumps, given)))
    (folder / "qrels.tsv").write_text("q\ta\t1\n")
    found = index.evaluate(folder, vectors=False)
    assert found.model_dump_json().encode()


def test_an_evaluation_can_be_read_as_a_page(index: Index, tmp_path: Path) -> None:
    found = index.evaluate(manuals(tmp_path / "a|b`<i>", 5))
    assert [row["ranking"] for row in rows(found)] == [ranking.value for ranking in Ranking]
    text = page(found)
    assert text.startswith("# a-b--i-\n")
    assert f"convex     1.000 {'█' * 40}|" in text
    assert "| convex | 1.0 |" in text
    assert "AUC" in text


def test_a_set_of_conversations_is_measured_by_turns_as_real_sessions_are(
    index: Index, tmp_path: Path, database_url: str
) -> None:
    corpus = [
        {
            "_id": f"{talk}/{day}:{n}",
            "text": f"{who}: the {part} of {talk} is {n}",
            "scope": talk,
            "session": f"{talk}/{day}",
            "date": f"2023-05-0{day}",
        }
        for talk in ("boats", "buoys")
        for day in (1, 2)
        for n, (who, part) in enumerate([("Ana", "valve"), ("Bo", "pump"), ("Ana", "lamp")])
    ]
    questions = [
        {"_id": "1", "text": "valve 2 May", "scope": "buoys"},
        {"_id": "2", "text": "pump 1 May", "scope": "boats"},
    ]
    right = [("1", "buoys/2:0"), ("2", "boats/1:1")]
    folder = write_set(tmp_path / "talks", corpus, questions, right)
    found = index.evaluate(folder)
    assert (found.documents, found.passages) == (12, 12)
    assert mean(found, Ranking.LEXICAL) == 1.0
    rows = ask(
        database_url,
        "select k.content, k.heading_path, k.preceding, k.event_id from chunks k"
        " join documents d on d.id = k.document_id where d.name like 'boats/%%/1'"
        " order by k.ordinal",
    )
    assert [row["event_id"] for row in rows] == ["boats/1:0", "boats/1:1", "boats/1:2"]
    assert rows[1]["heading_path"] == ["human, 1 May 2023"]
    assert rows[1]["preceding"] == "Ana: the valve of boats is 0"


def test_a_set_is_listed_and_can_be_forgotten(
    index: Index, tmp_path: Path, database_url: str
) -> None:
    index.evaluate(manuals(tmp_path / "manuals", 12), vectors=False)
    index.evaluate(manuals(tmp_path / "others", 12), vectors=False)
    assert index.evaluation_sets() == ["evaluation-manuals", "evaluation-others"]
    assert index.forget("evaluation-manuals")
    assert not index.forget("evaluation-manuals")
    assert index.evaluation_sets() == ["evaluation-others"]
    assert ask(database_url, "select slug from projects") == [{"slug": "evaluation-others"}]
    assert ask(database_url, "select count(distinct project_id) as n from chunks") == [{"n": 1}]
