"""Errors of Postgres become ours by their SQLSTATE; what they say decides nothing."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors as pg

from concordance.adapters.postgres.diagnosis import translate
from concordance.errors import (
    ConcordanceError,
    DatabaseConflict,
    DatabaseError,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnavailable,
    DatabaseUnsuitable,
    Retryable,
    RowRefused,
)

SORTED: dict[type[ConcordanceError], str] = {
    DatabaseConflict: "40001 40P01",
    DatabaseReadOnly: "25006",
    DatabaseFull: "53100 53400",
    RowRefused: "22001 22021 22P05 23502 23503 23505 54000 54001 XX000",
    DatabaseUnavailable: (
        "08000 08006 53000 53200 53300 55P03 57014 57P01 57P02 57P03 57P05 25P03 25P04 58030"
    ),
    DatabaseUnsuitable: "28000 28P01 3D000 3F000 42501 42P01",
    DatabaseError: "42601 42883 25P02 XX001 XX002 P0001 0A000",
}


@pytest.mark.parametrize(
    ("state", "ours"), [(s, ours) for ours, states in SORTED.items() for s in states.split()]
)
def test_each_kind_of_error_is_known_by_its_state(state: str, ours: type[ConcordanceError]) -> None:
    told = translate(pg.lookup(state)("what the server says\nand more of it"), "db/name")
    assert type(told) is ours
    assert "what the server says" in str(told)
    assert "\n" not in str(told)
    # A document is called failed for these alone; nothing of the server's is one document's fault.
    assert isinstance(told, RowRefused) is (ours is RowRefused)
    assert isinstance(told, Retryable) is (ours in (DatabaseConflict, DatabaseUnavailable))


def test_an_error_without_a_state_is_of_the_connection_or_of_a_value() -> None:
    lost = translate(psycopg.OperationalError("the connection is closed"), "db")
    assert type(lost) is DatabaseUnavailable
    assert lost.hint is not None
    refused = translate(psycopg.DataError("text fields cannot contain NUL"), "db")
    assert type(refused) is RowRefused


def test_no_more_is_told_than_a_line_without_secrets() -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    told = translate(pg.InvalidTextRepresentation(f"bad value {token} {'x' * 900}"), "db")
    assert token not in str(told)
    assert len(str(told)) < 500
