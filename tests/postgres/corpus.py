"""Random corpora of hand-made passages, and BM25 computed a second time from term counts."""

from __future__ import annotations

import math
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from concordance.adapters.postgres import documents, lexical, words
from concordance.adapters.postgres import search as legs
from concordance.adapters.postgres.database import Connection
from concordance.adapters.postgres.lexical import Question
from concordance.adapters.postgres.words import Difference
from concordance.indexing.documents import Document
from concordance.models import LexicalRanking, Scope
from concordance.ranking.candidates import Known, Scored
from concordance.ranking.threshold import any_of
from tests.postgres.rows import NOW, Shelf, document

# The last two share a dimension of the sparse vector, as do the two before.
WORDS = [
    *("tea", "kettle", "queue", "retry", "brews", "Wasser", "Häuser", "café", "復旧手順"),
    *("client/server", "ADR-0012", "getUserById", "v1.2.3", "C++", "the", "und"),
    *("w854", "w112684", "w35237", "w80030"),
]
LANGUAGES = ["english", "german", "simple"]
PROJECTS = ["p", "q"]


class Library:
    """Two projects whose documents come, change, move and go by chance."""

    def __init__(self, shelf: Shelf, seed: int) -> None:
        self.shelf = shelf
        self.dice = random.Random(seed)  # noqa: S311 - chance, no secret

    def text(self) -> str:
        # A few words make most of a text, so that scores tie and repeat.
        return " ".join(self.dice.choices(WORDS, k=self.dice.choice([0, 1, 3, 3, 8, 30])))

    def made(self, name: str) -> Document:
        session = name.startswith("s")
        made = document(
            name,
            *(self.text() for _ in range(self.dice.randrange(5))),
            scope=Scope.SESSION if session else self.dice.choice([Scope.DOCS, Scope.ADR]),
            kind="session" if session else "file",
            title=self.dice.choice([None, "tea", "queue retry"]),
            language=self.dice.choice(LANGUAGES),
        )
        passages = tuple(
            replace(p, occurred_at=NOW + timedelta(minutes=p.ordinal) if session else None)
            for p in made.passages
        )
        return replace(made, passages=passages)

    def names(self) -> list[str]:
        return [f"docs/{n}.md" for n in "abcdefgh"] + [f"docs/sub/{n}.md" for n in "xyz"] + ["s1"]

    def step(self) -> None:
        project = self.dice.choice(PROJECTS)
        move = self.dice.random()
        known = self.shelf.ask(
            "select d.id, d.name, d.kind from concordance.documents d join concordance.projects p "
            "on p.id = d.project_id where p.slug = %(slug)s order by d.name",
            {"slug": project},
        )
        with self.shelf.hold(project) as held:
            files = [row for row in known if row["kind"] == "file"]
            free = [n for n in self.names() if n not in {row["name"] for row in known}]
            if move < 0.15 and known:
                gone = self.dice.sample(known, k=min(2, len(known)))
                ids = [row["id"] for row in gone]
                documents.delete_documents(self.shelf.database, held, ids)
            elif move < 0.3 and files and free and free[0] != "s1":
                renames = [(self.dice.choice(files)["id"], free[0], Scope.ADR)]
                documents.rename_documents(self.shelf.database, self.shelf.tenant, held, renames)
            else:
                chosen = self.dice.sample(self.names(), k=4)
                batch = [self.made(name) for name in chosen]
                documents.write_documents(self.shelf.database, self.shelf.tenant, held, batch)

    def settle(self) -> list[words.Drift]:
        found = []
        for slug in PROJECTS:
            with self.shelf.database.transaction() as connection:
                found += words.settle_weights(connection, self.shelf.project(slug).id)
        return found

    def differences(self, *, rebuild: bool = False) -> list[Difference]:
        return [
            found
            for slug in PROJECTS
            for found in words.check_statistics(
                self.shelf.database, self.shelf.project(slug).id, rebuild=rebuild
            )
        ]

    def question(self) -> str:
        return " ".join(self.dice.choices([*WORDS, "zebra"], k=self.dice.choice([1, 2, 5, 14])))

    def filters(self) -> legs.Filters:
        slugs = self.dice.choice([PROJECTS, PROJECTS, ["p"]])
        numbers = tuple(self.shelf.project(slug).id for slug in slugs)
        scopes = self.dice.choice([("docs", "adr", "session"), ("docs",), ("adr", "session")])
        narrow = self.dice.choice(
            [
                (),
                tuple(
                    lexical.place_lexeme(number, scope) for number in numbers for scope in scopes
                ),
            ]
        )
        prefix = self.dice.choice([None, None, "docs/s", "docs/"])
        since = None if prefix else self.dice.choice([None, None, NOW + timedelta(minutes=1)])
        return legs.Filters(numbers, scopes, prefix, since, narrow)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question read in one snapshot, with what the leg and every match come to."""

    questions: list[Question]
    found: list[Scored]
    every: list[Scored]


@contextmanager
def asked(shelf: Shelf, text: str, filters: legs.Filters, *, pool: int) -> Iterator[Asked]:
    """The leg's finds beside all matches that the same statement scores."""
    with shelf.database.transaction() as connection:
        questions = lexical.read_questions(connection, text, filters.projects)
        parameters = filters.parameters() | {"pool": pool}
        found = lexical.find(
            connection, questions, parameters, filters.places, ranking=LexicalRanking.BM25
        )
        whole = lexical._Asked(connection, parameters | {"pool": 1_000_000}, ())
        every = whole.rows("top", [(q, any_of(q.lexemes)) for q in questions])
        yield Asked(questions, found, every)


def by_hand(shelf: Shelf, text: str, projects: Sequence[int]) -> dict[int, float]:
    """BM25 of every passage that holds a word of the question, from counts alone."""
    counts = shelf.ask(
        "select l.chunk_id, l.language, l.project_id, c.lexeme, c.occurrences from "
        "concordance.lexical l cross join lateral concordance.lexeme_counts(l.lexemes) c "
        "where l.project_id = any(%(projects)s)",
        {"projects": list(projects)},
    )
    rows = shelf.ask(
        "select l.chunk_id, l.language, s.average from concordance.lexical l join "
        "concordance.project_stats s using (project_id, language) "
        "where l.project_id = any(%(projects)s)",
        {"projects": list(projects)},
    )
    wanted: dict[str, dict[str, int]] = defaultdict(dict)
    for row in shelf.ask(
        "select q.language, c.lexeme, c.occurrences "
        "from unnest(%(languages)s::text[]) as q (language), "
        "concordance.lexeme_counts(concordance.text_lexemes(q.language::regconfig, %(text)s)) c",
        {"languages": LANGUAGES, "text": text},
    ):
        wanted[row["language"]][row["lexeme"]] = int(row["occurrences"])
    return _sum(counts, rows, wanted, _forms(shelf, text))


def _forms(shelf: Shelf, text: str) -> dict[str, dict[str, set[str]]]:
    """The lexemes of each word of a question in each language; none of a stop word.

    Word by word, and each stemmed before its accents are folded.
    """
    forms: dict[str, dict[str, set[str]]] = {}
    for row in shelf.ask(
        "select concordance.fold_accents(w.word) as word, q.language, array("
        "select concordance.fold_accents(u.lexeme) "
        "from unnest(to_tsvector(q.language::regconfig, w.word)) u) as lexemes "
        "from unnest(%(languages)s::text[]) as q (language), regexp_split_to_table(lower("
        "concordance.apart(concordance.without_cjk(%(text)s))), '\\s+') as w (word) "
        "where w.word <> ''",
        {"languages": LANGUAGES, "text": text},
    ):
        forms.setdefault(row["word"], {})[row["language"]] = set(row["lexemes"])
    return forms


def _sum(
    counts: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    wanted: dict[str, dict[str, int]],
    forms: dict[str, dict[str, set[str]]],
) -> dict[int, float]:
    length: dict[int, float] = defaultdict(float)
    lexemes: dict[int, set[str]] = {row["chunk_id"]: set() for row in rows}
    language = {row["chunk_id"]: str(row["language"]) for row in rows}
    for row in counts:
        length[row["chunk_id"]] += row["occurrences"]
        lexemes[row["chunk_id"]].add(row["lexeme"])
    average = {row["chunk_id"]: row["average"] for row in rows}

    def holders(own: str, lexeme: str) -> int:
        """Passages of the lexeme's language that hold it, others that hold a word that it is of."""
        mine = sum(lexeme in held for chunk, held in lexemes.items() if language[chunk] == own)
        others = [chunk for chunk in lexemes if language[chunk] != own]
        of = [word for word, by_language in forms.items() if lexeme in by_language[own]]
        if not of:
            return mine + sum(lexeme in lexemes[chunk] for chunk in others)
        return mine + max(sum(_held(forms[w], language, lexemes, others)) for w in of)

    scores: dict[int, float] = defaultdict(float)
    for row in counts:
        times = wanted[row["language"]].get(row["lexeme"], 0)
        if times:
            n, df = len(rows), holders(row["language"], row["lexeme"])
            idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
            norm = 1.2 * (1 - 0.75 + 0.75 * length[row["chunk_id"]] / average[row["chunk_id"]])
            tf = row["occurrences"]
            scores[row["chunk_id"]] += times * idf * tf * (1.2 + 1) / (tf + norm)
    return dict(scores)


def _held(
    forms: dict[str, set[str]],
    language: dict[int, str],
    lexemes: dict[int, set[str]],
    chunks: list[int],
) -> Iterator[int]:
    """By language, how many passages hold the most frequent form of a word; all, a stop word."""
    for other in sorted({language[chunk] for chunk in chunks}):
        own = [lexemes[chunk] for chunk in chunks if language[chunk] == other]
        if forms[other]:
            yield max(sum(form in held for held in own) for form in forms[other])
        else:
            yield len(own)


def judged(
    connection: Connection,
    questions: list[lexical.Question],
    chunks: list[int],
    ranking: LexicalRanking,
) -> list[Known]:
    """What the words say of given passages."""
    snapshot = legs.Snapshot(connection, "test", time.monotonic() + 60)
    return snapshot.candidates(chunks, questions, ranking, None)
