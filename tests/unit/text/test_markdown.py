"""Documents to titles, metadata and sections, each placed in the source."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordance.text.lines import LineIndex
from concordance.text.markdown import MarkdownDocument, parse_markdown

FENCES = """# Guide

## Install

~~~sh
# not a heading
~~~

````md
```
# nor this
```
````

- step

  ```sh
  # nor this
  ```

<!--
# nor this
-->

### Check
text"""


def paths(document: MarkdownDocument) -> list[tuple[str, ...]]:
    return [section.heading_path for section in document.sections]


def test_headings_in_fences_and_comments_open_no_section() -> None:
    document = parse_markdown(FENCES)
    assert paths(document) == [
        ("Guide",),
        ("Guide", "Install"),
        ("Guide", "Install", "Check"),
    ]
    assert FENCES[document.sections[2].start :] == "### Check\ntext"


def test_headings_in_lists_and_quotes_open_no_section() -> None:
    document = parse_markdown("- # In a list\n\n> # In a quote\n\n1. x\n   ===\n")
    assert paths(document) == [()]


def test_setext_headings_levels_and_skipped_levels() -> None:
    text = "One\n===\n\n### Deep\n\nTwo\nlines\n---\nx\n\n# Last #\n"
    document = parse_markdown(text)
    assert paths(document) == [("One",), ("One", "Deep"), ("One", "Two lines"), ("Last",)]
    assert [section.level for section in document.sections] == [1, 3, 2, 1]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("closing", ["---", "..."])
def test_front_matter_is_metadata_and_text_but_no_heading(ending: str, closing: str) -> None:
    lines = ["---", "status: accepted", "date: 2024-01-02", closing, "", "# Use RRF", "text"]
    text = ending.join(lines)
    document = parse_markdown(text)
    assert paths(document) == [(), ("Use RRF",)]
    assert document.front_matter == {"status": "accepted", "date": "2024-01-02"}
    assert document.title == "Use RRF"
    assert document.sections[0].blocks[0].kind == "front_matter"
    assert LineIndex(text).line_of(document.sections[1].start) == 6


def test_a_file_that_opens_with_a_rule_keeps_its_headings() -> None:
    document = parse_markdown("---\n\n# One\nx\n\n---\n\n# Two\ny")
    assert paths(document) == [(), ("One",), ("Two",)]
    assert document.front_matter == {}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Said\n---\n# Heading\n", "Said"),
        ("## Second\n\n# First\n", "First"),
        ("## Only\n\n### Deeper\n", "Only"),
        ("no heading", None),
        ("", None),
        ("#\n\ntext", None),
    ],
)
def test_title(text: str, title: str | None) -> None:
    assert parse_markdown(text).title == title


def test_nothing_gives_no_section() -> None:
    assert parse_markdown("").sections == ()
    assert parse_markdown(" \n\t\n").sections == ()


def test_other_line_separators_end_no_line() -> None:
    text = "a\x0cb\x85c\u2028# no\x0b\n\n# Yes\n"
    document = parse_markdown(text)
    assert paths(document) == [(), ("Yes",)]
    assert text[document.sections[1].start :] == "# Yes\n"


def test_link_definitions_are_in_a_section() -> None:
    text = "# T\n\n[a]: https://example.org\n[b]: <x y> 'z'\n\ntext\n"
    (section,) = parse_markdown(text).sections
    assert [block.kind for block in section.blocks] == ["heading", "other", "paragraph"]
    assert (section.start, section.end) == (0, len(text))


def test_a_table_is_one_block_and_a_long_list_several() -> None:
    text = "| a |\n|---|\n| b |\n| c |\n\n- one\n- two\n\n  more\n"
    (section,) = parse_markdown(text).sections
    found = [(block.kind, text[block.start : block.end].strip()) for block in section.blocks]
    assert found == [
        ("table", "| a |\n|---|\n| b |\n| c |"),
        ("list", "- one"),
        ("list", "- two"),
        ("list", "more"),
    ]


PARTS = st.sampled_from(
    [
        *("# A", "## B", "#", "===", "---", "t: x", "...", "text", "- i", "  > q", "```", "<!--"),
        *("-->", "[a]: b", "|a|\n|-|\n|b|", "\ta", "\x0c", "\u2028x", "\0", "\ud800", "", "+++"),
        "\ufeff",
    ]
)


@given(st.lists(PARTS, max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=300, deadline=None)
def test_sections_hold_all_that_is_visible(parts: list[str], ending: str) -> None:
    text = ending.join(parts)
    lines = LineIndex(text)
    starts = {lines.start_of(line) for line in range(1, lines.count + 2)}
    covered = 0
    for section in parse_markdown(text).sections:
        assert not text[covered : section.start].strip()
        assert section.blocks
        assert (section.blocks[0].kind == "heading") or section.level == 0
        inner = section.start
        for block in section.blocks:
            assert not text[inner : block.start].strip()
            assert block.start < block.end
            assert {block.start, block.end} <= starts | {len(text)}
            inner = block.end
        assert not text[inner : section.end].strip()
        covered = section.end
    assert not text[covered:].strip()
