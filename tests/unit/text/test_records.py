"""Decision records to their metadata, from every form that they have."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.models import AdrStatus
from concordance.text.formats import parse
from concordance.text.record_links import Reference
from concordance.text.records import Record, read_record

NINE = Reference("9. Use Kafka", "0009-use-kafka.md")


def record(text: str, name: str = "0001-x.md") -> Record:
    return read_record(text, parse(name, text))


def test_a_nygard_section_of_several_lines() -> None:
    said = record(
        "# 5. Use a broker\n\nDate: 2016-02-13\n\n## Status\n\nAccepted\n\n"
        "Superseded by [9. Use Kafka](0009-use-kafka.md)\n\nAmended by [7](0007-x.md)\n\n"
        "## Context\n\nWe rejected the others. Supersedes [1](0001-x.md) was not said.\n"
    )
    assert said.status is AdrStatus.SUPERSEDED
    assert said.status_text == "Accepted"
    assert said.date == date(2016, 2, 13)
    assert (said.superseded_by, said.supersedes) == ((NINE,), ())


@pytest.mark.parametrize(
    "text",
    [
        "# X\n\n## Status\n\nAccepted\n",
        "# X\n\n## 1. Status:\n\n**Accepted**\n",
        "# X\n\n## Status: Accepted\n\n## Context\n",
        "# X\n\n## Status\n\n### Accepted\n\n## Context\n",
        "X\n=\n\nStatus\n------\nAccepted on 2026-01-05 by all.\n",
        "# X\n\n## Status\n\n<!-- proposed | accepted -->\n\nAccepted\n",
        "# X\n\n## Status\n\n~~Proposed~~ ✅ Accepted\n",
        "# X\n\n## Status\n\n- [x] Accepted\n- [ ] Rejected\n",
        "# X\n\n## Status\n\n2025-01-01 proposed\n\nProposed → Accepted\n",
        "# X\n\n**Status:** accepted, 2026-10-05. It was long.\n",
        "# X\n\n**Status**: Approved\n",
        "# X\n\n* Status: accepted <!-- optional -->\n* Deciders: a\n",
        "# X\n\n• Status: accepted\n",
        "# X\n\n- **Status**: accepted\n",
        "# X\n\n> Status: accepted\n",
        "# X\n\nStatus: Accepted\nDate: 2026-01-05\n",
        "# X\n\n<b>Status:</b> accepted\n",
        "# X\n\n| Status | Accepted |\n|---|---|\n| Date | 2026-01-05 |\n",
        "# X\n\n| Date | Status |\n|------|--------|\n| 2026-01-05 | accepted |\n",
        "# X\n\n**Date:** 2026-01-05 **Status:** Accepted\n",
        "# X\n\nDate: 2026-01-05 | Status: Accepted\n",
        "# X\n\n## Metadata\n\nStatus: Accepted\n",
        "---\nstatus: accepted\ndate: 2026-01-05\n---\n# X\n",
        "---\n# MADR\nstatus: { accepted }\n---\n# X\n",
        '---\nstatus: "accepted"\n...\n# X\n',
        "---\r\nstatus: accepted # at last\r\n---\r\n# X\r\n",
        '+++\nstatus = "accepted"\n+++\n# X\n',
        "---\nstatus: accepted\n# the fence is open\n# X\n",
        "# X\n\n## Status\n\nangenommen\n",
        "# X\n\n## Estado\n\nAceptado\n",
        "# X\n\n## 状态\n\n已接受\n",
    ],
)
def test_accepted_in_every_form(text: str) -> None:
    assert record(text).status is AdrStatus.ACCEPTED


@pytest.mark.parametrize(
    "text",
    [
        "X\n=\n\n:Status: Accepted\n:Date: 2026-01-05\n\nContext\n-------\nx\n",
        ":Status: Accepted\n\nX\n=\n\nx\n",
        "X\n=\n\nStatus\n******\n\n**Accepted**\n",
        "X\n=\n\n* Status: accepted\n",
        "X\n=\n\n.. x::\n\n   Status: Rejected\n\nStatus\n------\nAccepted (May 2023)\n",
    ],
)
def test_accepted_in_every_form_of_rst(text: str) -> None:
    assert record(text, "0001-x.rst").status is AdrStatus.ACCEPTED


@pytest.mark.parametrize(
    "text",
    [
        "= X\n:status: Accepted\n\nText.\n",
        "= X\n\n== Status\n\nAccepted\n",
        "= X\n\n* Status: accepted\n",
        "= X\n\n|===\n|Status |Accepted\n|===\n",
    ],
)
def test_accepted_in_every_form_of_asciidoc(text: str) -> None:
    assert record(text, "0001-x.adoc").status is AdrStatus.ACCEPTED


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("Draft", AdrStatus.PROPOSED),
        ("Proposed - October 2024", AdrStatus.PROPOSED),
        ("in progress", AdrStatus.PROPOSED),
        ("Not yet accepted", AdrStatus.PROPOSED),
        ("Rejected (cost)", AdrStatus.REJECTED),
        ("not accepted", AdrStatus.REJECTED),
        ("Deprecated", AdrStatus.DEPRECATED),
        ("Reverted by [a discussion](https://example.org/1)", AdrStatus.DEPRECATED),
        ("No longer in force", AdrStatus.DEPRECATED),
        ("Superseded", AdrStatus.SUPERSEDED),
        ("Superceded by 4", AdrStatus.SUPERSEDED),
        ("This decision is superseded by ADR 4", AdrStatus.SUPERSEDED),
        ("Partially superseded by [4](0004-x.md)", AdrStatus.ACCEPTED),
        ("Accepted; supersedes ADR-3", AdrStatus.ACCEPTED),
        ("Supersedes ADR-3", AdrStatus.UNKNOWN),
        ("experimental", AdrStatus.UNKNOWN),
        ("We accepted it", AdrStatus.UNKNOWN),
        ("The other one was rejected", AdrStatus.UNKNOWN),
        ("{proposed | rejected | accepted | … | superseded by [1](0001-x.md)}", AdrStatus.UNKNOWN),
        ("proposed/accepted", AdrStatus.UNKNOWN),
    ],
)
def test_words_of_a_status(value: str, status: AdrStatus) -> None:
    assert record(f"# X\n\n## Status\n\n{value}\n").status is status
    assert record(f"# X\n\n* Status: {value}\n").status is status
    assert record(f"X\n=\n\n:Status: {value}\n", "x.rst").status is status


def test_an_unknown_word_is_shown_as_it_stands() -> None:
    assert record("---\nstatus: experimental\n---\n# X\n").status_text == "experimental"
    assert record("# X\n\n## Status\n\n" + "word " * 99).status_text == ("word " * 99)[:199] + "…"


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2026-01-05", date(2026, 1, 5)),
        ("2026-1-5", date(2026, 1, 5)),
        ("2026/01/05", date(2026, 1, 5)),
        ("{ 2026-01-05 }", date(2026, 1, 5)),
        ("2026-01-05T10:00:00Z", date(2026, 1, 5)),
        ("5.1.2026", date(2026, 1, 5)),
        ("January 5, 2026", date(2026, 1, 5)),
        ("5th of January 2026", date(2026, 1, 5)),
        ("15/01/2026", date(2026, 1, 15)),
        ("2026-01-05, updated 2027-02-02", date(2026, 1, 5)),
        ("2026年1月5日", date(2026, 1, 5)),
        ("05/01/2026", None),
        ("2026-02-30", None),
        ("2024-023-2706", None),
        ("January 2026", None),
        ("DATE", None),
        ("", None),
    ],
)
def test_dates(written: str, day: date | None) -> None:
    assert record(f"# X\n\nDate: {written}\n\n## Status\n\nAccepted\n").date == day
    assert record(f"---\nstatus: accepted\ndate: {written}\n---\n# X\n").date == day


def test_a_date_beside_the_status_counts_where_there_is_no_other() -> None:
    assert record("# X\n\n**Status:** accepted, 2026-10-05.\n").date == date(2026, 10, 5)
    both = record("# X\n\nLast updated: 2026-03-03\nDate: 2026-01-05\n\n## Status\n\nAccepted\n")
    assert both.date == date(2026, 1, 5)


@pytest.mark.parametrize(
    "text",
    [
        "---\nstatus: accepted\ndeciders: Ada, Grace\n---\n# X\n",
        "---\nstatus: accepted\ndecision-makers: [Ada, Grace]\n---\n# X\n",
        '---\nstatus: accepted\ndecision_makers:\n  - "Ada"\n  - Grace\n---\n# X\n',
        "# X\n\n* Deciders: [Ada](https://example.org/a), Grace <!-- optional -->\n",
        "# X\n\nDeciders:\n- Ada\n- Grace\n\nText.\n",
        "# X\n\n## Deciders\n\n- Ada\n- Grace\n",
        "# X\n\n**Decided by:** Ada and Grace\n",
    ],
)
def test_deciders(text: str) -> None:
    assert record(text).deciders == ("Ada", "Grace")


@pytest.mark.parametrize(
    "text",
    [
        "# X\n\n## Status\n\nSuperseded by [9. Use Kafka](0009-use-kafka.md)\n",
        "---\nstatus: superseded by [9. Use Kafka](0009-use-kafka.md)\n---\n# X\n",
        "---\nstatus: accepted\nsuperseded-by: '[9. Use Kafka](0009-use-kafka.md)'\n---\n# X\n",
        "# X\n\n* Status: accepted\n* Superseded by: [9. Use Kafka](0009-use-kafka.md)\n",
        "# X\n\nReplaced by: [9. Use Kafka](0009-use-kafka.md)\n",
        "# X\n\n> This decision is **superseded by [9. Use Kafka](0009-use-kafka.md)**.\n",
        "# X\n\nText.\n\n## Links\n\n* Superseded by [9. Use Kafka](0009-use-kafka.md)\n",
        "# X\n\n## Superseded by\n\n[9. Use Kafka](0009-use-kafka.md)\n",
        "# X\n\nStatus: Superseded on 2026-01-05 by [9. Use Kafka](0009-use-kafka.md), [x\n",
    ],
)
def test_what_replaced_it_by_link(text: str) -> None:
    said = record(text)
    assert said.superseded_by == (NINE,)
    assert said.status is AdrStatus.SUPERSEDED
    assert said.supersedes == ()


@pytest.mark.parametrize(
    ("value", "references"),
    [
        ("superseded by ADR-0009", [("ADR-0009", None)]),
        ("superseded by 9", [("9", None)]),
        ("Superseded by #9.", [("#9", None)]),
        ("superseded by ADR 3 and ADR 4", [("ADR 3", None), ("ADR 4", None)]),
        ("superseded by 9. Use Kafka", [("9. Use Kafka", None)]),
        ("Superseded by Use Kafka", [("Use Kafka", None)]),
        ('Superseded by "Use Kafka", see there', [("Use Kafka", None)]),
        ("superseded by 0009-use-kafka.md", [("0009-use-kafka.md", "0009-use-kafka.md")]),
        ("superseded by 2026-01-05-use-kafka", [("2026-01-05-use-kafka", None)]),
        ("Superseded by [[0009-use-kafka]]", [("0009-use-kafka", "0009-use-kafka")]),
        ("Superseded by [a](https://example.org/9)", [("a", "https://example.org/9")]),
        ("Superseded by <!-- [9](9.md) --> [8](8.md)", [("8", "8.md")]),
        ("partially superseded by [9](9.md)", []),
        ("superseded", []),
        ("superseded by none", []),
        ("{accepted | superseded by [9](9.md)}", []),
    ],
)
def test_references(value: str, references: list[tuple[str, str | None]]) -> None:
    said = record(f"# X\n\n## Status\n\n{value}\n")
    assert [(r.text, r.target) for r in said.superseded_by] == references


@pytest.mark.parametrize(
    ("value", "target"),
    [
        (":doc:`0009-use-kafka`", "0009-use-kafka"),
        (":doc:`the ninth <0009-use-kafka>`", "0009-use-kafka"),
        ("`ADR 9 <0009-use-kafka.rst>`_", "0009-use-kafka.rst"),
        ("`ADR 9 <0009-use-kafka.rst>`__", "0009-use-kafka.rst"),
    ],
)
def test_references_of_rst(value: str, target: str) -> None:
    said = record(f"X\n=\n\n:Status: Superseded by {value}\n", "x.rst")
    assert [r.target for r in said.superseded_by] == [target]


def test_references_of_asciidoc() -> None:
    for value in ("xref:0009-x.adoc[ADR 9]", "link:0009-x.adoc[ADR 9]", "<<0009-x.adoc,ADR 9>>"):
        said = record(f"= X\n\n== Status\n\nSuperseded by {value}\n", "x.adoc")
        assert said.superseded_by == (Reference("ADR 9", "0009-x.adoc"),)


@pytest.mark.parametrize(
    "text",
    [
        "# X\n\n## Status\n\nAccepted\n\nSupersedes [3](0003-x.md) and [4](0004-x.md)\n",
        "# X\n\n**Status:** accepted, 2026-10-05. Supersedes [3](0003-x.md), [4](0004-x.md).\n",
        "# X\n\n## Status\n\nAccepted\n\nSupersedes:\n- [3](0003-x.md)\n- [4](0004-x.md)\n",
        "---\nstatus: accepted\nsupersedes:\n  - 0003-x.md\n  - 0004-x.md\n---\n# X\n",
        "---\nstatus: accepted\nreplaces: [0003-x.md, 0004-x.md]\n---\n# X\n",
        "# X\n\nReplaces: [3](0003-x.md), [4](0004-x.md)\n\n## Status\n\nAccepted\n",
    ],
)
def test_what_it_replaces(text: str) -> None:
    said = record(text)
    assert [r.target for r in said.supersedes] == ["0003-x.md", "0004-x.md"]
    assert (said.status, said.superseded_by) == (AdrStatus.ACCEPTED, ())


def test_sentences_under_the_title() -> None:
    assert record("# X\n\nSuperseded by ADR-9: it was slow.\n").status is AdrStatus.SUPERSEDED
    assert record("# X\n\n> This ADR is superseded by Use Kafka.\n").superseded_by == (
        Reference("Use Kafka"),
    )
    for prose in ("Replaced the old broker.", "Replaced by hand each time.", "Replaces all doubt."):
        assert record(f"# X\n\n{prose}\n").silent


def test_code_and_later_prose_say_nothing() -> None:
    text = (
        "# X\n\nText.\n\n```\nStatus: accepted\n```\n\n## Context\n\nStatus: rejected\n\n"
        "Superseded by [9](9.md)\n"
    )
    assert record(text) == Record()
    assert record(text).silent


@pytest.mark.parametrize(
    "text",
    [
        "---\nstatus:\n---\n# X\n",
        "---\nstatus: [accepted\n---\n# X\n",
        "---\nstatus: 'accepted\n---\n# X\n",
        "---\n: x\nstatus: {a: [b}\n---\n",
        "---\n---\n",
        "---\n\tstatus: accepted\n---\n",
        "---\nstatus: |\n---\n",
        "---\nstatus: &a *a\n---\n",
        "---\nsupersedes: [[[[\nsuperseded_by: ]]\n---\n# X\n",
    ],
)
def test_malformed_front_matter_costs_nothing_but_itself(text: str) -> None:
    said = record(text + "\nText.\n\n## Status\n\nRejected\n")
    assert said.status in (AdrStatus.REJECTED, AdrStatus.ACCEPTED)


PIECES = st.sampled_from(
    ["---\n", "status: ", "Status", ":", "accepted", "superseded by ", "supersedes ", "[9](9.md)",
     "\n", "\n\n", "# X\n", "## Status\n", "ADR-9", ", ", " and ", "|", "**", "`", "<", ">", "<!--",
     "-->", "- ", "> ", "[[", "]]", "{", "}", "2026-01-05", "Deciders: ", "Ada", "~~", "=\n",
     ":doc:`x`", "\u2028", "復旧", "  "]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from(["x.md", "x.rst", "x.adoc"]))
def test_any_text_has_a_record_and_always_the_same(text: str, name: str) -> None:
    said = record(text, name)
    assert said == record(text, name)
    if said.superseded_by:
        assert said.status is AdrStatus.SUPERSEDED
    for reference in (*said.supersedes, *said.superseded_by):
        assert reference.text
        assert len(reference.text) <= 200


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "piece",
    ["superseded by ", "[", "`a <", "Status: ", "- Status:\n", "| Status ", "**", "<!--", "~~",
     "9 and ", "(", ":doc:`", "{|", "* ", "; Status: a"],
)  # fmt: skip
def test_hostile_metadata_is_read_soon(piece: str) -> None:
    flood = piece * (400_000 // len(piece))
    record(f"# X\n\n{flood}\n\n## Status\n\n{flood}\n")
    record(f"---\nstatus: {flood}\n---\n# X\n")


@pytest.mark.parametrize(
    "open_field", ["Superseded by: (none)", "* Superseded by:", "Replaced by: n/a"]
)
def test_a_field_that_was_left_open_supersedes_nothing(open_field: str) -> None:
    body = "\n\n## Context\n\nQueues.\n\n## Decision\n\nA table.\n"
    section = f"# 1. Queue\n\n## Status\n\nAccepted\n\n{open_field}{body}"
    bullets = f"# 1. Queue\n\n- Status: accepted\n- {open_field.strip('* ')}{body}"
    for text in (section, bullets):
        record = read_record(text, parse("a.md", text))
        assert record is not None
        assert (record.status, record.superseded_by) == (AdrStatus.ACCEPTED, ())
