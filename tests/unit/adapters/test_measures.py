from __future__ import annotations

import math

import pytest

from concordance.adapters.measures import Measure, measure


def test_measures_are_what_their_formulas_say() -> None:
    found = measure({"q": ["x", "a", "y", "b"]}, {"q": {"a": 1, "b": 1, "c": 1}})
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert found[Measure.NDCG_10]["q"] == pytest.approx(gain / ideal)
    assert found[Measure.RECALL_100]["q"] == pytest.approx(2 / 3)
    assert found[Measure.MRR_10]["q"] == pytest.approx(1 / 2)


def test_a_question_that_nothing_was_found_for_counts_as_nothing() -> None:
    found = measure({"q": ["a"], "r": []}, {"q": {"a": 1}, "r": {"b": 1}})
    for kind in Measure:
        assert found[kind] == {"q": 1.0, "r": 0.0}
    assert measure({}, {"q": {"a": 1}})[Measure.NDCG_10] == {"q": 0.0}


def test_what_stands_beyond_the_depth_is_not_counted() -> None:
    ranked = [f"x{n}" for n in range(10)] + ["a"]
    found = measure({"q": ranked}, {"q": {"a": 1}})
    assert found[Measure.NDCG_10]["q"] == found[Measure.MRR_10]["q"] == 0.0
    assert found[Measure.RECALL_100]["q"] == 1.0


def test_better_answers_gain_more() -> None:
    relevant = {"q": {"good": 2, "fair": 1}}
    right = measure({"q": ["good", "fair"]}, relevant)[Measure.NDCG_10]["q"]
    wrong = measure({"q": ["fair", "good"]}, relevant)[Measure.NDCG_10]["q"]
    assert right == 1.0 > wrong
