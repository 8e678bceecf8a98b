"""Decision records: what names another record, what names none, and where that may stand."""

from __future__ import annotations

import pytest

from concordance.models import AdrStatus
from concordance.text.formats import parse
from concordance.text.record_links import Reference
from concordance.text.records import Record, read_record


def record(text: str, name: str = "0001-x.md") -> Record:
    return read_record(text, parse(name, text))


def under_status(value: str) -> Record:
    return record(f"# X\n\n## Status\n\n{value}\n\n## Context\n\nText.\n")


NONE = [
    *(
        "None at this time",
        "none as of 2024-05-01",
        "None, still valid",
        "Currently none",
        "None known",
    ),
    *(
        "Nothing so far",
        "N/A - active",
        "n.a.",
        "No successor",
        "no newer ADR",
        "No one yet",
        "Nope",
    ),
    *(
        "No ADR supersedes this one",
        "none, see ADR 5",
        "Still in force",
        "aucun",
        "ninguna",
        "无",
        "なし",
    ),
    *(
        "ADR-XXXX",
        "ADR-NNN: Title",
        "[ADR number]",
        "(optional)",
        "if applicable",
        "{Link to newer ADR}",
    ),
    *("Leave blank", "link to ADR"),
]


@pytest.mark.parametrize("none", NONE)
def test_a_field_whose_words_say_that_nothing_replaced_it(none: str) -> None:
    section = record(f"# X\n\n## Status\n\nAccepted\n\nSuperseded by: {none}\n")
    field = record(f"# X\n\n- Status: Accepted\n- Superseded by: {none}\n- Supersedes: {none}\n")
    for said in (section, field):
        assert said.status is AdrStatus.ACCEPTED
        assert (said.superseded_by, said.supersedes) == ((), ())


@pytest.mark.parametrize(
    "title",
    [
        *("No magic strings", "No-code tools", "Notifications by mail", "Current users first"),
        *("Nullable columns", "One link a page", "Number formats", "Nonexistent pages"),
    ],
)
def test_a_title_may_begin_like_a_denial(title: str) -> None:
    said = record(f"# X\n\n- Status: Accepted\n- Superseded by: {title}\n")
    assert said.superseded_by == (Reference(title),)
    assert said.status is AdrStatus.SUPERSEDED


@pytest.mark.parametrize("named", ["ADR No. 9", "ADR Nr. 9", "ADR no 9", "decision number 9"])
def test_a_number_may_be_called_one(named: str) -> None:
    said = record(f"# X\n\n## Status\n\nSuperseded by {named}\n")
    assert said.superseded_by == (Reference(named),)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        *(
            ("In force", "accepted"),
            ("In effect since 2021-01-01", "accepted"),
            ("Confirmed", "accepted"),
        ),
        *(("Enforced by a rule", "accepted"), ("No longer in effect", "deprecated")),
        *(
            ("Revoked", "deprecated"),
            ("Rescinded 2021-01-01", "deprecated"),
            ("Inactive", "deprecated"),
        ),
        *(
            ("Vetoed", "rejected"),
            ("Under consideration", "proposed"),
            ("Ready for review", "proposed"),
        ),
        *(
            ("Needs review", "proposed"),
            ("Awaiting approval", "proposed"),
            ("Suggested", "proposed"),
        ),
        *(("Request for comments", "proposed"), ("Open for discussion", "proposed")),
        *(
            ("Accepted. Needs review in 2030", "accepted"),
            ("Accepted, in force since May", "accepted"),
        ),
        *(
            ("Not in force", "unknown"),
            ("In time", "unknown"),
            ("Discussion of it was long", "unknown"),
        ),
    ],
)
def test_further_words_of_a_status(words: str, status: str) -> None:
    assert under_status(words).status.value == status
    assert record(f"# X\n\n**Current status:** {words}\n").status.value == status


@pytest.mark.parametrize(
    "value",
    [
        "Accepted. ADR-3 is superseded by this one.",
        "Accepted\n\nThe record on queues is superseded by this ADR.",
        "Accepted\n\nADR 3 was replaced by this decision",
        "Accepted, ADR-3 is superseded by the present record",
    ],
)
def test_what_this_record_replaced_does_not_replace_it(value: str) -> None:
    said = under_status(value)
    assert (said.status, said.superseded_by) == (AdrStatus.ACCEPTED, ())


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("Accepted, superseding ADR-3", ("ADR-3",)),
        ("Accepted (replacing [ADR 3](0003-x.md) and ADR 4)", ("ADR 3", "ADR 4")),
        ("Accepted, partially superseding ADR-3", ()),
        ("Accepted, replacing Rabbit", ()),
        ("Accepted, not superseding ADR-3", ()),
    ],
)
def test_what_it_is_said_to_be_superseding(value: str, named: tuple[str, ...]) -> None:
    assert tuple(one.text for one in under_status(value).supersedes) == named


def test_links_in_a_table() -> None:
    table = (
        "| Relation | Record |\n|---|---|\n| Supersedes | [ADR 3](0003-x.md) |\n"
        "| **Superseded by** | [ADR 9](0009-x.md) |\n| Status | Rejected |\n| Amends | ADR 5 |\n"
    )
    said = record(f"# X\n\n- Status: accepted\n\n## Related decisions\n\n{table}")
    assert said.supersedes == (Reference("ADR 3", "0003-x.md"),)
    assert said.superseded_by == (Reference("ADR 9", "0009-x.md"),)
    assert said.status_text == "accepted"


BOXED = "This decision has been superseded by"


@pytest.mark.parametrize(
    ("name", "box"),
    [
        ("x.rst", f".. warning::\n\n   {BOXED} `ADR 9 <0009-x.md>`_.\n"),
        ("x.rst", f".. note:: {BOXED}\n   `ADR 9 <0009-x.md>`_.\n"),
        ("x.rst", f".. admonition:: Old\n   :class: warning\n\n   {BOXED} `ADR 9 <0009-x.md>`_.\n"),
        ("x.rst", f".. deprecated:: 2.0\n   {BOXED} `ADR 9 <0009-x.md>`_.\n"),
        ("x.md", f"```{{warning}}\n{BOXED} [ADR 9](0009-x.md).\n```\n"),
        ("x.md", f"~~~{{admonition}} Old\n:class: tip\n{BOXED} [ADR 9](0009-x.md).\n~~~\n"),
        ("x.md", f'!!! warning "Old"\n\n    {BOXED} [ADR 9](0009-x.md).\n'),
        ("x.md", f"??? note\n\n    {BOXED} [ADR 9](0009-x.md).\n"),
    ],
)
def test_a_banner_in_a_box_of_a_generator_of_pages(name: str, box: str) -> None:
    said = record(f"X\n=\n\n{box}\nStatus\n------\n\nAccepted\n", name)
    assert said.superseded_by == (Reference("ADR 9", "0009-x.md"),)
    assert (said.status, said.status_text) == (AdrStatus.SUPERSEDED, "Accepted")


@pytest.mark.parametrize(
    ("name", "box"),
    [
        (
            "x.rst",
            ".. note:: Statuses are proposed, accepted and rejected.\n\n   Status: Rejected\n",
        ),
        ("x.rst", f".. code:: text\n\n   {BOXED} ADR 9.\n"),
        ("x.rst", f".. warning\n   {BOXED} ADR 9.\n"),
        ("x.md", f"```text\n{BOXED} ADR 9.\n```\n"),
        ("x.md", f"```{{code-block}} text\n{BOXED} ADR 9.\n```\n"),
        ("x.md", f"A line\n\n    {BOXED} ADR 9.\n"),
    ],
)
def test_other_boxes_and_code_say_nothing(name: str, box: str) -> None:
    said = record(f"X\n=\n\nStatus\n------\n\nAccepted\n\n{box}", name)
    assert (said.status, said.superseded_by) == (AdrStatus.ACCEPTED, ())


HOSTED = "https://git.example.org/acme/shop/blob/main/docs/adr/0009-use-kafka.md"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (f"Superseded by {HOSTED}", Reference(HOSTED, HOSTED)),
        (f"Superseded by {HOSTED}.", Reference(HOSTED, HOSTED)),
        (
            f"Superseded by {HOSTED}#status (2024-01-02)",
            Reference(f"{HOSTED}#status", f"{HOSTED}#status"),
        ),
        (f"Superseded by <{HOSTED}>", Reference(HOSTED, HOSTED)),
        (f"Superseded: {HOSTED}", Reference(HOSTED, HOSTED)),
        ("Superseded by Use Kafka ([ADR-9](0009-x.md))", Reference("ADR-9", "0009-x.md")),
        (
            "Superseded by our decision on Kafka (`ADR 9 <0009-x.md>`_)",
            Reference("ADR 9", "0009-x.md"),
        ),
        ("Superseded by Use Kafka ([wiki](https://example.org))", Reference("Use Kafka")),
        ("Superseded by Use Kafka (2024-01-02)", Reference("Use Kafka")),
    ],
)
def test_a_bare_address_and_a_link_behind_a_title(value: str, named: Reference) -> None:
    assert under_status(value).superseded_by == (named,)


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        (
            "\n  - name: Ann Lee\n    role: lead\n  - name: Bob\n    email: bob@example.org",
            ("Ann Lee", "Bob"),
        ),
        ("\n  - { name: Ann Lee, role: lead }\n  - {name: Bob}", ("Ann Lee", "Bob")),
        ("\n  - Ann Lee\n  - Bob", ("Ann Lee", "Bob")),
    ],
)
def test_deciders_of_front_matter_may_have_fields_of_their_own(
    listed: str, names: tuple[str, ...]
) -> None:
    assert record(f"---\nstatus: accepted\ndeciders:{listed}\n---\n# X\n").deciders == names


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (":doc:`0009-x`", Reference("0009-x", "0009-x")),
        (":doc:`ADR 9 </adr/0009-x>`", Reference("ADR 9", "/adr/0009-x")),
        (":ref:`adr-9`", Reference("adr-9")),
        (":ref:`Use Kafka <adr-9>`", Reference("adr-9")),
        (":ref:`ADR 9 <kafka>`", Reference("ADR 9")),
        (":ref:`Use Kafka <kafka>`", Reference("Use Kafka")),
        (":std:ref:`ADR 0009 <kafka>`", Reference("ADR 0009")),
    ],
)
def test_a_role_on_a_line_of_its_own_is_no_field(value: str, named: Reference) -> None:
    for status in (
        f":Status:\n   Superseded by {value}\n",
        f"Status\n------\nSuperseded by {value}\n",
    ):
        said = record(f"X\n=\n\n{status}\nContext\n-------\nText.\n", "x.rst")
        assert said.superseded_by == (named,)
        label = value.split("`")[1].split(" <", maxsplit=1)[0]
        assert said.status_text == f"Superseded by {label}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.rst", "X\n=\n\n| Status: Accepted\n| Date: 2021-01-01\n| Deciders: Ann, Bob\n"),
        (
            "x.adoc",
            (
                "= X\n\n* Status: Accepted\n// * Status: Rejected\n* Date: 2021-01-01\n"
                "* Deciders: Ann, Bob\n"
            ),
        ),
        (
            "x.md",
            (
                "# X\n\n<ul><li><b>Status</b>: Accepted</li><li>Date: 2021-01-01</li>"
                "<li>Deciders: Ann, Bob</li></ul>\n"
            ),
        ),
        (
            "x.md",
            "# X\n\n<p>Status: Accepted</p><p>Date: 2021-01-01</p><p>Deciders: Ann, Bob</p>\n",
        ),
        ("x.md", "# X\n\nStatus\n: Accepted\n\nDate\n: 2021-01-01\n\nDeciders\n: Ann\n: Bob\n"),
    ],
)
def test_lines_of_other_markup(name: str, text: str) -> None:
    said = record(text, name)
    assert (said.status_text, str(said.date)) == ("Accepted", "2021-01-01")
    assert said.deciders == ("Ann", "Bob")
