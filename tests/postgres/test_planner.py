"""Postgres's planner looks again after much was written, and only then."""

from __future__ import annotations

import pytest

from concordance.adapters.postgres import planner
from tests.postgres.rows import Shelf, document


def known(shelf: Shelf) -> float:
    (row,) = shelf.ask("select reltuples from pg_class where oid = 'concordance.lexical'::regclass")
    return float(row["reltuples"])


def fill(shelf: Shelf, first: int, last: int) -> None:
    for start in range(first, last, 10):
        names = range(start, min(start + 10, last))
        shelf.write(*(document(f"docs/{n}.md", *["tea water"] * 10) for n in names))


def test_it_looks_after_much_was_written_and_not_again(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "LEAST_PASSAGES", 100)
    fill(shelf, 0, 9)
    assert not planner.look_anew_if_much_changed(shelf.database), "too few to matter"
    fill(shelf, 9, 20)
    assert planner.look_anew_if_much_changed(shelf.database)
    assert known(shelf) == 200
    assert not planner.look_anew_if_much_changed(shelf.database), "nothing changed"
    fill(shelf, 20, 22)
    assert not planner.look_anew_if_much_changed(shelf.database), "a tenth more"
    fill(shelf, 22, 30)
    assert planner.look_anew_if_much_changed(shelf.database)
    assert known(shelf) == 300


def test_a_table_that_another_is_looking_at_is_left_to_it(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "LEAST_PASSAGES", 10)
    fill(shelf, 0, 2)
    with shelf.database.transaction() as connection:
        connection.execute("lock table concordance.lexical in share update exclusive mode")
        assert planner.look_anew_if_much_changed(shelf.database)
        assert known(shelf) != 20
