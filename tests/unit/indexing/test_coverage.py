"""What may be said of a scope: never more than its counts bear out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.coverage import Counted, judge
from concordance.models import CoverageState

WHEN = datetime(2026, 3, 1, tzinfo=UTC)
WHOLE = Counted(
    project="p",
    scope="docs",
    fingerprint="f",
    indexed_marker="c1",
    remote_marker="c1",
    last_success=WHEN,
    attempt_open=False,
    attempt_error=None,
    embedding_error=None,
    found=4,
    indexed=4,
    empty=0,
    failed=0,
    skipped=0,
    first_failure=None,
    chunks=10,
    chunks_with_vector=10,
    chunks_refused=0,
    first_refusal=None,
    model_id=1,
)
FAILED_ONE = replace(WHOLE, indexed=3, failed=1, first_failure="docs/a.md: not UTF-8")
BARE = replace(WHOLE, chunks_with_vector=0, embedding_error="no answer")


@pytest.mark.parametrize(
    ("counted", "state", "reason"),
    [
        (WHOLE, CoverageState.COMPLETE, "4 documents, 10 chunks, all with a vector"),
        (
            replace(WHOLE, found=8, empty=1, skipped=3),
            CoverageState.COMPLETE,
            "4 documents, 10 chunks, all with a vector; 1 empty; 3 skipped by rule",
        ),
        (
            FAILED_ONE,
            CoverageState.PARTIAL,
            "1 of 4 documents failed, first docs/a.md: not UTF-8",
        ),
        (BARE, CoverageState.LEXICAL_ONLY, "10 of 10 chunks have no vector: no answer"),
        (
            replace(BARE, chunks=12_345, embedding_error=None, model_id=None),
            CoverageState.LEXICAL_ONLY,
            "12,345 of 12,345 chunks have no vector",
        ),
        (
            replace(WHOLE, chunks_with_vector=9),
            CoverageState.PARTIAL,
            "1 of 10 chunks have no vector",
        ),
        (
            replace(WHOLE, chunks_with_vector=9, chunks_refused=1, first_refusal="too long"),
            CoverageState.PARTIAL,
            "1 of 10 chunks have no vector, 1 refused by the model: too long",
        ),
        (
            replace(BARE, chunks_refused=10, first_refusal="too long"),
            CoverageState.PARTIAL,
            "10 of 10 chunks have no vector, 10 refused by the model: too long",
        ),
        (
            replace(BARE, indexed=3, failed=1, first_failure="a.md"),
            CoverageState.PARTIAL,
            "1 of 4 documents failed, first a.md; 10 of 10 chunks have no vector: no answer",
        ),
        (
            replace(WHOLE, found=0, indexed=0, chunks=0, chunks_with_vector=0),
            CoverageState.ABSENT,
            "the source has nothing for this scope",
        ),
        (replace(WHOLE, last_success=None), CoverageState.ABSENT, "never indexed"),
        (
            replace(WHOLE, last_success=None, attempt_error="denied"),
            CoverageState.FAILED,
            "denied",
        ),
        (
            replace(WHOLE, attempt_error="denied"),
            CoverageState.STALE,
            "the last attempt failed, older rows stay: denied",
        ),
        (
            replace(WHOLE, attempt_error="denied", attempt_open=True),
            CoverageState.STALE,
            "the last attempt failed, older rows stay: denied",
        ),
        (
            replace(WHOLE, last_success=None, attempt_open=True),
            CoverageState.PARTIAL,
            "the first run has not finished",
        ),
        (
            replace(WHOLE, attempt_open=True),
            CoverageState.STALE,
            "a newer version is being indexed",
        ),
        (
            replace(WHOLE, remote_marker="c2"),
            CoverageState.STALE,
            "the source has changed since it was indexed",
        ),
        (
            replace(WHOLE, indexed_marker=None),
            CoverageState.STALE,
            "the source has changed since it was indexed",
        ),
    ],
)
def test_state_and_reason(counted: Counted, state: CoverageState, reason: str) -> None:
    verdict = judge(counted)
    assert (verdict.state, verdict.reason) == (state, reason)


COUNTS = st.integers(0, 3)


@st.composite
def counts(draw: st.DrawFn) -> Counted:
    indexed, empty, failed, skipped = (draw(COUNTS) for _ in range(4))
    chunks = draw(COUNTS)
    with_vector = draw(st.integers(0, chunks))
    return replace(
        WHOLE,
        indexed_marker=draw(st.sampled_from(["c1", "c2", None])),
        remote_marker=draw(st.sampled_from(["c1", "c2", None])),
        last_success=draw(st.sampled_from([None, WHEN])),
        attempt_open=draw(st.booleans()),
        attempt_error=draw(st.sampled_from([None, "denied", ""])),
        embedding_error=draw(st.sampled_from([None, "no answer"])),
        found=indexed + empty + failed + skipped,
        indexed=indexed,
        empty=empty,
        failed=failed,
        skipped=skipped,
        chunks=chunks,
        chunks_with_vector=with_vector,
        chunks_refused=draw(st.integers(0, chunks - with_vector)),
    )


@given(counts())
def test_complete_is_never_said_when_anything_is_missing(counted: Counted) -> None:
    verdict = judge(counted)
    missing = (
        counted.last_success is None
        or counted.attempt_open
        or counted.attempt_error is not None
        or counted.indexed_marker != counted.remote_marker
        or counted.failed > 0
        or counted.chunks_with_vector < counted.chunks
    )
    if counted.found:
        assert (verdict.state is CoverageState.COMPLETE) is not missing
    else:
        assert verdict.state is not CoverageState.COMPLETE
    assert verdict.reason or counted.attempt_error == ""


@given(counts())
def test_lexical_only_is_said_where_every_word_and_no_vector_is_there(counted: Counted) -> None:
    if judge(counted).state is CoverageState.LEXICAL_ONLY:
        assert counted.failed == counted.chunks_with_vector == counted.chunks_refused == 0
        assert counted.chunks > 0
