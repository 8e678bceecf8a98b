"""Each fusion by hand, and what holds of all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.models import Fusion
from concordance.ranking.fusion import Candidate, Fused, default_weight, fuse

ALL = tuple(Fusion)
# Scores on a grid: sums of their ratios are told apart wherever they differ.
COSINES = st.integers(-64, 64).map(lambda n: n / 64)
WORDS = st.integers(0, 400).map(lambda n: n / 8)
WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def candidate(
    name: str,
    *,
    words: float | None = None,
    cosine: float | None = None,
    ranks: tuple[int | None, int | None] = (None, None),
    chunk_id: int = 0,
) -> Candidate:
    lexical, vector = ranks
    return Candidate(chunk_id, ("project", "file", name, 0), words, lexical, cosine, vector)


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The same candidates with the ranks that two whole pools would give them."""

    def places(scores: list[tuple[float | None, int]]) -> dict[int, int]:
        known = [(-score, place) for score, place in scores if score is not None]
        return {place: rank for rank, (_, place) in enumerate(sorted(known), start=1)}

    lexical = places([(c.lexical_score, i) for i, c in enumerate(candidates)])
    vector = places([(c.vector_score, i) for i, c in enumerate(candidates)])
    return [
        replace(c, lexical_rank=lexical.get(i), vector_rank=vector.get(i))
        for i, c in enumerate(candidates)
    ]


@st.composite
def pools(draw: st.DrawFn) -> list[Candidate]:
    scores = draw(
        st.lists(st.tuples(st.none() | WORDS, st.none() | COSINES), min_size=0, max_size=12)
    )
    made = [
        candidate(f"{place:02}.md", words=words, cosine=cosine, chunk_id=place + 1)
        for place, (words, cosine) in enumerate(scores)
    ]
    return ranked(made)


def order(fused: Sequence[Fused]) -> list[str]:
    return [f.candidate.order_key[2] for f in fused]


# --- by hand ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "first", "second"),
    [
        # first: cosine (0.2+1)/(0.6+1) = 0.75, words 8/8 = 1; second: 1.6/1.6 = 1, words 2/8
        (0.75, 0.75 * 0.75 + 0.25 * 1, 0.75 * 1 + 0.25 * 0.25),
        (0.5, 0.5 * 0.75 + 0.5 * 1, 0.5 * 1 + 0.5 * 0.25),
        (0.0, 1.0, 0.25),
        (1.0, 0.75, 1.0),
    ],
)
def test_convex_is_the_share_of_the_best_of_each_leg(
    weight: float, first: float, second: float
) -> None:
    pool = [candidate("1", words=8.0, cosine=0.2), candidate("2", words=2.0, cosine=0.6)]
    scores = {
        f.candidate.order_key[2]: f.score for f in fuse(pool, Fusion.CONVEX, weight=weight, rrf_k=9)
    }
    assert scores == {"1": pytest.approx(first), "2": pytest.approx(second)}


def test_a_leg_that_says_nothing_counts_as_its_least_in_convex() -> None:
    pool = [
        candidate("both", words=4.0, cosine=0.5),
        candidate("words", words=4.0),
        candidate("vector", cosine=0.5),
        candidate("opposite", words=0.0, cosine=-1.0),
        candidate("nothing"),
    ]
    scores = {
        f.candidate.order_key[2]: f.score for f in fuse(pool, Fusion.CONVEX, weight=0.75, rrf_k=9)
    }
    assert scores == {"both": 1.0, "words": 0.25, "vector": 0.75, "opposite": 0.0, "nothing": 0.0}


def test_rrf_sums_the_weighted_reciprocals_of_ranks() -> None:
    pool = [
        candidate("a", words=1.0, cosine=0.1, ranks=(1, 3)),
        candidate("b", cosine=0.9, ranks=(None, 1)),
        candidate("c", words=0.5, cosine=0.4, ranks=(2, None)),
    ]
    fused = fuse(pool, Fusion.RRF, weight=0.25, rrf_k=10)
    assert order(fused) == ["a", "c", "b"]
    assert [f.score for f in fused] == pytest.approx([0.25 / 13 + 0.75 / 11, 0.75 / 12, 0.25 / 11])


def test_a_smaller_constant_favours_the_first_ranks() -> None:
    one_first = candidate("one first", ranks=(1, 40))
    two_thirds = candidate("two thirds", ranks=(4, 4))
    assert order(fuse([one_first, two_thirds], Fusion.RRF, weight=0.5, rrf_k=1))[0] == "one first"
    assert order(fuse([one_first, two_thirds], Fusion.RRF, weight=0.5, rrf_k=60))[0] == "two thirds"


@pytest.mark.parametrize(
    ("words", "cosine", "expected"),
    [
        (4.0, 0.5, 0.6 * 0.5 + 0.4 * 0.8),
        (None, 0.5, 0.3),
        (1.0, None, 0.2),
        (0.0, 0.0, 0.0),
        (1.0, -0.7, 0.2),
        (None, None, 0.0),
    ],
)
def test_weighted_takes_absolute_scores(
    words: float | None, cosine: float | None, expected: float
) -> None:
    pool = [candidate("1", words=words, cosine=cosine), candidate("best", words=99.0, cosine=1.0)]
    last = fuse(pool, Fusion.WEIGHTED, weight=0.6, rrf_k=9)[-1]
    assert last.candidate is pool[0]
    assert last.score == pytest.approx(expected)


def test_single_legs_place_what_they_found_with_their_own_score() -> None:
    pool = [
        candidate("a", words=2.5, cosine=-0.5),
        candidate("b", words=7.0),
        candidate("c", cosine=0.25),
        candidate("d"),
    ]
    lexical = fuse(pool, Fusion.LEXICAL, weight=0.3, rrf_k=9)
    vector = fuse(pool, Fusion.VECTOR, weight=0.3, rrf_k=9)
    assert [(f.candidate.order_key[2], f.score) for f in lexical] == [("b", 7.0), ("a", 2.5)]
    assert [(f.candidate.order_key[2], f.score) for f in vector] == [("c", 0.25), ("a", -0.5)]


def test_each_fusion_has_a_share_for_the_vector_leg() -> None:
    assert {fusion: default_weight(fusion) for fusion in ALL} == {
        Fusion.CONVEX: 0.75,
        Fusion.RRF: 0.5,
        Fusion.WEIGHTED: 0.6,
        Fusion.LEXICAL: 0.0,
        Fusion.VECTOR: 1.0,
    }


def test_a_blend_takes_no_more_than_the_languages_allow() -> None:
    found = {fusion: default_weight(fusion, 0.3) for fusion in ALL}
    assert found == {
        Fusion.CONVEX: 0.3,
        Fusion.RRF: 0.3,
        Fusion.WEIGHTED: 0.3,
        Fusion.LEXICAL: 0.0,
        Fusion.VECTOR: 1.0,
    }


# --- one strong leg, repetition, equal and missing scores -------------------------------------


@pytest.mark.parametrize("fusion", [Fusion.CONVEX, Fusion.RRF, Fusion.WEIGHTED])
@pytest.mark.parametrize("weight", [0.5, None])
def test_good_in_both_legs_comes_first_and_repetition_alone_does_not(
    fusion: Fusion, weight: float | None
) -> None:
    # BM25 bends repetition: 200 mentions weigh about twice one mention.
    exact = candidate("A exact identifier, far vector", words=12.0, cosine=0.08)
    repeated = candidate("B keyword 200 times", words=9.0, cosine=0.05)
    both = candidate("C good in both", words=11.0, cosine=0.72)
    others = [candidate(f"D neighbour {n}", cosine=0.3 + n / 100) for n in range(5)]
    pool = ranked([exact, repeated, both, *others])
    share = default_weight(fusion) if weight is None else weight

    names = [name[0] for name in order(fuse(pool, fusion, weight=share, rrf_k=10))]

    assert names[0] == "C"
    assert set(names) == {"A", "B", "C", "D"}
    assert names.index("A") < names.index("B")


def test_even_raw_repetition_does_not_drown_the_vectors() -> None:
    # A score that grows with each mention, as ts_rank_cd does: 39.9 against 0.1.
    pool = ranked([candidate("B", words=39.9, cosine=0.0), candidate("C", words=0.1, cosine=0.8)])
    for fusion in (Fusion.CONVEX, Fusion.WEIGHTED):
        fused = fuse(pool, fusion, weight=default_weight(fusion), rrf_k=10)
        assert all(f.score <= 1.0 for f in fused)
    assert order(fuse(pool, Fusion.WEIGHTED, weight=0.6, rrf_k=10)) == ["C", "B"]


@pytest.mark.parametrize("fusion", ALL)
@pytest.mark.parametrize(
    ("words", "cosine"),
    [(3.0, 0.4), (0.0, 0.0), (0.0, -1.0), (None, -1.0), (0.0, None), (None, None), (1e308, 1.0)],
)
def test_one_or_equal_candidates_divide_by_nothing(
    fusion: Fusion, words: float | None, cosine: float | None
) -> None:
    for size in (1, 3):
        pool = ranked([candidate(str(n), words=words, cosine=cosine) for n in range(size)])
        fused = fuse(pool, fusion, weight=0.5, rrf_k=10)
        assert all(math.isfinite(f.score) for f in fused)
        assert order(fused) == sorted(order(fused))


@pytest.mark.parametrize("fusion", ALL)
def test_nothing_gives_nothing(fusion: Fusion) -> None:
    assert fuse([], fusion, weight=0.5, rrf_k=10) == []


def test_a_missing_score_stays_missing_in_the_result() -> None:
    pool = [candidate("words", words=0.0), candidate("vector", cosine=0.0)]
    for fusion in (Fusion.CONVEX, Fusion.RRF, Fusion.WEIGHTED):
        found = {
            f.candidate.order_key[2]: f.candidate for f in fuse(pool, fusion, weight=0.5, rrf_k=1)
        }
        assert (found["words"].lexical_score, found["words"].vector_score) == (0.0, None)
        assert (found["vector"].lexical_score, found["vector"].vector_score) == (None, 0.0)


def test_equal_scores_are_ordered_by_project_kind_name_and_place() -> None:
    keys = [
        ("a", "file", "x.md", 2),
        ("a", "file", "x.md", 10),
        ("a", "file", "y.md", 0),
        ("a", "session", "x.md", 0),
        ("b", "file", "a.md", 0),
    ]
    pool = [Candidate(9 - n, key, 1.0, 1, 0.5, 1) for n, key in enumerate(keys)]
    for fusion in ALL:
        fused = fuse(pool[::-1], fusion, weight=0.5, rrf_k=10)
        assert [f.candidate.order_key for f in fused] == keys


# --- what holds of any pool -------------------------------------------------------------------


@given(pools(), st.sampled_from(ALL), WEIGHTS, st.integers(1, 100), st.randoms())
def test_neither_the_order_of_the_input_nor_row_numbers_matter(
    pool: list[Candidate], fusion: Fusion, weight: float, k: int, chance: object
) -> None:
    expected = order(fuse(pool, fusion, weight=weight, rrf_k=k))
    numbers = list(range(100, 100 + len(pool)))
    chance.shuffle(numbers)  # type: ignore[attr-defined]
    renumbered = [replace(c, chunk_id=n) for c, n in zip(pool, numbers, strict=True)]
    chance.shuffle(renumbered)  # type: ignore[attr-defined]
    assert order(fuse(renumbered, fusion, weight=weight, rrf_k=k)) == expected


@given(pools(), st.sampled_from(ALL), WEIGHTS, st.integers(1, 100))
def test_scores_are_finite_and_never_rise(
    pool: list[Candidate], fusion: Fusion, weight: float, k: int
) -> None:
    fused = fuse(pool, fusion, weight=weight, rrf_k=k)
    scores = [f.score for f in fused]
    assert all(map(math.isfinite, scores))
    assert scores == sorted(scores, reverse=True)
    if fusion in (Fusion.CONVEX, Fusion.RRF, Fusion.WEIGHTED):
        assert len(fused) == len(pool)
        assert all(0.0 <= score <= 1.0 + 1e-12 for score in scores)


@given(pools(), st.sampled_from([Fusion.CONVEX, Fusion.RRF, Fusion.WEIGHTED]))
def test_the_whole_weight_on_one_leg_gives_that_legs_order(
    pool: list[Candidate], fusion: Fusion
) -> None:
    """Of what the leg found; ranks within RRF, and in the weighted sum cosines of 0 or more."""
    for weight, leg in ((0.0, Fusion.LEXICAL), (1.0, Fusion.VECTOR)):
        kept = [c for c in pool if _tells_apart(c, fusion, leg)]
        single = order(fuse(kept, leg, weight=0.5, rrf_k=10))
        fused = order(fuse(kept, fusion, weight=weight, rrf_k=10))
        assert fused[: len(single)] == single


def _tells_apart(c: Candidate, fusion: Fusion, leg: Fusion) -> bool:
    if leg is Fusion.VECTOR:
        return c.vector_score is not None and (fusion is not Fusion.WEIGHTED or c.vector_score >= 0)
    return c.lexical_score is not None


@given(pools(), WEIGHTS, st.lists(st.tuples(WORDS, COSINES), max_size=5))
def test_more_candidates_below_the_best_change_no_score_in_convex(
    pool: list[Candidate], weight: float, others: list[tuple[float, float]]
) -> None:
    """The best of each leg is the only score of another that enters."""
    best_words = max((c.lexical_score for c in pool if c.lexical_score is not None), default=0.0)
    best_cosine = max((c.vector_score for c in pool if c.vector_score is not None), default=None)
    more = [
        candidate(
            f"more {n}",
            words=min(words, best_words),
            cosine=None if best_cosine is None else min(cosine, best_cosine),
        )
        for n, (words, cosine) in enumerate(others)
    ]
    before = {
        f.candidate.order_key: f.score for f in fuse(pool, Fusion.CONVEX, weight=weight, rrf_k=9)
    }
    after = {
        f.candidate.order_key: f.score
        for f in fuse([*pool, *more], Fusion.CONVEX, weight=weight, rrf_k=9)
    }
    assert {key: after[key] for key in before} == before


@given(pools(), WEIGHTS, st.integers(1, 5))
def test_more_candidates_at_the_end_of_both_pools_change_no_score_in_rrf(
    pool: list[Candidate], weight: float, count: int
) -> None:
    """Ranks are all that enters: whoever comes behind moves nobody."""
    end = len(pool)
    more = [candidate(f"more {n}", ranks=(end + n + 1, end + n + 1)) for n in range(count)]
    before = fuse(pool, Fusion.RRF, weight=weight, rrf_k=9)
    after = fuse([*pool, *more], Fusion.RRF, weight=weight, rrf_k=9)
    assert [f for f in after if not f.candidate.order_key[2].startswith("more")] == before


@given(pools(), st.sampled_from(ALL), WEIGHTS)
def test_better_in_both_legs_is_never_placed_behind(
    pool: list[Candidate], fusion: Fusion, weight: float
) -> None:
    fused = fuse(pool, fusion, weight=weight, rrf_k=10)
    for place, worse in enumerate(fused):
        for better in fused[:place]:
            assert not (_beats(worse.candidate, better.candidate) and worse.score > better.score)
            if _beats(worse.candidate, better.candidate):
                assert worse.score == better.score


def _beats(one: Candidate, other: Candidate) -> bool:
    def more(a: float | None, b: float | None) -> bool:
        return a is not None and (b is None or a > b)

    return more(one.vector_score, other.vector_score) and more(
        one.lexical_score, other.lexical_score
    )
