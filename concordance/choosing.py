"""Which numbers a search uses: the caller's, its project's own, or the defaults.

What belongs here: that choice. A calibration is of one project, so it is used where exactly one is
searched, and only with the embedding model that it was made with.
"""

from __future__ import annotations

from dataclasses import dataclass

from concordance.gathering import Gathered
from concordance.models import Fusion
from concordance.ranking.calibration import Calibration
from concordance.ranking.confidence import DEFAULT, DEFAULT_THRESHOLD, Confidence
from concordance.ranking.fusion import default_weight

BLENDED = (Fusion.CONVEX, Fusion.WEIGHTED, Fusion.RRF)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The numbers of one search."""

    weight: float
    threshold: float
    confidence: Confidence


def choose(gathered: Gathered) -> Chosen:
    """The numbers for what was gathered; a calibration that is used, or can't be, is noted."""
    request = gathered.request
    own = _calibration(gathered)
    weight = default_weight(request.fusion, gathered.vector_share)
    if own is not None and own.vector_weight is not None and request.fusion is Fusion.CONVEX:
        weight = own.vector_weight
    if request.vector_weight is not None and request.fusion in BLENDED:
        weight = request.vector_weight
    threshold = DEFAULT_THRESHOLD
    if own is not None and own.threshold is not None:
        threshold = own.threshold
    if request.threshold is not None:
        threshold = request.threshold
    model = DEFAULT if own is None or own.confidence is None else own.confidence
    return Chosen(weight, threshold, model)


def _calibration(gathered: Gathered) -> Calibration | None:
    """The calibration of the one project that was searched, if it fits the active model."""
    projects = {target.project_id for target in gathered.targets}
    if len(projects) != 1:
        return None
    found = gathered.snapshot.calibration(projects.pop())
    if found is None:
        return None
    if gathered.space is None or gathered.space.fingerprint != found.model:
        gathered.account.notes.append(
            f"the calibration of '{found.project}' was made with {found.model_name} and is not used"
        )
        return None
    gathered.account.notes.append(f"calibrated for '{found.project}': {found.summary}")
    return found
