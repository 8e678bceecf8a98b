"""What the words of headings should count for, measured on sets whose documents have titles.

    python -m benchmarks.headings SET [SET …]

Each argument is a set in BEIR form. Its passages are analysed as any others; BM25 is computed from
the stored lexemes with several weights of a heading's word, and nDCG@10 printed for each. The
stored weights use the number in `lexeme_counts` (`sql/migrations/0002_bm25.sql`).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from concordance.adapters.beir import QuestionSet, read_set
from concordance.adapters.environment import process_environment, read_configuration
from concordance.adapters.measures import Measure, measure
from concordance.asking import distinct
from concordance.index import Index
from concordance.loading import Loaded, load
from concordance.ranking.bm25 import K1, B, idf
from concordance.resources import Resources

WEIGHTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
DEPTH = 100


@dataclass(frozen=True, slots=True)
class Posting:
    """How often a word stands in the body of a passage, and how often in its headings."""

    passage: int
    body: int
    headings: int


def main() -> None:
    """Measure every weight on every set."""
    environ = process_environment()
    configuration = read_configuration(environ, need_projects=False)
    print(f"{'nDCG@10':<16}" + "".join(f"{weight:>8g}" for weight in WEIGHTS))
    with Index.open(configuration, environment=environ) as index:
        resources = index._resources  # noqa: SLF001 - a benchmark looks inside
        for argument in sys.argv[1:]:
            questions = read_set(Path(argument))
            loaded = load(resources, questions, language="english", vectors=False)
            found = figures(resources, loaded, questions)
            print(f"{questions.name:<16}" + "".join(f"{value:>8.4f}" for value in found))


def figures(resources: Resources, loaded: Loaded, questions: QuestionSet) -> list[float]:
    """The mean nDCG@10 at each weight."""
    names, postings = read_postings(resources, loaded)
    asked = {one.id: read_question(resources, one.text) for one in questions.answered}
    found = []
    for weight in WEIGHTS:
        lengths = np.zeros(len(names))
        for held in postings.values():
            for p in held:
                lengths[p.passage] += p.body + weight * p.headings
        ranked = {
            question: rank(words, postings, lengths, names, weight)
            for question, words in asked.items()
        }
        relevant = {question: questions.relevant[question] for question in asked}
        found.append(float(np.mean(list(measure(ranked, relevant)[Measure.NDCG_10].values()))))
    return found


def read_postings(
    resources: Resources, loaded: Loaded
) -> tuple[list[str], Mapping[str, Sequence[Posting]]]:
    """The document of each passage, and the passages of each word."""
    with resources.database.transaction() as connection:
        rows = connection.execute(
            "select l.chunk_id, d.name, k.ordinal, u.lexeme,"
            " coalesce(cardinality(u.positions), 1),"
            " coalesce(cardinality(array_positions(u.weights, 'A')), 0)"
            " from lexical l join chunks k on k.id = l.chunk_id"
            " join documents d on d.id = k.document_id join projects p on p.id = l.project_id,"
            " unnest(l.lexemes) u"
            " where p.slug = %s and p.tenant_id = %s and left(u.lexeme, 1) <> '§'"
            " order by l.chunk_id",
            (loaded.slug, loaded.resources.tenant),
        ).fetchall()
    places: dict[int, int] = {}
    names: list[str] = []
    postings: dict[str, list[Posting]] = defaultdict(list)
    for chunk, name, ordinal, lexeme, occurrences, headings in rows:
        if chunk not in places:
            places[chunk] = len(names)
            names.append(loaded.document(name, ordinal))
        postings[lexeme].append(Posting(places[chunk], occurrences - headings, headings))
    return names, postings


def read_question(resources: Resources, text: str) -> dict[str, int]:
    """The words of a question and how often each is asked for."""
    with resources.database.transaction() as connection:
        rows = connection.execute(
            "select lexeme, occurrences::integer from lexeme_counts(text_lexemes('english', %s))",
            (text,),
        ).fetchall()
    return dict(rows)


def rank(
    words: Mapping[str, int],
    postings: Mapping[str, Sequence[Posting]],
    lengths: np.ndarray[tuple[int], np.dtype[np.float64]],
    names: Sequence[str],
    weight: float,
) -> tuple[str, ...]:
    """Documents by the best BM25 of their passages."""
    scores = np.zeros(len(lengths))
    average = lengths.mean()
    for word, count in words.items():
        held = postings.get(word, ())
        value = count * idf(len(lengths), len(held))
        for p in held:
            tf = p.body + weight * p.headings
            norm = K1 * (1 - B + B * lengths[p.passage] / average)
            scores[p.passage] += value * tf * (K1 + 1) / (tf + norm) if tf else 0.0
    best = np.argsort(-scores, kind="stable")[: 3 * DEPTH]
    return distinct(names[place] for place in best if scores[place] > 0)


if __name__ == "__main__":
    main()
