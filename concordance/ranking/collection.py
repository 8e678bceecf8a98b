"""How many passages hold a word of a question, over all the languages that are searched.

What belongs here: that count, from the counts of each language. With it, one word has one idf, and
scores of passages that were analysed in different languages stand on one scale: what is searched is
one collection, as in the source. Counted by language, a word would be rare among the few short
texts whose language nobody can tell, and common everywhere else.

Source: Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond",
section 3.4, where N and df are those of the collection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """A lexeme of a question in one language, with the places where its words stand."""

    language: str
    lexeme: str
    positions: Sequence[int]


Counts = Mapping[str, Mapping[str, int]]


def document_frequencies(
    passages: Mapping[str, int], held: Counts, forms: Sequence[Form], unstemmed: Sequence[Form]
) -> dict[str, dict[str, int]]:
    """How many of all passages hold each lexeme of a question, by language and lexeme.

    Lexemes of two languages are the same word where they stand in one place of the question, or are
    written alike. A language's stop words are not stored, and count as held by all of its passages.

    Args:
        passages: How many passages are in each language.
        held: By language and lexeme, how many of them hold it.
        forms: The question's lexemes in each of the languages.
        unstemmed: The same as nobody stems them: one for each word.
    """
    at = {language: _by_place(forms, language) for language in held}
    words: dict[tuple[str, str], list[int]] = {}
    elsewhere: list[dict[str, int]] = []
    for number, word in enumerate(unstemmed):
        own: dict[str, int] = {}
        for language, places in at.items():
            lexemes = {places[place] for place in word.positions if place in places}
            own[language] = max(
                (held[language].get(lexeme, 0) for lexeme in lexemes), default=passages[language]
            )
            for lexeme in lexemes:
                words.setdefault((language, lexeme), []).append(number)
        whole = sum(own.values())
        elsewhere.append({language: whole - count for language, count in own.items()})

    def others(language: str, lexeme: str) -> int:
        known = words.get((language, lexeme))
        if known is None:
            return sum(held[other].get(lexeme, 0) for other in held if other != language)
        return max(elsewhere[number][language] for number in known)

    return {
        language: {lexeme: count + others(language, lexeme) for lexeme, count in own.items()}
        for language, own in held.items()
    }


def _by_place(forms: Sequence[Form], language: str) -> dict[int, str]:
    return {
        place: form.lexeme
        for form in forms
        if form.language == language
        for place in form.positions
    }
