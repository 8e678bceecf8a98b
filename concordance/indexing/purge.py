"""Today's rules applied to a stored document: what its row and its passages become.

What belongs here: the change, as values. The source is not needed: a file's text is put together
from its passages, so that a secret that was cut between two of them is found whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from concordance.indexing.vector_space import content_hash
from concordance.text.lines import LINE_END
from concordance.text.scrubbing import Places, Scrubber


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """The texts of a stored document's row."""

    id: int
    kind: str
    name: str
    source: str | None
    title: str | None
    reason: str | None
    directory: str | None
    branch: str | None
    secrets: dict[str, int]


@dataclass(frozen=True, slots=True)
class KeptPassage:
    """A stored passage, with all of it that is text or says where the text stands."""

    id: int
    document_id: int
    heading_path: list[str]
    titled: bool
    start_line: int | None
    end_line: int | None
    start_char: int
    end_char: int
    event_id: str | None
    last_event_id: str | None
    speaker: str | None
    preceding: str | None
    content: str

    def hash_under(self, title: str | None) -> bytes:
        """The hash of what is embedded, under a document's title."""
        return content_hash(
            title if self.titled else None, self.heading_path, self.content, self.preceding
        )


@dataclass(frozen=True, slots=True)
class Change:
    """What a document and its passages become; `replaced` counts secrets by kind."""

    document: KeptDocument
    passages: tuple[KeptPassage, ...]
    replaced: Mapping[str, int]


def scrub_stored(
    document: KeptDocument, passages: Sequence[KeptPassage], scrubber: Scrubber
) -> Change | None:
    """The change that today's rules make, or None where they find nothing."""
    counts: Counter[str] = Counter()
    named = [
        replace(
            p,
            heading_path=[scrubber.text(heading) for heading in p.heading_path],
            event_id=None if p.event_id is None else scrubber.name(p.event_id),
            last_event_id=None if p.last_event_id is None else scrubber.name(p.last_event_id),
            speaker=scrubber.optional(p.speaker),
            preceding=scrubber.optional(p.preceding),
        )
        for p in _scrubbed(passages, scrubber, counts)
    ]
    changed = replace(
        document,
        name=scrubber.name(document.name),
        source=None if document.source is None else scrubber.name(document.source),
        title=scrubber.optional(document.title),
        reason=scrubber.optional(document.reason),
        directory=scrubber.optional(document.directory),
        branch=scrubber.optional(document.branch),
    )
    if changed == document and named == list(passages):
        return None
    total = Counter(document.secrets)
    total.update(counts)
    return Change(replace(changed, secrets=dict(sorted(total.items()))), tuple(named), dict(counts))


def _scrubbed(
    passages: Sequence[KeptPassage], scrubber: Scrubber, counts: Counter[str]
) -> Iterator[KeptPassage]:
    """The passages in their order, those of one text together."""
    for _, group in groupby(passages, key=lambda p: p.event_id):
        together = list(group)
        if all(p.end_char - p.start_char == len(p.content) for p in together):
            yield from _together(together, scrubber, counts)
            continue
        for passage in together:  # its place says nothing of its neighbours
            done = scrubber.scrub(passage.content)
            counts.update(done.counts)
            yield replace(passage, content=done.text)


def _together(
    passages: Sequence[KeptPassage], scrubber: Scrubber, counts: Counter[str]
) -> Iterator[KeptPassage]:
    base = min(p.start_char for p in passages)
    text = _text_of(passages, base)
    done = scrubber.scrub(text)
    counts.update(done.counts)
    places = Places(done)
    for passage in passages:
        start, end = passage.start_char - base, passage.end_char - base
        secrets = places.within(start, end)
        if not secrets:
            moved = places.place(start) - start
            yield replace(
                passage,
                start_char=passage.start_char + moved,
                end_char=passage.end_char + moved,
            )
            continue
        new_start, new_end = places.place(start), places.place(end, end=True)
        first, last = min(start, secrets[0].start), max(end, secrets[-1].end)
        yield replace(
            passage,
            content=done.text[new_start:new_end],
            start_char=base + new_start,
            end_char=base + new_end,
            start_line=_less(passage.start_line, _line_ends(text, first, start)),
            end_line=_less(passage.end_line, -_line_ends(text, end, last)),
        )


def _text_of(passages: Sequence[KeptPassage], base: int) -> str:
    """The text that passages were cut from; between two of them lies white space alone."""
    parts: list[str] = []
    length, line = 0, passages[0].start_line
    for passage in sorted(passages, key=lambda p: (p.start_char, p.end_char)):
        start = passage.start_char - base
        if start > length:
            lines = (passage.start_line or 1) - (line or 1) if line is not None else 1
            ends = max(0, min(lines, start - length))
            parts.append("\n" * ends + " " * (start - length - ends))
            length = start
        if passage.end_char - base > length:
            parts.append(passage.content[length - start :])
            length = passage.end_char - base
            line = passage.end_line
    return "".join(parts)


def _line_ends(text: str, start: int, end: int) -> int:
    return len(LINE_END.findall(text, start, end))


def _less(line: int | None, lines: int) -> int | None:
    return None if line is None else line - lines
