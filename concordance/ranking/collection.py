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
    """A word of a question as one language has it; no lexeme where it is a stop word there."""

    word: str
    language: str
    lexeme: str | None


Counts = Mapping[str, Mapping[str, int]]


def document_frequencies(
    passages: Mapping[str, int], held: Counts, forms: Sequence[Form]
) -> dict[str, dict[str, int]]:
    """How many of all passages hold each lexeme of a question, by language and lexeme.

    Lexemes of two languages are the same word where they are forms of one word, or written alike. A
    language's stop words are not stored, and count as held by all of its passages.

    Args:
        passages: How many passages are in each language.
        held: By language and lexeme, how many of them hold it.
        forms: The question's words in each of the languages; none for what only one form has.
    """
    by_word: dict[str, dict[str, int]] = {}
    words: dict[tuple[str, str], list[str]] = {}
    for form in forms:
        own = by_word.setdefault(form.word, {})
        if form.lexeme is None:
            own[form.language] = passages[form.language]
        else:
            count = held[form.language].get(form.lexeme, 0)
            own[form.language] = max(count, own.get(form.language, 0))
            words.setdefault((form.language, form.lexeme), []).append(form.word)
    totals = {word: sum(own.values()) for word, own in by_word.items()}

    def elsewhere(language: str, lexeme: str) -> int:
        known = words.get((language, lexeme))
        if known is None:
            return sum(held[other].get(lexeme, 0) for other in held if other != language)
        return max(totals[word] - by_word[word].get(language, 0) for word in known)

    return {
        language: {lexeme: count + elsewhere(language, lexeme) for lexeme, count in own.items()}
        for language, own in held.items()
    }
