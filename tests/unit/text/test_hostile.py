"""Texts made to be slow or deep end soon, and lose nothing.

The sizes are such that quadratic work, or unbounded recursion, would show as a time-out.
"""

from __future__ import annotations

import pytest

from concordance.text.chunking import chunk_markdown
from concordance.text.markdown import parse_markdown

N = 20_000
CASES = {
    "quotes on one line": "> " * 100_000,
    "markers on one line": ">" * 100_000,
    "lists on one line": "- " * 50_000 + "x",
    "quotes and lists": "> - " * 25_000 + "x",
    "brackets": "[" * 100_000,
    "an open label": "[" + "a" * 1_000_000,
    "an open label of many lines": "[a\n" + "b\n" * N,
    "a line of a megabyte": "word " * 200_000,
    "a megabyte of indentation": " " * 1_000_000 + "x",
    "a row of a megabyte": "|a|b|\n|-|-|\n|" + "c|" * 500_000,
    "a header of a megabyte": "|" + "a|" * 250_000 + "\n|" + "-|" * 250_000 + "\n|c|\n",
    "a table of 50,000 rows": "|a|b|\n|-|-|\n" + "|some|cells|\n" * 50_000,
    "unclosed fences": "```\n~~~\n" * N,
    "quotes that look ahead in vain": "> #\nx\n" * N,
    "nested quotes that look ahead": ("> " * 15 + "#\nx\n") * 2_000,
    "lists inside quotes": "> - a\nb\n" * 5_000,
    "deep quotes, many times": ("> " * 50 + "a\n") * 5_000,
    "deep lists, many times": ("- " * 50 + "a\n") * 5_000,
    "an open comment": "<!--\n" + "# x\n" * N,
    "an open tag": "<a" + ' b="c"' * N,
    "a heading of a megabyte": "t" * 1_000_000 + "\n===\n" + "body\n" * 1_000,
    "a letter with 100,000 marks": "a" + "\u0301" * 100_000,
    "half a flag, 20,000 times": "\U0001f1e6" * N,
    "front matter without end": "---\n" + "a: b\n" * N,
    "lone CR": "a\rb\r\r" * N,
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_ends_soon_and_loses_nothing(text: str) -> None:
    document = parse_markdown(text)
    covered = 0
    for chunk in chunk_markdown(text, document):
        assert not text[covered : chunk.start].strip()
        assert sum(map(len, chunk.heading_path)) <= 1500
        covered = max(covered, chunk.end)
    assert not text[covered:].strip()
