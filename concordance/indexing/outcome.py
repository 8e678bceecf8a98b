"""What a run came to, from the coverage that it leaves.

What belongs here: the judgement of a run. It looks at the counted coverage and at nothing that a
task returned, so that no failure can hide behind another, or behind a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """The outcome for these projects; whatever fell short is named, whatever else did.

    Args:
        slugs: The projects that were to be brought up to date; without coverage one has failed.
        coverage: What is counted of them now.
    """
    by_project: dict[str, list[ScopeCoverage]] = {slug: [] for slug in slugs}
    for scope in coverage:
        if scope.project in by_project:
            by_project[scope.project].append(scope)
    every = [scope for scopes in by_project.values() for scope in scopes]
    failed = _failed(by_project)
    waiting = _waiting(every)
    unembedded = [] if waiting else _unembedded(every)
    flawed = _flawed(every, told="; ".join(waiting))
    said = "; ".join([*failed, *waiting, *unembedded, *flawed])
    if failed:
        return Verdict(Outcome.FAILED, said)
    if waiting or unembedded:
        return Verdict(Outcome.LEXICAL_ONLY, said)
    if flawed:
        return Verdict(Outcome.FLAWED, f"all that can be indexed is; {said}")
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
        if scope.project in slugs and same and not _has_failed(scope):
            found.setdefault(scope.project, []).append(scope.scope)
    return found


def _failed(by_project: Mapping[str, Sequence[ScopeCoverage]]) -> list[str]:
    why = {slug: _failures(scopes) for slug, scopes in by_project.items()}
    broken = [f"{slug} ({said})" for slug, said in why.items() if said is not None]
    if not broken:
        return []
    return [f"{len(broken)} of {counted(len(why), 'project')} failed: {'; '.join(broken)}"]


def _failures(scopes: Sequence[ScopeCoverage]) -> str | None:
    """Why a project failed: each reason once, with the scopes that have it."""
    if not scopes:
        return "never indexed"
    reasons: dict[str, list[str]] = {}
    for scope in filter(_has_failed, scopes):
        reasons.setdefault(scope.reason, []).append(scope.scope.value)
    return "; ".join(f"{', '.join(of)}: {reason}" for reason, of in reasons.items()) or None


def _has_failed(scope: ScopeCoverage) -> bool:
    old = scope.state in (CoverageState.FAILED, CoverageState.STALE)
    return old or scope.last_success is None


def _missing(scope: ScopeCoverage) -> int:
    return scope.chunks - scope.chunks_with_vector - scope.chunks_refused


def _waiting(every: Sequence[ScopeCoverage]) -> list[str]:
    waiting = [s for s in every if _missing(s) > 0]
    if not waiting:
        return []
    total = sum(map(_missing, waiting))
    names = ", ".join(sorted({s.project for s in waiting}))
    # Without the provider's words only numbers are left, of which the first stand for all.
    errors = dict.fromkeys(s.embedding_error for s in waiting if s.embedding_error is not None)
    reasons = "; ".join(errors) or waiting[0].reason
    wait = f"{counted(total, 'chunk')} {agreeing(total, 'waits', 'wait')} for a vector"
    return [f"{wait}, in {names}: {reasons}"]


def _unembedded(every: Sequence[ScopeCoverage]) -> list[str]:
    errors = [s.embedding_error for s in every if s.embedding_error is not None and s.chunks]
    if not errors:
        return []
    answered = "every chunk has a vector, but the provider fails, so questions are answered by"
    return [f"{answered} words alone: {'; '.join(dict.fromkeys(errors))}"]


def _flawed(every: Sequence[ScopeCoverage], told: str) -> list[str]:
    """Scopes with what can't be indexed, but for those of which it was told already."""
    return [
        f"{s.project} {s.scope}: {s.reason}"
        for s in every
        if s.state is CoverageState.PARTIAL
        and not _has_failed(s)
        and (s.failed or s.chunks_refused or _missing(s) <= 0)
        and s.reason not in told
    ]
