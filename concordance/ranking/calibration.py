"""What was fitted for one project, with the account of where it comes from.

What belongs here: the value, and how it is read. The fit is `concordance.calibrating`'s work.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from concordance.indexing.counting import counted
from concordance.ranking.bootstrap import Interval
from concordance.ranking.confidence import Confidence


class Part(StrEnum):
    """What can be fitted."""

    WEIGHT = "vector weight"
    CONFIDENCE = "confidence"
    THRESHOLD = "threshold"


class Check(BaseModel):
    """One fitted part, judged on questions that it was not fitted on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    part: Part
    measure: str
    default: float = Field(description="The measure with the default.")
    fitted: float = Field(description="The same with what was fitted.")
    gain: Interval = Field(description="How much better the fitted one is; above 0 is better.")
    value: float | None = Field(description="The fitted number, where the part is one number.")
    kept: bool
    reason: str


class Calibration(BaseModel):
    """A project's own numbers; None where the default holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    project: str
    set_name: str
    questions_hash: str
    fitted_on: int
    checked_on: int
    model: str = Field(description="Fingerprint of the vector space that the numbers are true of.")
    model_name: str
    vector_weight: float | None
    threshold: float | None
    confidence: Confidence | None
    figures: tuple[Check, ...]
    made_at: datetime

    @property
    def summary(self) -> str:
        """In one line: what it sets, and what it comes from."""
        numbers = [
            f"{name} {value:g}"
            for name, value in (
                (Part.WEIGHT, self.vector_weight),
                (Part.THRESHOLD, self.threshold and round(self.threshold, 4)),
            )
            if value is not None
        ]
        if self.confidence is not None:
            numbers.append("its own confidence")
        fitted_on = counted(self.fitted_on, "question")
        return (
            f"{', '.join(numbers)}; fitted on {fitted_on} of '{self.set_name}' "
            f"({self.questions_hash[:12]}), checked on {counted(self.checked_on, 'other')}, "
            f"{self.made_at:%Y-%m-%d}, {self.model_name}"
        )
