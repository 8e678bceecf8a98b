"""Texts are cut into consecutive batches that keep both limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.batches import batch_ranges, halves


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], []),
        ([0], [range(1)]),
        ([4, 4], [range(2)]),
        ([4, 7], [range(1), range(1, 2)]),
        ([1, 1, 1, 1], [range(3), range(3, 4)]),
        ([11], [range(1)]),
        ([1, 99, 1], [range(1), range(1, 2), range(2, 3)]),
        ([99, 99], [range(1), range(1, 2)]),
        ([10, 0, 0, 0], [range(3), range(3, 4)]),
    ],
)
def test_both_limits_are_kept(lengths: list[int], expected: list[range]) -> None:
    assert batch_ranges(lengths, max_texts=3, max_characters=10) == expected


@pytest.mark.parametrize(("texts", "characters"), [(0, 1), (1, 0)])
def test_a_limit_below_one_is_a_mistake(texts: int, characters: int) -> None:
    with pytest.raises(ValueError, match="room"):
        batch_ranges([1], max_texts=texts, max_characters=characters)


@given(
    st.lists(st.integers(0, 60), max_size=80),
    st.integers(1, 9),
    st.integers(1, 50),
)
def test_every_text_is_in_exactly_one_batch_and_no_batch_could_take_the_next(
    lengths: list[int], texts: int, characters: int
) -> None:
    batches = batch_ranges(lengths, max_texts=texts, max_characters=characters)

    assert [place for batch in batches for place in batch] == list(range(len(lengths)))
    for batch in batches:
        total = sum(lengths[place] for place in batch)
        assert 1 <= len(batch) <= texts
        assert total <= characters or len(batch) == 1
        if batch.stop < len(lengths):
            assert len(batch) == texts or total + lengths[batch.stop] > characters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three four", ("one two", " three four")),
        ("abcdefgh", ("abcd", "efgh")),
        ("a", ("", "a")),
        ("", ("", "")),
    ],
)
def test_a_text_is_halved_at_white_space(text: str, expected: tuple[str, str]) -> None:
    assert halves(text) == expected


@given(st.text(max_size=200))
def test_halves_lose_nothing(text: str) -> None:
    left, right = halves(text)
    assert left + right == text
    if len(text) > 1:
        assert max(len(left), len(right)) < len(text)
