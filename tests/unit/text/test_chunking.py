"""Chunks of particular texts: what goes together, and where it is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest

from concordance.text.chunking import (
    Chunk,
    chunk_markdown,
    chunk_plain,
    chunker_fingerprint,
)
from concordance.text.cutting import ChunkSizes
from concordance.text.markdown import parse_markdown

SMALL = ChunkSizes(target=80, overlap=20, window=20)


def chunked(text: str, sizes: ChunkSizes | None = None) -> tuple[Chunk, ...]:
    return chunk_markdown(text, parse_markdown(text), sizes or ChunkSizes())


def test_a_heading_alone_goes_with_its_child_and_each_body_keeps_its_path() -> None:
    text = "# Guide\n\n## Install\n\nDo it.\n\n### Check\ntext\n"
    found = [(chunk.heading_path, chunk.content) for chunk in chunked(text)]
    assert found == [
        (("Guide", "Install"), "# Guide\n\n## Install\n\nDo it."),
        (("Guide", "Install", "Check"), "### Check\ntext"),
    ]


def test_headings_without_body_stay_findable() -> None:
    (chunk,) = chunked("Short intro.\n\n# Agenda\n\n# Actions\n")
    assert chunk.content == "Short intro.\n\n# Agenda\n\n# Actions"
    (only,) = chunked("# Only title")
    assert (only.heading_path, only.content) == (("Only title",), "# Only title")


def test_a_heading_alone_at_the_end_goes_with_the_chunk_before() -> None:
    found = chunked("# A\n\n## B\nbody\n\n## C\n\n# D\nmore\n")
    assert [(chunk.heading_path, chunk.start_line, chunk.end_line) for chunk in found] == [
        (("A", "B"), 1, 6),
        (("D",), 8, 9),
    ]


def test_an_outline_of_headings_has_the_path_that_they_share() -> None:
    (chunk,) = chunked("# A\n## B\n### C\n### D\n")
    assert chunk.heading_path == ("A",)


def test_badges_and_comments_go_with_the_first_heading_and_prose_does_not() -> None:
    (badges,) = chunked("<!-- licence -->\n[![ci](a.svg)](b)\n\n# Project\nwords\n")
    assert badges.heading_path == ("Project",)
    prose, project = chunked("Some words.\n\n# Project\nmore words\n")
    assert (prose.heading_path, project.heading_path) == ((), ("Project",))


def test_front_matter_is_a_chunk_of_its_own() -> None:
    front, body = chunked("---\nstatus: accepted\ndate: 2024-01-02\n---\n\n# Use RRF\ntext\n")
    assert front.content == "---\nstatus: accepted\ndate: 2024-01-02\n---"
    assert (body.heading_path, body.start_line, body.end_line) == (("Use RRF",), 6, 7)


def test_no_text_no_chunk() -> None:
    assert chunked("") == ()
    assert chunked(" \n\n\t") == ()
    assert chunk_plain("") == ()
    assert chunk_plain("\n \n") == ()


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_outer_blank_lines_go_and_lines_stay_right(ending: str) -> None:
    text = ending.join(["", " ", "", "    indented", "a\x0cb\x85c\u2028d", "", ""])
    (chunk,) = chunked(text)
    assert chunk.content == f"    indented{ending}a\x0cb\x85c\u2028d"
    assert (chunk.start_line, chunk.end_line) == (4, 5)


def test_cuts_fall_between_paragraphs_and_overlap_is_a_whole_line() -> None:
    text = "# T\n\n" + "\n\n".join(f"Paragraph {n} has a line.\nAnd one more." for n in range(6))
    found = chunked(text, SMALL)
    assert len(found) > 2
    for earlier, later in pairwise(found):
        assert text[earlier.end : earlier.end + 2] == "\n\n"
        assert later.start < earlier.end
        assert later.content.startswith("And one more.")
    assert all(chunk.heading_path == ("T",) for chunk in found)


def test_no_overlap_into_a_heading() -> None:
    text = "# A heading of some length\n\n" + "x" * 70 + "\n\n" + "y" * 70
    first, second = chunked(text, SMALL)
    assert first.content.endswith("x" * 70)
    assert second.start >= len("# A heading of some length\n\n")


def test_a_fence_that_fits_is_whole_and_without_overlap() -> None:
    fence = "```\n" + "code = 1\n" * 8 + "```"
    text = "# T\n\n" + "Some words before it, a line.\n" * 2 + "\n" + fence + "\n\nAnd words after."
    found = chunked(text, SMALL)
    assert [fence in chunk.content for chunk in found].count(True) == 1
    assert any(chunk.content.startswith(fence) for chunk in found)


def test_a_fence_in_a_list_is_whole_too() -> None:
    fence = "  ```\n" + "  code = 1\n" * 6 + "  ```"
    text = "- step\n\n" + "  words of a step\n" * 3 + "\n" + fence + "\n\n- another step\n" * 2
    assert any(fence in chunk.content for chunk in chunked(text, SMALL))


def test_a_fence_right_after_its_heading_stays_with_it_inside_the_window() -> None:
    text = "# T\n\n```\n" + "code = 1\n" * 8 + "```\n\nwords after it that go on and on\n"
    first, *_ = chunked(text, SMALL)
    assert first.content.startswith("# T\n\n```")
    assert first.content.endswith("```")


def test_a_long_fence_and_a_long_table_are_cut_at_line_ends() -> None:
    rows = "".join(f"| {n} | cell |\n" for n in range(40))
    for text in ("```\n" + "let x = 1;\n" * 40 + "```\n", "| a | b |\n|---|---|\n" + rows):
        found = chunked(text, SMALL)
        assert len(found) > 3
        for chunk in found:
            assert chunk.start == 0 or text[chunk.start - 1] == "\n"
            assert chunk.end == len(text) or text[chunk.end] == "\n"


def test_long_lines_are_cut_at_sentences_then_words_then_hard() -> None:
    sentences = chunk_plain("Here is a sentence. " * 20, SMALL)
    assert all(chunk.content.endswith(".") for chunk in sentences)
    words = chunk_plain("word " * 100, SMALL)
    assert all(set(chunk.content.split()) == {"word"} for chunk in words)
    chinese = chunk_plain("这是一个句子。" * 40, SMALL)
    assert all(chunk.content.endswith("。") for chunk in chinese)
    hard = chunk_plain("x" * 500, SMALL)
    assert [len(chunk.content) for chunk in hard][:-1] == [80] * (len(hard) - 1)


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧", "e\u0301", "🇨🇭", "각", "क्षि", "1\ufe0f\u20e3"])
def test_no_cluster_is_cut(cluster: str) -> None:
    found = chunk_plain(cluster * 200, SMALL)
    assert len(found) > 2
    assert {len(chunk.content) % len(cluster) for chunk in found} == {0}
    assert {chunk.start % len(cluster) for chunk in found} == {0}


def test_no_line_ending_is_cut() -> None:
    text = "\r\n".join(["words of a line"] * 60)
    for chunk in chunk_plain(text, SMALL):
        assert not chunk.content.startswith("\n")
        assert not chunk.content.endswith("\r")


def test_a_cluster_longer_than_the_bound_is_a_chunk() -> None:
    marks = "a" + "\u0301" * 300
    text = "words before. " * 10 + marks + " words after." * 10
    found = chunk_plain(text, SMALL)
    assert [chunk.content for chunk in found if len(chunk.content) > SMALL.bound] == [marks]


def test_indentation_longer_than_a_chunk_is_dropped() -> None:
    found = chunk_plain("first\n" + " " * 500 + "last", SMALL)
    assert [chunk.content for chunk in found] == ["first", "last"]


def test_plain_text_is_cut_at_paragraphs_and_keeps_the_path_given() -> None:
    text = "\n\n".join("A turn of the talk, with words." for _ in range(8))
    found = chunk_plain(text, SMALL, ("Session", "Turn"))
    assert {chunk.heading_path for chunk in found} == {("Session", "Turn")}
    assert all(chunk.content.endswith("words.") for chunk in found)


def test_fingerprint_holds_the_version_and_the_sizes() -> None:
    assert chunker_fingerprint(ChunkSizes()) == "v1-t1600-o150-w400"
    assert chunker_fingerprint(SMALL) != chunker_fingerprint(ChunkSizes())


@pytest.mark.parametrize("sizes", [(0, 0, 0), (10, -1, 0), (10, 0, -1)])
def test_sizes_must_make_sense(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="chunk sizes"):
        ChunkSizes(*sizes)
