"""Statistics of words are those of the rows, whatever happened before; a wrong one is mended."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from concordance.adapters.postgres import documents, words
from concordance.cli import run
from concordance.ranking import bm25
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.postgres.corpus import Library
from tests.postgres.driver import reindex
from tests.postgres.rows import Shelf, document
from tests.sources import GitSource


@pytest.mark.parametrize("seed", range(4))
def test_after_any_history_there_is_no_difference(shelf: Shelf, seed: int) -> None:
    library = Library(shelf, 100 + seed)
    for step in range(20):
        library.step()
        if step % 4 == 0:
            library.settle()
        assert library.differences() == []
    for slug in ("p", "q"):
        with shelf.hold(slug) as held:
            ids = [r["id"] for r in shelf.ask("select id from concordance.documents")]
            documents.delete_documents(shelf.database, held, ids)
    library.settle()
    assert [shelf.count(t) for t in ("lexical", "term_stats", "project_stats")] == [0, 0, 0]


CORRUPTIONS = {
    "a count": "update concordance.term_stats set passages = passages + 1 where lexeme = 'tea'",
    "a bound": "update concordance.term_stats set largest = largest / 2 where lexeme = 'tea'",
    "a word too few": "delete from concordance.term_stats where lexeme = 'tea'",
    "a word too many": "insert into concordance.term_stats values ('english', 'zebra', {p}, 3, 1)",
    "a total": "update concordance.project_stats set passages = passages - 1",
    "a length": "update concordance.project_stats set length = length + 7",
    "no totals": "delete from concordance.project_stats where language = 'english'",
    "another language": "insert into concordance.project_stats values ({p}, 'danish', 3, 9, 2)",
}


@pytest.mark.parametrize("what", CORRUPTIONS)
def test_a_wrong_statistic_is_reported_and_mended(shelf: Shelf, what: str) -> None:
    library = Library(shelf, 0)
    shelf.write(document("docs/a.md", "tea kettle", "tea tea", "queue"))
    library.settle()
    tables = (
        "select language, lexeme, passages, largest from concordance.term_stats order by 1, 2",
        "select language, passages, length, average from concordance.project_stats order by 1",
        "select chunk_id, weights::text from concordance.lexical order by 1",
    )
    before = [shelf.ask(table) for table in tables]
    assert library.differences() == []
    with shelf.database.session() as connection:
        connection.execute(CORRUPTIONS[what].format(p=shelf.project().id).encode())
    found = library.differences()
    assert found
    assert {d.project for d in found} == {"p"}
    assert library.differences(rebuild=True) == found
    assert library.differences() == []
    assert [shelf.ask(table) for table in tables] == before


def test_long_projects_are_summed_to_the_last_word(shelf: Shelf) -> None:
    """Single precision would lose words beyond 16,777,216."""
    library = Library(shelf, 0)
    shelf.write(document("docs/a.md", "tea", "kettle", "queue"))
    with shelf.database.session() as connection:
        connection.execute("update concordance.term_stats set largest = 9")
        connection.execute(
            "update concordance.lexical set length = case when chunk_id = "
            "(select min(chunk_id) from concordance.lexical) then 16777216 else 1 end"
        )
        connection.execute("update concordance.project_stats set length = 16777218")
    assert library.differences() == []
    library.differences(rebuild=True)
    assert shelf.ask("select length from concordance.project_stats") == [{"length": 16777218}]


def test_a_drift_of_the_average_length_weighs_again_as_a_fresh_build_would(shelf: Shelf) -> None:
    short = [document(f"docs/{n}.md", "tea kettle") for n in range(4)]
    long = [document(f"docs/long{n}.md", "tea " * 40 + "queue") for n in range(8)]
    library = Library(shelf, 0)
    shelf.write(*short)
    assert library.settle() == []
    old = shelf.ask("select weights::text from concordance.lexical order by chunk_id")
    shelf.write(*long)
    (drift,) = library.settle()
    (row,) = shelf.ask("select avg(length::float8) as average from concordance.lexical")
    assert drift.average == pytest.approx(bm25.grid_length(row["average"]), rel=1e-6)
    assert (drift.language, drift.passages) == ("english", 12)
    assert library.settle() == []
    assert library.differences() == []
    new = shelf.ask("select weights::text from concordance.lexical order by chunk_id")
    assert new[0] != old[0]
    other = Library(shelf, 0)
    shelf.write(*long, *short, project="q")
    other.settle()
    look = (
        "select d.name, l.weights::text, l.length "
        "from concordance.lexical l join concordance.chunks k "
        "on k.id = l.chunk_id join concordance.documents d on d.id = k.document_id "
        "join concordance.projects p on p.id = d.project_id where p.slug = %(slug)s order by 1"
    )
    assert shelf.ask(look, {"slug": "p"}) == shelf.ask(look, {"slug": "q"})
    stats = (
        "select t.language, t.lexeme, t.passages, t.largest from concordance.term_stats t join "
        "concordance.projects p on p.id = t.project_id where p.slug = %(slug)s order by 1, 2"
    )
    assert shelf.ask(stats, {"slug": "p"}) == shelf.ask(stats, {"slug": "q"})


def test_a_small_change_of_the_average_moves_no_weight(shelf: Shelf) -> None:
    library = Library(shelf, 0)
    shelf.write(*(document(f"docs/{n}.md", "tea kettle water boils") for n in range(10)))
    look = "select weights::text from concordance.lexical order by chunk_id"
    before = shelf.ask(look)
    shelf.write(document("docs/more.md", "tea kettle water boils slowly"))
    assert library.settle() == []
    assert shelf.ask(look)[:10] == before


@pytest.mark.parametrize("average", [0.0, 0.4, 1.0, 1.5, 7.3, 150.0, 1e5])
def test_the_database_rounds_lengths_as_the_program_says(shelf: Shelf, average: float) -> None:
    (row,) = shelf.ask("select concordance.grid_length(%(a)s::float8) as grid", {"a": average})
    assert row["grid"] == pytest.approx(bm25.grid_length(average), rel=1e-6)


def test_statistics_survive_two_writes_in_one_transaction(shelf: Shelf) -> None:
    library = Library(shelf, 0)
    shelf.write(document("docs/a.md", "tea"), document("docs/b.md", "kettle tea"))
    ids = [row["id"] for row in shelf.ask("select id from concordance.documents order by id")]
    project = shelf.project().id
    with shelf.database.transaction() as connection:
        for identifier in ids:
            words.analyse_passages(connection, project, [identifier])
            words.forget_words(connection, project, [identifier])
            words.write_words(connection, shelf.tenant, project)
    assert library.differences() == []
    assert shelf.count("lexical") == 2


def test_the_command_reports_a_difference_and_puts_it_right(
    make_index: IndexMaker,
    tmp_path: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = GitSource.make(tmp_path / "repo", {"docs/a.md": "# Tea\n\nBoil water for tea.\n"})
    index = make_index(Project(slug="p", path=source.path))
    reindex(index)
    assert index.check_statistics() == []
    monkeypatch.setenv("CONCORDANCE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONCORDANCE_DATABASE_URL", database_url)
    assert run(["statistics"]) == 0
    assert "No difference" in capsys.readouterr().out
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "update concordance.term_stats set passages = passages + 1 where lexeme = 'tea'"
        )
    assert run(["statistics", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["differences"]
    assert (found["project"], found["lexeme"], found["stored"], found["counted"]) == (
        "p",
        "tea",
        2,
        1,
    )
    assert run(["statistics", "--project", "p", "--rebuild"]) == 1
    assert "made anew" in capsys.readouterr().out
    assert run(["statistics", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rebuilt": False, "differences": []}
    assert run(["statistics", "--project", "nobody"]) == 2
