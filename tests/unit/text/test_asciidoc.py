"""AsciiDoc to sections and blocks, each placed in the source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.text.asciidoc import asciidoc_outline, parse_asciidoc

TEXT = """\
= Guide
:toc:

Opening
words.

== Install

----
== Not a title
----

* an item
* another

|===
|a |b
|===

=== Options ===
====
An example.
====
== Open
----
== A title, as nothing closes the block
"""


def test_titles_open_sections() -> None:
    document = parse_asciidoc(TEXT)
    assert document.title == "Guide"
    assert [section.heading_path for section in document.sections] == [
        ("Guide",),
        ("Guide", "Install"),
        ("Guide", "Install", "Options"),
        ("Guide", "Open"),
        ("Guide", "A title, as nothing closes the block"),
    ]


def test_blocks_have_their_kind_and_their_lines() -> None:
    lines = TEXT.split("\n")
    shown = [
        (leaf.kind, lines[leaf.first], leaf.last - leaf.first) for leaf in asciidoc_outline(TEXT)
    ]
    assert shown == [
        ("heading", "= Guide", 1),
        ("paragraph", ":toc:", 1),
        ("paragraph", "Opening", 2),
        ("heading", "== Install", 1),
        ("fence", "----", 3),
        ("list", "* an item", 1),
        ("list", "* another", 1),
        ("table", "|===", 3),
        ("heading", "=== Options ===", 1),
        ("quote", "====", 3),
        ("heading", "== Open", 1),
        ("paragraph", "----", 1),
        ("heading", "== A title, as nothing closes the block", 1),
    ]


@given(
    st.lists(st.sampled_from(["= T", "== U", "----", "====", "x", "", "* i", "|==="]), max_size=20)
)
def test_any_text_is_read_whole(lines: list[str]) -> None:
    text = "\n".join(lines)
    covered = "".join(text[s.start : s.end] for s in parse_asciidoc(text).sections)
    assert covered.split() == text.split()


@pytest.mark.timeout(10)
@pytest.mark.parametrize("line", ["----\n====\n", "= T\n", "x\n\n", "----\n\n", "* " * 9 + "\n"])
def test_a_long_text_is_read_soon(line: str) -> None:
    parse_asciidoc(line * 20_000)
