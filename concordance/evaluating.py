"""How good the search is, measured on a set of questions with known answers.

What belongs here: from what was found to figures. The set is brought into the index by
`concordance.loading`, and asked by `concordance.asking`; each question is gathered once, and every
fusion is computed from the same candidates, so that differences are differences of order alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from concordance.adapters.beir import QuestionSet, read_set
from concordance.adapters.measures import Measure, measure
from concordance.adapters.postgres import coverage
from concordance.asking import Asked, ask_all
from concordance.figures import (
    ConfidenceFigures,
    Evaluation,
    Figure,
    Latency,
    Ranked,
    Ranking,
)
from concordance.loading import Loaded, Progress, load
from concordance.models import Fusion, ScopeCoverage
from concordance.ranking.bootstrap import Interval, paired_interval
from concordance.ranking.confidence import (
    DEFAULT,
    DEFAULT_THRESHOLD,
    Confidence,
    Features,
    confidence,
)
from concordance.ranking.metrics import area_under_curve, brier
from concordance.resources import Resources
from concordance.text.language import AUTO

# How deep a right passage is looked for when a threshold is judged.
SHOWN = 10

Measured = Mapping[Measure, Mapping[str, float]]


def evaluate(
    resources: Resources,
    folder: Path,
    *,
    language: str = AUTO,
    vectors: bool = True,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure every ranking and fusion on the set in a folder.

    Args:
        resources: The installation; the set lies in its database, apart from its projects.
        folder: A set in BEIR form, see `concordance.adapters.beir.read_set`.
        language: A Postgres text-search configuration, or `auto` to detect each document's.
        vectors: Whether to embed the set; without, its words alone are measured.
        progress: Told of the stages `write`, `embed` and `ask`.

    Raises:
        BadTestSet: The folder holds no set that can be read.
        SettingsError: Postgres has no text-search configuration named `language`.
        ProviderError: The set can't be embedded.
        DatabaseError: Postgres can't be asked.
    """
    questions = read_set(folder)
    loaded = load(resources, questions, language=language, vectors=vectors, progress=progress)
    asked = ask_all(loaded, questions, vectors=vectors, compare=True, progress=progress)
    held = coverage_of(loaded)
    baseline = Ranking.CONVEX if held.chunks_with_vector and vectors else Ranking.LEXICAL
    measured = measure_orders(asked, questions)
    leg = _better_leg(measured)
    return Evaluation(
        name=questions.name,
        project=loaded.slug,
        language=language,
        model=held.model if baseline is Ranking.CONVEX else None,
        documents=len(questions.corpus),
        passages=held.chunks,
        passages_with_vector=held.chunks_with_vector,
        questions=len(asked),
        unanswered=len(questions.questions) - len(asked),
        documents_written=loaded.written,
        texts_embedded=loaded.embedded,
        baseline=baseline,
        rankings=tuple(_ranked(kind, measured, baseline) for kind in measured),
        better_leg=leg if baseline is not leg else None,
        against_better_leg=_against(measured, baseline, leg) if baseline is not leg else None,
        confidence=judge_confidence(asked, questions, DEFAULT, threshold=DEFAULT_THRESHOLD),
        latency=_latency(asked),
        as_of=resources.clock(),
    )


def coverage_of(loaded: Loaded) -> ScopeCoverage:
    """What is indexed of a set."""
    database, tenant = loaded.resources.database, loaded.resources.tenant
    return coverage.list_coverage(database, tenant, [loaded.slug])[0]


def measure_orders(asked: Sequence[Asked], questions: QuestionSet) -> dict[Ranking, Measured]:
    """Each measure of each question, for every ranking that was tried."""
    orders = [(one.question.id, one.orders()) for one in asked]
    tried = [kind for kind in Ranking if kind in orders[0][1]]
    relevant = {question: questions.relevant[question] for question, _ in orders}
    return {
        kind: measure({question: found[kind] for question, found in orders}, relevant)
        for kind in tried
    }


def judge_confidence(
    asked: Sequence[Asked], questions: QuestionSet, model: Confidence, *, threshold: float
) -> ConfidenceFigures:
    """How far a model of confidence tells questions with an answer from those without."""
    cases = [confidence_case(one, questions.relevant[one.question.id], model) for one in asked]
    kept = [case.first_right >= threshold for case in cases if case.first_right is not None]
    return ConfidenceFigures(
        auc=area_under_curve([c.present for c in cases], [c.absent for c in cases]),
        brier=float(np.mean([case.brier for case in cases])),
        threshold=threshold,
        right_kept=float(np.mean(kept)) if kept else None,
        absent_refused=float(np.mean([case.absent < threshold for case in cases])),
    )


@dataclass(frozen=True, slots=True)
class ConfidenceCase:
    """One question in both forms: with its relevant documents, and without them."""

    present: float
    absent: float
    first_right: float | None

    @property
    def brier(self) -> float:
        """The mean squared error of both forms."""
        return (brier(self.present, happened=True) + brier(self.absent, happened=False)) / 2


def confidence_case(asked: Asked, relevant: Mapping[str, int], model: Confidence) -> ConfidenceCase:
    """A question's confidence as an answer carries it, in both forms.

    `first_right` is that of the first right passage among the first ten, None where there is none.
    """
    features = asked.assessed().by_chunk
    shown = asked.fused(Fusion.CONVEX if asked.vectors else Fusion.LEXICAL)[:SHOWN]
    right = (f.candidate for f in shown if asked.documents[f.candidate.chunk_id] in relevant)
    first = next(right, None)
    return ConfidenceCase(
        present=_best(features, model),
        absent=_best(asked.assessed(without=relevant).by_chunk, model),
        first_right=None if first is None else confidence(model, features[first.chunk_id]),
    )


def _best(features: Mapping[int, Features], model: Confidence) -> float:
    """That of the best candidate in the fixed order, which is the first here."""
    return next((confidence(model, found) for found in features.values()), 0.0)


def _ranked(kind: Ranking, measured: Mapping[Ranking, Measured], baseline: Ranking) -> Ranked:
    def figure(what: Measure) -> Figure:
        ours, theirs = measured[kind][what], measured[baseline][what]
        against = None if kind is baseline else paired(ours, theirs)
        return Figure(mean=float(np.mean(list(ours.values()))), against_baseline=against)

    return Ranked(
        ranking=kind,
        ndcg_10=figure(Measure.NDCG_10),
        recall_100=figure(Measure.RECALL_100),
        mrr_10=figure(Measure.MRR_10),
    )


def paired(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Interval:
    """The interval of a difference of means over the same questions."""
    ids = sorted(ours)
    return paired_interval([ours[i] for i in ids], [theirs[i] for i in ids])


def _better_leg(measured: Mapping[Ranking, Measured]) -> Ranking:
    legs = [kind for kind in (Ranking.LEXICAL, Ranking.VECTOR) if kind in measured]
    return max(legs, key=lambda kind: sum(measured[kind][Measure.NDCG_10].values()))


def _against(measured: Mapping[Ranking, Measured], ours: Ranking, theirs: Ranking) -> Interval:
    return paired(measured[ours][Measure.NDCG_10], measured[theirs][Measure.NDCG_10])


def _latency(asked: Sequence[Asked]) -> tuple[Latency, ...]:
    parts = dict.fromkeys(part for one in asked for part in one.milliseconds)
    found = []
    for part in parts:
        spent = [one.milliseconds[part] for one in asked if part in one.milliseconds]
        p50, p95 = np.percentile(spent, [50, 95])
        found.append(Latency(part=part, p50=round(float(p50), 3), p95=round(float(p95), 3)))
    return tuple(found)
