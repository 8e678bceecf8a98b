"""Fitting a project's own numbers on questions with known answers, and judging them on others.

What belongs here: the split, the three fits, the checks, and the decision what is stored. A part
is stored where it beats the default beyond noise on questions that it was not fitted on:

- the vector weight of the convex fusion, by nDCG@10, if it does not fall below the better single
  leg either;
- the model of confidence, by the squared error of its probabilities (Brier score), if it tells
  answers from no answers at least as well (AUC);
- the threshold, which is the confidence that 95 of 100 first right passages reach: it is meant to
  cost next to no answer. It is judged by the mean of two shares, of right passages that stay and of
  questions without their answer to which nothing is shown. With a new model it must not be worse
  beyond noise, as the default's scale is gone then; with the default model it must be better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from concordance.adapters.beir import QuestionSet, read_set
from concordance.adapters.measures import Measure, measure
from concordance.adapters.postgres import embeddings, projects
from concordance.adapters.postgres.calibrations import remove_calibration, save_calibration
from concordance.asking import Asked, Leg, ask_all
from concordance.errors import BadTestSet, ProviderError
from concordance.evaluating import ConfidenceCase, confidence_case
from concordance.figures import CalibrationReport
from concordance.indexing.counting import counted
from concordance.loading import Loaded, Progress, load
from concordance.models import Fusion
from concordance.ranking.bootstrap import Interval, paired_interval
from concordance.ranking.calibration import Calibration, Check, Part
from concordance.ranking.confidence import (
    DEFAULT,
    DEFAULT_THRESHOLD,
    Confidence,
    Features,
    Logistic,
)
from concordance.ranking.logistic import fit
from concordance.ranking.metrics import area_under_curve, keeping_threshold
from concordance.resources import Resources

SEED = 7
# Fewer can't show a difference beyond noise, and a fit on fewer would be luck.
LEAST_QUESTIONS = 40
WEIGHTS = tuple(step / 20 for step in range(21))
KEPT_SHARE = 0.95
_TOP = 10


@dataclass(frozen=True, slots=True)
class _Parts:
    """The questions in two parts, and what answers them."""

    questions: QuestionSet
    fit: tuple[Asked, ...]
    check: tuple[Asked, ...]

    def relevant(self, asked: Asked) -> Mapping[str, int]:
        return self.questions.relevant[asked.question.id]

    def cases(self, asked: Sequence[Asked], model: Confidence) -> list[ConfidenceCase]:
        return [confidence_case(one, self.relevant(one), model) for one in asked]


def calibrate(
    resources: Resources,
    folder: Path,
    slug: str,
    *,
    seed: int = SEED,
    progress: Progress | None = None,
) -> CalibrationReport:
    """Fit a project's numbers on one half of a set, judge them on the other, store what is better.

    Args:
        resources: The installation.
        folder: A set in BEIR form; it is analysed in the project's language.
        slug: The project that the numbers are for.
        seed: Of the split.
        progress: Told of the stages `write`, `embed`, `ask` and `fit`.

    Raises:
        UnknownProject: The project is not in the index.
        BadTestSet: The folder holds no set that can be read, or too few questions with an answer.
        ProviderError: The set can't be embedded.
        DatabaseError: Postgres can't be asked.
    """
    stored = _stored(resources, slug)
    questions = read_set(folder)
    if len(questions.answered) < LEAST_QUESTIONS:
        raise BadTestSet(
            f"{folder} has {counted(len(questions.answered), 'question')} with a known answer",
            hint=f"At least {LEAST_QUESTIONS} are needed; 'concordance questions' collects them",
        )
    loaded = load(resources, questions, language=stored.language, progress=progress)
    asked = ask_all(loaded, questions, vectors=True, compare=False, progress=progress)
    parts = _split(questions, asked, seed)
    found = _fit(parts, progress)
    calibration = _calibration(loaded, parts, slug, found)
    if any(check.kept for check in found.checks):
        save_calibration(resources.database, resources.tenant, stored.id, calibration)
    return CalibrationReport(
        project=slug,
        stored=any(check.kept for check in found.checks),
        calibration=calibration,
        auc_default=found.auc_default,
        auc_fitted=found.auc_fitted,
    )


def undo(resources: Resources, slug: str) -> bool:
    """Go back to the defaults; tells whether there was anything to undo.

    Raises:
        UnknownProject: The project is not in the index.
    """
    return remove_calibration(resources.database, _stored(resources, slug).id)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """What the fits came to."""

    weight: float
    model: Confidence
    threshold: float
    checks: tuple[Check, ...]
    auc_default: float | None
    auc_fitted: float | None


def _stored(resources: Resources, slug: str) -> projects.StoredProject:
    found = projects.find_project(resources.database, resources.tenant, slug)
    if found is None:
        resources.project(slug)  # raises UnknownProject, with what there is
        raise BadTestSet(f"project '{slug}' is not indexed yet", hint="Run 'concordance reindex'")
    return found


def _split(questions: QuestionSet, asked: Sequence[Asked], seed: int) -> _Parts:
    """Two halves; the order of the questions in their file does not matter."""
    ordered = sorted(asked, key=lambda one: one.question.id)
    places = np.random.default_rng(seed).permutation(len(ordered))
    half = len(ordered) // 2
    shuffled = [ordered[place] for place in places]
    return _Parts(questions, tuple(shuffled[:half]), tuple(shuffled[half:]))


def _fit(parts: _Parts, progress: Progress | None) -> _Fitted:
    weight = _fit_weight(parts, progress)
    weighed = _check_weight(parts, weight)
    model = _fit_confidence(parts)
    defaults = parts.cases(parts.check, DEFAULT)
    fitted = parts.cases(parts.check, model)
    judged = _check_confidence(defaults, fitted)
    used = model if judged.kept else DEFAULT
    threshold = _fit_threshold(parts, used)
    cut = _check_threshold(
        defaults, fitted if judged.kept else defaults, threshold, new_model=judged.kept
    )
    if judged.kept and not cut.kept:
        reason = f"the threshold that goes with it does not hold: {cut.reason}"
        judged = judged.model_copy(update={"kept": False, "reason": reason})
    return _Fitted(weight, model, threshold, (weighed, judged, cut), _auc(defaults), _auc(fitted))


def _calibration(loaded: Loaded, parts: _Parts, slug: str, found: _Fitted) -> Calibration:
    resources = loaded.resources
    space = embeddings.active_space(resources.database, resources.tenant)
    if space is None:
        raise ProviderError("the set has no vectors, so nothing can be fitted")
    kept = {check.part for check in found.checks if check.kept}
    return Calibration(
        project=slug,
        set_name=parts.questions.name,
        questions_hash=parts.questions.fingerprint(),
        fitted_on=len(parts.fit),
        checked_on=len(parts.check),
        model=space.fingerprint,
        model_name=space.name,
        vector_weight=found.weight if Part.WEIGHT in kept else None,
        threshold=found.threshold if Part.THRESHOLD in kept else None,
        confidence=found.model if Part.CONFIDENCE in kept else None,
        figures=found.checks,
        made_at=resources.clock(),
    )


# --- the vector weight ---------------------------------------------------------------------------


def _fit_weight(parts: _Parts, progress: Progress | None) -> float:
    """The best weight of the grid on the fit part; of equal ones, the nearest to the default."""
    means: dict[float, float] = {}
    for done, weight in enumerate(WEIGHTS, start=1):
        means[weight] = float(np.mean(_ndcg(parts, parts.fit, Fusion.CONVEX, weight)))
        if progress is not None:
            progress("fit", done, len(WEIGHTS))
    default = float(np.mean([one.vector_share for one in parts.fit]))
    return max(WEIGHTS, key=lambda weight: (means[weight], -abs(weight - default)))


def _check_weight(parts: _Parts, weight: float) -> Check:
    default = _ndcg(parts, parts.check, Fusion.CONVEX)
    fitted = _ndcg(parts, parts.check, Fusion.CONVEX, weight)
    legs = {leg: _ndcg(parts, parts.check, leg) for leg in (Fusion.LEXICAL, Fusion.VECTOR)}
    leg = max(legs, key=lambda fusion: sum(legs[fusion]))
    gain = paired_interval(fitted, default)
    below = float(np.mean(fitted)) - float(np.mean(legs[leg]))
    lost = f"it falls below the {leg.value} leg by {-below:.4f}"
    return Check(
        part=Part.WEIGHT,
        measure=Measure.NDCG_10.value,
        default=float(np.mean(default)),
        fitted=float(np.mean(fitted)),
        gain=gain,
        value=weight,
        kept=below >= 0 and gain.better,
        reason=lost if below < 0 else _verdict(gain),
    )


def _ndcg(
    parts: _Parts, asked: Sequence[Asked], fusion: Fusion, weight: float | None = None
) -> list[float]:
    rankings = {one.question.id: one.ranked(fusion, weight)[:_TOP] for one in asked}
    relevant = {one.question.id: parts.relevant(one) for one in asked}
    found = measure(rankings, relevant)[Measure.NDCG_10]
    return [found[one.question.id] for one in asked]


# --- confidence and threshold --------------------------------------------------------------------


def _fit_confidence(parts: _Parts) -> Confidence:
    """A model a leg and one for both, each on the best passage of every question in both forms."""
    return Confidence(
        both=_fit_leg(parts, Leg.BOTH) or DEFAULT.both,
        words=_fit_leg(parts, Leg.WORDS) or DEFAULT.words,
        vector=_fit_leg(parts, Leg.VECTOR) or DEFAULT.vector,
    )


def _fit_leg(parts: _Parts, leg: Leg) -> Logistic | None:
    """None where there are no cases of both kinds, as without any vector."""
    rows: list[tuple[float, ...]] = []
    labels: list[bool] = []
    for one in parts.fit:
        for label, without in ((True, None), (False, parts.relevant(one))):
            best = next(iter(one.assessed(without=without, leg=leg).by_chunk.values()), None)
            row = None if best is None else _row(best, leg)
            if row is not None:
                rows.append(row)
                labels.append(label)
    return fit(rows, labels) if any(labels) and not all(labels) else None


def _row(features: Features, leg: Leg) -> tuple[float, ...] | None:
    """The features that a leg's model looks at; None where a leg has nothing to say."""
    match leg, features:
        case Leg.BOTH, Features(share=float(share), cosine=float(cosine), lead=lead):
            return share, cosine, lead
        case Leg.WORDS, Features(share=float(share), lead=lead):
            return share, lead
        case Leg.VECTOR, Features(cosine=float(cosine), lead=lead):
            return cosine, lead
    return None


def _check_confidence(default: Sequence[ConfidenceCase], fitted: Sequence[ConfidenceCase]) -> Check:
    before, after = [case.brier for case in default], [case.brier for case in fitted]
    gain = paired_interval(before, after)  # less error is better
    worse = (_auc(fitted) or 0.0) < (_auc(default) or 0.0)
    return Check(
        part=Part.CONFIDENCE,
        measure="Brier score",
        default=float(np.mean(before)),
        fitted=float(np.mean(after)),
        gain=gain,
        value=None,
        kept=gain.better and not worse,
        reason="it tells answers from no answers less well (AUC)" if worse else _verdict(gain),
    )


def _fit_threshold(parts: _Parts, model: Confidence) -> float:
    first = [c.first_right for c in parts.cases(parts.fit, model) if c.first_right is not None]
    return keeping_threshold(first, KEPT_SHARE) if first else DEFAULT_THRESHOLD


def _check_threshold(
    default: Sequence[ConfidenceCase],
    fitted: Sequence[ConfidenceCase],
    threshold: float,
    *,
    new_model: bool,
) -> Check:
    before = [_served(case, DEFAULT_THRESHOLD) for case in default]
    after = [_served(case, threshold) for case in fitted]
    gain = paired_interval(after, before)
    kept = not gain.worse if new_model else gain.better
    reason = "it goes with the fitted confidence" if kept and new_model else _verdict(gain)
    return Check(
        part=Part.THRESHOLD,
        measure="right kept and absent refused",
        default=float(np.mean(before)),
        fitted=float(np.mean(after)),
        gain=gain,
        value=threshold,
        kept=kept,
        reason=reason,
    )


def _served(case: ConfidenceCase, threshold: float) -> float:
    """How well one question is served in both forms, 0 to 1; without a right passage in one."""
    refused = float(case.absent < threshold)
    if case.first_right is None:
        return refused
    return (float(case.first_right >= threshold) + refused) / 2


def _auc(cases: Sequence[ConfidenceCase]) -> float | None:
    return area_under_curve([c.present for c in cases], [c.absent for c in cases])


def _verdict(gain: Interval) -> str:
    if gain.better:
        return "better than the default, beyond noise"
    if gain.worse:
        return "worse than the default, beyond noise"
    return "no better than the default, beyond noise"
