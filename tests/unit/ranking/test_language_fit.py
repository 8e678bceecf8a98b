"""A model is trusted as far as it knows what is searched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.ranking.fusion import CONVEX_WEIGHT
from concordance.ranking.language_fit import FOREIGN_WEIGHT, UNREAD_WEIGHT, vector_share

ENGLISH = frozenset({"english"})
LATIN = "where is the key"


@pytest.mark.parametrize(
    ("passages", "question", "expected"),
    [
        ({"english": 10}, LATIN, CONVEX_WEIGHT),
        ({"german": 10}, "wo ist der Schl\u00fcssel", FOREIGN_WEIGHT),
        ({"simple": 10}, "gdzie jest klucz", FOREIGN_WEIGHT),
        ({"english": 5, "german": 5}, LATIN, (CONVEX_WEIGHT + FOREIGN_WEIGHT) / 2),
        ({"english": 9, "simple": 1}, LATIN, 0.9 * CONVEX_WEIGHT + 0.1 * FOREIGN_WEIGHT),
        ({"russian": 10}, "v1.2.3", UNREAD_WEIGHT),
        ({"simple": 10}, "\u9375\u306f\u3069\u3053", UNREAD_WEIGHT),
        ({"english": 10}, "\u0433\u0434\u0435 \u043a\u043b\u044e\u0447", UNREAD_WEIGHT),
        ({"english": 10}, "what does \u9375 mean", CONVEX_WEIGHT),
        ({"english": 10}, "42 ???", CONVEX_WEIGHT),
        ({}, LATIN, CONVEX_WEIGHT),
    ],
)
def test_by_hand(passages: dict[str, int], question: str, expected: float) -> None:
    assert vector_share(passages, question, ENGLISH) == pytest.approx(expected)


PASSAGES = st.dictionaries(
    st.sampled_from(["english", "german", "russian", "simple", "tamil"]), st.integers(0, 10**6)
)


@given(PASSAGES, st.text())
def test_it_stays_within_its_bounds(passages: dict[str, int], question: str) -> None:
    found = vector_share(passages, question, ENGLISH)
    assert UNREAD_WEIGHT <= found <= CONVEX_WEIGHT + 1e-12


@given(PASSAGES, st.text())
def test_a_model_of_many_languages_is_trusted_everywhere(
    passages: dict[str, int], question: str
) -> None:
    assert vector_share(passages, question, None) == CONVEX_WEIGHT
