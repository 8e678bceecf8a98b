"""Confidence: a number from 0 to 1 that grows with what speaks for a passage, in any fusion."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.ranking.confidence import (
    DEFAULT,
    Assessed,
    Features,
    Logistic,
    _median_without,
    confidence,
    in_fixed_order,
)
from concordance.ranking.confidence import assess as assess_ordered
from concordance.ranking.fusion import Candidate

SHARES = st.floats(0, 1)
COSINES = st.floats(-1, 1)
LEADS = st.floats(-1, 1)
FEATURES = st.builds(Features, st.none() | SHARES, st.none() | COSINES, LEADS)


def assess(pool: list[Candidate], *, words: bool, vectors: bool) -> Assessed:
    ordered = in_fixed_order(pool, words=words, vectors=vectors)
    return assess_ordered(ordered, words=words, vectors=vectors)


def candidate(number: int, words: float | None, cosine: float | None, share: float) -> Candidate:
    return Candidate(
        number, ("p", "file", f"{number:02}", 0), words, None, cosine, None, share=share
    )


POOLS = st.lists(
    st.tuples(st.none() | st.floats(0.125, 40), st.none() | COSINES, SHARES), max_size=12
).map(lambda rows: [candidate(n, *row) for n, row in enumerate(rows)])


@given(FEATURES)
def test_it_is_a_probability(features: Features) -> None:
    assert 0 <= confidence(DEFAULT, features) <= 1


@given(FEATURES, st.sampled_from(["share", "cosine", "lead"]), st.floats(0.01, 1))
def test_whatever_speaks_for_a_passage_makes_it_more_likely(
    features: Features, name: str, more: float
) -> None:
    value = getattr(features, name)
    if value is None or (features.share is None and features.cosine is None):
        return
    better: dict[str, Any] = {name: value + more}
    assert confidence(DEFAULT, replace(features, **better)) > confidence(DEFAULT, features)


def test_where_no_leg_has_anything_to_say_nothing_is_likely() -> None:
    assert confidence(DEFAULT, Features(None, None, 1.0)) == 0


def test_each_case_has_its_own_model() -> None:
    model = replace(
        DEFAULT,
        both=Logistic(0.5, (1.0, 2.0, 3.0)),
        words=Logistic(-0.5, (4.0, 5.0)),
        vector=Logistic(0.25, (6.0, 7.0)),
    )

    def inverse(value: float) -> float:
        return math.log(value / (1 - value))

    assert inverse(confidence(model, Features(0.1, 0.2, 0.3))) == pytest.approx(
        0.5 + 0.1 + 0.4 + 0.9
    )
    assert inverse(confidence(model, Features(0.1, None, 0.3))) == pytest.approx(-0.5 + 0.4 + 1.5)
    assert inverse(confidence(model, Features(None, 0.2, 0.3))) == pytest.approx(0.25 + 1.2 + 2.1)


@pytest.mark.parametrize("value", [1e6, -1e6, 1e308])
def test_no_feature_is_too_large(value: float) -> None:
    assert 0 <= Logistic(0.0, (2.0,)).probability((value,)) <= 1


def test_features_without_their_weight_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="zip"):
        Logistic(0.0, (1.0, 2.0)).probability((1.0,))


def test_a_passage_whose_words_are_not_known_is_judged_by_its_vector() -> None:
    known = [candidate(n, 4.0 - n, 0.5 - n / 10, 0.5) for n in range(3)]
    unread = replace(candidate(9, None, 0.9, 0.0), share=None)
    found = assess([*known, unread], words=True, vectors=True).by_chunk
    alone = assess([*known, unread], words=False, vectors=True).by_chunk
    assert found[9] == alone[9]
    assert found[9].share is None
    assert confidence(DEFAULT, found[9]) > 0.9
    # Nor does it speak for or against the others.
    without = assess(known, words=True, vectors=True).by_chunk
    assert {n: found[n] for n in without} == without


@given(POOLS, st.booleans(), st.booleans())
def test_every_candidate_is_assessed_and_finite(
    pool: list[Candidate], words: bool, vectors: bool
) -> None:
    found = assess(pool, words=words, vectors=vectors).by_chunk
    known = {c.chunk_id: c for c in pool}
    assert found.keys() == known.keys()
    for number, features in found.items():
        assert (features.share is not None) == words
        assert features.cosine == (known[number].vector_score if vectors else None)
        assert math.isfinite(features.lead)
        assert -2 <= features.lead <= 2
        assert 0 <= confidence(DEFAULT, features) <= 1


@given(POOLS, st.randoms(use_true_random=False))
def test_neither_order_nor_ranks_change_it(pool: list[Candidate], dice: Any) -> None:
    """Ranks and order are what the fusions differ in."""
    other = [replace(c, lexical_rank=n + 1, vector_rank=9 - n) for n, c in enumerate(pool)]
    dice.shuffle(other)
    assert assess(pool, words=True, vectors=True) == assess(other, words=True, vectors=True)


def test_the_lead_is_over_the_median_of_the_other_documents() -> None:
    scores = [8.0, 6.0, 4.0, 3.0, 1.0, 1.0]
    pool = [candidate(n, score, None, 0.5) for n, score in enumerate(scores)]
    found = assess(pool, words=True, vectors=False).by_chunk
    for number, score in enumerate(scores):
        others = statistics.median(scores[:number] + scores[number + 1 :])
        assert found[number].lead == pytest.approx((score - others) / 8)


def test_passages_of_one_document_do_not_stand_in_each_other_s_way() -> None:
    same = [
        replace(candidate(n, 8.0 - n, None, 0.5), order_key=("p", "file", "a", n)) for n in (0, 1)
    ]
    pool = [*same, candidate(7, 2.0, None, 0.5), candidate(8, 1.0, None, 0.5)]
    found = assess(pool, words=True, vectors=False).by_chunk
    assert found[0].lead == pytest.approx((8 - 1.5) / 8)
    assert found[1].lead == pytest.approx((7 - 1.5) / 8)


def test_a_lone_document_leads_by_all_that_it_has() -> None:
    pool = [candidate(1, 5.0, 0.4, 1.0)]
    assert assess(pool, words=True, vectors=True).by_chunk[1].lead == 1
    assert assess(pool, words=False, vectors=True).by_chunk[1].lead == pytest.approx(0.4)


@given(st.lists(st.integers(-9, 9).map(float), min_size=2, max_size=30), st.data())
def test_the_median_without_one_value(values: list[float], data: st.DataObject) -> None:
    own = data.draw(st.sampled_from(values))
    left = list(values)
    left.remove(own)
    assert _median_without(sorted(values), own) == statistics.median(left)


def test_one_leg_alone_orders_by_itself() -> None:
    pool = [candidate(1, 9.0, 0.1, 1.0), candidate(2, 1.0, 0.9, 0.1)]
    words = assess(pool, words=True, vectors=False).by_chunk
    vectors = assess(pool, words=False, vectors=True).by_chunk
    assert list(words) == [1, 2]
    assert list(vectors) == [2, 1]
    assert words[1].lead == pytest.approx((9 - 1) / 9)
    assert vectors[2].lead == pytest.approx(0.9 - 0.1)


def test_a_passage_that_waits_for_its_vector_is_judged_by_its_words_alone() -> None:
    pool = [candidate(1, 9.0, None, 1.0), candidate(2, 1.0, 0.9, 0.1)]
    waiting = assess(pool, words=True, vectors=True).by_chunk[1]
    assert waiting.cosine is None
    assert confidence(DEFAULT, waiting) == DEFAULT.words.probability((1.0, waiting.lead))
