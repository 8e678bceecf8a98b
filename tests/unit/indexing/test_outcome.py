"""What a run came to, from the coverage that it leaves."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.outcome import Outcome, judge_run, never_begun
from concordance.models import CoverageState, Scope, ScopeCoverage

WHEN = datetime(2026, 3, 1, tzinfo=UTC)


def scope(
    project: str = "a",
    state: CoverageState = CoverageState.COMPLETE,
    *,
    of: Scope = Scope.DOCS,
    chunks: int = 10,
    with_vector: int = 10,
    refused: int = 0,
    reason: str = "why",
    known: bool = True,
) -> ScopeCoverage:
    return ScopeCoverage(
        project=project,
        scope=of,
        state=state,
        reason=reason,
        found=1,
        indexed=1,
        empty=0,
        failed=0,
        skipped=0,
        chunks=chunks,
        chunks_with_vector=with_vector,
        chunks_refused=refused,
        model="m",
        indexed_commit="c1",
        remote_commit="c1",
        last_attempt=WHEN,
        last_success=WHEN if known else None,
        last_complete=None,
    )


ABSENT = scope(state=CoverageState.ABSENT, chunks=0, with_vector=0)


@pytest.mark.parametrize(
    ("coverage", "outcome", "message"),
    [
        ([scope()], Outcome.COMPLETE, "1 project, 10 chunks, all with a vector"),
        ([scope(), ABSENT], Outcome.COMPLETE, "1 project, 10 chunks, all with a vector"),
        (
            [scope(state=CoverageState.PARTIAL, with_vector=9, refused=1, reason="1 refused")],
            Outcome.FLAWED,
            "all that can be indexed is; a docs: 1 refused",
        ),
        (
            [scope(state=CoverageState.LEXICAL_ONLY, with_vector=0, reason="no answer")],
            Outcome.LEXICAL_ONLY,
            "10 chunks wait for a vector, in a: no answer",
        ),
        (
            [scope(state=CoverageState.PARTIAL, with_vector=7, refused=1, reason="slow")],
            Outcome.LEXICAL_ONLY,
            "2 chunks wait for a vector, in a: slow",
        ),
        (
            [scope(state=CoverageState.FAILED, known=False, reason="denied")],
            Outcome.FAILED,
            "1 of 1 project failed: a (docs: denied)",
        ),
        (
            [scope(), scope(of=Scope.ADR, state=CoverageState.STALE, reason="timed out")],
            Outcome.FAILED,
            "1 of 1 project failed: a (adr: timed out)",
        ),
        (
            [scope(state=CoverageState.PARTIAL, known=False, reason="not finished")],
            Outcome.FAILED,
            "1 of 1 project failed: a (docs: not finished)",
        ),
        (
            [scope(state=CoverageState.ABSENT, known=False, reason="never indexed")],
            Outcome.FAILED,
            "1 of 1 project failed: a (docs: never indexed)",
        ),
        ([], Outcome.FAILED, "1 of 1 project failed: a (never indexed)"),
    ],
)
def test_outcome_of_one_project(
    coverage: list[ScopeCoverage], outcome: Outcome, message: str
) -> None:
    verdict = judge_run(["a"], coverage)
    assert (verdict.outcome, verdict.message) == (outcome, message)
    assert verdict.good is (outcome in (Outcome.COMPLETE, Outcome.FLAWED))


def test_every_project_that_failed_is_named() -> None:
    verdict = judge_run(
        ["a", "b", "c", "d"],
        [
            scope("a"),
            scope("b", CoverageState.STALE, reason="timed out"),
            scope("c", CoverageState.LEXICAL_ONLY, with_vector=0),
        ],
    )
    assert verdict.outcome is Outcome.FAILED
    assert verdict.message == (
        "2 of 4 projects failed: b (docs: timed out); d (never indexed); "
        "10 chunks wait for a vector, in c: why"
    )


def test_one_failure_hides_no_other() -> None:
    waits = scope("c", CoverageState.LEXICAL_ONLY, with_vector=0)
    verdict = judge_run(
        ["a", "b", "c", "d", "e"],
        [
            scope("a", CoverageState.FAILED, reason="not found", known=False),
            scope("a", CoverageState.STALE, of=Scope.SESSION, reason="no folder"),
            scope("b", CoverageState.STALE, reason="timed out"),
            scope("b", CoverageState.STALE, of=Scope.ADR, reason="timed out"),
            waits.model_copy(update={"embedding_error": "refused"}),
            waits.model_copy(update={"project": "d", "embedding_error": "no such model"}),
            scope("e", CoverageState.PARTIAL, with_vector=9, refused=1, reason="1 NaN"),
        ],
    )
    assert verdict.outcome is Outcome.FAILED
    assert verdict.message == (
        "2 of 5 projects failed: a (docs: not found; session: no folder); "
        "b (docs, adr: timed out); "
        "20 chunks wait for a vector, in c, d: refused; no such model; e docs: 1 NaN"
    )


def test_missing_vectors_are_summed_and_their_projects_named_once() -> None:
    verdict = judge_run(
        ["b", "a"],
        [
            scope("b", CoverageState.PARTIAL, with_vector=8, reason="slow"),
            scope("b", CoverageState.PARTIAL, of=Scope.ADR, with_vector=9),
            scope("a", CoverageState.LEXICAL_ONLY, with_vector=0),
        ],
    )
    assert verdict.message == "13 chunks wait for a vector, in a, b: slow"


def test_refusals_of_one_scope_do_not_hide_what_another_waits_for() -> None:
    verdict = judge_run(
        ["a"],
        [
            scope(state=CoverageState.PARTIAL, with_vector=5, refused=5),
            scope(of=Scope.ADR, state=CoverageState.PARTIAL, with_vector=9),
        ],
    )
    assert verdict.outcome is Outcome.LEXICAL_ONLY


def test_projects_that_were_not_asked_for_do_not_count() -> None:
    verdict = judge_run(["a"], [scope("a"), scope("z", CoverageState.FAILED, known=False)])
    assert verdict.outcome is Outcome.COMPLETE


SCOPES = st.builds(
    scope,
    project=st.sampled_from(["a", "b", "z"]),
    state=st.sampled_from(CoverageState),
    of=st.sampled_from(Scope),
    chunks=st.just(3),
    with_vector=st.integers(0, 3),
    known=st.booleans(),
)


@given(st.lists(SCOPES, max_size=6))
def test_complete_is_never_said_when_anything_is_missing(coverage: list[ScopeCoverage]) -> None:
    verdict = judge_run(["a", "b"], coverage)
    counted = [c for c in coverage if c.project in ("a", "b")]
    bad = {CoverageState.FAILED, CoverageState.STALE, CoverageState.PARTIAL}
    missing = {c.project for c in counted} != {"a", "b"} or any(
        c.state in bad or c.last_success is None or c.chunks_with_vector < c.chunks for c in counted
    )
    assert (verdict.outcome is Outcome.COMPLETE) is not missing
    if not missing:
        assert verdict.good


def test_what_an_earlier_run_found_does_not_pass_for_the_outcome_of_one_that_did_not_begin() -> (
    None
):
    later = WHEN.replace(hour=1)
    looked = scope("b").model_copy(update={"last_attempt": later})
    stale = scope("c", CoverageState.STALE)
    before = [scope("a"), scope("a", of=Scope.ADR), scope("b"), stale, scope("d")]
    after = [
        scope("a"),
        scope("a", of=Scope.ADR),
        looked,
        stale,
        scope("d"),
        scope("e", known=False),
    ]
    # Of d no run was asked; c and e are told of as they are.
    assert never_begun(["a", "b", "c", "e"], before, after) == {"a": [Scope.DOCS, Scope.ADR]}
    assert never_begun([], before, after) == {}
