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

import numpy as np

from concordance.ranking.bm25 import Weighted

# Words beyond these are taken as present everywhere: the condition stays true of all that matters.
MOST_STRONG = 32
# A longer condition leaves out more passages, and takes longer to be tested on each: measured, it
# is worth its length up to about this many operands.
MOST_OPERANDS = 40
# Of the threshold that enough passages would reach if each had its words by chance and at their
# largest weights: measured, the last of the best 100 scores as much in four of five questions, and
# a lower threshold costs more on those than a second statement on the others.
EXPECTED_SHARE = 0.7
# Steps of the sums of bounds in that estimate.
_GRID = 200
# Scores are summed in single precision: a bound must not exclude what rounding lets through.
SLACK = 1e-4


@dataclass(frozen=True, slots=True)
class _All:
    """The condition that every passage meets."""


_Node = str | _All | None


class _TooLongError(Exception):
    """The condition has more operands than it is worth."""


def expected_threshold(words: Sequence[Weighted], passages: int, wanted: int) -> float:
    """A threshold that at least `wanted` passages probably score; 0 where there are too few.

    The sum of a passage's bounds is distributed as if its words were independent of each other,
    each there with its share of the `passages`. It is a guess: where it is too high, too few are
    found; where it is too low, more are looked at than need be.
    """
    most = sum(word.bound for word in words)
    if most <= 0 or passages <= 0:
        return 0.0
    chance = np.zeros(_GRID + 1)
    chance[0] = 1.0
    for word in words:
        step = round(word.bound / most * _GRID)
        present = min(1.0, word.passages_with / passages)
        moved = chance * (1 - present)
        moved[step:] += chance[: _GRID + 1 - step] * present
        chance = moved
    reached = np.cumsum(chance[::-1])[::-1] * passages >= wanted
    return float(np.flatnonzero(reached)[-1]) / _GRID * most * EXPECTED_SHARE if reached[0] else 0.0


def condition(words: Sequence[Weighted], threshold: float) -> str | None:
    """The `tsquery` that each passage of at least `threshold` meets; None where none can.

    `words` are the question's, strongest first. As many of them are told apart as the length of the
    condition allows.
    """
    for strong in range(min(len(words), MOST_STRONG), 0, -1):
        rest = sum(word.bound for word in words[strong:])
        need = threshold * (1 - SLACK) - rest
        if need <= 0:
            break
        try:
            node = _Builder(words[:strong]).node(0, need)
        except _TooLongError:
            continue
        return node if isinstance(node, str) else None
    return any_of([word.lexeme for word in words])


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
        self._operands = 0
        self._suffix = [0.0] * (len(words) + 1)
        for place in range(len(words) - 1, -1, -1):
            self._suffix[place] = self._suffix[place + 1] + words[place].bound

    def node(self, place: int, need: float) -> _Node:
        if need <= 0:
            return _All()
        if self._suffix[place] < need:
            return None
        self._operands += 1
        if self._operands > MOST_OPERANDS:
            raise _TooLongError
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
