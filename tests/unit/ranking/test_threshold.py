"""The condition for a threshold: true of all that can reach it, and false of what falls short."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordance.ranking.bm25 import Weighted
from concordance.ranking.threshold import (
    EXPECTED_SHARE,
    MOST_OPERANDS,
    MOST_STRONG,
    SLACK,
    all_of,
    any_of,
    condition,
    either,
    expected_threshold,
    quote,
)

TOKEN = re.compile(r"'((?:[^'\\]|''|\\.)*)'|([&|()])|\s+", re.DOTALL)


def tokens(text: str) -> list[str]:
    """Signs as they are, operands with a mark before them."""
    found: list[str] = []
    end = 0
    while end < len(text):
        match = TOKEN.match(text, end)
        assert match, text[end:]
        end = match.end()
        if match[2]:
            found.append(match[2])
        elif match[1] is not None:
            found.append(
                "=" + re.sub(r"\\(.)|''", lambda m: m[1] or "'", match[1], flags=re.DOTALL)
            )
    return found


class Reader:
    """Reads a `tsquery` as Postgres does: `&` binds tighter than `|`."""

    def __init__(self, parts: Sequence[str], held: AbstractSet[str]) -> None:
        self.rest = list(reversed(parts))
        self.held = held

    def take(self, sign: str) -> bool:
        if self.rest and self.rest[-1] == sign:
            self.rest.pop()
            return True
        return False

    def any(self) -> bool:
        value = self.all()
        while self.take("|"):
            value = self.all() or value
        return value

    def all(self) -> bool:
        value = self.one()
        while self.take("&"):
            value = self.one() and value
        return value

    def one(self) -> bool:
        if self.take("("):
            value = self.any()
            assert self.take(")")
            return value
        token = self.rest.pop()
        assert token[0] == "="
        return token[1:] in self.held


@lru_cache
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(tokens(text))


def meets(query: str | None, held: AbstractSet[str]) -> bool:
    if query is None:
        return False
    reader = Reader(_tokens(query), held)
    value = reader.any()
    assert reader.rest == []
    return value


def words(*bounds: float) -> list[Weighted]:
    """Words named a, b, c ..., strongest first."""
    ordered = sorted(bounds, reverse=True)
    return [Weighted(chr(97 + n), n + 1, bound / 2, bound, 1) for n, bound in enumerate(ordered)]


# Few enough words for any condition on them to be within its length: half of six equal ones needs
# 34 operands, half of seven 69.
BOUNDS = st.lists(st.floats(0.01, 20), min_size=1, max_size=6)
SHARES = st.floats(0.001, 1)


def subsets(asked: list[Weighted]) -> list[tuple[frozenset[str], float]]:
    return [
        (frozenset(w.lexeme for w in some), sum(w.bound for w in some))
        for size in range(len(asked) + 1)
        for some in itertools.combinations(asked, size)
    ]


@given(BOUNDS, SHARES)
@settings(deadline=None, max_examples=60)
def test_who_can_reach_the_threshold_meets_it_and_who_can_not_does_not(
    bounds: list[float], share: float
) -> None:
    asked = words(*bounds)
    threshold = share * sum(bounds)
    query = condition(asked, threshold)
    for held, most in subsets(asked):
        if most >= threshold:
            assert meets(query, held), (held, query)
        elif most < threshold * (1 - 2 * SLACK):
            assert not meets(query, held), (held, query)


@given(st.lists(st.floats(0.01, 20), min_size=7, max_size=40), SHARES, st.data())
@settings(deadline=None)
def test_with_more_words_nobody_who_can_reach_it_is_left_out(
    bounds: list[float], share: float, data: st.DataObject
) -> None:
    asked = words(*bounds)
    threshold = share * sum(bounds)
    query = condition(asked, threshold)
    for _ in range(20):
        some = data.draw(st.lists(st.sampled_from(asked), unique=True))
        if sum(w.bound for w in some) >= threshold:
            assert meets(query, {w.lexeme for w in some}), query


@given(st.lists(st.floats(0.01, 20), min_size=1, max_size=6), st.floats(0, 1e-6))
@settings(deadline=None)
def test_rounding_in_the_last_digits_excludes_nobody(bounds: list[float], error: float) -> None:
    """The scores are summed in single precision, and may come out above the sum of the bounds."""
    asked = words(*bounds)
    for held, most in subsets(asked)[1:]:
        assert meets(condition(asked, most * (1 + error)), held)


def test_the_longest_condition_on_six_words_is_within_its_length() -> None:
    query = condition(words(*[1.0] * 6), 3.0)
    assert query is not None
    assert query.count("'") == 2 * 34
    assert not meets(query, {"a", "b"})


def test_weak_words_are_taken_as_present() -> None:
    """No condition on half of many equal words is short, so the rest of them is not looked at."""
    asked = words(*[10.0] * 9, *[1.0] * 30)
    query = condition(asked, 60)
    assert query is not None
    named = {w.lexeme for w in asked if f"'{w.lexeme}'" in query}
    assert named < {w.lexeme for w in asked}
    assert meets(query, {"a", "b"}), "the others could add enough"
    assert not meets(query, {"a"})


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_a_threshold_that_any_word_reaches_asks_for_any_word(threshold: float) -> None:
    asked = words(*[10.0] * 9, *[1.0] * 30)
    got = condition(asked, threshold)
    for word in asked:
        assert meets(got, {word.lexeme})


def test_by_hand() -> None:
    assert condition(words(4, 3, 2), 7) == "('a' & 'b')"
    assert condition(words(4, 3, 2), 6) == "('a' & ('b' | 'c'))"
    assert condition(words(4, 3, 2), 5) == "(('a' & ('b' | 'c')) | ('b' & 'c'))"
    assert condition(words(4, 3, 2), 4) == "('a' | ('b' & 'c'))"
    assert condition(words(4, 3, 2), 10) is None
    assert condition([], 1) is None


@given(st.lists(st.floats(0.01, 20), min_size=1, max_size=300), SHARES)
@settings(deadline=None)
def test_a_condition_stays_short(bounds: list[float], share: float) -> None:
    query = condition(words(*bounds), share * sum(bounds) * (1 - 1e-9))
    assert query is not None
    assert query.count("'") // 2 <= max(len(bounds), MOST_OPERANDS)


def test_the_largest_condition_of_equal_words_stays_short() -> None:
    asked = words(*[1.0] * MOST_STRONG)
    sizes = [(condition(asked, n) or "").count("'") // 2 for n in range(1, MOST_STRONG + 1)]
    assert max(sizes) <= MOST_OPERANDS


# --- the first threshold ------------------------------------------------------------------------


def test_the_expected_threshold_by_hand() -> None:
    both = [Weighted("a", 1, 1.0, 3.0, 50), Weighted("b", 2, 1.0, 1.0, 50)]
    # Of 100 passages 25 are expected to hold both words, 25 more the first, 25 the second alone.
    for wanted, most in ((25, 4.0), (26, 3.0), (50, 3.0), (51, 1.0), (75, 1.0), (76, 0.0)):
        assert expected_threshold(both, 100, wanted) == pytest.approx(EXPECTED_SHARE * most)


@pytest.mark.parametrize(
    "asked", [[], [Weighted("a", 1, 0.0, 0.0, 3)], [Weighted("a", 1, 1.0, 1.0, 3)]]
)
def test_no_threshold_is_expected_of_too_few(asked: list[Weighted]) -> None:
    assert expected_threshold(asked, 100, 10) == 0
    assert expected_threshold(asked, 0, 10) == 0


@given(
    st.lists(st.tuples(st.floats(0.01, 20), st.integers(0, 2_000)), max_size=60),
    st.integers(1, 1_000),
    st.integers(1, 200),
)
def test_an_expected_threshold_is_one_that_can_be_reached(
    found: list[tuple[float, int]], passages: int, wanted: int
) -> None:
    """Counts may be ahead of the passages for a moment, in another transaction."""
    asked = [Weighted(str(n), n, 1.0, bound, df) for n, (bound, df) in enumerate(found)]
    most = sum(word.bound for word in asked)
    threshold = expected_threshold(asked, passages, wanted)
    assert 0 <= threshold <= most * EXPECTED_SHARE * (1 + 1e-9)
    assert threshold <= expected_threshold(asked, passages, max(1, wanted // 2)) + 1e-9


# --- quoting ----------------------------------------------------------------------------------


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True))
def test_every_character_is_quoted(lexemes: list[str]) -> None:
    assert tokens(any_of(lexemes) or "")[::2] == ["=" + lexeme for lexeme in lexemes]
    assert tokens(all_of(lexemes) or "")[::2] == ["=" + lexeme for lexeme in lexemes]


@pytest.mark.parametrize(
    ("lexeme", "quoted"),
    [("it's", "'it''s'"), ("a\\b", "'a\\\\b'"), ("\\'", "'\\\\'''"), ("a & !b:*", "'a & !b:*'")],
)
def test_signs_of_the_query_language_are_no_signs_in_a_word(lexeme: str, quoted: str) -> None:
    assert quote(lexeme) == quoted


def test_no_words_are_no_condition() -> None:
    assert any_of([]) is None
    assert all_of([]) is None


def test_places_narrow_any_condition() -> None:
    assert either([], "'a' | 'b'") == "'a' | 'b'"
    narrowed = either(["§1.docs", "§2.adr"], "'a' | 'b'")
    assert meets(narrowed, {"§2.adr", "b"})
    assert not meets(narrowed, {"b"})
    assert not meets(narrowed, {"§1.docs", "§2.adr"})
