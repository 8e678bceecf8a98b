"""The bounded parser finds the blocks that markdown-it finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from concordance.text.outline import MAX_LEVEL, outline

LINES = (
    "# H",
    "## H ##",
    "#",
    "===",
    "---",
    "text",
    "    code",
    "\tcode",
    "> quote",
    "> # H",
    ">",
    "> > deep",
    "- item",
    "  - # H",
    "10. item",
    "- ```",
    "  ```",
    "```py",
    "~~~",
    "````",
    "<!--",
    "-->",
    "<div>",
    "<a>",
    "| a | b |",
    "|---|---|",
    "| c",
    "[ref]: /url",
    "'title'",
    "[half",
    "* * *",
    "a\x0cb",
    "\u2028# no",
    "",
    "  ",
    "\ufeff# H",
)


@given(
    st.lists(st.sampled_from(LINES), max_size=14),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
@settings(max_examples=400, deadline=None)
def test_agrees_with_the_stock_parser(lines: list[str], ending: str) -> None:
    text = ending.join(lines)
    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(text)
    headings = [
        (*token.map, int(token.tag[1]), tokens[number + 1].content)
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    types = {"fence": "fence", "table_open": "table", "html_block": "html", "code_block": "code"}
    blocks = [(types[t.type], *t.map) for t in tokens if t.type in types and t.map]
    leaves = outline(text)
    assert [(x.first, x.last, x.level, x.source) for x in leaves if x.level] == headings
    assert [(x.kind, x.first, x.last) for x in leaves if x.kind in types.values()] == blocks


def test_kinds_and_lines() -> None:
    text = "# T\n\np\n\n- a\n\n  ```\n  x\n  ```\n- # no\n\n> q\n\n***\n\n    code\n"
    found = [(leaf.kind, leaf.first, leaf.last) for leaf in outline(text)]
    assert found == [
        ("heading", 0, 1),
        ("paragraph", 2, 3),
        ("list", 4, 5),
        ("fence", 6, 9),
        ("list", 9, 10),
        ("quote", 11, 12),
        ("rule", 13, 14),
        ("code", 15, 16),
    ]


def test_a_list_too_deep_for_the_parser_does_not_swallow_what_follows() -> None:
    text = "- " * (MAX_LEVEL * 2) + "deep\n\n# After\n"
    assert [leaf.source for leaf in outline(text) if leaf.level] == ["After"]
