"""What replaced what: references found, claims weighed, and nothing guessed."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.succession import Entry, Fault, Traced, date_in_name, number_of, trace
from concordance.models import AdrStatus
from concordance.text.record_links import Reference


def entry(
    name: str,
    *,
    of: tuple[Reference | str, ...] = (),
    by: tuple[Reference | str, ...] = (),
    title: str | None = None,
    status: AdrStatus | None = None,
) -> Entry:
    stated = AdrStatus.SUPERSEDED if by else AdrStatus.ACCEPTED
    return Entry(name, title, status or stated, tuple(map(ref, of)), tuple(map(ref, by)))


def ref(one: Reference | str) -> Reference:
    return one if isinstance(one, Reference) else Reference(one, None)


def link(target: str, text: str = "x") -> Reference:
    return Reference(text, target)


def faults(found: Traced) -> list[tuple[str, str]]:
    return [(doubt.fault.value, doubt.name) for doubt in found.doubts]


OLD = "docs/adr/0003-use-rabbit.md"
NEW = "docs/adr/0009-use-kafka.md"
PAIR = ((OLD, NEW),)


@pytest.mark.parametrize(
    "reference",
    [
        link("0009-use-kafka.md"),
        link("./0009-use-kafka.md#decision"),
        link("../adr/0009-use-kafka.md?plain=1"),
        link("/docs/adr/0009-use-kafka.md"),
        link("/adr/0009-use-kafka"),
        link("/adr/0009-use-kafka/"),
        link("/0009-use-kafka.html"),
        link("0009-use-kafka"),
        link("0009-use-kafka.html"),
        link("0009-USE-Kafka.md"),
        link("0009%2Duse%2Dkafka.md"),
        link("https://example.org/team/p/blob/main/docs/adr/0009-use-kafka.md"),
        ref("9"),
        ref("ADR-0009"),
        ref("ADR 9"),
        ref("#9"),
        ref("9. Use Kafka"),
        ref("Use Kafka"),
        ref("use  KAFKA"),
        ref("0009-use-kafka"),
        link("#9", "ADR 9"),
    ],
)
def test_a_reference_by_link_number_name_or_title(reference: Reference) -> None:
    records = [
        entry(OLD, by=(reference,), title="3. Use Rabbit"),
        entry(NEW, title="9. Use Kafka"),
        entry("docs/adr/0010-other.md", title="10. Other"),
    ]
    assert trace(records) == Traced(PAIR, ())
    claimed = [
        entry(OLD, title="3. Use Rabbit", status=AdrStatus.SUPERSEDED),
        entry(NEW, of=(Reference(OLD, "0003-use-rabbit.md"),), title="9. Use Kafka"),
    ]
    assert trace(claimed) == Traced(PAIR, ())


def test_a_record_that_has_a_folder_to_itself() -> None:
    old, new = "adr/2025-01-02-rabbit/README.md", "adr/2026-01-05-kafka/index.md"
    for target in ("../2026-01-05-kafka", "../2026-01-05-kafka/", "../2026-01-05-kafka/index.md"):
        found = trace([entry(old, by=(link(target),)), entry(new)])
        assert found == Traced(((old, new),), ())
    named = trace([entry(old, by=("2026-01-05-kafka",)), entry(new)])
    assert named.pairs == ((old, new),)


def test_a_number_that_repeats_is_no_key() -> None:
    twins = [entry("adr/0009-a.md", title="9. A"), entry("adr/0009-b.md", title="9. B")]
    found = trace([entry("adr/0003-x.md", by=("ADR-9",)), *twins])
    assert found.pairs == ()
    assert faults(found) == [("ambiguous", "adr/0003-x.md")]
    assert "adr/0009-a.md, adr/0009-b.md" in found.doubts[0].reason
    told = trace([entry("adr/0003-x.md", by=("9. B",)), *twins])
    assert told.pairs == (("adr/0003-x.md", "adr/0009-b.md"),)
    linked = trace([entry("adr/0003-x.md", by=(link("0009-a.md", "9"),)), *twins])
    assert linked.pairs == (("adr/0003-x.md", "adr/0009-a.md"),)


def test_a_number_is_looked_for_beside_the_record_first() -> None:
    records = [
        entry("a/adr/0003-x.md", by=("9",)),
        entry("a/adr/0009-y.md"),
        entry("b/adr/0009-z.md"),
    ]
    assert trace(records).pairs == (("a/adr/0003-x.md", "a/adr/0009-y.md"),)


def test_what_is_broken_is_reported_and_not_mended() -> None:
    records = [
        entry("adr/0003-x.md", by=(link("0009-old-name.md", "9"),)),
        entry("adr/0004-x.md", by=("ADR-77",)),
        entry("adr/0005-x.md", of=("the one before",)),
        entry("adr/0009-y.md"),
    ]
    found = trace(records)
    assert found.pairs == ()
    assert faults(found) == [
        ("broken", "adr/0003-x.md"),
        ("broken", "adr/0004-x.md"),
        ("broken", "adr/0005-x.md"),
    ]


def test_what_lies_outside_is_no_fault() -> None:
    outside = link("https://example.org/discussions/7", "discussion")
    assert trace([entry(OLD, by=(outside,))]) == Traced((), ())


def test_two_claims_are_reported_never_guessed() -> None:
    claims = [entry("adr/0005-a.md", of=("3",)), entry("adr/0006-b.md", of=("3",))]
    found = trace([entry("adr/0003-x.md", status=AdrStatus.SUPERSEDED), *claims])
    assert found.pairs == ()
    assert ("contested", "adr/0003-x.md") in faults(found)
    assert found.doubts[0].reason == "adr/0005-a.md and adr/0006-b.md claim to replace it"


def test_a_records_own_word_stands_and_a_further_claim_is_reported() -> None:
    claims = [entry("adr/0005-a.md", of=("3",)), entry("adr/0006-b.md", of=("3",))]
    found = trace([entry("adr/0003-x.md", by=("5",)), *claims])
    assert found.pairs == (("adr/0003-x.md", "adr/0005-a.md"),)
    assert faults(found) == [("contested", "adr/0003-x.md")]
    both = trace([entry("adr/0003-x.md", by=("5", "6")), *claims])
    assert both.pairs == (("adr/0003-x.md", "adr/0005-a.md"), ("adr/0003-x.md", "adr/0006-b.md"))
    assert both.doubts == ()


def test_circles_are_cut_whole() -> None:
    records = [
        entry("adr/1-a.md", by=("2",)),
        entry("adr/2-b.md", by=("3",)),
        entry("adr/3-c.md", by=("1",)),
        entry("adr/4-d.md", by=("1",)),
        entry("adr/5-e.md", by=("5",)),
    ]
    found = trace(records)
    assert found.pairs == (("adr/4-d.md", "adr/1-a.md"),)
    assert faults(found) == [
        ("circular", "adr/1-a.md"),
        ("circular", "adr/2-b.md"),
        ("circular", "adr/3-c.md"),
        ("circular", "adr/5-e.md"),
    ]


def test_what_a_record_does_not_say_is_reported() -> None:
    records = [
        entry("adr/1-a.md"),
        entry("adr/2-b.md", of=("1",)),
        entry("adr/3-c.md", status=AdrStatus.SUPERSEDED),
    ]
    found = trace(records)
    assert found.pairs == (("adr/1-a.md", "adr/2-b.md"),)
    assert faults(found) == [("unmarked", "adr/1-a.md"), ("nameless", "adr/3-c.md")]


@pytest.mark.parametrize(
    ("name", "title", "number"),
    [
        ("docs/adr/0012-x.md", None, 12),
        ("docs/adr/012-x.md", "7. X", 12),
        ("docs/adr/adr-007-x.md", None, 7),
        ("docs/adr/ADR-007-x.rst", None, 7),
        ("docs/adr/ADR007.md", None, 7),
        ("docs/adr/2026-01-05_003-x.md", None, 3),
        ("docs/adr/2026-01-05-x.md", None, None),
        ("docs/adr/20260105-x.md", None, None),
        ("docs/adr/2026-01-05-x/README.md", "ADR 4: X", 4),
        ("docs/adr/0005-x/README.md", None, 5),
        ("docs/adr/use-kafka.md", "9. Use Kafka", 9),
        ("docs/adr/use-kafka.md", "ADR-0009: Use Kafka", 9),
        ("docs/adr/use-kafka.md", "Use 3 brokers", None),
        ("docs/adr/use-kafka.md", None, None),
    ],
)
def test_numbers(name: str, title: str | None, number: int | None) -> None:
    assert number_of(name, title) == number


def test_dates_in_names() -> None:
    assert date_in_name("adr/2026-01-05-x.md") == date(2026, 1, 5)
    assert date_in_name("adr/2026-01-05-x/README.md") == date(2026, 1, 5)
    assert date_in_name("adr/20260105-x.md") == date(2026, 1, 5)
    assert date_in_name("adr/2026-13-05-x.md") is None
    assert date_in_name("adr/0005-x.md") is None


NAMES = [f"adr/000{n}-{letter}.md" for n in range(4) for letter in "ab"] + ["adr/x/README.md"]
REFERENCES = st.builds(
    Reference,
    st.sampled_from(["1", "ADR-2", "0001-a", "A title", "", "7", "x"]),
    st.none()
    | st.sampled_from([*NAMES, "0001-a.md", "x", "../x", "#y", "https://e.org/0001-a.md"]),
)


@st.composite
def shelves(draw: st.DrawFn) -> list[Entry]:
    several = st.lists(REFERENCES, max_size=3).map(tuple)
    return [
        Entry(name, draw(st.none() | st.just("A title")), draw(st.sampled_from(AdrStatus)),
              draw(several), draw(several))
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
    ]  # fmt: skip


@given(shelves(), st.randoms())
def test_what_is_certain_has_no_circle_and_no_order_of_reading(
    shelf: list[Entry], dice: object
) -> None:
    found = trace(shelf)
    names = {one.name for one in shelf}
    assert {name for pair in found.pairs for name in pair} <= names
    assert {doubt.name for doubt in found.doubts} <= names
    assert trace(shelf[::-1]) == found
    newer: dict[str, set[str]] = {}
    for older, later in found.pairs:
        newer.setdefault(older, set()).add(later)
    for name in names:
        seen, waiting = set(), [name]
        while waiting:
            for later in newer.get(waiting.pop(), ()):
                assert later != name
                if later not in seen:
                    seen.add(later)
                    waiting.append(later)
    for older, several in newer.items():
        said = next(one for one in shelf if one.name == older).superseded_by
        assert len(several) == 1 or said


def test_a_long_chain_is_traced() -> None:
    chain = [entry(f"adr/{n:05}-x.md", by=(f"{n + 1}",)) for n in range(1, 3_000)]
    found = trace([*chain, entry("adr/03000-x.md")])
    assert len(found.pairs) == 2_999
    assert not [doubt for doubt in found.doubts if doubt.fault is not Fault.BROKEN]


def test_a_path_from_the_root_of_a_site_is_taken_where_one_record_has_it() -> None:
    records = [
        entry("a/docs/adr/0009-x.md"),
        entry("b/docs/adr/0009-x.md"),
        entry("docs/adr/0003-y.md", by=(link("/adr/0009-x"), link("/dr/0009-x"))),
    ]
    found = trace(records)
    assert found.pairs == ()
    assert faults(found) == [("ambiguous", records[2].name), ("broken", records[2].name)]
