"""How far an embedding model knows the languages that are searched, as the weight of its leg.

What belongs here: from languages to one weight. Where a model doesn't know a language, its order is
close to chance, and a fusion that trusts it falls below the words alone. Which languages a model
knows is declared in `concordance.indexing.model_families`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

import regex  # type: ignore[import-untyped]

from concordance.ranking.fusion import CONVEX_WEIGHT

# A language that the model was not trained on, in letters that it was: names and loan words carry.
FOREIGN_WEIGHT: Final = 0.5
# Letters that the model was not trained on: it sees little more than their frequencies.
UNREAD_WEIGHT: Final = 0.3

# Text-search configurations of languages that are not written in Latin letters.
_OTHER_LETTERS: Final = frozenset(
    {"arabic", "armenian", "greek", "hindi", "nepali", "russian", "serbian", "tamil", "yiddish"}
)
_LETTER: Final = regex.compile(r"\p{L}")
_LATIN: Final = regex.compile(r"\p{Latin}")


def vector_share(
    passages: Mapping[str, int], question: str, known: Collection[str] | None
) -> float:
    """The vector leg's share in the convex fusion where nobody names one, 0.3 to 0.75.

    Args:
        passages: How many of the searched passages are in each text-search configuration.
        question: The question; its letters tell what the configuration `simple` does not.
        known: The configurations of the languages that the model knows; None stands for all.

    Returns:
        The mean over the passages, and no more than the question's own letters allow.
    """
    if known is None:
        return CONVEX_WEIGHT
    total = sum(passages.values())
    if total == 0:
        mean = CONVEX_WEIGHT
    else:
        summed = math.fsum(_weight(name, known) * n for name, n in passages.items())
        mean = round(summed / total, 6)
    return mean if _mostly_latin(question) else min(mean, UNREAD_WEIGHT)


def _weight(configuration: str, known: Collection[str]) -> float:
    if configuration in known:
        return CONVEX_WEIGHT
    return UNREAD_WEIGHT if configuration in _OTHER_LETTERS else FOREIGN_WEIGHT


def _mostly_latin(text: str) -> bool:
    letters = len(_LETTER.findall(text))
    return 2 * len(_LATIN.findall(text)) >= letters
