"""Passages put together again are the lines that they were cut from."""

from __future__ import annotations

import re

from hypothesis import given, settings

from concordance.text.chunking import chunk_markdown, chunk_plain
from concordance.text.cutting import ChunkSizes
from concordance.text.lines import LINE_END
from concordance.text.markdown import parse_markdown
from concordance.text.rejoining import Piece, rejoin
from tests.unit.text.test_chunk_invariants import SIZES, TEXTS


def without_space(text: str) -> str:
    return re.sub(r"\s+", "", text)


@given(TEXTS, SIZES)
@settings(max_examples=60, deadline=None)
def test_every_line_has_what_it_had_but_for_white_space(text: str, sizes: ChunkSizes) -> None:
    for chunks in (chunk_markdown(text, parse_markdown(text), sizes), chunk_plain(text, sizes)):
        lines = rejoin(Piece(c.content, c.start_line, c.start, c.end) for c in chunks)
        whole = dict(enumerate(LINE_END.split(text), 1))
        assert set(lines) <= set(whole)
        for number, line in whole.items():
            assert without_space(lines.get(number, "")) == without_space(line), number


def test_lines_are_whole_across_passages_that_overlap_or_meet_within_a_line() -> None:
    text = "one two\r\nthree\r\n\r\n  four five\n"
    pieces = [
        Piece("one two\r\nthree", 1, 0, 14),
        Piece("three", 2, 9, 14),
        Piece("  four", 4, 18, 24),
        Piece("five", 4, 25, 29),
    ]
    assert [text[p.start : p.end] for p in pieces] == [p.content for p in pieces]
    assert rejoin(reversed(pieces)) == {1: "one two", 2: "three", 4: "  four five"}


def test_a_piece_without_its_secret_repeats_no_line() -> None:
    pieces = [Piece("a [secret]\nb", 1, 0, 40), Piece("b\nc", 2, 39, 42)]
    assert rejoin(pieces) == {1: "a [secret]", 2: "b", 3: "c"}
