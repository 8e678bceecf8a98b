"""Text in, the same text out with a mark in place of each secret.

What belongs here: from spans to marks. What a secret looks like is `secret_rules`' matter; another
detector may be handed in.

A mark such as `[secret: github token]` says what stood there. Line ends within a secret stay, so a
line keeps its number, and scrubbing what was scrubbed changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from concordance.text.lines import LINE_END
from concordance.text.secret_escapes import Shown
from concordance.text.secret_rules import Found, find_secrets

RULES_VERSION: Final = 4
"""Raised by hand when the same text would be scrubbed in another way, so that it is read again."""

MARK: Final = re.compile(r"\[secret: [a-z0-9 ]{1,60}\]")
Finder = Callable[[str], Iterable[Found]]
"""A detector: the secrets of a text, in any order."""

_SUFFIX: Final = re.compile(r"(?<=.)(?:\.[A-Za-z][A-Za-z0-9]{0,9}){1,2}$")
_MOST_PASSES: Final = 20
_DIGEST: Final = 8


@dataclass(frozen=True, slots=True)
class Replaced:
    """A secret of the text before, from `start` to `end`, and the mark with line ends for it."""

    start: int
    end: int
    kind: str
    mark: str


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A text without its secrets, and what was replaced in it, in order."""

    text: str
    replaced: tuple[Replaced, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many secrets of each kind were replaced."""
        return dict(sorted(Counter(secret.kind for secret in self.replaced).items()))


class Places:
    """Where places of a text lie once its secrets are replaced."""

    def __init__(self, scrubbed: Scrubbed) -> None:
        self._replaced = scrubbed.replaced
        self._starts = [secret.start for secret in self._replaced]
        grown = (len(s.mark) - (s.end - s.start) for s in self._replaced)
        self._moved = list(accumulate(grown, initial=0))

    def place(self, offset: int, *, end: bool = False) -> int:
        """Where an offset of the text before lies now; one in a secret, at its mark's edge."""
        number = bisect_left(self._starts, offset)
        if number == 0:
            return offset
        last = self._replaced[number - 1]
        if offset < last.end:
            return last.start + self._moved[number - 1] + (len(last.mark) if end else 0)
        return offset + self._moved[number]

    def within(self, start: int, end: int) -> tuple[Replaced, ...]:
        """The secrets that reach into `start` to `end` of the text before."""
        first = max(0, bisect_left(self._starts, start) - 1)
        last = bisect_left(self._starts, end)
        return tuple(secret for secret in self._replaced[first:last] if secret.end > start)


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Scrubs by the rules of this room and by `finders`; where it is not `on`, changes nothing."""

    finders: Sequence[Finder] = ()
    on: bool = True

    @property
    def fingerprint(self) -> str:
        """What its outcome depends on, besides the text."""
        return f"s{RULES_VERSION}" if self.on else "s0"

    def scrub(self, text: str) -> Scrubbed:
        """Replace each secret; takes time that grows with the text's length alone."""
        done = Scrubbed(text)
        for _ in range(_MOST_PASSES if self.on else 0):
            # Once more: what stood beside a secret may be one when that is gone.
            spans = list(_clear_of_marks(done.text, _merged(self._found(done.text))))
            if not spans:
                break
            done = _marked(text, _joined(text, done, spans))
        return done

    def text(self, text: str) -> str:
        """The same, the text alone."""
        return self.scrub(text).text

    def optional(self, text: str | None) -> str | None:
        """The same, where there may be no text."""
        return None if text is None else self.text(text)

    def name(self, name: str) -> str:
        """A name without its secrets; names that differ in them alone are told apart by a hash."""
        # Whole first, as a secret may hold a slash; then by part, where one ends before a suffix.
        scrubbed = "/".join(map(self._part, self.text(name).split("/")))
        first = MARK.search(scrubbed)
        if scrubbed == name or first is None:
            return scrubbed
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
        return f"{scrubbed[: first.end()]}-{digest}{scrubbed[first.end() :]}"

    def _part(self, part: str) -> str:
        suffix = _SUFFIX.search(part)
        if suffix is None:
            return self.text(part)
        return self.text(part[: suffix.start()]) + suffix[0]

    def _found(self, text: str) -> Iterator[Found]:
        yield from self._told(text)
        shown = Shown(text)
        if shown.text != text:
            for found in self._told(shown.text):
                yield Found(*shown.place(found.start, found.end), found.kind)

    def _told(self, text: str) -> Iterator[Found]:
        yield from find_secrets(text)
        for finder in self.finders:
            yield from finder(text)


def has_mark(text: str) -> bool:
    """Whether a secret was replaced in a text, or somebody wrote a mark."""
    return MARK.search(text) is not None


def _merged(found: Iterator[Found]) -> list[Found]:
    """Spans that touch no other; what overlaps is one, named by the rule that comes first."""
    ranked = sorted(enumerate(found), key=lambda pair: (pair[1].start, pair[0]))
    merged: list[tuple[int, Found]] = []
    for rank, span in ranked:
        if span.start >= span.end:
            continue
        if merged and span.start < merged[-1][1].end:
            other, last = merged[-1]
            kind = last.kind if other < rank else span.kind
            merged[-1] = (min(other, rank), Found(last.start, max(last.end, span.end), kind))
        else:
            merged.append((rank, span))
    return [span for _, span in merged]


def _clear_of_marks(text: str, spans: Sequence[Found]) -> Iterator[Found]:
    """The parts of spans that lie in no mark: a mark is never scrubbed again."""
    if not spans:
        return
    marks = [match.span() for match in MARK.finditer(text)]
    number = 0
    for span in spans:
        while number < len(marks) and marks[number][1] <= span.start:
            number += 1
        start, at = span.start, number
        while at < len(marks) and marks[at][0] < span.end:
            if start < marks[at][0]:
                yield Found(start, marks[at][0], span.kind)
            start = max(start, marks[at][1])
            at += 1
        if start < span.end:
            yield Found(start, span.end, span.kind)


def _joined(text: str, done: Scrubbed, spans: Sequence[Found]) -> list[Replaced]:
    """What was replaced before and what is now, as places of the first text."""
    joined: list[Replaced] = []
    before = list(reversed(done.replaced))
    moved = 0
    for span in spans:
        while before and before[-1].start + moved < span.start:
            last = before.pop()
            moved += len(last.mark) - (last.end - last.start)
            joined.append(last)
        start, end = span.start - moved, span.end - moved
        sign, ends = f"[secret: {span.kind}]", LINE_END.findall(text, start, end)
        # Without a mark at the end, a text that ends in a secret would have one line less.
        mark = sign + "".join(ends) + (sign if ends and end == len(text) else "")
        joined.append(Replaced(start, end, span.kind, mark))
    return [*joined, *reversed(before)]


def _marked(text: str, replaced: Sequence[Replaced]) -> Scrubbed:
    parts: list[str] = []
    position = 0
    for secret in replaced:
        parts += [text[position : secret.start], secret.mark]
        position = secret.end
    return Scrubbed("".join([*parts, text[position:]]), tuple(replaced))
