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
        ("Review 2021-01-01", "unknown", None),
    ],
)
def test_what_is_under_way_beside_a_decision_takes_nothing_from_it(
    value: str, status: str, day: date | None
) -> None:
    said = under_status(value)
    assert (said.status.value, said.date) == (status, day)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("Accepted. Review by 2027-01-01", "accepted"),
        ("Accepted. Review 2022-01-01.", "accepted"),
        ("Accepted, review on 2027-01-01", "accepted"),
        ("Accepted, reviewed 2027-01-01", "accepted"),
        ("Accepted, to be reviewed 2027-01-01", "accepted"),
        ("Accepted. Next review: 2027-01-01", "accepted"),
        ("Accepted\n\nNext review:\n2027-01-01", "accepted"),
        ("Accepted\n\nNext review:\n\n2027-01-01", "accepted"),
        ("Accepted, revisit 2027-01-01", "accepted"),
        ("Accepted (valid until 2025-01-01)", "accepted"),
        ("Accepted until 2025-01-01", "accepted"),
        ("Accepted until the end of 2025-01-01", "accepted"),
        ("Accepted (expires: 2025-01-01)", "accepted"),
        ("Accepted (expiry 1 January 2025)", "accepted"),
        ("Accepted, will be implemented 2025-01-01", "accepted"),
        ("Accepted since release 2021.3.1", "accepted"),
        ("Accepted (version 2021.3.1)", "accepted"),
        ("Angenommen, gültig bis 01.01.2025", "accepted"),
        ("Accepté, valable jusqu'au 1 janvier 2025", "accepted"),
        ("Deprecated, will be removed 2025-01-01", "deprecated"),
        ("Deprecated (EOL 2025-01-01)", "deprecated"),
        ("Deprecated (end of life: 2025-01-01)", "deprecated"),
        ("Proposed, feedback until 2025-01-01", "proposed"),
        ("Proposed, feedback by 2025-01-01", "proposed"),
        ("Proposed, decision due 2025-01-01", "proposed"),
        ("Proposed (deadline: 2025-01-01)", "proposed"),
        ("Proposed, planned for 2025-01-01", "proposed"),
    ],
)
def test_a_day_of_what_is_to_come_is_not_that_of_the_decision(value: str, status: str) -> None:
    said = under_status(value)
    assert (said.status.value, said.date) == (status, None)
    in_a_line = record(f"# X\n\n* Status: {' '.join(value.split())}\n")
    assert (in_a_line.status.value, in_a_line.date) == (status, None)
    dated = under_status(f"2021-01-01: {value}")
    assert (dated.status.value, dated.date) == (status, NEW_YEAR)


@pytest.mark.parametrize(
    "value",
    [
        "Accepted 2021-01-01, review by 2027-01-01",
        "Accepted on 2021-01-01 (valid until 2025-01-01)",
        "Accepted 2021-01-01, active until 2022-01-01",
        "Reviewed by Ada, accepted 2021-01-01",
        "Accepted for release 2 on 2021-01-01",
        "Version 2, accepted 2021-01-01",
        "Accepted by Ada, Till (2021-01-01)",
        "Rejected due to cost, 2021-01-01",
        "No longer valid since 2021-01-01",
        "In review 2021-01-01",
        "Under review since 2021-01-01",
        "Review started 2021-01-01",
        "Next review: 2027-01-01\n\nAccepted 2021-01-01",
    ],
)
def test_its_own_day_counts_beside_one_to_come(value: str) -> None:
    assert under_status(value).date == NEW_YEAR
