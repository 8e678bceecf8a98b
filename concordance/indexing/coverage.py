"""What may be said of a scope: its state and the reason, from counts alone.

What belongs here: the judgement. Counting is done in SQL, in the transaction that stores it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from concordance.indexing.counting import agreeing, counted, counted_of
from concordance.models import CoverageState, Scope


@dataclass(frozen=True, slots=True)
class Counted:
    """One scope as counted from the tables, and what is known of its last attempt."""

    project: str
    scope: str
    fingerprint: str | None
    indexed_marker: str | None
    remote_marker: str | None
    last_success: datetime | None
    attempt_open: bool
    attempt_error: str | None
    embedding_error: str | None
    found: int
    indexed: int
    empty: int
    failed: int
    skipped: int
    first_failure: str | None
    chunks: int
    chunks_with_vector: int
    chunks_refused: int
    first_refusal: str | None
    model_id: int | None
    secrets: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a scope, and why, in words."""

    state: CoverageState
    reason: str


def judge(counted: Counted) -> Verdict:
    """The best state that the counts allow; never a better one than the truth."""
    return _unsettled(counted) or _settled(counted)


def is_outdated(last_success: datetime | None, made_by: str | None, todays: str | None) -> bool:
    """Whether rows that once showed their source were made by other rules than today's.

    Args:
        last_success: When they were brought up to date last.
        made_by: The fingerprint of the rules that they were made by; None where it was withdrawn.
        todays: That of today's rules; None where nobody knows them.
    """
    return last_success is not None and (made_by is None or todays not in (None, made_by))


def by_todays_rules(judged: Verdict, scope: Scope, *, documents: int = 0, logs: int = 0) -> Verdict:
    """The verdict on rows that older rules made: what was said of them does not hold any more.

    Args:
        judged: What was said of them by the rules of then; what is worse than stale stays.
        scope: Whether they are of files or of session logs.
        documents: How many documents the next run reads again whatever their source holds.
        logs: The same of session logs.
    """
    if judged.state in (CoverageState.STALE, CoverageState.FAILED):
        return judged
    sessions = scope is Scope.SESSION
    again = [counted(logs, "session log")] if logs else []
    again += [counted(documents, "session" if sessions else "file")] if documents else []
    if again:
        doing = f"reads {' and '.join(again)} again"
    else:
        doing = f"looks at its {'session logs' if sessions else 'files'} again"
    return Verdict(CoverageState.STALE, f"its rules changed: the next run {doing}")


def by_todays_model(judged: Verdict, held: str, wanted: str) -> Verdict:
    """The verdict on vectors that questions can't be compared with: they count for nothing.

    Args:
        judged: What was said of them beside their own model.
        held: The model that they are of.
        wanted: The one that questions are embedded with now.
    """
    if held == wanted:
        why = f"its vectors were made by {held} from other texts than today's"
    else:
        why = f"its vectors are of {held}, and today's model is {wanted}"
    match judged.state:
        case CoverageState.COMPLETE:
            return Verdict(CoverageState.LEXICAL_ONLY, f"{why}: the next run makes them anew")
        case CoverageState.PARTIAL:
            return Verdict(CoverageState.PARTIAL, f"{judged.reason}; {why}")
        case _:
            return judged


def _unsettled(c: Counted) -> Verdict | None:  # noqa: PLR0911 - one answer a state
    """The last attempt failed or is not over: what is stored may not be what the source holds."""
    known = c.last_success is not None
    if c.attempt_error is not None:
        if not known:
            return Verdict(CoverageState.FAILED, c.attempt_error)
        return Verdict(
            CoverageState.STALE, f"the last attempt failed, older rows stay: {c.attempt_error}"
        )
    if c.attempt_open:
        if not known:
            return Verdict(CoverageState.PARTIAL, "the first run has not finished")
        return Verdict(CoverageState.STALE, "a newer version is being indexed")
    if not known:
        return Verdict(CoverageState.ABSENT, "never indexed")
    if c.indexed_marker != c.remote_marker:
        return Verdict(CoverageState.STALE, "the source has changed since it was indexed")
    return None


def _settled(c: Counted) -> Verdict:
    if c.found == 0:
        return Verdict(CoverageState.ABSENT, "the source has nothing for this scope")
    missing = c.chunks - c.chunks_with_vector
    if c.failed == 0 and missing == 0:
        return Verdict(CoverageState.COMPLETE, _complete_reason(c))
    reasons = []
    if c.failed:
        reasons.append(
            f"{counted_of(c.failed, c.found, 'document')} failed, first {c.first_failure}"
        )
    if missing:
        why = c.first_refusal if c.chunks_refused == missing else c.embedding_error
        reasons.append(
            f"{counted_of(missing, c.chunks, 'chunk')} "
            f"{agreeing(c.chunks, 'has', 'have')} no vector"
            + (f", {c.chunks_refused:,} refused by the model" if c.chunks_refused else "")
            + (f": {why}" if why else "")
        )
    lexical_only = c.failed == 0 and c.chunks_with_vector == 0 and c.chunks_refused == 0
    state = CoverageState.LEXICAL_ONLY if lexical_only else CoverageState.PARTIAL
    return Verdict(state, "; ".join(reasons))


def _complete_reason(c: Counted) -> str:
    parts = [f"{counted(c.indexed, 'document')}, {counted(c.chunks, 'chunk')}, all with a vector"]
    if c.empty:
        parts.append(f"{c.empty:,} empty")
    if c.skipped:
        parts.append(f"{c.skipped:,} skipped by rule")
    return "; ".join(parts)
