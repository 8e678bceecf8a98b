"""How relevant a find is by itself: the larger of the cosine and the share of words, 0 to 1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.ranking.relevance import relevance


@pytest.mark.parametrize(
    ("cosine", "matched", "terms", "expected"),
    [
        (0.7, 1, 4, 0.7),
        (0.1, 3, 4, 0.75),
        (None, 2, 4, 0.5),
        (None, 0, 4, 0.0),
        (None, 0, 0, 0.0),
        (0.3, 0, 0, 0.3),
        (-0.9, 0, 3, 0.0),
        (-0.9, 1, 2, 0.5),
        (1.0000001, 0, 1, 1.0),
        (None, 5, 4, 1.0),
        (float("nan"), 1, 4, 0.25),
    ],
)
def test_the_better_of_both_signs(
    cosine: float | None, matched: int, terms: int, expected: float
) -> None:
    assert relevance(cosine, matched, terms) == expected


@given(st.none() | st.floats(), st.integers(0, 100), st.integers(0, 100))
def test_it_lies_between_0_and_1(cosine: float | None, matched: int, terms: int) -> None:
    assert 0.0 <= relevance(cosine, matched, terms) <= 1.0
