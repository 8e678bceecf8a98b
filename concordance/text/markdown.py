"""Markdown text to its title, metadata, sections and blocks, all placed in the source.

What belongs here: what a document is made of; other formats give their leaves to `placed`. How it
is cut into passages is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from concordance.text.frontmatter import find_front_matter
from concordance.text.headings import plain_title
from concordance.text.lines import LineIndex
from concordance.text.outline import BlockKind, Leaf, outline_with_definitions


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of the text that belong together, `end` exclusive.

    A list or a quote gives a block per paragraph in it, and its fences and tables are blocks of
    their own, so that a long list can be cut between items.
    """

    start: int
    end: int
    kind: BlockKind


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what follows it up to the next heading, or the text before the first one.

    `heading_path` holds the titles from the outermost heading down to the section's own; it is
    empty, and `level` 0, before the first heading. The first block of any other section is its
    heading. Sections don't overlap, and only white space lies in none.
    """

    heading_path: tuple[str, ...]
    level: int
    start: int
    end: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class MarkdownDocument:
    """A parsed document of any format; `front_matter` maps lower-case keys to its scalars.

    `title` is that of the front matter, else the first heading of level 1, else the first
    heading, else None. `definitions` are the targets of links that the document defines once for
    a label, by `label_key` of that label.
    """

    title: str | None
    front_matter: Mapping[str, str]
    sections: tuple[Section, ...]
    definitions: Mapping[str, str] = field(default_factory=dict)


def parse_markdown(text: str) -> MarkdownDocument:
    """Parse any text; offsets are those of `text` as it was given, whatever its line endings.

    ATX and setext headings open sections. What looks like one in a fence, a comment, front
    matter, a list item or a quote does not, and neither does a heading without words.
    """
    body, front_matter = find_front_matter(text)
    leaves, definitions = outline_with_definitions(text[body:] if body else text)
    return placed(text, leaves, body=body, front_matter=front_matter, definitions=definitions)


def placed(
    text: str,
    leaves: Iterable[Leaf],
    *,
    body: int = 0,
    front_matter: Mapping[str, str] = MappingProxyType({}),
    definitions: Mapping[str, str] = MappingProxyType({}),
) -> MarkdownDocument:
    """Put the leaves of any format into sections and blocks of `text`.

    `leaves` stand in order and count their lines from offset `body`, where the front matter ends.
    """
    lines = LineIndex(text)
    skipped = lines.line_of(body - 1) if body else 0
    blocks = [Block(0, body, "front_matter")] if body else []
    openings: list[tuple[int, int, str]] = []
    for leaf in leaves:
        start = lines.start_of(skipped + leaf.first + 1)
        end = lines.start_of(skipped + leaf.last + 1)
        previous = blocks[-1].end if blocks else 0
        if start > previous and not text[previous:start].isspace():
            blocks.append(Block(previous, start, "other"))
        if leaf.level:
            _open_section(openings, leaf, len(blocks))
        blocks.append(Block(start, end, leaf.kind))
    previous = blocks[-1].end if blocks else 0
    if text[previous:].strip():
        blocks.append(Block(previous, len(text), "other"))
    sections = tuple(_sections(blocks, openings, len(text)))
    title = front_matter.get("title") or _first_title(sections)
    return MarkdownDocument(title, front_matter, sections, definitions)


def _open_section(openings: list[tuple[int, int, str]], leaf: Leaf, block: int) -> None:
    title = plain_title(leaf.source)
    if title:
        openings.append((block, leaf.level, title))


def _sections(
    blocks: list[Block], openings: list[tuple[int, int, str]], length: int
) -> Iterator[Section]:
    first = openings[0][0] if openings else len(blocks)
    if first:
        end = blocks[first].start if openings else length
        yield Section((), 0, 0, end, tuple(blocks[:first]))
    path: list[tuple[int, str]] = []
    for number, (block, level, title) in enumerate(openings):
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, title))
        last = openings[number + 1][0] if number + 1 < len(openings) else len(blocks)
        end = blocks[last].start if last < len(blocks) else length
        titles = tuple(name for _, name in path)
        yield Section(titles, level, blocks[block].start, end, tuple(blocks[block:last]))


def _first_title(sections: tuple[Section, ...]) -> str | None:
    headed = [section for section in sections if section.level > 0]
    ranked = sorted(headed, key=lambda section: section.level > 1)
    return ranked[0].heading_path[-1] if ranked else None
