"""Cluster boundaries found locally agree with those of the whole text."""

from __future__ import annotations

import regex  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from concordance.text.graphemes import boundary_after, boundary_before, is_boundary

SAMPLES = (
    *"aé中あ 1\n.Жλ",
    "e\u0301",
    "\r\n",
    "👩‍👩‍👧",
    "👍🏽",
    "🇨🇭",
    "🇨",
    "\u0600",
    "한",
    "\u1112\u1161\u11ab",
    "क्षि",
    "1\ufe0f\u20e3",
    "\u200d",
    " \u0301",
    "\u0483",
)


@given(st.lists(st.sampled_from(SAMPLES), max_size=40).map("".join))
def test_local_search_agrees_with_the_whole(text: str) -> None:
    bounds = [0, *(match.end() for match in regex.finditer(r"\X", text))]
    for offset in range(len(text) + 1):
        before = max(bound for bound in bounds if bound <= offset)
        after = min(bound for bound in bounds if bound >= offset)
        assert boundary_before(text, offset, 0) == before
        assert boundary_after(text, offset, 0) == after
        assert is_boundary(text, offset, before) == (before == offset)


def test_a_long_run_of_flags_is_counted_from_a_known_boundary() -> None:
    text = "🇨🇭" * 700
    assert boundary_before(text, 1001, 0) == 1000
    assert boundary_after(text, 1001, 600) == 1002


def test_a_cluster_longer_than_the_first_look_is_found_whole() -> None:
    text = "a" + "\u0301" * 500 + "b"
    assert boundary_before(text, 10, 0) == 0
    assert boundary_after(text, 10, 0) == 501
