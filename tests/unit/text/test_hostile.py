"""Texts made to be slow or deep end soon, and lose nothing.

The sizes are such that quadratic work, or unbounded recursion, would show as a time-out.
"""

from __future__ import annotations

import pytest

from concordance.indexing.build import file_document
from concordance.indexing.plan import Found
from concordance.models import DocumentStatus, Scope
from concordance.text.chunking import chunk_markdown
from concordance.text.cutting import ChunkSizes
from concordance.text.markdown import parse_markdown
from concordance.text.scrubbing import Scrubber

N = 20_000
CASES = {
    "quotes on one line": "> " * 100_000,
    "markers on one line": ">" * 100_000,
    "lists on one line": "- " * 50_000 + "x",
    "100,000 list levels": "- " * 100_000 + "x",
    "100,000 levels of numbers": "1) " * 100_000 + "x",
    "a thousand list levels": "".join("  " * n + "- x\n" for n in range(1_000)),
    "a thousand quote levels": "".join(">" * n + " x\n" for n in range(1_000)),
    "links in links": "[" * 30_000 + "a" + "](b)" * 30_000,
    "links that never end": "[a](" * 50_000,
    "emphasis that never ends": "*a _b " * 30_000,
    "code that never ends": "".join("`" * n + " " for n in range(1, 800)),
    "a heading of links": "# " + "[a](" * 30_000 + "\n\nx\n",
    "entities that never end": "&#" * 100_000,
    "references": "[a]: /b\n\n" + "[a]" * 50_000,
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


RECORDS = {
    "a wide status": "# 1. X\n\nStatus: superseded" + " " * 200_000 + "by x\n",
    "a wide line": "# 1. X\n\nStatus: accepted" + "\t" * 200_000 + "| Date: 2025-01-01\n",
    "wide lines": "# 1. X\n\n" + (" " * 2_000 + "Status: accepted by" + " " * 2_000 + "x\n") * 100,
    "brackets": "# 1. X\n\n## Status\n\nSuperseded by " + "[" * 100_000 + "\n",
    "links": "# 1. X\n\n## Status\n\nSuperseded by " + "[a](b) " * 30_000 + "\n",
    "bullets": "# 1. X\n\n## Status\n\n" + "* Superseded by [2](2.md)\n" * 5_000,
    "rows": "# 1. X\n\n|Status|Date|\n|-|-|\n" + "|accepted|2025-01-01|\n" * 5_000,
    "cells of HTML": "# 1. X\n\n<table>" + "<tr><td>Status</td><td>x</td></tr>" * 5_000,
    "terms of HTML": "# 1. X\n\n<dl>" + "<dt>Status<dd>accepted" * 5_000,
    "deep indentation": "".join("  " * n + "- x\n" for n in range(1_000)),
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("suffix", [".md", ".rst", ".adoc"])
@pytest.mark.parametrize("text", RECORDS.values(), ids=RECORDS.keys())
def test_a_record_is_read_soon_in_every_format(text: str, suffix: str) -> None:
    name = f"docs/adr/0001-x{suffix}"
    found = Found(Scope.ADR, "file", name, "x", len(text))
    document = file_document(
        found,
        text.encode(),
        commit="c",
        chunker="1",
        sizes=ChunkSizes(),
        language=lambda _: "english",
        scrubber=Scrubber(()),
    )
    assert document.status is DocumentStatus.INDEXED
