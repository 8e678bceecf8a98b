"""A superseded record comes after its successor, whatever the order was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from concordance.ranking.fusion import Candidate, Fused
from concordance.ranking.succession import successors_first


@dataclass(frozen=True)
class Row:
    """A passage's record and those that replaced it."""

    document_id: int
    newer: tuple[int, ...] = ()


def find(chunk_id: int, score: float = 0.5) -> Fused:
    return Fused(Candidate(chunk_id, ("p", "file", f"{chunk_id}.md", 0)), score)


def ids(order: Sequence[Fused]) -> list[int]:
    return [one.candidate.chunk_id for one in order]


def placed(count: int, records: Mapping[int, Row]) -> list[int]:
    return ids(successors_first([find(n) for n in range(count)], records))


def test_the_successor_is_lifted_and_the_rest_keeps_its_order() -> None:
    records = {1: Row(10, (20,)), 3: Row(10, (20,)), 4: Row(20), 5: Row(20)}
    assert placed(7, records) == [0, 4, 1, 2, 3, 5, 6]


def test_a_successor_that_is_first_already_changes_nothing() -> None:
    assert placed(3, {0: Row(20), 1: Row(10, (20,)), 2: Row(20)}) == [0, 1, 2]


def test_a_successor_that_does_not_match_moves_nothing() -> None:
    assert placed(3, {0: Row(10, (20,)), 1: Row(30)}) == [0, 1, 2]


def test_a_chain_comes_newest_first() -> None:
    records = {0: Row(10, (20,)), 1: Row(20, (30,)), 3: Row(30)}
    assert placed(4, records) == [3, 1, 0, 2]


def test_several_successors_stand_in_their_own_order() -> None:
    assert placed(4, {0: Row(10, (30, 20)), 2: Row(20), 3: Row(30)}) == [2, 3, 0, 1]


def test_a_successor_that_was_succeeded_too_comes_between() -> None:
    assert placed(3, {0: Row(10, (30, 40)), 1: Row(30, (40,)), 2: Row(40)}) == [2, 1, 0]


def test_a_circle_ends() -> None:
    assert sorted(placed(3, {0: Row(10, (20,)), 1: Row(20, (10,)), 2: Row(30, (30,))})) == [0, 1, 2]


@st.composite
def lists(draw: st.DrawFn) -> tuple[int, dict[int, Row]]:
    count = draw(st.integers(0, 14))
    documents = draw(st.lists(st.none() | st.integers(0, 5), min_size=count, max_size=count))
    # A newer record has a higher number here, so there is no circle.
    newer = {
        document: tuple(draw(st.lists(st.integers(document + 1, 6), max_size=2, unique=True)))
        for document in range(6)
    }
    records = {
        chunk: Row(document, newer[document])
        for chunk, document in enumerate(documents)
        if document is not None
    }
    return count, records


@given(lists())
def test_nothing_is_lost_and_every_successor_comes_first(made: tuple[int, dict[int, Row]]) -> None:
    count, records = made
    order = placed(count, records)
    assert sorted(order) == list(range(count))
    there = {row.document_id for row in records.values()}
    seen: set[int] = set()
    for chunk in order:
        row = records.get(chunk)
        if row is not None:
            assert {one for one in row.newer if one in there} <= seen
            seen.add(row.document_id)


@given(lists())
def test_what_no_record_had_to_wait_for_keeps_its_order(made: tuple[int, dict[int, Row]]) -> None:
    count, records = made
    order = placed(count, records)
    awaited = {one for row in records.values() for one in row.newer}
    others = [c for c in order if c not in records or records[c].document_id not in awaited]
    assert others == sorted(others)
    assert placed(count, {c: Row(row.document_id) for c, row in records.items()}) == sorted(order)


@given(lists())
def test_the_order_settles_at_once(made: tuple[int, dict[int, Row]]) -> None:
    count, records = made
    once = successors_first([find(n) for n in range(count)], records)
    assert successors_first(once, records) == once


def test_a_long_chain_needs_no_recursion() -> None:
    records = {n: Row(n, (n + 1,)) for n in range(5_000)}
    assert placed(5_000, records) == list(range(4_999, -1, -1))
