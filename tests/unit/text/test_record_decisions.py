"""Decision records: what stands beside a decision, and is not the decision."""

from __future__ import annotations

from datetime import date

import pytest

from concordance.text.formats import parse
from concordance.text.records import Record, read_record

NEW_YEAR = date(2021, 1, 1)


def record(text: str, name: str = "0001-x.md") -> Record:
    return read_record(text, parse(name, text))


def under_status(value: str) -> Record:
    return record(f"# X\n\n## Status\n\n{value}\n\n## Context\n\nText.\n")


@pytest.mark.parametrize(
    ("value", "status", "day"),
    [
        ("Accepted on 2021-01-01, review 2025-01-01", "accepted", NEW_YEAR),
        ("Accepted 2021-01-01. Review 2022-01-01.", "accepted", NEW_YEAR),
        ("- Accepted: 2021-01-01\n- Review: 2023-01-01", "accepted", NEW_YEAR),
        ("- Accepted: 2021-01-01\n- Review date: 2023-01-01", "accepted", NEW_YEAR),
        ("2021-01-01: accepted\n2023-01-01: in review", "accepted", NEW_YEAR),
        ("2021-01-01 accepted, 2023-01-01 in review", "accepted", NEW_YEAR),
        ("Accepted 2021-01-01\n\nReview:\n2023-01-01", "accepted", NEW_YEAR),
        ("Rejected 2021-01-01, review 2022-01-01", "rejected", NEW_YEAR),
        ("Accepted 2021-01-01, in progress since 2021-02-01", "accepted", NEW_YEAR),
        ("Accepted 2021-01-01; under discussion 2021-02-01", "accepted", NEW_YEAR),
        ("Accepted 2021-01-01, proposed 2021-02-01", "accepted", NEW_YEAR),
        ("Deprecated 2021-01-01, WIP since 2021-02-01", "deprecated", NEW_YEAR),
        ("Accepted, in progress since 2021-02-01", "accepted", None),
        ("Accepted\nIn review (2021-02-01)", "accepted", None),
        ("Superseded by ADR-9 (2022-01-01)\n\nReview 2025-01-01", "superseded", None),
        ("Accepted 2020-01-01, reopened, in review since 2021-01-01", "proposed", NEW_YEAR),
        ("Rejected 2020-01-01, proposed again 2021-01-01", "proposed", NEW_YEAR),
        ("In review since 2021-01-01", "proposed", NEW_YEAR),
        ("Review since 2021-01-01", "proposed", NEW_YEAR),
        ("2021-01-01: review", "proposed", NEW_YEAR),
        ("Review", "proposed", None),
        ("Review 2021-01-01", "unknown", NEW_YEAR),
    ],
)
def test_what_is_under_way_beside_a_decision_takes_nothing_from_it(
    value: str, status: str, day: date | None
) -> None:
    said = under_status(value)
    assert (said.status.value, said.date) == (status, day)
