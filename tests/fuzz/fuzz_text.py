"""Any text, as a document and as a decision record, in every format."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.build import file_document
from concordance.indexing.plan import Found
from concordance.models import DocumentStatus, Scope
from concordance.text.chunking import chunk_markdown
from concordance.text.cutting import ChunkSizes
from concordance.text.markdown import parse_markdown
from concordance.text.scrubbing import Scrubber
from tests.fuzz.profile import FUZZED
from tests.unit.text.test_chunk_invariants import SNIPPETS, check

RECORD_WORDS = st.sampled_from(
    [
        *(
            "# 1. Queue\n\n",
            "## Status\n\n",
            "Status: ",
            "* Status: ",
            "| Status | Date |\n|-|-|\n",
        ),
        *(
            "accepted",
            "superseded by ",
            "Supersedes ",
            "[2](0002-x.md)",
            "[[2]]",
            "ADR-0003",
            "\n\n",
        ),
        *(
            "2025-01-02",
            "Date: 2. Januar 2025\n",
            "Deciders: a, b\n",
            "---\n",
            ":status: x\n",
            "..\n",
        ),
        *(
            "====  ===\na     b\n====  ===\n",
            "<dl><dt>Status<dd>x",
            "<!--",
            "-->",
            "[[",
            "`x <y>`_",
        ),
    ]
)
REPEATED = st.tuples(st.text(min_size=1, max_size=4), st.integers(1, 3_000)).map(
    lambda part: part[0] * part[1]
)
TEXTS = st.lists(
    st.one_of(SNIPPETS, RECORD_WORDS, REPEATED, st.text(max_size=40)), max_size=14
).map("".join)


@FUZZED
@given(TEXTS)
def test_passages_lose_nothing_and_cite_their_lines(text: str) -> None:
    check(text, chunk_markdown(text, parse_markdown(text)), ChunkSizes())


@FUZZED
@given(
    st.one_of(TEXTS.map(lambda t: t.encode("utf-8", "surrogatepass")), st.binary(max_size=300)),
    st.sampled_from([".md", ".mdx", ".rst", ".adoc"]),
)
def test_any_bytes_are_a_document_or_a_reason(data: bytes, suffix: str) -> None:
    found = Found(Scope.ADR, "file", f"docs/adr/0001-x{suffix}", "x", len(data))
    document = file_document(
        found,
        data,
        commit="c",
        chunker="1",
        sizes=ChunkSizes(),
        language=lambda _: "english",
        scrubber=Scrubber(()),
    )
    if document.status is DocumentStatus.INDEXED:
        assert document.passages
    elif document.status is not DocumentStatus.EMPTY:
        assert document.reason
    lines = data.count(b"\n") + data.count(b"\r") + 1
    for passage in document.passages:
        assert passage.content.strip()
        assert "\0" not in passage.content
        assert json.loads(json.dumps(passage.content)) == passage.content
        assert passage.start_line is not None
        assert passage.end_line is not None
        assert 1 <= passage.start_line <= passage.end_line <= lines
