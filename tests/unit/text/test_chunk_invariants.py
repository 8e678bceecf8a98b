"""What holds of the chunks of any text."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from concordance.text.chunking import Chunk, chunk_markdown, chunk_plain
from concordance.text.cutting import ChunkSizes
from concordance.text.decoding import SourceText, decode
from concordance.text.lines import LineIndex
from concordance.text.markdown import parse_markdown

CORPORA = sorted((Path(__file__).parents[4] / "shared" / "corpora").glob("*.tar.gz"))

SNIPPETS = st.sampled_from(
    [
        *("# Title\n", "## Part\n\n", "### `x` *y*\n", "Setext\n---\n", "#\n", "\n", "\n\n", " "),
        *("A sentence of some words. Another one! ", "word " * 30, "line\n" * 10, "x" * 120),
        *("```py\nx = 1\n\ny = 2\n```\n", "~~~\n# no\n", "- item\n  more\n", "> quote\n", "---\n"),
        *("| a | b |\n|---|---|\n| c | d |\n" * 2, "<!-- c -->\n", "[r]: /url\n", "    code\n"),
        *("👩‍👩‍👧" * 9, "e\u0301" * 25, "🇨🇭" * 21 + "🇨", " \u0301", "\u0600 ", "中文句子。" * 12),
        *("\r\n", "\r", "\x0c", "\x85", "\u2028", "\t\t", " " * 90, "\0", "a" + "\u0301" * 130),
        "key: value\n",
    ]
)
TEXTS = st.one_of(st.lists(SNIPPETS, max_size=16).map("".join), st.text(max_size=200))
SIZES = st.builds(
    ChunkSizes,
    target=st.sampled_from([1, 3, 17, 60, 200]),
    overlap=st.sampled_from([0, 1, 15, 300]),
    window=st.sampled_from([0, 1, 20, 100]),
)


def check(text: str, chunks: tuple[Chunk, ...], sizes: ChunkSizes) -> None:
    lines = LineIndex(text)
    clusters = [match.span() for match in regex.finditer(r"\X", text)]
    bounds = {0, *(end for _, end in clusters)}
    covered, previous = 0, -1
    for ordinal, chunk in enumerate(chunks):
        assert chunk.ordinal == ordinal
        assert chunk.content == text[chunk.start : chunk.end]
        assert chunk.content.strip()
        assert previous < chunk.start
        assert {chunk.start, chunk.end} <= bounds
        assert not text[covered : chunk.start].strip()
        assert text[max(covered, chunk.start) : chunk.end].strip(), "nothing new in it"
        first, last = lines.span_of(chunk.start_line), lines.span_of(chunk.end_line)
        assert first[0] <= chunk.start < first[1]
        assert last[0] < chunk.end <= last[1]
        if len(chunk.content) > sizes.bound:
            assert len(regex.findall(r"\X", chunk.content.strip())) == 1
        previous, covered = chunk.start, max(covered, chunk.end)
    assert not text[covered:].strip()


@given(TEXTS, SIZES)
@settings(max_examples=400, deadline=None)
def test_markdown(text: str, sizes: ChunkSizes) -> None:
    document = parse_markdown(text)
    chunks = chunk_markdown(text, document, sizes)
    check(text, chunks, sizes)
    assert chunks == chunk_markdown(text, parse_markdown(text), sizes)


@given(TEXTS, SIZES)
@settings(max_examples=400, deadline=None)
def test_plain(text: str, sizes: ChunkSizes) -> None:
    check(text, chunk_plain(text, sizes), sizes)


@given(TEXTS, SIZES)
@settings(max_examples=200, deadline=None)
def test_every_body_has_the_path_of_its_section(text: str, sizes: ChunkSizes) -> None:
    document = parse_markdown(text)
    bodies = [
        (block.start, section.heading_path)
        for section in document.sections
        for block in section.blocks
        if section.level and block.kind in {"paragraph", "list", "quote", "fence", "table", "code"}
    ]
    for chunk in chunk_markdown(text, document, sizes):
        inside = {path for start, path in bodies if chunk.start <= start < chunk.end}
        assert inside <= {chunk.heading_path}


@pytest.mark.skipif(not CORPORA, reason="the corpora are not beside this checkout")
@pytest.mark.parametrize("corpus", CORPORA, ids=lambda path: path.name)
def test_real_documents(corpus: Path) -> None:
    with tarfile.open(corpus) as archive:
        members = [m for m in archive if m.isfile() and m.name.lower().endswith(".md")]
        for member in members[::8]:
            stream = archive.extractfile(member)
            source = decode(stream.read() if stream else b"")
            if isinstance(source, SourceText) and len(source.text) < 200_000:
                text = source.text
                check(text, chunk_markdown(text, parse_markdown(text)), ChunkSizes())
