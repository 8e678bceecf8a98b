"""The lexical leg: exact whatever happened before, at the edges too."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from concordance.adapters.postgres import lexical
from concordance.adapters.postgres import search as legs
from concordance.errors import DatabaseUnavailable
from concordance.models import LexicalRanking
from concordance.ranking import bm25
from concordance.ranking.candidates import Scored
from concordance.ranking.threshold import expected_threshold
from tests.postgres.corpus import LANGUAGES, Library, asked, by_hand, judged
from tests.postgres.rows import Shelf, document

# Words that share a dimension of the sparse vector.
TWINS = ("w854", "w112684")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threshold rounds also where there is little to look at."""
    monkeypatch.setattr(lexical, "FEW_PASSAGES", 3)


def same(found: list[Scored], every: list[Scored]) -> bool:
    return [(s.chunk_id, s.score) for s in found] == [(s.chunk_id, s.score) for s in every]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(6))
def test_the_best_are_those_of_scoring_every_match(shelf: Shelf, seed: int) -> None:
    library = Library(shelf, seed)
    found_some = 0
    for step in range(12):
        library.step()
        if step % 3 == 0:
            library.settle()
        for _ in range(8):
            text, filters = library.question(), library.filters()
            pool = library.dice.choice([1, 3, 10, 200])
            with asked(shelf, text, filters, pool=pool) as got:
                assert same(got.found, got.every[:pool]), (text, filters, pool)
                found_some += bool(got.found)
    assert found_some > 40


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_bm25_as_computed_by_hand(
    shelf: Shelf, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(shelf, seed)
    # Two words of one dimension are one word to the vector: not what is compared here.
    monkeypatch.setattr("tests.postgres.corpus.WORDS", [w for w in _words() if w[0] != "w"])
    for _ in range(10):
        library.step()
        text, filters = library.question(), library.filters()
        everything = replace(
            filters, scopes=("docs", "adr", "session"), path_prefix=None, since=None, places=()
        )
        with asked(shelf, text, everything, pool=1_000) as got:
            wanted = by_hand(shelf, text, filters.projects)
            assert {s.chunk_id: s.score for s in got.found} == pytest.approx(wanted, rel=1e-4)


def _words() -> list[str]:
    from tests.postgres.corpus import WORDS  # noqa: PLC0415 - before it is replaced

    return WORDS


@pytest.mark.usefixtures("small")
def test_every_filter_holds_inside_the_leg(shelf: Shelf) -> None:
    library = Library(shelf, 11)
    for _ in range(12):
        library.step()
    for _ in range(60):
        text, filters = library.question(), library.filters()
        with asked(shelf, text, filters, pool=50) as got:
            rows = shelf.ask(
                "select d.project_id, d.scope, d.name, d.kind, k.occurred_at from "
                "concordance.chunks k join concordance.documents d on d.id = k.document_id "
                "where k.id = any(%(ids)s)",
                {"ids": [s.chunk_id for s in got.found]},
            )
        for row in rows:
            assert row["project_id"] in filters.projects
            assert row["scope"] in filters.scopes
            if filters.path_prefix:
                assert row["kind"] == "file"
                assert row["name"].startswith(filters.path_prefix)
            if filters.since:
                assert row["occurred_at"] >= filters.since


@pytest.mark.usefixtures("small")
def test_thousands_of_equal_passages_are_one_long_tie_in_the_order_of_rows(shelf: Shelf) -> None:
    shelf.write(*(document(f"docs/{n}.md", *["tea water"] * 40) for n in range(10)))
    shelf.write(document("docs/other.md", "tea", "water kettle", "kettle"))
    filters = legs.Filters((shelf.project().id,), ("docs",), None, None)
    for question in ("tea", "water tea", "kettle water tea"):
        for pool in (1, 7, 200):
            with asked(shelf, question, filters, pool=pool) as got:
                assert len(got.found) == pool
                assert same(got.found, got.every[:pool])


@pytest.mark.usefixtures("small")
def test_a_pool_that_fills_up_below_its_threshold_is_asked_for_once_more(shelf: Shelf) -> None:
    """Passages come in for what a rare word could weigh, and one without it beats them."""
    rare = [f"rare {' '.join(f'x{n}y{k}' for k in range(300))}" for n in range(5)]
    shelf.write(
        document("s1", "rare " * 9, *rare, kind="session"),
        document("s2", *["common common"] * 20, *["other words"] * 30, kind="session"),
    )
    filters = legs.Filters((shelf.project().id,), ("docs",), None, None)
    names = {number: name for (name, _), number in shelf.ids().items()}
    with asked(shelf, "rare common", filters, pool=4) as got:
        (question,) = got.questions
        first = expected_threshold(question.words, question.passages, 4)
        assert question.words[1].bound < first
        assert got.found[-1].score < first
        assert [names[s.chunk_id] for s in got.found] == ["s1", "s2", "s2", "s2"]
        assert same(got.found, got.every[:4])


@pytest.mark.usefixtures("small")
def test_few_passages_are_looked_at(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes it fast: the first condition asks for passages that hold much of the question."""
    shelf.write(
        *(
            document(f"docs/{n}.md", "tea queue", "tea water", "boil queue", "water boil")
            for n in range(30)
        )
    )
    conditions: list[str] = []
    rows = lexical._Asked.rows

    def noted(self: lexical._Asked, name: str, pairs: list[tuple[object, str]]) -> list[Scored]:
        conditions.extend(words for _, words in pairs)
        return rows(self, name, pairs)  # type: ignore[arg-type]

    monkeypatch.setattr(lexical._Asked, "rows", noted)
    filters = legs.Filters((shelf.project().id,), ("docs",), None, None)
    with asked(shelf, "tea water boil queue", filters, pool=10):
        assert "&" in conditions[0]
    # The last one scores every match, to compare.
    assert len(conditions) <= 5


def test_scores_of_given_passages_are_those_of_the_leg(shelf: Shelf) -> None:
    library = Library(shelf, 5)
    for _ in range(10):
        library.step()
    every = [row["id"] for row in shelf.ask("select id from concordance.chunks order by id")]
    for _ in range(20):
        text, filters = library.question(), replace(library.filters(), places=())
        with asked(shelf, text, filters, pool=1_000) as got, shelf.database.transaction() as c:
            scored = judged(c, got.questions, every, LexicalRanking.BM25)
        known = {w.chunk_id: w for w in scored}
        for find in got.found:
            assert known[find.chunk_id].lexical_score == find.score
            share = known[find.chunk_id].share
            assert share is not None
            assert 0 < share <= 1
        assert all((k.lexical_score is None) == (k.share == 0) for k in scored)
        assert all(k.lexical_score is None or k.lexical_score > 0 for k in scored)
        assert all(k.vector_score is None for k in scored)


def test_a_word_of_another_language_is_no_common_word(shelf: Shelf) -> None:
    """A stem of the German question that an English passage holds by chance is none of its own."""
    shelf.write(
        document("docs/de.md", "Katzen schlafen", language="german"),
        document("docs/en.md", "katz is no word of that question here", language="english"),
    )
    with shelf.database.transaction() as connection:
        questions = lexical.read_questions(connection, "Katzen", [shelf.project().id])
        ids = shelf.ids()
        for ranking in (LexicalRanking.BM25, LexicalRanking.TS_RANK_CD):
            found = judged(connection, questions, list(ids.values()), ranking)
            scores = {k.chunk_id: (k.lexical_score, k.share) for k in found}
            assert scores[ids["docs/en.md", 0]] == (None, 0.0)
            assert scores[ids["docs/de.md", 0]][0]


def test_rarity_is_counted_over_the_projects_searched(shelf: Shelf) -> None:
    shelf.write(
        *(document(f"docs/{n}.md", "tea") for n in range(9)), document("docs/k.md", "water")
    )
    shelf.write(document("docs/a.md", "tea"), document("docs/b.md", "water"), project="q")
    p, q = shelf.project("p").id, shelf.project("q").id

    def idf(*projects: int) -> dict[str, float]:
        with shelf.database.transaction() as connection:
            (question,) = lexical.read_questions(connection, "tea water", projects)
        return {word.lexeme: word.idf for word in question.words}

    assert idf(q)["tea"] == idf(q)["water"] == pytest.approx(bm25.idf(2, 1))
    assert idf(p)["tea"] == pytest.approx(bm25.idf(10, 9))
    assert idf(p, q)["water"] == pytest.approx(bm25.idf(12, 2))


def _known_of(shelf: Shelf, text: str) -> dict[tuple[str, str], int]:
    with shelf.database.transaction() as connection:
        questions = lexical.read_questions(connection, text, [shelf.project().id])
    return {(q.language, t.lexeme): t.document_frequency for q in questions for t in q.terms}


def test_a_stop_word_with_an_accent_is_one_in_its_own_language(shelf: Shelf) -> None:
    shelf.write(
        *(document(f"docs/{n}.md", "für die Lieferung", language="german") for n in range(5)),
        document("docs/x.md", "Für alle préférée", language="simple"),
        document("docs/y.md", "la ville préférée", language="french"),
    )
    found = _known_of(shelf, "Was gilt FÜR die préférée")
    assert found["simple", "fur"] == 1 + 5
    assert found["simple", "preferee"] == found["french", "prefer"] == 2


def test_a_number_is_not_counted_as_the_one_without_its_zeros(shelf: Shelf) -> None:
    shelf.write(
        *(document(f"docs/{n}.md", "release 12 notes", language="english") for n in range(5)),
        document("docs/x.md", "ADR-0012", language="simple"),
        document("docs/y.md", "ADR-0012", language="english"),
    )
    found = _known_of(shelf, "0012")
    assert found["simple", "0012"] == found["english", "0012"] == 2
    assert found["simple", "12"] == found["english", "12"] == 5 + 2


def test_of_a_pasted_file_the_most_frequent_and_first_words_are_asked_for(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "MOST_ASKED", 3)
    shelf.write(document("docs/x.md", "one two three four five", language="simple"))
    projects = [shelf.project().id]
    with shelf.database.transaction() as connection:
        (asked,) = lexical.read_questions(connection, "two one five five three", projects)
        assert {t.lexeme for t in asked.terms} == {"five", "two", "one"}
        assert asked.cut
        (asked,) = lexical.read_questions(connection, "two one five", projects)
        assert not asked.cut


def test_no_statement_of_a_leg_begins_after_the_deadline(shelf: Shelf) -> None:
    shelf.write(document("docs/x.md", "tea", language="simple"))
    project = shelf.project().id
    filters = legs.Filters((project,), ("docs",), None, None)
    with shelf.database.transaction() as connection:
        questions = lexical.read_questions(connection, "tea", [project])
        late = legs.Snapshot(connection, "here", time.monotonic() - 1)
        with pytest.raises(DatabaseUnavailable, match="in time"):
            late.questions("tea", filters)
        with pytest.raises(DatabaseUnavailable, match="in time"):
            late.lexical_leg(questions, filters, LexicalRanking.BM25)


def test_a_later_statement_of_a_leg_has_what_the_earlier_ones_left(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legs, "WORTH_TELLING", -1)
    shelf.write(
        document("docs/x.md", "tea", language="simple"),
        document("docs/y.md", "tea", language="german"),
    )
    filters = legs.Filters((shelf.project().id,), ("docs",), None, None)
    with shelf.database.transaction() as connection:
        snapshot = legs.Snapshot(connection, "here", time.monotonic() + 9)
        snapshot.questions("tea", filters)
        (left,) = connection.execute("show statement_timeout").fetchone() or ("",)
        assert 0 < int(left.removesuffix("ms")) < 9_000


# --- passages at the edges --------------------------------------------------------------------


@pytest.mark.usefixtures("small")
def test_passages_at_the_edges_are_written_and_searched(shelf: Shelf) -> None:
    many = " ".join(f"x{n}" for n in range(15_900))
    odd = {
        "docs/empty.md": "",
        "docs/signs.md": "--- !!! ??? …… 🚀 § §1.docs",
        "docs/many.md": many,
        "docs/long.md": "a" * 3_000 + " tail",
        "docs/accents.md": "Ⱥ" * 1_000 + " " + "ﷺ" * 150 + ".x end",
        "docs/repeated.md": "tea " * 30_000,
        "docs/twins.md": f"{TWINS[0]} {TWINS[1]}",
        "docs/twin.md": f"{TWINS[0]} alone",
        "docs/quotes.md": "it's \\'quoted\\' 'twice' \\",
    }
    shelf.write(*(document(name, text) for name, text in odd.items()))
    library = Library(shelf, 0)
    library.settle()
    assert library.differences() == []
    filters = legs.Filters((shelf.project().id,), ("docs",), None, None)
    names = {number: name for (name, _), number in shelf.ids().items()}
    for question, wanted in {
        "x0 x15899": "docs/many.md",
        "tail": "docs/long.md",
        "end": "docs/accents.md",
        "tea": "docs/repeated.md",
        f"{TWINS[0]} {TWINS[1]}": "docs/twins.md",
        "alone": "docs/twin.md",
        "quoted": "docs/quotes.md",
        " ".join(f"x{n}" for n in range(10_000)): "docs/many.md",
    }.items():
        with asked(shelf, question, filters, pool=5) as got:
            assert names[got.found[0].chunk_id] == wanted, question[:40]
            assert all(math.isfinite(s.score) for s in got.found)


def test_two_words_of_one_dimension_are_summed(shelf: Shelf) -> None:
    rows = shelf.ask(
        "select concordance.lexeme_dimension(w) as d from unnest(%(w)s::text[]) as w",
        {"w": list(TWINS)},
    )
    assert rows[0] == rows[1]
    shelf.write(document("s", " ".join(TWINS), "w1 w2", kind="session"))
    weights = [
        dict(part.split(":") for part in row["w"].strip("{}").split("}")[0].split(","))
        for row in shelf.ask("select weights::text as w from concordance.lexical order by chunk_id")
    ]
    twins, others = weights
    assert list(twins) == [str(rows[0]["d"])]
    assert float(twins[str(rows[0]["d"])]) == pytest.approx(sum(map(float, others.values())))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_makes_a_place_of_its_own(shelf: Shelf, language: str) -> None:
    text = "§1.adr '§1.adr' a§1.adr ㉑§english ﹩§1 §@2 '§@2' a.§@2/§@2 x§@2"
    shelf.write(document("docs/a.md", text, language=language))
    (row,) = shelf.ask(
        "select array(select x from unnest(tsvector_to_array(lexemes)) x "
        "where x like '%%§%%') as p "
        "from concordance.lexical"
    )
    marks = [f"§{shelf.project().id}.docs", f"§{language}", f"§@{shelf.tenant}"]
    assert sorted(row["p"]) == sorted(marks)
