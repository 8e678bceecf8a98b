"""Which scopes were not brought up to date for longer than they may be.

What belongs here: the comparison. Who is told is the flows' matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from concordance.models import Scope, ScopeCoverage


@dataclass(frozen=True, slots=True)
class Overdue:
    """A scope that was brought up to date last before its limit began."""

    project: str
    scope: Scope
    last_success: datetime
    limit_hours: float
    reason: str


def overdue(
    covered: Iterable[ScopeCoverage], limits: Mapping[str, float], now: datetime
) -> list[Overdue]:
    """The scopes that are overdue, the oldest first.

    One that was never brought up to date has no time to count from; its runs fail by name.

    Args:
        covered: What is known of the scopes.
        limits: Hours by project; a project that is not named is not waited for.
        now: The present moment.
    """
    found = [
        Overdue(c.project, c.scope, c.last_success, limits[c.project], c.reason)
        for c in covered
        if c.project in limits
        and c.last_success is not None
        and now - c.last_success > timedelta(hours=limits[c.project])
    ]
    return sorted(found, key=lambda o: (o.last_success, o.project, o.scope))
