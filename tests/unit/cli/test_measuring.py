"""How an evaluation and a calibration look on a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import pytest
from rich.console import Console

from concordance.cli import measuring
from concordance.errors import BadRequest
from concordance.figures import (
    CalibrationReport,
    ConfidenceFigures,
    Evaluation,
    Figure,
    Latency,
    Ranked,
    Ranking,
)
from concordance.ranking.bootstrap import Interval
from concordance.ranking.calibration import Calibration, Check, Part

NOW = datetime(2026, 3, 1, tzinfo=UTC)
GAIN = Interval(difference=0.0123, low=-0.001, high=0.03)


Value = TypeVar("Value")


def shown(print_it: Callable[[Console, Value], None], value: Value) -> str:
    page = io.StringIO()
    print_it(Console(width=200, file=page), value)
    return page.getvalue()


def evaluation(**changes: object) -> Evaluation:
    figure = Figure(mean=0.75, against_baseline=None)
    other = Figure(mean=0.5, against_baseline=GAIN)
    ranked = [
        Ranked(ranking=kind, ndcg_10=of, recall_100=of, mrr_10=of)
        for kind, of in ((Ranking.CONVEX, figure), (Ranking.LEXICAL, other))
    ]
    found = Evaluation(
        name="faq",
        project="evaluation-faq",
        language="auto",
        model="fake/m",
        documents=1_000,
        passages=1_200,
        passages_with_vector=1_200,
        questions=50,
        unanswered=0,
        documents_written=0,
        texts_embedded=0,
        baseline=Ranking.CONVEX,
        rankings=tuple(ranked),
        better_leg=Ranking.LEXICAL,
        against_better_leg=GAIN,
        confidence=ConfidenceFigures(
            auc=0.81, brier=0.2, threshold=0.2, right_kept=0.97, absent_refused=0.4
        ),
        latency=(Latency(part="whole search", p50=12.5, p95=40.0),),
        as_of=NOW,
    )
    return found.model_copy(update=changes)


def test_an_evaluation_shows_every_ranking_and_what_it_is_worth() -> None:
    page = shown(measuring.print_evaluation, evaluation())
    assert "faq: 50 questions, 1,000 documents" in page
    assert "+0.012 (-0.001 to +0.030)" in page
    assert "convex against its better leg, lexical" in page
    assert "AUC 0.810" in page
    assert "keeps 97% of the right passages and refuses 40%" in page
    assert "have a vector" not in page


def test_missing_vectors_and_unknown_figures_are_said() -> None:
    found = evaluation(
        passages_with_vector=7,
        confidence=ConfidenceFigures(
            auc=None, brier=0.2, threshold=0.2, right_kept=None, absent_refused=0.0
        ),
    )
    page = shown(measuring.print_evaluation, found)
    assert "7 of 1,200 passages have a vector" in page
    assert "AUC unknown" in page


@pytest.mark.parametrize("kept", [True, False])
def test_a_calibration_shows_what_was_kept_and_how_to_undo_it(kept: bool) -> None:
    check = Check(
        part=Part.WEIGHT,
        measure="nDCG@10",
        default=0.7,
        fitted=0.8,
        gain=GAIN,
        value=0.4,
        kept=kept,
        reason="because",
    )
    calibration = Calibration(
        project="p",
        set_name="faq",
        questions_hash="0123456789abcdef",
        fitted_on=20,
        checked_on=20,
        model="f",
        model_name="fake/m",
        vector_weight=0.4 if kept else None,
        threshold=None,
        confidence=None,
        figures=(check,),
        made_at=NOW,
    )
    report = CalibrationReport(
        project="p", stored=kept, calibration=calibration, auc_default=0.7, auc_fitted=0.8
    )
    page = shown(measuring.print_calibration, report)
    assert "vector weight: because" in page
    assert ("--project p --undo" in page) is kept
    assert ("the defaults stay" in page) is not kept
    assert ("vector weight 0.4; fitted on 20 questions of 'faq' (0123456789ab)" in page) is kept


def test_fitting_and_undoing_at_once_or_neither_is_refused() -> None:
    with pytest.raises(BadRequest, match="either --data"):
        measuring.calibrate(project="p")
