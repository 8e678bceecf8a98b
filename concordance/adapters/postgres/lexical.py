"""The lexical leg: exact BM25 by threshold queries, and two other rankings to compare it with.

What belongs here: asking. The arithmetic is `concordance.ranking.bm25`'s, the condition that a
passage must meet `concordance.ranking.threshold`'s, the weights lie in the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from concordance.adapters.postgres.database import (
    Connection,
    Statements,
    fetch_all,
    fetch_rows,
)
from concordance.models import LexicalRanking
from concordance.ranking.bm25 import (
    Term,
    Weighted,
    idf_shares,
    query_vector,
    weigh,
)
from concordance.ranking.candidates import Scored
from concordance.ranking.collection import Form, document_frequencies
from concordance.ranking.threshold import (
    all_of,
    any_of,
    condition,
    either,
    expected_threshold,
    quote,
)
from sql import queries

# The strongest words of a question; the others could move its answer by next to nothing.
MOST_WORDS = 256
# Of so many different words the statistics are read; only a pasted file has more.
MOST_ASKED = 2_000
# What is analysed without stemming or stop words.
UNSTEMMED = "simple"
# Where so few scopes are searched that the index had better look at them alone.
FEW_PLACES = 64
# A threshold that too few passages reach is tried once more at this share of it.
SECOND_TRY = 0.5
# Up to here scoring every match takes no longer than asking twice.
FEW_PASSAGES = 2_000


@dataclass(frozen=True, slots=True)
class Question:
    """A question in one language, with what the searched projects know of its words.

    `passages` are those of the language.

    It is `cut` where it had more words than are looked for, and not `bounded` where a passage can
    score more than the bounds of the words that it holds: where another word of the searched
    projects has the same dimension as one of its own.
    """

    language: str
    passages: int
    terms: tuple[Term, ...]
    words: tuple[Weighted, ...]
    vector: str = field(repr=False)
    shares: Mapping[str, float] = field(repr=False)
    bounded: bool
    cut: bool

    @property
    def lexemes(self) -> list[str]:
        """The words that are looked for."""
        return [word.lexeme for word in self.words]


@dataclass(frozen=True, slots=True)
class _TermRow:
    language: str
    passages: int
    lexeme: str | None
    dimension: int | None
    occurrences: int | None
    passages_with: int
    largest: float
    asked: int
    shared: bool


def place_lexeme(project_id: int, scope: str) -> str:
    """The lexeme of a scope of a project, as `place_lexemes` of the schema makes it."""
    return f"§{project_id}.{scope}"


def language_lexeme(language: str) -> str:
    """The lexeme of every passage of a language, likewise."""
    return f"§{language}"


def read_questions(
    connection: Connection,
    text: str,
    projects: Sequence[int],
    in_time: Callable[[], None] = lambda: None,
    *,
    ask: Statements | None = None,
) -> list[Question]:
    """A question in each language of some projects, with idf and bounds over those projects.

    `in_time` is called before each statement; it raises where no time is left.
    """
    asks = queries("lexical") if ask is None else ask
    given = {"projects": list(projects), "question": text, "most": MOST_ASKED}
    in_time()
    rows = fetch_all(connection, asks["terms"], given, _TermRow)
    by_language = {key: list(own) for key, own in groupby(rows, key=lambda row: row.language)}
    passages = {language: own[0].passages for language, own in by_language.items()}
    held = {
        language: {row.lexeme: row.passages_with for row in own if row.lexeme is not None}
        for language, own in by_language.items()
    }
    forms: list[Form] = []
    if len(held) > 1:
        in_time()
        asked = given | {"languages": sorted({*held, UNSTEMMED})}
        forms = fetch_all(connection, asks["forms"], asked, Form)
    unstemmed = [form for form in forms if form.language == UNSTEMMED]
    frequencies = document_frequencies(passages, held, forms, unstemmed)
    return [
        _question(language, own, frequencies[language], sum(passages.values()))
        for language, own in by_language.items()
    ]


def find(  # noqa: PLR0913 - what is asked, of what, and how
    connection: Connection,
    questions: Sequence[Question],
    filters: dict[str, Any],
    places: Sequence[str],
    *,
    ranking: LexicalRanking,
    in_time: Callable[[], None] = lambda: None,
    ask: Statements | None = None,
) -> list[Scored]:
    """The best passages of the pool, best first, whatever language each is in.

    `places` are the lexemes of the searched scopes, none where that would narrow nothing; `in_time`
    is called before each statement, and raises where no time is left.
    """
    asks = queries("lexical") if ask is None else ask
    asked = _Asked(connection, filters, places, in_time, asks)
    if ranking is not LexicalRanking.BM25:
        return asked.rows("top_ts_rank_cd", [(q, _condition(q, ranking)) for q in questions])
    few = [q for q in questions if q.passages <= FEW_PASSAGES]
    # Words of a small language may be frequent in a large one: the index looks at its own alone.
    found = asked.rows("top", [(q, _within(q, any_of(q.lexemes))) for q in few])
    for question in questions:
        if question.passages > FEW_PASSAGES:
            found += _best(asked, question)
    return sorted(found, key=lambda hit: (-hit.score, hit.chunk_id))[: asked.pool]


def score_parameters(questions: Sequence[Question], ranking: LexicalRanking) -> dict[str, Any]:
    """What the statement `candidates` needs to score given passages, each in its own language."""
    return {
        "languages": [q.language for q in questions],
        "vectors": [q.vector for q in questions],
        "conditions": [_condition(q, ranking) for q in questions],
        "bm25": ranking is LexicalRanking.BM25,
        "shares": [q.shares[lexeme] for q in questions for lexeme in q.lexemes],
        "operands": [quote(lexeme) for q in questions for lexeme in q.lexemes],
        "term_languages": [q.language for q in questions for _ in q.lexemes],
    }


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question to one snapshot, under its filters."""

    connection: Connection
    filters: dict[str, Any]
    places: Sequence[str]
    in_time: Callable[[], None] = lambda: None
    ask: Statements = field(default_factory=lambda: queries("lexical"))

    @property
    def pool(self) -> int:
        return int(self.filters["pool"])

    def rows(self, name: str, asked: Sequence[tuple[Question, str | None]]) -> list[Scored]:
        """The best passages that meet the condition of their language."""
        possible = [(question, words) for question, words in asked if words is not None]
        if not possible:
            return []
        self.in_time()
        found = fetch_rows(
            self.connection,
            self.ask[name],
            self.filters
            | {
                "languages": [question.language for question, _ in possible],
                "vectors": [question.vector for question, _ in possible],
                "conditions": [either(self.places, words) for _, words in possible],
                "words": [words for _, words in possible],
            },
        )
        return [Scored(chunk_id, score) for chunk_id, score in found]


def _best(asked: _Asked, question: Question) -> list[Scored]:
    """The same best passages as scoring every match, by looking at few.

    Each round asks for those that can reach a threshold. When the pool is full of such, no other
    passage can be among the best; when the last of them falls short, its own score is the next
    threshold.
    """
    likely = expected_threshold(question.words, question.passages, asked.pool)
    for threshold in (likely, likely * SECOND_TRY) if likely and question.bounded else ():
        found = asked.rows("top", [(question, condition(question.words, threshold))])
        if len(found) < asked.pool:
            continue
        last = found[-1].score
        if last < threshold:
            found = asked.rows("top", [(question, condition(question.words, last))])
        return found
    return asked.rows("top", [(question, any_of(question.lexemes))])


def _within(question: Question, words: str | None) -> str | None:
    return None if words is None else either([language_lexeme(question.language)], words)


def _question(
    language: str, rows: Sequence[_TermRow], frequencies: Mapping[str, int], in_all: int
) -> Question:
    terms = tuple(
        Term(
            lexeme=row.lexeme,
            dimension=row.dimension,
            count=row.occurrences,
            passages_with=row.passages_with,
            document_frequency=frequencies[row.lexeme],
            largest=row.largest,
        )
        for row in rows
        if row.lexeme is not None and row.dimension is not None and row.occurrences is not None
    )
    words = tuple(weigh(terms, in_all)[:MOST_WORDS])
    return Question(
        language=language,
        passages=rows[0].passages,
        terms=terms,
        words=words,
        vector=query_vector(words),
        shares=idf_shares(terms, in_all),
        bounded=not any(row.shared and row.passages_with for row in rows),
        cut=sum(t.passages_with > 0 for t in terms) > len(words) or rows[0].asked > len(terms),
    )


def _condition(question: Question, ranking: LexicalRanking) -> str | None:
    match ranking:
        case LexicalRanking.BM25:
            return None
        case LexicalRanking.TS_RANK_CD:
            return any_of(question.lexemes)
        case LexicalRanking.ALL_WORDS:
            # A word that no passage holds: none can hold them all.
            missing = len(question.words) < len(question.terms)
            return None if missing else all_of(question.lexemes)
