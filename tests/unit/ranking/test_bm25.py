"""The numbers of BM25: what a word tells, how strong it can be, and the question as a vector."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.ranking.bm25 import (
    DIMENSIONS,
    Term,
    Weighted,
    grid_length,
    idf,
    idf_shares,
    query_vector,
    weigh,
)

TERMS = st.lists(
    st.builds(
        Term,
        lexeme=st.text(min_size=1, max_size=3),
        dimension=st.integers(1, DIMENSIONS),
        count=st.integers(1, 5),
        passages_with=st.integers(0, 50),
        document_frequency=st.integers(0, 50),
        largest=st.floats(0.1, 2.2),
    ),
    max_size=12,
    unique_by=lambda term: term.lexeme,
)


def term(lexeme: str, *, count: int = 1, passages_with: int = 1, largest: float = 2.0) -> Term:
    return Term(lexeme, 7, count, passages_with, passages_with, largest)


def test_idf_is_that_of_lucene() -> None:
    assert idf(10, 2) == pytest.approx(math.log(1 + 8.5 / 2.5))
    assert idf(0, 0) == pytest.approx(math.log(2))


@given(st.integers(1, 10**7), st.data())
def test_a_rarer_word_tells_more_and_none_tells_less_than_nothing(
    passages: int, data: st.DataObject
) -> None:
    held = data.draw(st.integers(0, passages - 1))
    assert idf(passages, held) > idf(passages, held + 1) > 0


def test_words_come_strongest_first_and_unknown_ones_not_at_all() -> None:
    found = weigh(
        [
            term("common", passages_with=50),
            term("unknown", passages_with=0),
            term("rare"),
            term("b", passages_with=9),
            term("a", passages_with=9),
        ],
        100,
    )
    assert [word.lexeme for word in found] == ["rare", "a", "b", "common"]
    assert found[0] == Weighted("rare", 7, idf(100, 1), 2 * idf(100, 1), 1)


def test_a_word_asked_for_twice_counts_twice() -> None:
    (once,) = weigh([term("tea")], 10)
    (twice,) = weigh([term("tea", count=2)], 10)
    assert (twice.idf, twice.bound) == (2 * once.idf, 2 * once.bound)


def test_a_word_counted_in_more_passages_than_there_are_stays_finite() -> None:
    """Between two statements a count may be ahead; no logarithm of a negative number then."""
    (word,) = weigh([term("tea", passages_with=12)], 10)
    assert word.idf == idf(10, 10) > 0
    assert idf_shares([term("tea", passages_with=12)], 10) == {"tea": 1}


@given(TERMS)
def test_shares_are_parts_of_the_whole(terms: list[Term]) -> None:
    shares = idf_shares(terms, 50)
    assert shares.keys() == {t.lexeme for t in terms}
    assert all(0 < share <= 1 for share in shares.values())
    assert math.fsum(shares.values()) == pytest.approx(1 if terms else 0)


def test_a_word_that_is_nowhere_keeps_the_share_low() -> None:
    asked = [term("tea", passages_with=50), term("zebra", passages_with=0)]
    assert idf_shares(asked, 100)["tea"] < 0.2


@given(st.floats(1, 1e6))
def test_a_grid_length_is_near_and_stays(average: float) -> None:
    rounded = grid_length(average)
    assert 2 ** (-1 / 6) - 1e-9 <= rounded / average <= 2 ** (1 / 6) + 1e-9
    assert grid_length(rounded) == rounded


@pytest.mark.parametrize(
    ("average", "rounded"), [(0, 1), (-1, 1), (1, 1), (8, 8), (8.9, 8), (12, 12.7)]
)
def test_a_grid_has_three_steps_a_doubling(average: float, rounded: float) -> None:
    assert grid_length(average) == pytest.approx(rounded, rel=0.01)


def test_a_question_is_a_sparse_vector_with_words_of_one_dimension_summed() -> None:
    words = [
        Weighted("a", 9, 1.5, 2.0, 1),
        Weighted("b", 3, 0.25, 1.0, 1),
        Weighted("c", 9, 2.0, 1.0, 1),
    ]
    assert query_vector(words) == "{3:0.25,9:3.5}/1000000000"
    assert query_vector([]) == "{}/1000000000"
