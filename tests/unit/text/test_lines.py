"""Line numbers as CommonMark counts them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.text.lines import LineIndex


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("a", 1),
        ("a\n", 1),
        ("a\r\n\r\nb", 3),
        ("a\rb\rc", 3),
        ("\n\n", 2),
        ("page\x0cbreak\x85and\u2028more\x0b", 1),
        ("a\n\rb", 3),
    ],
)
def test_count(text: str, count: int) -> None:
    assert LineIndex(text).count == count


def test_lines_and_spans_of_mixed_endings() -> None:
    index = LineIndex("ab\r\nc\rd\n")
    assert [index.line_of(offset) for offset in range(9)] == [1, 1, 1, 1, 2, 2, 3, 3, 3]
    assert [index.span_of(line) for line in (1, 2, 3)] == [(0, 4), (4, 6), (6, 8)]
    assert index.start_of(4) == 8


@pytest.mark.parametrize("line", [0, 2, -1])
def test_no_such_line(line: int) -> None:
    with pytest.raises(IndexError):
        LineIndex("one").span_of(line)


def test_an_empty_text_answers_line_one() -> None:
    assert LineIndex("").line_of(0) == 1


@given(st.text(alphabet="ab\r\n\x0c\u2028"))
def test_spans_tile_the_text(text: str) -> None:
    index = LineIndex(text)
    spans = [index.span_of(line) for line in range(1, index.count + 1)]
    assert "".join(text[start:end] for start, end in spans) == text
    for line, (start, end) in enumerate(spans, 1):
        assert {index.line_of(offset) for offset in range(start, end)} == {line}
        assert re.search(r"[\r\n].", text[start : end - 1]) is None
