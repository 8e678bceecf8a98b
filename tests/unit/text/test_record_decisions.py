"""Decision records: what stands beside a decision, and is not the decision."""

from __future__ import annotations

from datetime import date

import pytest

from concordance.models import AdrStatus
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


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("Deprecated in favor of [2. Use NATS](0002-use-nats.md)", "0002-use-nats.md"),
        ("Deprecated in favour of ADR 2", "ADR 2"),
        ("Deprecated on 2021-01-01 in favor of ADR-2", "ADR-2"),
        ("Deprecated in favor of [Use NATS](use-nats.md)", "use-nats.md"),
        ("Retired in favor of ADR-2", "ADR-2"),
        ("Deprecated by [2](0002-x.md)", "0002-x.md"),
        ("**Deprecated** by [ADR 2](../b/b.md)", "../b/b.md"),
        ("Deprecated, see ADR-2", "ADR-2"),
        ("Deprecated. See [2](0002-x.md).", "0002-x.md"),
        ("Deprecated (see ADR-2)", "ADR-2"),
        ("Obsolete, see [2](0002-x.md)", "0002-x.md"),
        ("Overridden by [2](0002-x.md)", "0002-x.md"),
        ("Overruled by ADR-2", "ADR-2"),
        ("Succeeded by [2](0002-x.md)", "0002-x.md"),
        ("Invalidated by ADR-2", "ADR-2"),
        ("Accepted, then invalidated by ADR-2", "ADR-2"),
        ("Veraltet zugunsten von ADR 2", "ADR 2"),
    ],
)
def test_other_ways_to_say_what_replaced_it(value: str, wanted: str) -> None:
    said = under_status(value)
    assert [one.target or one.text for one in said.superseded_by] == [wanted]
    assert said.status is AdrStatus.SUPERSEDED


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("Deprecated by the new law", AdrStatus.DEPRECATED),
        ("Deprecated by Ada on 2021-01-01", AdrStatus.DEPRECATED),
        ("Deprecated by [the vendor](https://example.org/1)", AdrStatus.DEPRECATED),
        ("Deprecated by RFC 8996", AdrStatus.DEPRECATED),
        ("Deprecated by 2 votes", AdrStatus.DEPRECATED),
        ("Deprecated, see [the issue](../issues/5.md)", AdrStatus.DEPRECATED),
        ("Deprecated in favor of something new", AdrStatus.DEPRECATED),
        ("Partially deprecated in favor of ADR 2", AdrStatus.DEPRECATED),
        ("Rejected in favor of ADR-2", AdrStatus.REJECTED),
        ("Accepted, to be deprecated in favor of ADR-2", AdrStatus.ACCEPTED),
        ("Not deprecated in favor of ADR-2", AdrStatus.UNKNOWN),
        ("Overridden by events", AdrStatus.UNKNOWN),
    ],
)
def test_what_is_not_named_as_records_are_replaced_nothing(value: str, status: AdrStatus) -> None:
    said = under_status(value)
    assert (said.status, said.superseded_by) == (status, ())


def test_the_day_of_what_it_is_deprecated_by_is_not_its_own() -> None:
    for value in ("Deprecated by ADR-2 (2021-01-01)", "Deprecated in favor of ADR-2 (2021-01-01)"):
        assert under_status(value).date is None


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "piece", ["deprecated, see ", "deprecated in favor of ", "retired by ADR-2 ", "deprecated  ("]
)
def test_hostile_successors_are_read_soon(piece: str) -> None:
    under_status(piece * (100_000 // len(piece)))


NATS = "[2](0002-use-nats.md)"


@pytest.mark.parametrize(
    "text",
    [
        f"## Status\n\n~~Superseded by {NATS}~~\n\nAccepted\n",
        f"## Status\n\n~~Superseded by\n{NATS}~~\nAccepted\n",
        f"## Status\n\nAccepted ~~supersedes {NATS}~~\n",
        f"## Status\n\n<del>Superseded by {NATS}</del>\n\nAccepted\n",
        f"## Status\n\n<del>\nSuperseded by {NATS}\n</del>\n\nAccepted\n",
        f"## Status\n\n<s class='x'>Superseded by <b>{NATS}</b></s> Accepted\n",
        f"## Status\n\n<STRIKE>Superseded by {NATS}</STRIKE><br>Accepted\n",
        f"## Status\n\n- [ ] Superseded by {NATS}\n- [x] Accepted\n",
        f"* Status: accepted\n* Superseded by: ~~{NATS}~~\n",
        f"* Status: accepted\n* Superseded by: <del>{NATS}</del>\n",
        f"* ~~Status: superseded by {NATS}~~\n* Status: accepted\n",
        f"~~This ADR is superseded by {NATS}~~\n\nStatus: accepted\n",
        f"<del>\nSuperseded by {NATS}\n</del>\n\nStatus: accepted\n",
        f"Status: accepted\n\n## Links\n\n* ~~Superseded by {NATS}~~\n* <s>Replaces {NATS}</s>\n",
    ],
)
def test_what_is_struck_out_names_no_record(text: str) -> None:
    said = record(f"# X\n\n{text}\n## Context\n\nText.\n")
    assert (said.status, said.superseded_by, said.supersedes) == (AdrStatus.ACCEPTED, (), ())


def test_what_stands_beside_struck_words_counts() -> None:
    for value in (
        f"Superseded by ~~[1](0001-x.md)~~ {NATS}",
        f"~~Accepted~~\n\nSuperseded by {NATS}",
        f"~~Accepted\n\nSuperseded by {NATS}\n\nfor good~~",
    ):
        assert [one.target for one in under_status(value).superseded_by] == ["0002-use-nats.md"]
    people = record("# X\n\n* Status: accepted\n* Deciders: <del>Ada</del> Grace\n")
    assert people.deciders == ("Grace",)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["~~a", "~~x~", "<s>", "<del>a", "<s>x</", "<del>~~"])
def test_hostile_struck_words_are_read_soon(piece: str) -> None:
    under_status(piece * (100_000 // len(piece)))


NINTH = "[ADR-9](0009-x.md)"


@pytest.mark.parametrize(
    "banner",
    [
        f"> **Note**: This ADR has been superseded by {NINTH}",
        f"> **Note:** this ADR has been superseded by {NINTH}",
        f"**NOTE:** this ADR was superseded by {NINTH}",
        f"> *Note*: Superseded by {NINTH}",
        f"Note that this decision was superseded by {NINTH}",
        f"> \u26a0\ufe0f Superseded by {NINTH}",
        f"> **\u26a0\ufe0f SUPERSEDED** by {NINTH}",
        f":warning: **Superseded by {NINTH}**",
        f"- \u26d4 Replaced by {NINTH}",
        f"> [!IMPORTANT] Superseded by {NINTH}",
        f"> [!IMPORTANT]\n> Superseded by {NINTH}",
        f"**Important!** Superseded by {NINTH}",
        f"Update (2021-01-02): this ADR is superseded by {NINTH}",
        f"**Update 2021-01-02**: superseded by {NINTH}",
        f"> **Warning** \u2013 this ADR is deprecated in favor of {NINTH}",
    ],
)
def test_a_banner_on_what_replaced_it(banner: str) -> None:
    for text in (f"{banner}\n\nStatus: accepted", f"* Status: accepted\n\n{banner}"):
        said = record(f"# X\n\n{text}\n\n## Context\n\nText.\n")
        assert [one.target for one in said.superseded_by] == ["0009-x.md"]
        assert said.status is AdrStatus.SUPERSEDED


@pytest.mark.parametrize(
    "banner",
    [
        f"Note: not superseded by {NINTH}",
        f"Note: Kafka was superseded by {NINTH}",
        f"> **Note**: this decision will be superseded by {NINTH}",
        "Warning: replaced by hand",
    ],
)
def test_a_banner_that_is_denied_or_of_another_names_nothing(banner: str) -> None:
    said = record(f"# X\n\n{banner}\n\nStatus: accepted\n")
    assert (said.status, said.superseded_by) == (AdrStatus.ACCEPTED, ())


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["> ", ":a:", "note: ", "[!note]", "**", "note ("])
def test_hostile_banners_are_read_soon(piece: str) -> None:
    line = (piece * 4_000)[:3_900]
    record("# X\n\n" + f"{line}\n" * 80)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("Smith, John; Doe, Jane", ("Smith, John", "Doe, Jane")),
        ("Ada; Grace", ("Ada", "Grace")),
        ("Alice (PM), Bob (Dev, Lead)", ("Alice (PM)", "Bob (Dev, Lead)")),
        ("(Ada, Grace)", ("Ada", "Grace")),
        ("TBD", ()),
        ("n/a", ()),
        ("-", ()),
        ("the architecture board, on 2021-01-02", ("the architecture board",)),
        ("the architecture board (2021-01-02)", ("the architecture board",)),
        ("Ada, Grace, 2 January 2021", ("Ada", "Grace")),
    ],
)
def test_names_of_deciders(value: str, names: tuple[str, ...]) -> None:
    assert record(f"# X\n\n* Status: accepted\n* Deciders: {value}\n").deciders == names


def test_the_name_of_an_emoji_before_a_status_is_a_sign() -> None:
    assert under_status(":white_check_mark: Accepted").status is AdrStatus.ACCEPTED
    assert record("# X\n\n* Status: :no_entry_sign: Rejected\n").status is AdrStatus.REJECTED
