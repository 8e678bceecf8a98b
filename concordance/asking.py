"""The questions of a set, each asked once: what both legs know of it, and how long that took.

What belongs here: from questions to candidates, and from candidates to documents in order. What
the orders are worth is `concordance.evaluating`'s matter.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from concordance.adapters.beir import Question, QuestionSet
from concordance.figures import Ranking
from concordance.gathering import gather
from concordance.loading import Loaded, Progress, path_prefix
from concordance.models import Fusion, LexicalRanking, SearchRequest
from concordance.ranking.confidence import Assessed, assess, in_fixed_order
from concordance.ranking.fusion import Candidate, Fused, default_weight, fuse

# Recall is measured this deep; no measure looks further.
DEPTH = 100
# Long enough for any question: an answer that was cut short would not be measured as such.
DEADLINE_SECONDS = 120.0
FUSED = (Fusion.CONVEX, Fusion.RRF, Fusion.WEIGHTED, Fusion.LEXICAL, Fusion.VECTOR)
COMPARED = (LexicalRanking.TS_RANK_CD, LexicalRanking.ALL_WORDS)


class Leg(Enum):
    """Which legs are heard."""

    BOTH = "both"
    WORDS = "words"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its candidates; `compared` has the documents of the other rankings."""

    question: Question
    candidates: tuple[Candidate, ...]
    documents: Mapping[int, str]
    words: bool
    vectors: bool
    rrf_k: int
    vector_share: float
    milliseconds: Mapping[str, float]
    compared: Mapping[LexicalRanking, tuple[str, ...]]

    def fused(self, fusion: Fusion, weight: float | None = None) -> list[Fused]:
        """All candidates in the order of a fusion, at its default weight or another."""
        given = default_weight(fusion, self.vector_share) if weight is None else weight
        return fuse(self.candidates, fusion, weight=given, rrf_k=self.rrf_k)

    def ranked(self, fusion: Fusion, weight: float | None = None) -> tuple[str, ...]:
        """Documents by their best passage."""
        return distinct(self.documents[f.candidate.chunk_id] for f in self.fused(fusion, weight))

    def orders(self) -> dict[Ranking, tuple[str, ...]]:
        """Documents in the order of every ranking that was asked for."""
        fusions = FUSED if self.vectors else (Fusion.LEXICAL,)
        orders = {Ranking(fusion.value): self.ranked(fusion) for fusion in fusions}
        return orders | {Ranking(kind.value): found for kind, found in self.compared.items()}

    def assessed(
        self, *, without: Mapping[str, int] | None = None, leg: Leg = Leg.BOTH
    ) -> Assessed:
        """The features of all candidates, or of those left when some documents are gone.

        With a `leg` they are those that there would be if that leg alone had been asked.
        """
        left = [
            c
            for c in self.candidates
            if without is None or self.documents[c.chunk_id] not in without
        ]
        words = self.words and leg is not Leg.VECTOR
        vectors = self.vectors and leg is not Leg.WORDS
        ordered = in_fixed_order(left, words=words, vectors=vectors, share=self.vector_share)
        return assess(ordered, words=words, vectors=vectors)


def ask_all(
    loaded: Loaded,
    questions: QuestionSet,
    *,
    vectors: bool,
    compare: bool,
    progress: Progress | None = None,
) -> list[Asked]:
    """Ask every question that has an answer.

    Args:
        loaded: The set as it lies in the index.
        questions: The same set as it was read.
        vectors: Whether the vector leg is asked, too.
        compare: Whether the rankings that are there to compare with are asked as well.
        progress: Told after each question.

    Raises:
        DatabaseError: Postgres can't be asked.
    """
    asked = []
    for question in questions.answered:
        asked.append(_ask(loaded, questions, question, vectors=vectors, compare=compare))
        if progress is not None:
            progress("ask", len(asked), len(questions.answered))
    return asked


def distinct(documents: Iterable[str]) -> tuple[str, ...]:
    """The first `DEPTH` different documents, each where it stands first."""
    return tuple(dict.fromkeys(documents))[:DEPTH]


def _ask(
    loaded: Loaded, questions: QuestionSet, question: Question, *, vectors: bool, compare: bool
) -> Asked:
    request = SearchRequest(
        text=question.text,
        projects=(loaded.slug,),
        path_prefix=path_prefix(question, questions),
        fusion=Fusion.CONVEX if vectors else Fusion.LEXICAL,
        deadline_seconds=DEADLINE_SECONDS,
    )
    began = time.perf_counter()
    with gather(loaded.resources, request) as gathered:
        spent = (time.perf_counter() - began) * 1_000
        account = gathered.account
    milliseconds = account.milliseconds | {"whole search": spent}
    compared: dict[LexicalRanking, tuple[str, ...]] = {}
    for ranking in COMPARED if compare else ():
        compared[ranking], taken = _compare(loaded, request, ranking)
        milliseconds[ranking.value] = taken
    return Asked(
        question=question,
        candidates=gathered.candidates,
        documents=_documents(loaded, gathered.candidates),
        words=account.words_asked,
        vectors=account.vector_available,
        rrf_k=request.rrf_k,
        vector_share=gathered.vector_share,
        milliseconds=milliseconds,
        compared=compared,
    )


def _compare(
    loaded: Loaded, request: SearchRequest, ranking: LexicalRanking
) -> tuple[tuple[str, ...], float]:
    """The documents that another lexical ranking finds, and how long its leg took."""
    other = request.model_copy(update={"fusion": Fusion.LEXICAL, "lexical_ranking": ranking})
    with gather(loaded.resources, other) as gathered:
        found = fuse(gathered.candidates, Fusion.LEXICAL, weight=0.0, rrf_k=request.rrf_k)
    names = _documents(loaded, gathered.candidates)
    taken = gathered.account.milliseconds.get("lexical", 0.0)
    return distinct(names[f.candidate.chunk_id] for f in found), taken


def _documents(loaded: Loaded, candidates: Sequence[Candidate]) -> dict[int, str]:
    return {c.chunk_id: loaded.document(c.order_key[2], c.order_key[3]) for c in candidates}
