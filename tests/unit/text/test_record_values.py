"""Values of decision records: dates beside a status, links of every kind, what is denied."""

from __future__ import annotations

from datetime import date

import pytest

from concordance.models import AdrStatus
from concordance.text.formats import parse
from concordance.text.records import Record, read_record

FIFTH = date(2023, 1, 5)


def record(text: str, name: str = "0001-x.md") -> Record:
    return read_record(text, parse(name, text))


def under_status(value: str, name: str = "0001-x.md") -> Record:
    return record(f"# X\n\n## Status\n\n{value}\n\n## Context\n\nText.\n", name)


@pytest.mark.parametrize(
    ("value", "status", "day"),
    [
        ("2023-01-05 accepted", AdrStatus.ACCEPTED, FIFTH),
        ("2023-01-05: Accepted", AdrStatus.ACCEPTED, FIFTH),
        ("2023/01/05 - accepted", AdrStatus.ACCEPTED, FIFTH),
        ("(2023-01-05) accepted", AdrStatus.ACCEPTED, FIFTH),
        ("[2023-01-05] accepted", AdrStatus.ACCEPTED, FIFTH),
        ("**2023-01-05**: accepted", AdrStatus.ACCEPTED, FIFTH),
        ("2023-01-05 10:30 accepted", AdrStatus.ACCEPTED, FIFTH),
        ("2023-01-05T10:30:00Z accepted", AdrStatus.ACCEPTED, FIFTH),
        ("05.01.2023 angenommen", AdrStatus.ACCEPTED, FIFTH),
        ("Jan 5, 2023: Accepted", AdrStatus.ACCEPTED, FIFTH),
        ("5 Jan 2023 - Accepted", AdrStatus.ACCEPTED, FIFTH),
        ("On 2023-01-05 accepted", AdrStatus.ACCEPTED, FIFTH),
        ("Le 5 janvier 2023 : accepté", AdrStatus.ACCEPTED, FIFTH),
        ("2023年1月5日 已接受", AdrStatus.ACCEPTED, FIFTH),
        ("2023-01-05 rejected because we accepted another", AdrStatus.REJECTED, FIFTH),
        ("01/05/2023: Accepted", AdrStatus.ACCEPTED, None),
        ("January 2023 – accepted", AdrStatus.ACCEPTED, None),
        ("2023-01: accepted", AdrStatus.ACCEPTED, None),
        ("2023-01-05", AdrStatus.UNKNOWN, FIFTH),
        ("Accepted by Ada, Grace (2023-01-05)", AdrStatus.ACCEPTED, FIFTH),
    ],
)
def test_a_day_before_or_behind_the_status(value: str, status: AdrStatus, day: date | None) -> None:
    for said in (
        under_status(value),
        record(f"# X\n\n* Status: {value}\n* Deciders: Ada\n"),
        record(f"X\n=\n\n:Status: {value}\n", "x.rst"),
    ):
        assert (said.status, said.date) == (status, day)


@pytest.mark.parametrize(
    ("value", "status", "day"),
    [
        ("* 2023-01-05 - proposed\n* 2023-02-01 - accepted", "accepted", date(2023, 2, 1)),
        ("* 2023-02-01 - accepted\n* 2023-01-05 - proposed", "accepted", date(2023, 2, 1)),
        ("2023-01-05 accepted\n2023-06-01 proposed", "proposed", date(2023, 6, 1)),
        ("2023-01-05 accepted\n2023-06-01 reviewed", "accepted", FIFTH),
        ("* Proposed: 2023-01-05\n* Accepted: 2023-02-01", "accepted", date(2023, 2, 1)),
        ("Proposed 2023-01-05, accepted 2023-02-01", "accepted", date(2023, 2, 1)),
        ("Proposed (2023-01-05) -> Accepted (2023-02-01)", "accepted", date(2023, 2, 1)),
        ("2023-01-05\n\nAccepted", "accepted", FIFTH),
        ("Accepted\n\n2023-01-05", "accepted", FIFTH),
        ("Proposed: 2023-01-05; Accepted: ; Superseded: ", "proposed", FIFTH),
        ("Rejected\n\n2023-01-05: proposed", "rejected", FIFTH),
        (
            "| Date | Status |\n|---|---|\n| 2023-01-05 | proposed |\n| 2023-02-01 | accepted |",
            "accepted",
            date(2023, 2, 1),
        ),
    ],
)
def test_of_several_steps_the_latest_counts_where_each_has_its_day(
    value: str, status: str, day: date
) -> None:
    said = under_status(value)
    assert (said.status.value, said.date) == (status, day)


def test_a_field_of_its_own_is_a_better_date() -> None:
    said = record("# X\n\n* Status: 2023-01-05 accepted\n* Date: 2022-02-02\n")
    assert said.date == date(2022, 2, 2)
    steps = record("# X\n\nStatus:\n- Proposed: 2023-01-05\n- Accepted: 2023-02-01\n")
    assert (steps.status, steps.date) == (AdrStatus.ACCEPTED, date(2023, 2, 1))


@pytest.mark.parametrize(
    "value",
    [
        "Accepted, see [x](2019-01-01-foo.md)",
        "Accepted, see [x](<2019-01-01 foo.md>)",
        "Accepted [x][y]\n\n[y]: 2019-01-01-foo.md",
        "Accepted, see https://example.org/2019/01/01/post",
        "Accepted, see `2019-01-01-foo.md`",
        "Accepted. See [2019-01-01](2019-01-01.md)",
        "Accepted. Supersedes the decision of 2019-01-01",
        "Accepted (amended by [5](5.md) on 2019-01-01)",
        "Superseded by [2019-01-01 Use Kafka](2019-01-01-kafka.md)",
        "Superseded by 2019-01-01-kafka",
        "Superseded by <a href='2019-01-01.md'>x</a>",
        "Superseded by ADR-2 (2019-01-01)",
    ],
)
def test_the_date_of_another_record_is_not_its_own(value: str) -> None:
    assert under_status(value).date is None


def test_a_date_field_takes_no_date_from_a_file_name() -> None:
    for value in ("see [x](2019-01-01-foo.md)", "2019-01-01-foo.md", "https://x.org/2019/01/01/p"):
        assert record(f"# X\n\nDate: {value}\n\n## Status\n\nAccepted\n").date is None


def test_its_own_date_counts_beside_that_of_another() -> None:
    assert under_status("Accepted 2023-01-05; supersedes ADR-3 (2018-01-01)").date == FIFTH
    assert under_status("Superseded by ADR 2 on 2023-01-05").date == FIFTH
    assert record("# X\n\nDate: [2023-01-05](https://example.org/2019-01-01)\n").date == FIFTH


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("[x](<a b.md>)", "a b.md"),
        ("[x](a_(b).md)", "a_(b).md"),
        ("[x](a\\_b.md 'T')", "a_b.md"),
        ("[x](0002%20use%20b.md)", "0002%20use%20b.md"),
        ("0002%20use%20b.md", "0002%20use%20b.md"),
        ("<0002-b.md>", "0002-b.md"),
        ("<0002%20b.md>", "0002%20b.md"),
        ("<https://example.org/0002-b.md>", "https://example.org/0002-b.md"),
        ('<a href="0002-b.md">ADR 2</a>', "0002-b.md"),
        ("<a class=x href='0002-b.md'><b>ADR 2</b></a>.", "0002-b.md"),
        ("<a href=0002-b.md>ADR 2</a>", "0002-b.md"),
        ("the [new one](0002-b.md)", "0002-b.md"),
        ("[ADR 2][adr2]", "0002-b.md"),
        ("[ADR 2][ADR2]", "0002-b.md"),
        ("[adr2][]", "0002-b.md"),
        ("[adr2]", "0002-b.md"),
        ("[0002 b]", "0002 b.md"),
    ],
)
def test_links_of_every_kind(value: str, target: str) -> None:
    defined = "\n[adr2]: 0002-b.md 'T'\n[0002 B]: <0002 b.md>\n"
    for text in (
        f"# X\n\n## Status\n\nSuperseded by {value}\n\n## Context\n\nText.\n{defined}",
        f"# X\n\n* Status: accepted\n* Superseded by: {value}\n{defined}",
        f"# X\n\nText.\n\n## Links\n\n* Superseded by {value}\n{defined}",
    ):
        assert [one.target for one in record(text).superseded_by] == [target]


def test_labels_without_a_definition_are_words() -> None:
    assert [one.text for one in under_status("Superseded by [0002-b]").superseded_by] == ["0002-b"]
    fenced = record("# X\n\n* Status: superseded by [2][x]\n\n```\n[x]: 0002-b.md\n```\n")
    assert [one.target for one in fenced.superseded_by] == [None]


@pytest.mark.parametrize("value", ["`ADR 2`_", "adr2_"])
def test_named_links_of_rst(value: str) -> None:
    text = f"X\n=\n\n:Status: Superseded by {value}\n\n.. _ADR 2: b.rst\n.. _adr2: b.rst\n"
    assert [one.target for one in record(text, "x.rst").superseded_by] == ["b.rst"]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("Superseded, see [ADR 2](b.md)", "b.md"),
        ("Superseded. See [ADR 2](b.md).", "b.md"),
        ("Superseded\n\nSee [ADR 2](b.md)", "b.md"),
        ("Superseded, see the follow-up in [ADR 2](b.md)", "b.md"),
        ("Superseded ([ADR 2](b.md))", "b.md"),
        ("Superseded (see ADR-0002)", "ADR-0002"),
        ("Superseded (by ADR-0002)", "ADR-0002"),
        ("Superseded: [ADR 2](b.md)", "b.md"),
        ("superseded -> ADR-0002", "ADR-0002"),
        ("Superseded → [ADR 2](b.md)", "b.md"),
        ("superseded => 0002", "0002"),
        ("Superseded — ADR-0002", "ADR-0002"),
        ("Superseded in favour of [ADR 2](b.md)", "b.md"),
        ("Superseded in favor of ADR-2", "ADR-2"),
        ("replaced by [ADR 2](b.md)", "b.md"),
        ("replaced with [ADR 2](b.md)", "b.md"),
        ("**Superseded** by [ADR 2](b.md)", "b.md"),
        ("_Superseded_ by ADR 2", "ADR 2"),
        ("Superseded on January 5, 2023 by [ADR 2](b.md)", "b.md"),
        ("Accepted, then superseded by ADR-5", "ADR-5"),
        ("Abgelöst, siehe [ADR 2](b.md)", "b.md"),
        ("durch ADR-0002 ersetzt", "ADR-0002"),
        ("已被 ADR-0002 取代", "ADR-0002"),
    ],
)
def test_ways_to_say_what_replaced_it(value: str, wanted: str) -> None:
    said = under_status(value)
    assert [one.target or one.text for one in said.superseded_by] == [wanted]
    assert said.status is AdrStatus.SUPERSEDED
    in_a_line = record(f"# X\n\n* Status: {' '.join(value.split())}\n")
    assert in_a_line.status is AdrStatus.SUPERSEDED
    assert in_a_line.superseded_by == said.superseded_by


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("Not superseded", AdrStatus.UNKNOWN),
        ("never superseded", AdrStatus.UNKNOWN),
        ("no longer superseded", AdrStatus.UNKNOWN),
        ("isn't superseded", AdrStatus.UNKNOWN),
        ("Not superseded by [ADR 2](b.md)", AdrStatus.UNKNOWN),
        ("not yet superseded by ADR-2", AdrStatus.UNKNOWN),
        ("has not been superseded by ADR 2", AdrStatus.UNKNOWN),
        ("Superseded by no other record", AdrStatus.UNKNOWN),
        ("nicht ersetzt durch ADR 2", AdrStatus.UNKNOWN),
        ("n'est pas remplacé par ADR 2", AdrStatus.UNKNOWN),
        ("未被 ADR 2 取代", AdrStatus.UNKNOWN),
        ("never accepted", AdrStatus.UNKNOWN),
        ("not rejected", AdrStatus.UNKNOWN),
        ("noch nicht angenommen", AdrStatus.UNKNOWN),
        ("no longer accepted", AdrStatus.DEPRECATED),
        ("not yet accepted", AdrStatus.PROPOSED),
        ("not accepted yet", AdrStatus.PROPOSED),
        ("Accepted, not superseded by ADR 2", AdrStatus.ACCEPTED),
        ("Accepted, to be superseded by [2](2.md)", AdrStatus.ACCEPTED),
        ("Accepted. Will be superseded by ADR 2", AdrStatus.ACCEPTED),
        ("Accepted until superseded by ADR-9", AdrStatus.ACCEPTED),
        ("Accepted. The earlier draft was superseded by ADR 7", AdrStatus.ACCEPTED),
        ("Accepted. MongoDB is replaced by Postgres.", AdrStatus.ACCEPTED),
        ("Accepted. It does not supersede ADR 3", AdrStatus.ACCEPTED),
        ("Superseded (partially) by [2](2.md)", AdrStatus.ACCEPTED),
        ("Partially superseded, see [2](2.md)", AdrStatus.ACCEPTED),
        ("Superseded (2023-01-05)", AdrStatus.SUPERSEDED),
        ("Superseded: the cloud strategy", AdrStatus.SUPERSEDED),
        ("Superseded (2 years ago)", AdrStatus.SUPERSEDED),
        ("Superseded, it was slow", AdrStatus.SUPERSEDED),
        ("**Superseded**\n\nThe system moved on.", AdrStatus.SUPERSEDED),
        ("such as proposed, accepted, rejected, superseded, etc.?", AdrStatus.UNKNOWN),
    ],
)
def test_what_is_denied_or_to_come_names_no_record(value: str, status: AdrStatus) -> None:
    said = under_status(value)
    assert (said.status, said.superseded_by, said.supersedes) == (status, (), ())


@pytest.mark.parametrize("value", ["2023-05-01", "no", "yes", "false", "the cloud strategy"])
def test_a_field_superseded_that_names_no_record(value: str) -> None:
    said = record(f"# X\n\n* Status: accepted\n* Superseded: {value}\n")
    assert (said.status, said.superseded_by) == (AdrStatus.ACCEPTED, ())


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece",
    ["superseded by ", "superseded, see ", "状态：", "被", "| ", "| Status | x |\n|---|\n", "<td>",
     "<dt>x", "<a href=x>", "[a](<", "[a][b] ", "1.", "a.md ", "Jan 5, ", "Status\n  x\n",
     "* 2023-01-05 - accepted\n", "**Status** ", "not "],
)  # fmt: skip
def test_hostile_values_are_read_soon(piece: str) -> None:
    flood = piece * (80_000 // len(piece))
    lines = "\n".join([flood[:4_000]] * 30)
    for name in ("x.md", "x.rst", "x.adoc"):
        record(f"# X\n\n{flood}\n\n## Status\n\n{flood}\n", name)
        record(f"# X\n\n{lines}\n\n## Status\n\n{lines}\n", name)
