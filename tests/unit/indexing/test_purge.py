"""A stored document under today's rules, though its source is not at hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordance.indexing.purge import KeptDocument, KeptPassage, scrub_stored
from concordance.text.chunking import chunk_markdown, chunk_plain
from concordance.text.cutting import ChunkSizes
from concordance.text.markdown import parse_markdown
from concordance.text.scrubbing import Scrubber
from tests.planted import planted, traces

PLANTED = planted(5)
SCRUBBER = Scrubber()
SIZES = ChunkSizes(target=120, overlap=30, window=40)
DOCUMENT = KeptDocument(1, "file", "docs/a.md", None, "T", None, None, None, {})


def kept(text: str, event: str | None = None) -> list[KeptPassage]:
    """The passages of a text that was stored as it was."""
    if event is None:
        chunks = chunk_markdown(text, parse_markdown(text), SIZES)
    else:
        chunks = chunk_plain(text, SIZES)
    return [
        KeptPassage(
            id=c.ordinal,
            document_id=1,
            heading_path=list(c.heading_path),
            titled=True,
            start_line=c.start_line if event is None else None,
            end_line=c.end_line if event is None else None,
            start_char=c.start,
            end_char=c.end,
            event_id=event,
            last_event_id=event,
            speaker=None,
            preceding=None,
            content=c.content,
        )
        for c in chunks
    ]


@given(st.sampled_from(sorted(PLANTED)), st.integers(0, 200), st.sampled_from([None, "e1"]))
@settings(max_examples=200, deadline=None)
def test_a_key_that_was_cut_between_passages_is_gone(
    kind: str, before: int, event: str | None
) -> None:
    line, key = PLANTED[kind]
    lead = ("some words " * 40)[:before].rstrip()
    text = f"# T\n\n{lead}\n{line.format(key)}\n\nafter it, {'more words ' * 30}\n"
    passages = kept(text, event)
    change = scrub_stored(DOCUMENT, passages, SCRUBBER)
    assert change is not None
    assert sum(change.replaced.values()) >= 1
    pieces = {t[at : at + 14] for t in traces(key) for at in range(0, len(t) - 13, 5)} or {key}
    assert [p for p in pieces for c in change.passages if p in c.content] == []
    scrubbed = SCRUBBER.text(text)
    for passage in change.passages:
        assert scrubbed[passage.start_char : passage.end_char] == passage.content


@given(st.sampled_from(sorted(PLANTED)), st.integers(0, 200))
@settings(max_examples=100, deadline=None)
def test_lines_stay_those_of_the_source(kind: str, before: int) -> None:
    line, key = PLANTED[kind]
    text = f"# T\n\n{('w ' * 200)[:before]}\n{line.format(key)}\n\nafter it\n\n{'x y ' * 60}\n"
    change = scrub_stored(DOCUMENT, kept(text), SCRUBBER)
    assert change is not None
    scrubbed = SCRUBBER.text(text).split("\n")
    for passage in change.passages:
        lines = passage.content.split("\n")
        assert passage.start_line is not None
        assert passage.end_line == passage.start_line + len(lines) - 1
        for number, one in enumerate(lines, start=passage.start_line):
            assert one in scrubbed[number - 1]


def test_a_second_time_there_is_nothing_to_change() -> None:
    line, key = PLANTED["github"]
    first = scrub_stored(DOCUMENT, kept(f"# T\n\n{line.format(key)}\n"), SCRUBBER)
    assert first is not None
    assert scrub_stored(first.document, first.passages, SCRUBBER) is None


@pytest.mark.parametrize("field", ["name", "source", "title", "reason"])
def test_each_text_of_the_row_is_scrubbed(field: str) -> None:
    key = PLANTED["aws access key"][1]
    texts: dict[str, Any] = {field: f"of {key} it"}
    change = scrub_stored(replace(DOCUMENT, **texts), (), SCRUBBER)
    assert change is not None
    assert key not in repr(change)


def test_passages_whose_place_says_nothing_are_scrubbed_one_by_one() -> None:

    line, key = PLANTED["gitlab"]
    (passage,) = kept(line.format(key), "e1")
    change = scrub_stored(DOCUMENT, [replace(passage, start_char=0, end_char=3)], SCRUBBER)
    assert change is not None
    assert change.passages[0].content == "push with [secret: gitlab token]"
