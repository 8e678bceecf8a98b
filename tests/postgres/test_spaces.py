"""Vector spaces: which one is searched, what a change costs, and what coverage says meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from concordance.adapters.postgres import coverage, documents, embeddings
from concordance.models import Scope
from tests.postgres.rows import NOW, Shelf, document, space, vector_of


@pytest.fixture
def covered(shelf: Shelf) -> Shelf:
    """Three passages with vectors in the first space, counted as complete."""
    stored = shelf.activate()
    with shelf.hold() as held:
        documents.write_documents(
            shelf.database, shelf.tenant, held, [document("docs/a.md", "one", "two", "three")]
        )
        shelf.fill(stored)
        with shelf.database.transaction() as connection:
            coverage.ensure_scopes(connection, shelf.tenant, held.project_id, list(Scope))
            coverage.close_attempt(
                connection,
                held.project_id,
                list(Scope),
                marker="c1",
                fingerprint="f",
                now=NOW,
            )
    return shelf


def _docs(shelf: Shelf) -> tuple[str, int, int]:
    found = coverage.list_coverage(shelf.database, shelf.tenant, ["p"])[0]
    assert found.scope is Scope.DOCS
    return found.state.value, found.chunks, found.chunks_with_vector


def test_the_same_space_again_changes_nothing(covered: Shelf) -> None:
    before = covered.ask("select xmin::text, * from concordance.embedding_models")
    covered.activate()
    assert covered.ask("select xmin::text, * from concordance.embedding_models") == before
    assert covered.backlog() == []
    assert _docs(covered) == ("complete", 3, 3)


def test_another_model_of_the_same_width_has_no_vector_until_it_is_filled(covered: Shelf) -> None:
    other = covered.activate(space("other"))
    assert _docs(covered) == ("lexical_only", 3, 0), "counted in the same transaction"
    assert len(covered.backlog()) == 3
    assert [row.vector for row in covered.rows()] == [None] * 3
    covered.fill(other)
    coverage.note_embedding(covered.database, covered.tenant, projects=None, error=None, now=NOW)
    assert _docs(covered) == ("complete", 3, 3)


def test_another_digest_is_another_space(covered: Shelf) -> None:
    newer = covered.activate(space(digest="2"))
    assert covered.fill(newer) == ["one", "three", "two"]


def test_another_name_of_the_same_model_takes_its_vectors_over(covered: Shelf) -> None:
    before = [row.vector for row in covered.rows()]
    alias = covered.activate(space("alias", digest=space().digest))
    assert _docs(covered) == ("complete", 3, 3), "counted in the same transaction"
    assert covered.backlog() == []
    assert [row.vector for row in covered.rows()] == before
    covered.write(document("docs/a.md", "one", "four"))
    assert covered.fill(alias) == ["four"]


def test_another_width_or_prefix_of_the_same_digest_takes_nothing_over(covered: Shelf) -> None:
    wider = space("wider", digest=space().digest, dimensions=16)
    covered.activate(wider)
    assert _docs(covered) == ("lexical_only", 3, 0)
    covered.activate(replace(space("alias", digest=space().digest), document_prefix="passage: "))
    assert _docs(covered) == ("lexical_only", 3, 0)


def test_switching_back_makes_only_the_vectors_of_what_came_meanwhile(covered: Shelf) -> None:
    first = embeddings.active_space(covered.database, covered.tenant)
    other = covered.activate(space("other"))
    covered.write(document("docs/a.md", "one", "two", "four"))
    covered.fill(other)
    again = covered.activate()
    assert first == again
    assert covered.fill(again) == ["four"]
    assert covered.count("embeddings") == 6


def test_one_space_is_active_whoever_activates_at_once(covered: Shelf) -> None:
    wanted = [space(f"m{number}") for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(covered.activate, wanted))
    active = covered.ask("select id from concordance.embedding_models where state = 'active'")
    assert len(active) == 1
    waiting = [r for r in covered.backlog() if r["model_id"] == active[0]["id"]]
    assert len(waiting) == 3


def test_a_space_that_becomes_active_during_a_write_misses_no_text(shelf: Shelf) -> None:
    """The new space sees the text that is being written, or the run sees the new space."""
    activated = threading.Event()
    filled = []

    def activate() -> None:
        filled.append(shelf.activate())
        activated.set()

    with shelf.hold() as held, shelf.database.transaction() as connection:
        # The first statements of a write: from here on the models stay as they are.
        documents._begin(connection, held)
        other = threading.Thread(target=activate)
        other.start()
        assert not activated.wait(0.3)
    other.join()

    with ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(
                shelf.write,
                *(document(f"docs/{n}.md", f"{slug} {n}") for n in range(5)),
                project=slug,
            )
            for slug in ("p", "q", "r")
        ]
        switch = [pool.submit(shelf.activate, space(f"m{n}")) for n in range(5)]
        for run in runs:
            run.result()
        for switched in switch:
            switched.result()
    stored = embeddings.active_space(shelf.database, shelf.tenant)
    assert stored is not None
    shelf.fill(stored)
    assert [row for slug in "pqr" for row in shelf.rows(slug) if row.vector is None] == []


def test_coverage_is_never_better_than_the_truth_while_spaces_and_markers_move(
    covered: Shelf,
) -> None:
    """Counting, closing, confirming and switching at once, in every order, without a deadlock."""
    for slug in ("q", "r"):
        covered.write(document("docs/a.md", "one"), project=slug)
    projects = [covered.project(slug).id for slug in ("p", "q", "r")]
    wrong: list[object] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            wrong.extend(_claims_too_much(covered))

    with ThreadPoolExecutor(6) as pool:
        looking = pool.submit(look)
        busy = [pool.submit(_open_and_close, covered, project) for project in projects]
        busy += [pool.submit(_switch, covered, projects), pool.submit(_note, covered)]
        try:
            for done in busy:
                done.result()
        finally:
            stop.set()
        looking.result()
    assert wrong == []


def _open_and_close(shelf: Shelf, project: int) -> None:
    for _ in range(15):
        for scopes in ([Scope.DOCS, Scope.ADR], [Scope.SESSION]):
            with shelf.database.transaction() as connection:
                coverage.ensure_scopes(connection, shelf.tenant, project, scopes)
                coverage.open_attempt(connection, project, scopes, marker="c2", now=NOW)
            with shelf.database.transaction() as connection:
                coverage.close_attempt(
                    connection, project, scopes, marker="c2", fingerprint="f", now=NOW
                )


def _switch(shelf: Shelf, projects: list[int]) -> None:
    backwards = [Scope.SESSION, Scope.ADR, Scope.DOCS]
    for number in range(10):
        shelf.activate(space(f"m{number % 2}"))
        coverage.confirm(shelf.database, projects[::-1], backwards, now=NOW)


def _note(shelf: Shelf) -> None:
    for number in range(15):
        coverage.note_embedding(
            shelf.database, shelf.tenant, projects=None, error=f"down {number}", now=NOW
        )


def _claims_too_much(shelf: Shelf) -> list[dict[str, object]]:
    """Scopes whose row, in one snapshot, tells of more vectors than there are."""
    return shelf.ask(
        """
        select c.project_id, c.scope, c.chunks_with_vector, c.state
        from concordance.coverage c
        join concordance.embedding_models m on m.tenant_id = c.tenant_id and m.state = 'active'
        where c.chunks_with_vector > (
            select count(*) from concordance.embeddings e
            join concordance.chunks k on k.id = e.chunk_id
            join concordance.documents d on d.id = k.document_id
            where e.model_id = m.id and d.project_id = c.project_id and d.scope = c.scope)
        """
    )


def test_a_vector_of_a_space_that_was_retired_meanwhile_is_kept_apart(covered: Shelf) -> None:
    first = embeddings.active_space(covered.database, covered.tenant)
    assert first is not None
    covered.write(document("docs/b.md", "late"))
    with embeddings.open_backlog(covered.database, covered.tenant, first) as backlog:
        claims = backlog.claim(projects=None, most=5, attempts=5, before=NOW)
        covered.activate(space("other"))
        assert backlog.store([(c, vector_of(c.content_hash, "1")) for c, _ in claims]) == 1
        backlog.release()
    assert [row.vector for row in covered.rows()] == [None] * 4
    assert [row.vector is None for row in covered.rows(model=first.id)] == [False] * 4
