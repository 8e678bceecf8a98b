"""Two finds become one candidate each, with the score of both legs and the rank in each pool."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from concordance.models import Fusion
from concordance.ranking.candidates import Known, Scored, join_legs
from concordance.ranking.fusion import Candidate, fuse


def known(
    number: int, name: str, words: float | None, cosine: float | None, share: float = 0.0
) -> Known:
    return Known(number, "project", "file", name, 0, words, share, cosine)


def by_name(candidates: list[Candidate]) -> dict[str, Candidate]:
    return {c.order_key[2]: c for c in candidates}


def test_each_candidate_has_its_true_score_on_both_legs() -> None:
    found = by_name(
        join_legs(
            lexical=[Scored(1, 9.0), Scored(2, 4.0)],
            vectors=[Scored(2, 0.8), Scored(3, 0.7), Scored(4, 0.6)],
            known=[
                known(1, "a", 9.0, -0.2, 0.75),
                known(2, "b", 4.0, 0.8, 0.5),
                known(3, "c", 1.5, 0.7, 0.25),
                known(4, "d", None, None),
            ],
        )
    )
    assert found == {
        "a": Candidate(1, ("project", "file", "a", 0), 9.0, 1, -0.2, None, 0.75),
        "b": Candidate(2, ("project", "file", "b", 0), 4.0, 2, 0.8, 1, 0.5),
        "c": Candidate(3, ("project", "file", "c", 0), 1.5, None, 0.7, 2, 0.25),
        "d": Candidate(4, ("project", "file", "d", 0), None, None, None, 3, 0.0),
    }


def test_ranks_are_those_of_the_pool_and_ties_go_by_place() -> None:
    found = by_name(
        join_legs(
            lexical=[Scored(1, 2.0), Scored(2, 5.0), Scored(3, 2.0), Scored(4, 2.0)],
            vectors=[Scored(4, 0.5), Scored(3, 0.5)],
            known=[known(n, name, 2.0, 0.5) for n, name in enumerate("zmba", start=1)],
        )
    )
    assert {name: c.lexical_rank for name, c in found.items()} == {"m": 1, "a": 2, "b": 3, "z": 4}
    assert {name: c.vector_rank for name, c in found.items()} == {
        "a": 1,
        "b": 2,
        "m": None,
        "z": None,
    }


def test_what_has_no_place_any_more_is_left_out_and_leaves_no_gap() -> None:
    found = join_legs(
        lexical=[Scored(7, 9.0), Scored(1, 4.0)],
        vectors=[Scored(7, 0.9), Scored(1, 0.1)],
        known=[known(1, "a", 4.0, 0.1, 1.0)],
    )
    assert found == [Candidate(1, ("project", "file", "a", 0), 4.0, 1, 0.1, 1, 1)]


def test_what_no_leg_found_is_no_candidate() -> None:
    assert join_legs([], [], [known(1, "a", 2.0, 0.5)]) == []


SCORES = st.integers(0, 20).map(float)


@given(
    st.dictionaries(st.integers(1, 9), SCORES, max_size=9),
    st.dictionaries(st.integers(1, 9), SCORES.map(lambda n: n / 20), max_size=9),
    st.permutations(list(range(1, 10))),
)
def test_row_numbers_and_the_order_of_rows_do_not_matter(
    words: dict[int, float], cosines: dict[int, float], numbers: list[int]
) -> None:
    names = dict(enumerate("abcdefghi", start=1))

    def joined(number: dict[int, int], *, backwards: bool) -> list[tuple[str, float]]:
        lexical = [Scored(number[n], score) for n, score in words.items()]
        vectors = [Scored(number[n], score) for n, score in cosines.items()]
        all_known = [known(number[n], names[n], words.get(n), cosines.get(n)) for n in names]
        if backwards:
            lexical, vectors, all_known = lexical[::-1], vectors[::-1], all_known[::-1]
        found = join_legs(lexical, vectors, all_known)
        fused = fuse(found, Fusion.RRF, weight=0.5, rrf_k=10)
        return [(f.candidate.order_key[2], f.score) for f in fused]

    same = {n: n for n in names}
    other = dict(zip(same, numbers, strict=True))
    assert joined(same, backwards=False) == joined(other, backwards=True)
