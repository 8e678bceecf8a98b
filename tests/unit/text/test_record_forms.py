"""What is a decision record by its form, and what stands beside records."""

from __future__ import annotations

import pytest

from concordance.text.formats import parse
from concordance.text.record_forms import Form, form_of, is_front_page, is_named_otherwise
from concordance.text.records import read_record

MADR = (
    "---\nstatus: {proposed | rejected | accepted}\ndate: {YYYY-MM-DD when updated}\n---\n"
    "# {short title of solved problem and solution}\n\n## Context\n"
)
MADR_2 = (
    "# [short title of solved problem and solution]\n\n* Status: [proposed | rejected | accepted]"
    "\n* Date: [YYYY-MM-DD when the decision was last updated]\n\n## Context\n"
)


def form(text: str, name: str = "x.md") -> Form:
    document = parse(name, text)
    return form_of(text, document, read_record(text, document))


@pytest.mark.parametrize(
    "text",
    [
        "# X\n\n## Status\n\nAccepted\n",
        "# X\n\n## Context and Problem Statement\n\na\n\n## Considered Options\n\nb\n",
        "## Context and Problem Statement\n\nno title\n",
        "## Proposal\n\n### A\n\n### B\n\n### C\n",
        "---\nstatus: proposed\n---\n\n## What is it?\n\n## How?\n\n## When?\n",
        "# X\n\n* Deciders: Ada\n",
        "# X\n\n## Kontext\n\na\n\n## Entscheidung\n\nb\n",
        "# X\n\n## 背景\n\na\n\n## 决策\n\nb\n",
        "---\nstatus: accepted\ndate: 2024-03-15\n---\n# {short title of it}\n\n## Context\n",
        "# ADR-000: Record decisions\n\n## Status\n\nAccepted\n\n## Context\n\na\n",
        "# ADR-0000 Use records\n\n## Date\n\nunknown\n\n## Status\n\nAccepted\n",
        "# Title of pages in the shop\n\n## Status\n\nAccepted\n\n## Context\n\na\n",
        "# Change the title of the front page\n\n## STATUS\n\nRejected\n",
        "# [RFC] Use Kafka [draft]\n\n## Status\n\nProposed\n\n## Context\n\na\n",
        "Titles <title> in pages\n=======================\n\nStatus\n------\nAccepted\n",
    ],
)
def test_records(text: str) -> None:
    assert form(text) is Form.RECORD


@pytest.mark.parametrize(
    "text",
    [
        "# 1. Queue\n\nWe use a queue for orders.\n",
        "# Guide\n\nHow to brew.\n\n## Water\n\nBoil it first.\n",
        "just a sentence\n",
    ],
)
def test_short_texts_speak_neither_for_nor_against(text: str) -> None:
    assert form(text) is Form.PLAIN


def test_lists_of_links_are_an_index() -> None:
    links = "\n".join(f"* [{n}. X](000{n}-x.md)" for n in range(1, 5))
    assert form(f"# Architecture Decision Log\n\n{links}\n") is Form.INDEX
    assert form(f"# All\n\n## Decisions\n\n{links}\n") is Form.INDEX
    rows = "\n".join(f"| [{n}](000{n}-x.md) | X | accepted |" for n in range(1, 5))
    assert form(f"# ADRs\n\n| number | title | status |\n|---|---|---|\n{rows}\n") is Form.INDEX
    options = "\n".join(f"* [Tool {n}](https://example.org/{n}.md)" for n in range(9))
    assert form(f"# Use a tool\n\n## Considered Options\n\n{options}\n") is Form.RECORD
    assert form("All\n===\n\n.. toctree::\n\n   0001-x\n", "all.rst") is Form.INDEX
    linked = f"# X\n\n## Status\n\nAccepted\n\n## Links\n\n{links}\n"
    assert form(linked) is Form.RECORD


@pytest.mark.parametrize(
    "text",
    [
        "# NUMBER. TITLE\n\nDate: DATE\n\n## Status\n\nSTATUS\n\n## Context\n\nThe issue.\n",
        "# <ADR NUMBER>. <ADR TITLE>\n\nDate: YYYY-MM-DD\n\n## Status\n\nAccepted\n",
        MADR,
        MADR_2,
        "# ADR Template\n\n## Status\n\nProposed\n\n## Context\n\nx\n",
        "# ADR-NNNN: Title of the decision\n\n## Status\n\nproposed | accepted\n\n## Context\n",
        "# ADR-000: Title\n\n## Status\n\nProposed\n\n## Context\n\nWhat is the issue?\n",
        "# N. Title\n\n## Status\n\nProposed\n",
        "# ADR XXXX: Title of decision\n\n**Status**: Proposed\n",
        "# ADR-NNN: [Short title]\n\n## Status\n\nAccepted\n",
        "# [short title of solved problem and solution]\n\n## Status\n\nAccepted\n",
        "# X\n\n## Status\n\nproposed\n\n## Date\n\nYYYY-MM-DD\n".replace(
            "# X", "# NUMBER. TITLE", 1
        ),
    ],
)
def test_templates(text: str) -> None:
    assert form(text) is Form.TEMPLATE


def test_notes_with_sections_of_their_own_are_something_else() -> None:
    notes = "# Meeting\n\n## Present\n\nAda\n\n## Agenda\n\nTea\n\n## Next time\n\nMore tea\n"
    assert form(notes) is Form.OTHER


def test_front_pages() -> None:
    for name in ("README.md", "a/readme.rst", "b/INDEX.adoc", "_index.md"):
        assert is_front_page(name)
    assert not is_front_page("0001-readme.md")


def test_what_statuses_there_are_is_no_section_of_a_record() -> None:
    statuses = "# How we decide\n\n## Statuses\n\n- Proposed\n\n## Roles\n\na\n\n## Meetings\n\nb\n"
    assert form(statuses) is Form.OTHER


@pytest.mark.parametrize(
    ("name", "otherwise"),
    [
        *(("adr-index.md", True), ("decision-log.md", True), ("architecture-decisions.md", False)),
        *(("adr_list.md", True), ("index-of-decisions.md", True), ("list-adrs-overview.md", True)),
        *(("0007-index.md", False), ("0007-decision-log.md", False), ("adr-007-log.md", False)),
        *(
            ("list-views.md", False),
            ("log-decisions-in-kafka.md", False),
            ("2024-01-05-log.md", False),
        ),
    ],
)
def test_lists_of_decisions_are_told_by_their_names(name: str, otherwise: bool) -> None:
    assert is_named_otherwise(name) is otherwise
