"""Which passages can still score a threshold, as a condition that a text index answers.

What belongs here: the condition alone, as `tsquery` text. A passage that holds a set of words
scores at most the sum of their bounds; so it can reach a threshold only if the bounds of its words
do.
That is a monotone threshold function of the words, and is written as nested ands and ors.

Source: the idea is that of WAND (Broder, Carmel, Herscovici, Soffer, Zien 2003, "Efficient query
evaluation using a two-level retrieval process", section 3), as one boolean query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concordance.ranking.bm25 import Weighted

# Words beyond these are taken as present everywhere: the condition stays true of all that matters.
STRONGEST = 10
# The first threshold is set high, for few passages to be looked at; then lower.
FIRST_SHARES = (0.4, 0.2, 0.1)
# Scores are summed in single precision: a bound must not exclude what rounding lets through.
SLACK = 1e-4


@dataclass(frozen=True, slots=True)
class _All:
    """The condition that every passage meets."""


_Node = str | _All | None


def condition(words: Sequence[Weighted], threshold: float) -> str | None:
    """The `tsquery` that each passage of at least `threshold` meets; None where none can.

    `words` are the question's, strongest first.
    """
    strong = words[:STRONGEST]
    rest = sum(word.bound for word in words[STRONGEST:])
    need = threshold * (1 - SLACK) - rest
    if need <= 0:
        return any_of([word.lexeme for word in words])
    node = _Builder(strong).node(0, need)
    return node if isinstance(node, str) else None


def any_of(lexemes: Sequence[str]) -> str | None:
    """The `tsquery` of passages that hold any of the words; None without words."""
    return " | ".join(quote(lexeme) for lexeme in lexemes) or None


def quote(lexeme: str) -> str:
    """A word as a `tsquery` operand, whatever characters it has."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


class _Builder:
    """Recursion over words sorted by bound: with this word, or without it."""

    def __init__(self, words: Sequence[Weighted]) -> None:
        self._words = words
        self._suffix = [0.0] * (len(words) + 1)
        for place in range(len(words) - 1, -1, -1):
            self._suffix[place] = self._suffix[place + 1] + words[place].bound

    def node(self, place: int, need: float) -> _Node:
        if need <= 0:
            return _All()
        if self._suffix[place] < need:
            return None
        word = self._words[place]
        operand = quote(word.lexeme)
        present = self.node(place + 1, need - word.bound)
        absent = self.node(place + 1, need)
        here = operand if isinstance(present, _All) else f"({operand} & {present})"
        if absent is None:
            return here
        return f"({here} | {absent})"


def all_of(lexemes: Sequence[str]) -> str | None:
    """The `tsquery` of passages that hold all of the words; None without words."""
    return " & ".join(quote(lexeme) for lexeme in lexemes) or None


def either(places: Sequence[str], words: str) -> str:
    """A condition on words, narrowed to passages that stand in one of some places."""
    if not places:
        return words
    return f"({any_of(places)}) & ({words})"
