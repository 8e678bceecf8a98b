"""Sections and plain text to chunks: the passages that are indexed, found and cited.

What belongs here: which text goes into a chunk together, and what each chunk says of its place.
Where a long text is cut is decided in `cutting`.

A chunk never holds the body text of two sections, so its heading path is true of every sentence in
it, however short the section is. Only what has no body text joins a neighbour: a section that is
a heading alone goes with the sibling or child that follows it, or else with the chunk before it
where both fit; so does an opening of badges, comments and rules. Front matter is a chunk by itself,
so that a document's first heading is cited by its own line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from concordance.text.cutting import ChunkSizes, Cutter
from concordance.text.lines import LineIndex
from concordance.text.markdown import Block, MarkdownDocument

CHUNKER_VERSION: Final = 1
"""Raised by hand when the same text would give other chunks, so that it is chunked again."""

_DEFAULT: Final = ChunkSizes()
_BARE: Final = frozenset({"heading", "rule"})
_DECORATION: Final = frozenset({"html", "rule", "other"})
_BADGE: Final = re.compile(r"\s*(?:\[?!\[|<)")
_PARAGRAPH_END: Final = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: `content` is `text[start:end]` exactly.

    `start_line` and `end_line` are the lines of its first and its last character, from 1.
    """

    ordinal: int
    heading_path: tuple[str, ...]
    start_line: int
    end_line: int
    start: int
    end: int
    content: str


@dataclass(slots=True)
class _Run:
    """Text that is chunked as one: at most one section with a body, and bare neighbours."""

    start: int
    end: int
    level: int
    blocks: list[Block]
    bare: bool
    paths: list[tuple[str, ...]] = field(default_factory=list)

    def take(self, other: _Run) -> None:
        """Add the run that follows, one of the two being bare."""
        self.end = other.end
        self.level = other.level
        self.blocks += other.blocks
        if self.bare and other.bare:
            self.paths += other.paths
        elif self.bare:
            self.paths, self.bare = other.paths, False

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The path of the body, or what the paths of bare headings have in common."""
        shared: list[str] = []
        for titles in zip(*self.paths, strict=False):
            if len(set(titles)) > 1:
                break
            shared.append(titles[0])
        return tuple(shared)


def chunk_markdown(
    text: str, document: MarkdownDocument, sizes: ChunkSizes = _DEFAULT
) -> tuple[Chunk, ...]:
    """Cut a parsed document into chunks, ordered by start; `document` was parsed from `text`.

    Every character that is no white space is in a chunk, and no grapheme cluster is cut.
    """
    return _chunks(text, _joined(_runs(text, document), sizes), sizes)


def chunk_plain(
    text: str, sizes: ChunkSizes = _DEFAULT, heading_path: tuple[str, ...] = ()
) -> tuple[Chunk, ...]:
    """Cut a text without structure, such as a turn of a session, at its paragraphs."""
    blocks: list[Block] = []
    if len(text) > sizes.bound:
        ends = [match.end() for match in _PARAGRAPH_END.finditer(text)]
        spans = zip([0, *ends], [*ends, len(text)], strict=True)
        blocks = [Block(start, end, "paragraph") for start, end in spans if start < end]
    run = _Run(0, len(text), 0, blocks, bare=False, paths=[heading_path])
    return _chunks(text, [run], sizes)


def chunker_fingerprint(sizes: ChunkSizes) -> str:
    """Return what a document's chunks depend on, besides its text."""
    return f"v{CHUNKER_VERSION}-t{sizes.target}-o{sizes.overlap}-w{sizes.window}"


def _chunks(text: str, runs: Iterable[_Run], sizes: ChunkSizes) -> tuple[Chunk, ...]:
    lines = LineIndex(text)
    chunks: list[Chunk] = []
    for run in runs:
        path = run.heading_path
        for start, end in Cutter(text, run.start, run.end, run.blocks, sizes).pieces():
            first, last = lines.line_of(start), lines.line_of(end - 1)
            chunks.append(Chunk(len(chunks), path, first, last, start, end, text[start:end]))
    return tuple(chunks)


def _runs(text: str, document: MarkdownDocument) -> Iterator[_Run]:
    for section in document.sections:
        blocks = list(section.blocks)
        start = section.start
        if blocks and blocks[0].kind == "front_matter":
            front = blocks.pop(0)
            start = front.end
            yield _Run(front.start, front.end, 0, [front], bare=False)
        if not blocks:
            continue
        if section.level:
            bare = all(block.kind in _BARE for block in blocks)
            paths = [section.heading_path]
        else:
            bare = all(_is_decoration(text, block) for block in blocks)
            paths = []
        yield _Run(start, section.end, section.level, blocks, bare, paths)


def _is_decoration(text: str, block: Block) -> bool:
    return block.kind in _DECORATION or bool(_BADGE.match(text, block.start, block.end))


def _joined(runs: Iterable[_Run], sizes: ChunkSizes) -> list[_Run]:
    """Join bare runs forward, to what is not above them; those left go back where they fit."""
    forward: list[_Run] = []
    for run in runs:
        previous = forward[-1] if forward else None
        if previous is not None and _leads(previous, run, sizes):
            previous.take(run)
        else:
            forward.append(run)
    joined: list[_Run] = []
    for run in forward:
        if joined and _trails(joined[-1], run, sizes):
            joined[-1].take(run)
        else:
            joined.append(run)
    return joined


def _leads(run: _Run, following: _Run, sizes: ChunkSizes) -> bool:
    if not run.bare or following.level < run.level:
        return False
    if following.bare:
        return following.end - run.start <= sizes.target
    # many titles in front of a body would be cited by the body's path
    return run.end - run.start <= sizes.quarter


def _trails(run: _Run, following: _Run, sizes: ChunkSizes) -> bool:
    fits = following.end - run.start <= sizes.target
    return following.bare and fits and run.blocks[0].kind != "front_matter"
