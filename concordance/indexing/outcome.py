"""What a run came to, from the coverage that it leaves.

What belongs here: the judgement of a run. It looks at the counted coverage and at nothing that a
task returned, so that no failure can hide behind another, or behind a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from concordance.indexing.counting import agreeing, counted
from concordance.models import CoverageState, Scope, ScopeCoverage


class Outcome(StrEnum):
    """The worst that is true of any scope that the run was to bring up to date."""

    COMPLETE = "complete"
    FLAWED = "flawed"  # some documents or texts can't be indexed, and won't be by another run
    LEXICAL_ONLY = "lexical_only"  # vectors are missing that another run can fill in
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A run's outcome, in words that name what fell short."""

    outcome: Outcome
    message: str

    @property
    def good(self) -> bool:
        """Whether a script may go on: nothing is left that another run could mend."""
        return self.outcome in (Outcome.COMPLETE, Outcome.FLAWED)


def judge_run(slugs: Sequence[str], coverage: Sequence[ScopeCoverage]) -> Verdict:
    """The outcome for these projects; one that has no coverage at all has failed."""
    by_project: dict[str, list[ScopeCoverage]] = {slug: [] for slug in slugs}
    for scope in coverage:
        if scope.project in by_project:
            by_project[scope.project].append(scope)
    failed = {slug: _failure(scopes) for slug, scopes in by_project.items()}
    broken = [f"{slug} ({why})" for slug, why in failed.items() if why is not None]
    if broken:
        return Verdict(
            Outcome.FAILED,
            f"{len(broken)} of {counted(len(slugs), 'project')} failed: {'; '.join(broken)}",
        )
    every = [scope for scopes in by_project.values() for scope in scopes]
    waiting = [s for s in every if s.chunks - s.chunks_with_vector - s.chunks_refused > 0]
    if waiting:
        missing = sum(s.chunks - s.chunks_with_vector - s.chunks_refused for s in waiting)
        names = ", ".join(sorted({s.project for s in waiting}))
        return Verdict(
            Outcome.LEXICAL_ONLY,
            f"{counted(missing, 'chunk')} {agreeing(missing, 'waits', 'wait')} for a vector, in "
            f"{names}: {waiting[0].reason}",
        )
    unembedded = [s for s in every if s.embedding_error is not None and s.chunks]
    if unembedded:
        return Verdict(
            Outcome.LEXICAL_ONLY,
            "every chunk has a vector, but the provider fails, so questions are answered by words "
            f"alone: {unembedded[0].embedding_error}",
        )
    flawed = [s for s in every if s.state is CoverageState.PARTIAL]
    if flawed:
        names = "; ".join(f"{s.project} {s.scope}: {s.reason}" for s in flawed)
        return Verdict(Outcome.FLAWED, f"all that can be indexed is; {names}")
    chunks = sum(s.chunks for s in every)
    return Verdict(
        Outcome.COMPLETE,
        f"{counted(len(slugs), 'project')}, {counted(chunks, 'chunk')}, all with a vector",
    )


def never_begun(
    slugs: Sequence[str], before: Sequence[ScopeCoverage], after: Sequence[ScopeCoverage]
) -> dict[str, list[Scope]]:
    """Scopes whose source was not looked at by a run that was to bring them up to date, by project.

    Such a run ended before it could keep why, and what an earlier one found would pass for its own
    outcome.

    Args:
        slugs: The projects that were to be run.
        before: Their coverage before that.
        after: The same afterwards; scopes that it does not call up to date are left out.
    """
    attempts = {(c.project, c.scope): c.last_attempt for c in before}
    found: dict[str, list[Scope]] = {}
    for scope in after:
        same = scope.last_attempt == attempts.get((scope.project, scope.scope))
        if scope.project in slugs and same and _failure([scope]) is None:
            found.setdefault(scope.project, []).append(scope.scope)
    return found


def _failure(scopes: Sequence[ScopeCoverage]) -> str | None:
    if not scopes:
        return "never indexed"
    for scope in scopes:
        if scope.state in (CoverageState.FAILED, CoverageState.STALE):
            return f"{scope.scope}: {scope.reason}"
        if scope.last_success is None:
            return f"{scope.scope}: {scope.reason}"
    return None
