"""What an evaluation found, as values that serialise to JSON.

What belongs here: shapes and what can be read off them. They are computed in
`concordance.evaluating`.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from concordance.indexing.counting import agreeing, counted_of
from concordance.models import Frozen
from concordance.ranking.bootstrap import Interval
from concordance.ranking.calibration import Calibration


class Ranking(StrEnum):
    """Everything that can be ranked by; the last two are there to compare with."""

    CONVEX = "convex"
    RRF = "rrf"
    WEIGHTED = "weighted"
    LEXICAL = "lexical"
    VECTOR = "vector"
    TS_RANK_CD = "ts_rank_cd"
    ALL_WORDS = "all_words"


class Figure(Frozen):
    """A mean over questions, with its paired difference to the baseline; None for that itself."""

    mean: float
    against_baseline: Interval | None


class Ranked(Frozen):
    """How good one ranking is."""

    ranking: Ranking
    ndcg_10: Figure
    recall_100: Figure
    mrr_10: Figure


class Latency(Frozen):
    """How long a part of a search took, in milliseconds."""

    part: str
    p50: float
    p95: float


class ConfidenceFigures(Frozen):
    """How far confidence tells questions with an answer from the same ones without.

    Each question counts twice: as it is, and with its relevant documents left out of what was
    found and the features taken anew.
    """

    auc: float | None = Field(description="Area under the ROC curve; None without cases.")
    brier: float = Field(description="Mean squared error of the probability, less is better.")
    threshold: float
    right_kept: float | None = Field(
        description="Share of the right passages among the first ten that the threshold keeps, "
        "the first one of each question."
    )
    absent_refused: float = Field(
        description="Share of questions without their answer to which nothing is shown."
    )


class Evaluation(Frozen):
    """What a set of questions with known answers says of the search."""

    name: str
    project: str
    language: str
    model: str | None
    documents: int
    passages: int
    passages_with_vector: int
    questions: int = Field(description="Those with an answer; all figures are over these.")
    unanswered: int = Field(description="Questions of the set without any known answer.")
    documents_written: int
    texts_embedded: int
    baseline: Ranking
    rankings: tuple[Ranked, ...]
    better_leg: Ranking | None
    against_better_leg: Interval | None = Field(
        description="The baseline's nDCG@10 less that of the better single leg."
    )
    confidence: ConfidenceFigures
    latency: tuple[Latency, ...]
    as_of: datetime

    @property
    def flaw(self) -> str | None:
        """Why the figures of the vector leg are too low, where they are."""
        if self.model is None or self.passages_with_vector == self.passages:
            return None
        return (
            f"{counted_of(self.passages_with_vector, self.passages, 'passage')} "
            f"{agreeing(self.passages, 'has', 'have')} a vector, so the vector leg is measured as "
            "worse than it is"
        )

    def of(self, ranking: Ranking) -> Ranked | None:
        """The figures of one ranking, or None where it was not tried."""
        return next((r for r in self.rankings if r.ranking is ranking), None)


class CalibrationReport(Frozen):
    """What fitting a project's numbers came to; parts that are not kept are None in it."""

    project: str
    stored: bool
    calibration: Calibration
    auc_default: float | None = Field(description="Of the check part, with the default model.")
    auc_fitted: float | None
