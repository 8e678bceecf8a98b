"""The plan makes the stored documents those of the source, and touches nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.documents import Kind
from concordance.indexing.plan import Found, Plan, make_plan, skipped_by
from concordance.models import DocumentStatus, Scope

NOW = "chunker 2"


@dataclass(frozen=True)
class Row:
    """A stored document, as the planner sees it."""

    id: int
    name: str
    content_id: str
    scope: Scope = Scope.DOCS
    kind: Kind = "file"
    status: DocumentStatus = DocumentStatus.INDEXED
    chunker: str = NOW


def found(
    name: str,
    content: str,
    *,
    scope: Scope = Scope.DOCS,
    kind: Kind = "file",
    skip: str | None = None,
) -> Found:
    return Found(scope, kind, name, content, 1, skip)


def plan(stored: Sequence[Row], at_source: Sequence[Found], *, full: bool = False) -> Plan:
    return make_plan(stored, at_source, chunker=NOW, full=full)


def apply(stored: Sequence[Row], made: Plan) -> list[Row]:
    """Carry a plan out as the database does: renames, writes by kind and name, deletions."""
    rows = {row.id: row for row in stored}
    for rename in made.renames:
        row = rows[rename.id]
        assert row.name == rename.old
        holders = [r.id for r in rows.values() if (r.kind, r.name) == (row.kind, rename.name)]
        assert holders in ([], [rename.id]), "the name is another document's"
        rows[rename.id] = replace(row, name=rename.name, scope=rename.scope)
    for written in made.writes:
        same = [r.id for r in rows.values() if (r.kind, r.name) == (written.kind, written.name)]
        number = same[0] if same else max(rows, default=0) + 1
        status = DocumentStatus.SKIPPED if written.skip else DocumentStatus.INDEXED
        rows[number] = Row(
            number,
            written.name,
            written.content_id,
            written.scope,
            written.kind,
            status,
            skipped_by(NOW) if written.skip else NOW,
        )
    for number in made.deletes:
        del rows[number]
    return sorted(rows.values(), key=lambda row: row.id)


def seen(rows: Sequence[Row]) -> set[tuple[str, str, str, Scope]]:
    return {(r.kind, r.name, r.content_id, r.scope) for r in rows}


# --- single cases ----------------------------------------------------------------------------


def test_the_first_run_adds_everything() -> None:
    made = plan([], [found("b.md", "2"), found("a.md", "1")])
    assert [f.name for f in made.writes] == ["a.md", "b.md"]
    assert (made.added, made.unchanged, made.renames, made.deletes) == (2, 0, (), ())
    assert str(made) == "2 to add, 0 to change, 0 to rename, 0 to delete, 0 unchanged"


def test_nothing_new_is_nothing_to_do() -> None:
    made = plan([Row(1, "a.md", "1")], [found("a.md", "1")])
    assert made.empty
    assert made.unchanged == 1


def test_a_deleted_and_a_renamed_file_leave_no_old_name() -> None:
    stored = [Row(1, "a.md", "1"), Row(2, "b.md", "2")]
    made = plan(stored, [found("c.md", "2")])
    assert [(r.id, r.old, r.name) for r in made.renames] == [(2, "b.md", "c.md")]
    assert (made.deletes, made.deleted_names, made.writes) == ((1,), ("a.md",), ())
    assert not made.empty
    assert [(r.id, r.name) for r in apply(stored, made)] == [(2, "c.md")]


def test_a_changed_file_is_written_in_its_place() -> None:
    stored = [Row(1, "a.md", "1")]
    made = plan(stored, [found("a.md", "2")])
    assert [f.content_id for f in made.writes] == ["2"]
    assert (made.added, made.deletes) == (0, ())
    assert str(made) == "0 to add, 1 to change, 0 to rename, 0 to delete, 0 unchanged"


def test_a_file_that_moved_and_changed_is_another_file() -> None:
    made = plan([Row(1, "a.md", "1")], [found("b.md", "2")])
    assert (made.renames, made.deletes, [f.name for f in made.writes]) == ((), (1,), ["b.md"])


def test_swapped_files_are_written_each_under_the_others_name() -> None:
    stored = [Row(1, "a.md", "1"), Row(2, "b.md", "2")]
    made = plan(stored, [found("a.md", "2"), found("b.md", "1")])
    assert (made.renames, made.deletes, len(made.writes)) == ((), (), 2)
    assert seen(apply(stored, made)) == {
        ("file", "a.md", "2", Scope.DOCS),
        ("file", "b.md", "1", Scope.DOCS),
    }


def test_a_change_of_case_alone_is_a_rename() -> None:
    made = plan([Row(1, "docs/README.md", "1")], [found("docs/readme.md", "1")])
    assert [(r.old, r.name) for r in made.renames] == [("docs/README.md", "docs/readme.md")]
    assert not made.writes


def test_two_files_of_one_content_keep_their_rows_in_the_order_of_names() -> None:
    stored = [Row(1, "b.md", "same"), Row(2, "a.md", "same")]
    made = plan(stored, [found("y.md", "same"), found("x.md", "same")])
    assert [(r.id, r.name) for r in made.renames] == [(2, "x.md"), (1, "y.md")]
    assert (made.writes, made.deletes) == ((), ())


def test_one_of_two_twins_goes() -> None:
    stored = [Row(1, "a.md", "same"), Row(2, "b.md", "same")]
    made = plan(stored, [found("c.md", "same")])
    assert [(r.id, r.name) for r in made.renames] == [(1, "c.md")]
    assert made.deletes == (2,)


def test_a_twin_that_comes_is_read() -> None:
    made = plan([Row(1, "a.md", "same")], [found("b.md", "same"), found("c.md", "same")])
    assert [r.name for r in made.renames] == ["b.md"]
    assert [f.name for f in made.writes] == ["c.md"]
    assert made.added == 1


def test_a_file_that_falls_in_another_scope_keeps_its_row() -> None:
    stored = [Row(1, "docs/adr/1.md", "1"), Row(2, "docs/2.md", "2")]
    made = plan(
        stored,
        [
            found("docs/adr/1.md", "1", scope=Scope.ADR),
            found("docs/adr/2.md", "2", scope=Scope.ADR),
        ],
    )
    assert [(r.id, r.name, r.scope) for r in made.renames] == [
        (1, "docs/adr/1.md", Scope.ADR),
        (2, "docs/adr/2.md", Scope.ADR),
    ]
    assert made.unchanged == 0


@pytest.mark.parametrize(
    "row",
    [
        Row(1, "a.md", "1", status=DocumentStatus.FAILED),
        Row(1, "a.md", "1", status=DocumentStatus.SKIPPED),
        Row(1, "a.md", "1", status=DocumentStatus.EMPTY),
        Row(1, "a.md", "1", chunker="chunker 1"),
        Row(1, "a.md", "1", kind="session", scope=Scope.SESSION),
    ],
)
def test_only_an_indexed_file_of_this_chunker_is_renamed(row: Row) -> None:
    to = found("b.md", "1", kind=row.kind, scope=row.scope)
    made = plan([row], [to])
    assert (made.renames, made.deletes, made.writes) == ((), (1,), (to,))


@pytest.mark.parametrize(("old", "new"), [("a.rst", "a.md"), ("a.md", "a.adoc"), ("a.MD", "b.rst")])
def test_a_file_that_is_read_in_another_format_now_is_no_rename(old: str, new: str) -> None:
    made = plan([Row(1, old, "x")], [found(new, "x")])
    assert (made.renames, made.deletes) == ((), (1,))
    assert [f.name for f in made.writes] == [new]
    same = plan([Row(1, "a.md", "x")], [found("b.markdown", "x")])
    assert [r.name for r in same.renames] == ["b.markdown"]


def test_a_file_that_is_skipped_under_its_new_name_is_no_rename() -> None:
    made = plan([Row(1, "a.md", "1")], [found("b.md", "1", skip="too large")])
    assert (made.renames, made.deletes, len(made.writes)) == ((), (1,), 1)


def test_a_session_is_never_a_file_of_the_same_name() -> None:
    stored = [Row(1, "a", "1")]
    made = plan(stored, [found("a", "1", kind="session", scope=Scope.SESSION)])
    assert (made.renames, made.deletes, made.added) == ((), (1,), 1)


SKIPPED = Row(1, "a.md", "1", status=DocumentStatus.SKIPPED, chunker=skipped_by(NOW))


@pytest.mark.parametrize(
    ("row", "skip", "again"),
    [
        (Row(1, "a.md", "1"), None, False),
        (Row(1, "a.md", "1", status=DocumentStatus.EMPTY), None, False),
        (Row(1, "a.md", "1", status=DocumentStatus.FAILED), None, False),
        (SKIPPED, "too large", False),
        (SKIPPED, None, True),
        # Its content says that there is nothing to read, as a pointer does: no rule kept it out.
        (Row(1, "a.md", "1", status=DocumentStatus.SKIPPED), None, False),
        (Row(1, "a.md", "1"), "too large", True),
        (Row(1, "a.md", "1", chunker="chunker 1"), None, True),
    ],
)
def test_what_is_read_again_though_its_content_stayed(
    row: Row, skip: str | None, *, again: bool
) -> None:
    made = plan([row], [found("a.md", "1", skip=skip)])
    assert bool(made.writes) is again
    assert made.unchanged == (0 if again else 1)


def test_a_full_run_reads_everything_and_renames_nothing() -> None:
    stored = [Row(1, "a.md", "1"), Row(2, "b.md", "2")]
    at_source = [found("a.md", "1", scope=Scope.ADR), found("c.md", "2")]
    made = plan(stored, at_source, full=True)
    assert [f.name for f in made.writes] == ["a.md", "c.md"]
    assert (made.renames, made.deletes, made.added, made.unchanged) == ((), (2,), 1, 0)


# --- any stored set, any source --------------------------------------------------------------

FILES = st.sampled_from(["a.md", "A.md", "b.md", "c.md", "d.md", "docs/a.md"])
SESSIONS = st.sampled_from(["a.md", "s1", "s2"])
CONTENTS = st.sampled_from(["x", "y", "z"])
SCOPES = st.sampled_from([Scope.DOCS, Scope.ADR])


@st.composite
def stored_rows(draw: st.DrawFn) -> list[Row]:
    keys = draw(
        st.sets(st.tuples(st.just("file"), FILES) | st.tuples(st.just("session"), SESSIONS))
    )
    rows = []
    for number, (kind, name) in enumerate(draw(st.permutations(sorted(keys))), start=1):
        scope = Scope.SESSION if kind == "session" else draw(SCOPES)
        status = draw(st.sampled_from([DocumentStatus.INDEXED] * 3 + list(DocumentStatus)))
        chunker = draw(st.sampled_from([NOW, NOW, skipped_by(NOW), "chunker 1"]))
        of_kind: Kind = "session" if kind == "session" else "file"
        rows.append(Row(number, name, draw(CONTENTS), scope, of_kind, status, chunker))
    return rows


@st.composite
def sources(draw: st.DrawFn) -> list[Found]:
    skips = st.sampled_from([None, None, "too large"])
    files = draw(st.dictionaries(FILES, st.tuples(CONTENTS, SCOPES, skips)))
    sessions = draw(st.dictionaries(SESSIONS, CONTENTS))
    made = [found(n, c, scope=scope, skip=skip) for n, (c, scope, skip) in files.items()]
    made += [found(n, c, scope=Scope.SESSION, kind="session") for n, c in sessions.items()]
    return draw(st.permutations(made))


@given(stored_rows(), sources(), st.booleans())
def test_the_plan_gives_exactly_what_was_found(
    stored: list[Row], at_source: list[Found], full: bool
) -> None:
    after = apply(stored, plan(stored, at_source, full=full))

    assert seen(after) == {(f.kind, f.name, f.content_id, f.scope) for f in at_source}
    assert len(after) == len(at_source)
    again = plan(after, at_source)
    assert again.empty
    assert again.unchanged == len(at_source)


@given(stored_rows(), sources())
def test_what_did_not_change_is_in_no_part_of_the_plan(
    stored: list[Row], at_source: list[Found]
) -> None:
    made = plan(stored, at_source)
    wanted = {(f.kind, f.name): f for f in at_source}
    touched = {r.id for r in made.renames} | set(made.deletes)
    written = {(f.kind, f.name) for f in made.writes}
    same = 0
    for row in stored:
        f = wanted.get((row.kind, row.name))
        if (
            f is not None
            and (f.content_id, f.scope) == (row.content_id, row.scope)
            and row.chunker == (skipped_by(NOW) if f.skip is not None else NOW)
        ):
            same += 1
            assert row.id not in touched
            assert (row.kind, row.name) not in written
    assert made.unchanged == same


@given(stored_rows(), sources())
def test_renames_keep_the_content_and_take_free_names(
    stored: list[Row], at_source: list[Found]
) -> None:
    made = plan(stored, at_source)
    rows = {row.id: row for row in stored}
    wanted = {(f.kind, f.name): f for f in at_source}
    for rename in made.renames:
        row = rows[rename.id]
        target = wanted[row.kind, rename.name]
        assert target.content_id == row.content_id
        assert target.scope == rename.scope
        assert row.chunker == (NOW if target.skip is None else skipped_by(NOW))
        assert (rename.old, row.scope) != (rename.name, rename.scope)
    assert len({rename.name for rename in made.renames}) == len(made.renames)


@given(stored_rows(), sources(), st.booleans())
def test_the_counts_add_up(stored: list[Row], at_source: list[Found], full: bool) -> None:
    made = plan(stored, at_source, full=full)
    renamed = len(made.renames)
    assert len(made.writes) + renamed + made.unchanged == len(at_source)
    known = {(row.kind, row.name) for row in stored}
    assert made.added == sum((f.kind, f.name) not in known for f in made.writes)
    assert len(made.deletes) == len(made.deleted_names) == len(set(made.deletes))
    assert made.empty is (made.unchanged == len(at_source) and not made.deletes)


@given(stored_rows(), sources(), st.randoms())
def test_the_plan_does_not_depend_on_the_order_of_rows_or_files(
    stored: list[Row], at_source: list[Found], chance: object
) -> None:
    expected = plan(stored, at_source)
    chance.shuffle(stored)  # type: ignore[attr-defined]
    chance.shuffle(at_source)  # type: ignore[attr-defined]
    assert plan(stored, at_source) == expected
