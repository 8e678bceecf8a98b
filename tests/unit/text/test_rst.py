"""reStructuredText to sections and blocks, as docutils sees them, each placed in the source."""

from __future__ import annotations

import sys

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from hypothesis import given
from hypothesis import strategies as st

from concordance.text.chunking import chunk_markdown
from concordance.text.cutting import ChunkSizes
from concordance.text.lines import LineIndex
from concordance.text.markdown import MarkdownDocument
from concordance.text.rst import parse_rst, rst_outline

GUIDE = """\
=====
Guide
=====

.. image:: https://example.org/badge.svg

Opening words.

Install
=======

Run this::

    Not a title
    -----------

.. code-block:: sh

   Nor this
   ========

- an item

  Nor this
  ========

+------+-----+
| a    | b   |
+------+-----+

====  ====
one   two
====  ====
1     2

3     4
====  ====

Options
-------

:Status: Accepted

term
    its meaning

..

    A quote after an empty comment.

Check
=====
Last.
"""


def paths(document: MarkdownDocument) -> list[tuple[str, ...]]:
    return [section.heading_path for section in document.sections]


def test_titles_open_sections_by_their_adornment() -> None:
    document = parse_rst(GUIDE)
    assert document.title == "Guide"
    assert paths(document) == [
        ("Guide",),
        ("Guide", "Install"),
        ("Guide", "Install", "Options"),
        ("Guide", "Check"),
    ]
    starts = [GUIDE[s.start :].split("\n", 1)[0] for s in document.sections]
    assert starts == ["=====", "Install", "Options", "Check"]


def test_blocks_have_their_kind_and_their_lines() -> None:
    shown = [
        (leaf.kind, GUIDE.split("\n")[leaf.first], leaf.last - leaf.first)
        for leaf in rst_outline(GUIDE)
    ]
    assert shown == [
        ("heading", "=====", 3),
        ("html", ".. image:: https://example.org/badge.svg", 1),
        ("paragraph", "Opening words.", 1),
        ("heading", "Install", 2),
        ("paragraph", "Run this::", 1),
        ("fence", "    Not a title", 2),
        ("fence", ".. code-block:: sh", 4),
        ("list", "- an item", 4),
        ("table", "+------+-----+", 3),
        ("table", "====  ====", 7),
        ("heading", "Options", 2),
        ("list", ":Status: Accepted", 1),
        ("list", "term", 2),
        ("other", "..", 1),
        ("quote", "    A quote after an empty comment.", 1),
        ("heading", "Check", 2),
        ("paragraph", "Last.", 1),
    ]


@pytest.mark.parametrize(
    "text",
    [
        GUIDE,
        "A\n=\n\nB\n-\n\nC\n=\n\nD\n~\n\nE\n-\n",
        "====\nOver\n====\n\nUnder\n====\n\n----\n\nmore\n",
        "Short\n==\n\nLong enough\n====\n",
        "1. one\n2. two\n\nTitle\n*****\n\n   quoted\n   title\n   =====\n",
        ".. note::\n\n   Inside\n   ======\n\n   x\n\nAfter\n=====\n",
        "| lines\n| of verse\n\nT\n=\n\n-a  option\n--b=c  other\n\n>>> 1 + 1\n2\n\nU\n=\n",
        "Unfinished\n==========\n\n====\nx",
        "A. Not a list\nB. But a paragraph\n\nTitle\n-----\n.. _target: x\n\n__ anonymous\n",
        "T\n=\n\nliteral::\n\n> quoted\n> literal\n\nU\n=\n",
    ],
)
def test_titles_are_those_of_docutils(text: str) -> None:
    settings = {"report_level": 5, "halt_level": 5, "doctitle_xform": False}
    tree = publish_doctree(text, settings_overrides=settings)
    wanted = [
        (len(title.parent.section_hierarchy()), title.rawsource)
        for title in tree.findall(nodes.title)
        if isinstance(title.parent, nodes.section)
    ]
    assert [(leaf.level, leaf.source) for leaf in rst_outline(text) if leaf.level] == wanted


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_in_every_format(end: str) -> None:
    text = f"Title{end}====={end}{end}a\x0cb\u2028c\x85d{end}{end}Next{end}----{end}x"
    document = parse_rst(text)
    assert paths(document) == [("Title",), ("Title", "Next")]
    assert LineIndex(text).line_of(document.sections[1].start) == 6
    assert text[document.sections[1].start :] == f"Next{end}----{end}x"


def test_directives_and_roles_do_nothing() -> None:
    text = (
        ".. role:: odd\n\n.. default-role:: odd\n\n.. include:: /etc/passwd\n\n"
        ".. raw:: html\n   :file: /etc/passwd\n\n.. |now| date::\n\n`x` :nobody:`y` |now|\n"
    )
    (section,) = parse_rst(text).sections
    assert text[section.start : section.end] == text
    with_list = parse_rst("`x`\n\nT\n=\n")
    assert with_list.title == "T"


def test_a_title_without_an_end_is_text() -> None:
    assert paths(parse_rst("====\nTitle")) == [()]
    assert paths(parse_rst("\n\n")) == []
    assert paths(parse_rst("")) == []


HOSTILE = {
    "a deep list": "\n".join("  " * n + "- x" for n in range(3_000)),
    "many lists": "- x\n\n" * 20_000,
    "many definitions": "x\n  y\n" * 20_000,
    "quotes on one line": "> " * 50_000,
    "ticks": "`" * 60_000,
    "a line of a megabyte": "a" * 1_000_000,
    "many titles": "T\n=\n\n" * 20_000,
    "titles of every style": "".join(f"T{n}\n{chr(33 + n % 15) * 9}\n\n" for n in range(20_000)),
    "borders alone": "== ==\n" * 20_000,
    "tables that do not end": "== ==\nx\n" * 20_000,
    "directives": ".. x::\n" * 20_000,
    "literals": "x::\n\n" * 20_000,
    "short overlines": "=\n" * 20_000,
    "overlines": "====\n" * 20_000,
    "empty items": "1. \n" * 20_000,
    "tabs": "\t" * 100_000 + "x",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_text_is_read_soon_and_whole(text: str) -> None:
    before = sys.getrecursionlimit()
    document = parse_rst(text)
    assert sys.getrecursionlimit() == before
    covered = "".join(text[s.start : s.end] for s in document.sections)
    assert covered.split() == text.split()


LINES = st.sampled_from(
    ["Title", "=====", "-----", "~~~~", "==", "", "", "x::", "    code", "- item", "1. one",
     ".. note::", ".. _t:", "__ t", "::", ":Status: x", "| verse", "+--+", "== ==", "..", ">>> 1",
     "\tTab", "term\x0c", "Ü 復旧 \u2028 🎉", "A.", "(i) x", "--opt  x", "`a <b>`_", "====="]
)  # fmt: skip


@given(st.lists(LINES, max_size=30), st.sampled_from(["\n", "\r\n", "\r"]))
def test_every_word_of_any_text_is_in_a_passage_at_its_place(lines: list[str], end: str) -> None:
    text = end.join(lines)
    document = parse_rst(text)
    previous = 0
    for section in document.sections:
        assert not text[previous : section.start].strip()
        assert previous <= section.start <= section.end
        previous = section.end
        for one, other in zip(section.blocks, section.blocks[1:], strict=False):
            assert one.start < one.end <= other.start
    assert not text[previous:].strip()
    chunks = chunk_markdown(text, document, ChunkSizes(target=60, overlap=0, window=20))
    assert all(chunk.content == text[chunk.start : chunk.end] for chunk in chunks)
    kept = {offset for chunk in chunks for offset in range(chunk.start, chunk.end)}
    assert all(offset in kept or sign.isspace() for offset, sign in enumerate(text))


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    covered = "".join(text[s.start : s.end] for s in parse_rst(text).sections)
    assert covered.split() == text.split()
