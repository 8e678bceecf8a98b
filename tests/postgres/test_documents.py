"""Replacing, moving and removing documents: what stays, what goes, and what others see of it."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from concordance.adapters.postgres import documents, embeddings, projects
from concordance.errors import RunSuperseded
from concordance.indexing.vector_space import content_hash
from concordance.models import Scope
from tests.postgres.rows import NOW, Row, Shelf, contents, document, space, vector_of


@pytest.fixture
def filled(shelf: Shelf) -> Shelf:
    """Three documents, every passage with its vector."""
    stored = shelf.activate()
    shelf.write(
        document("docs/a.md", "alpha", "beta", "gamma"),
        document("docs/b.md", "same", "same", "other", "same"),
        document("docs/c.md", "delta"),
    )
    shelf.fill(stored)
    return shelf


def _of(shelf: Shelf, name: str) -> list[Row]:
    return [row for row in shelf.rows() if row.name == name]


def _every_vector_is_of_its_text(shelf: Shelf) -> bool:
    wanted = {row.id: vector_of(row.content, space().digest) for row in shelf.rows()}
    return all(
        row.vector == embeddings.vector_as_text(wanted[row.id]) or _near(row, wanted)
        for row in shelf.rows()
    )


def _near(row: Row, wanted: Mapping[int, NDArray[np.float32]]) -> bool:
    found = [float(number) for number in (row.vector or "[9]")[1:-1].split(",")]
    return found == pytest.approx(list(wanted[row.id]), abs=1e-6)


def test_passages_that_stay_keep_their_rows_and_vectors(filled: Shelf) -> None:
    before = _of(filled, "docs/a.md")
    filled.write(document("docs/a.md", "alpha", "BETA", "gamma"))
    after = _of(filled, "docs/a.md")
    assert contents(after) == ["alpha", "BETA", "gamma"]
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1].id not in {row.id for row in before}
    assert after[1].vector is None
    assert [row["content_hash"] for row in filled.backlog()] == [content_hash(None, (), "BETA")]


def test_writing_the_same_again_changes_no_row(filled: Shelf) -> None:
    look = "select ctid::text, xmin::text, * from concordance.{} order by 3"
    value = "select {} from concordance.{} order by 1, 2, 3"
    values = [
        ("*, weights::text as weights", "lexical"),
        ("*", "term_stats"),
        ("*", "project_stats"),
    ]

    def picture() -> list[list[dict[str, Any]]]:
        rows = [filled.ask(look.format(table)) for table in ("chunks", "embeddings")]
        return rows + [filled.ask(value.format(*names)) for names in values]

    before = picture()
    filled.write(document("docs/a.md", "alpha", "beta", "gamma"))
    assert picture() == before
    assert filled.backlog() == []


@pytest.mark.parametrize(
    "texts",
    [
        ("new", "alpha", "beta", "gamma"),
        ("gamma", "alpha", "beta"),
        ("beta", "new", "gamma", "newer"),
        ("gamma",),
    ],
    ids=["inserted at the front", "another order", "mixed", "only one left"],
)
def test_passages_keep_their_rows_wherever_they_move(filled: Shelf, texts: tuple[str, ...]) -> None:
    before = {row.content: row.id for row in _of(filled, "docs/a.md")}
    filled.write(document("docs/a.md", *texts))
    after = _of(filled, "docs/a.md")
    assert contents(after) == list(texts)
    assert [row.id for row in after if row.content in before] == [
        before[text] for text in texts if text in before
    ]
    assert [row.content for row in after if row.vector is None] == [
        text for text in texts if text not in before
    ]


def test_equal_passages_are_matched_one_to_one(filled: Shelf) -> None:
    same = [row.id for row in _of(filled, "docs/b.md") if row.content == "same"]
    filled.write(document("docs/b.md", "first", "same", "same"))
    assert [row.id for row in _of(filled, "docs/b.md") if row.content == "same"] == same[:2]
    filled.write(document("docs/b.md", "same", "same", "same", "same"))
    kept = [row.id for row in _of(filled, "docs/b.md")]
    assert kept[:2] == same[:2]
    assert len(set(kept)) == 4
    assert all(row.vector for row in _of(filled, "docs/b.md"))
    waiting = [row["content_hash"] for row in filled.backlog()]
    assert waiting == [content_hash(None, (), "first")], "an equal text is embedded once"


def test_a_text_that_moved_to_another_document_takes_its_vector_along(filled: Shelf) -> None:
    filled.write(document("docs/a.md", "alpha"), document("docs/new.md", "gamma", "beta"))
    assert [bool(row.vector) for row in _of(filled, "docs/new.md")] == [True, True]
    assert filled.backlog() == []
    assert _every_vector_is_of_its_text(filled)


def test_documents_that_swap_their_texts_lose_no_vector(filled: Shelf) -> None:
    filled.write(document("docs/c.md", "alpha", "beta", "gamma"), document("docs/a.md", "delta"))
    assert all(row.vector for row in filled.rows())
    assert _every_vector_is_of_its_text(filled)


def test_a_title_that_changes_makes_another_text(filled: Shelf) -> None:
    filled.write(document("docs/c.md", "delta", title="River"))
    (row,) = _of(filled, "docs/c.md")
    assert row.vector is None
    assert "'river':1A" in row.lexemes


def test_a_new_name_keeps_rows_and_vectors_and_is_found_by_its_words(filled: Shelf) -> None:
    before = _of(filled, "docs/a.md")
    identifier = filled.ask("select id from concordance.documents where name = 'docs/a.md'")[0]
    with filled.hold() as held:
        documents.rename_documents(
            filled.database,
            filled.tenant,
            held,
            [(identifier["id"], "docs/adr/0001-kafka.md", Scope.ADR)],
            commit="c2",
        )
    after = _of(filled, "docs/adr/0001-kafka.md")
    assert [(r.id, r.vector) for r in after] == [(r.id, r.vector) for r in before]
    assert {(r.scope, r.lexical_scope, r.vector_scope) for r in after} == {("adr",) * 3}
    assert all("'kafka'" in row.lexemes for row in after)
    assert _of(filled, "docs/a.md") == []
    assert filled.backlog() == []
    stored = filled.ask("select commit from concordance.documents where name like '%kafka%'")
    assert stored == [{"commit": "c2"}], "the old commit does not have the new name"


def test_a_document_written_in_another_scope_takes_its_passages_along(filled: Shelf) -> None:
    filled.write(document("docs/a.md", "alpha", "beta", "gamma", scope=Scope.ADR))
    assert {(r.scope, r.lexical_scope, r.vector_scope) for r in _of(filled, "docs/a.md")} == {
        ("adr",) * 3
    }


def test_vectors_of_a_space_that_is_not_searched_follow_their_passages(filled: Shelf) -> None:
    filled.activate(space("other"))
    filled.write(document("docs/a.md", "alpha", scope=Scope.ADR))
    scopes = filled.ask(
        "select e.scope from concordance.embeddings e join concordance.chunks k on k.id = "
        "e.chunk_id join concordance.documents d on d.id = k.document_id where d.name = 'docs/a.md'"
    )
    assert scopes == [{"scope": "adr"}]


def test_removing_a_document_removes_all_that_hangs_on_it(filled: Shelf) -> None:
    ids = [row["id"] for row in filled.ask("select id from concordance.documents")]
    with filled.hold() as held:
        documents.delete_documents(filled.database, held, ids)
    for table in ("documents", "chunks", "lexical", "embeddings"):
        assert filled.count(table) == 0, table


def test_another_projects_documents_are_out_of_reach(filled: Shelf) -> None:
    ids = [row["id"] for row in filled.ask("select id from concordance.documents")]
    with filled.hold("q") as held:
        documents.delete_documents(filled.database, held, ids)
        documents.rename_documents(
            filled.database, filled.tenant, held, [(ids[0], "docs/z.md", Scope.DOCS)]
        )
    assert sorted({row.name for row in filled.rows()}) == ["docs/a.md", "docs/b.md", "docs/c.md"]
    assert all(row.lexemes for row in filled.rows()), "nor their words"
    assert filled.ask("select project_id, passages from concordance.project_stats") == [
        {"project_id": filled.project().id, "passages": 8}
    ]


def test_a_document_without_text_has_a_row_and_no_passage(filled: Shelf) -> None:
    filled.write(replace(document("docs/a.md"), reason="no text"))
    assert _of(filled, "docs/a.md") == []
    detail = documents.find_document(filled.database, filled.project().id, "file", "docs/a.md")
    assert detail is not None
    assert (detail.status, detail.reason, detail.chunks) == ("empty", "no text", 0)


def test_a_run_that_was_taken_over_writes_nothing_more(filled: Shelf) -> None:
    lost = projects.Hold(filled.project().id, uuid.uuid4())
    before = filled.rows()
    identifier = filled.ask("select id from concordance.documents limit 1")[0]["id"]
    with filled.hold():
        with pytest.raises(RunSuperseded):
            documents.write_documents(
                filled.database, filled.tenant, lost, [document("docs/a.md", "mine")]
            )
        with pytest.raises(RunSuperseded):
            documents.rename_documents(
                filled.database, filled.tenant, lost, [(identifier, "docs/z.md", Scope.DOCS)]
            )
        with pytest.raises(RunSuperseded):
            documents.delete_documents(filled.database, lost, [identifier])
    assert filled.rows() == before


def test_whoever_takes_over_waits_for_the_write_under_way(filled: Shelf) -> None:
    """The row of the project is held to the commit, so the last write of the old run is whole."""
    project = filled.project()
    mine = uuid.uuid4()
    with filled.database.session() as connection:
        connection.execute(
            "update concordance.projects set run_id = %s where id = %s", [mine, project.id]
        )
    taken = threading.Event()

    def take_over() -> None:
        with filled.hold():
            taken.set()

    with filled.database.transaction() as connection:
        projects.check_hold(connection, projects.Hold(project.id, mine))
        other = threading.Thread(target=take_over)
        other.start()
        assert not taken.wait(0.3)
    assert taken.wait(10)
    other.join()


def test_a_reader_sees_all_of_the_old_or_all_of_the_new(shelf: Shelf) -> None:
    shelf.write(document("docs/big.md", *(f"old {n}" for n in range(400))))
    seen: list[set[str]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            rows = shelf.ask(
                "select split_part(k.content, ' ', 1) as age, count(*) as n, count(l.*) as words "
                "from concordance.chunks k left join concordance.lexical l on l.chunk_id = k.id "
                "group by 1"
            )
            seen.append({f"{row['age']} {row['n']} {row['words']}" for row in rows})

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for age in ("new", "old", "new"):
            shelf.write(document("docs/big.md", *(f"{age} {n}" for n in range(400))))
    finally:
        done.set()
        reader.join()
    assert {"old 400 400"} in seen
    assert [s for s in seen if s not in ({"old 400 400"}, {"new 400 400"})] == []


@pytest.mark.parametrize("seed", range(4))
def test_any_change_of_a_document_gives_the_rows_of_a_fresh_one(shelf: Shelf, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - chance, no secret
    stored = shelf.activate()
    for _ in range(8):
        batch = [
            document(f"docs/{name}.md", *dice.choices("abcde", k=dice.randrange(7)))
            for name in dice.sample("xyz", k=dice.randrange(1, 4))
        ]
        old = {(row.name, row.content): row.vector for row in shelf.rows() if row.vector}
        shelf.write(*batch)
        for written in batch:
            rows = _of(shelf, written.name)
            assert contents(rows) == [p.content for p in written.passages]
            assert [row.ordinal for row in rows] == list(range(len(rows)))
            known = {text for _, text in old}
            assert all(row.vector for row in rows if row.content in known)
        assert _lexemes_are_of_their_text(shelf)
        if dice.random() < 0.7:
            shelf.fill(stored)
            assert _every_vector_is_of_its_text(shelf)


def _lexemes_are_of_their_text(shelf: Shelf) -> bool:
    wrong = shelf.ask(
        "select k.id from concordance.chunks k join concordance.documents d on d.id = k.document_id"
        " left join concordance.lexical l on l.chunk_id = k.id where l.lexemes is distinct from"
        " concordance.passage_lexemes('english', d.project_id, d.scope, d.name, d.title,"
        " k.heading_path, k.content)"
    )
    return wrong == []


def test_the_commit_is_stamped_on_files_of_the_scopes_only(filled: Shelf) -> None:
    filled.write(
        document("docs/adr/1.md", "adr", scope=Scope.ADR),
        document("s", "said", scope=Scope.SESSION, kind="session"),
    )
    with filled.database.transaction() as connection:
        documents.stamp_commit(connection, filled.project().id, [Scope.DOCS, Scope.SESSION], "c9")
    found = filled.ask("select name, commit from concordance.documents order by name")
    assert {row["name"]: row["commit"] for row in found} == {
        "docs/a.md": "c9",
        "docs/adr/1.md": "c1",
        "docs/b.md": "c9",
        "docs/c.md": "c9",
        "s": None,
    }


def test_problems_are_listed_with_their_reasons(shelf: Shelf) -> None:
    bad = replace(document("docs/bad.md"), status="failed", reason="not UTF-8")  # type: ignore[arg-type]
    shelf.write(bad, document("docs/good.md", "fine"))
    found = documents.problem_documents(shelf.database, shelf.project().id, most=10)
    assert [(p.name, p.status, p.reason) for p in found] == [("docs/bad.md", "failed", "not UTF-8")]


def test_what_waits_or_was_refused_is_told_of_each_document(shelf: Shelf) -> None:
    stored = shelf.activate()
    shelf.write(document("docs/a.md", "good", "bad", "later"))
    with embeddings.open_backlog(shelf.database, shelf.tenant, stored) as backlog:
        batch = backlog.claim(projects=None, most=2, attempts=5, before=NOW)
        good, bad = sorted(batch, key=lambda pair: pair[1].content != "good")
        backlog.store([(good[0], vector_of("good"))])
        backlog.refuse({bad[0].content_hash: "NaN"}, now=NOW)
        backlog.release()
    detail = documents.find_document(shelf.database, shelf.project().id, "file", "docs/a.md")
    assert detail is not None
    assert (detail.chunks, detail.chunks_with_vector, detail.chunks_refused, detail.refusal) == (
        3,
        1,
        1,
        "NaN",
    )
