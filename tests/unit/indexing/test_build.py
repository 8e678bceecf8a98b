"""From bytes and sessions to documents: with passages, or with a reason in words."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.build import (
    MOST_HEADING_CHARACTERS,
    MOST_NAME_BYTES,
    file_document,
    found_documents,
    problem_document,
    session_document,
    skipped_document,
    storable_name,
)
from concordance.indexing.documents import Document
from concordance.indexing.plan import Found
from concordance.indexing.vector_space import content_hash
from concordance.models import AdrStatus, DocumentStatus, Scope
from concordance.sessions.events import Event, LineProblem, Session, Workplace
from concordance.text.cutting import ChunkSizes

SIZES = ChunkSizes(target=200, overlap=0, window=20)
LOG = Path("/logs/a.jsonl")
QUESTION = "How do I start it, on a machine that has nothing of it yet?" * 4
ANSWER = "Run make, which installs everything that it needs into a folder of its own." * 4
WHEN = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def of_file(data: bytes, name: str = "docs/getting-started.md") -> Document:
    found = Found(Scope.DOCS, "file", name, "blob", len(data))
    return file_document(found, data, commit="c0ffee", chunker="v1", sizes=SIZES)


def of_session(
    *texts: str, title: str | None = None, source: Path = LOG, sizes: ChunkSizes = SIZES
) -> Document:
    events = tuple(
        Event("s1", f"e{n}", "human" if n % 2 else "agent", text, WHEN)
        for n, text in enumerate(texts, start=1)
    )
    return session_document(Session("s1", title, events), source, chunker="v1", sizes=sizes)


# --- what files say of themselves as decisions ---------------------------------------------


def test_a_file_of_any_scope_keeps_what_it_says_as_a_decision() -> None:
    said = of_file(b"# X\n\n## Status\n\nAccepted\n\nSupersedes [1](0001-y.md)\n").record
    assert said is not None
    assert (said.status, said.supersedes[0].target) == (AdrStatus.ACCEPTED, "0001-y.md")
    assert of_file(b"# X\n\nText.\n").record is None
    assert of_file(b"").record is None


def test_the_ending_of_a_name_decides_on_the_format() -> None:
    text = b"Title\n=====\n\nText.\n\nPart\n----\n\n# no heading\n"
    paths = [p.heading_path for p in of_file(text, "docs/x.rst").passages]
    assert paths == [("Title",), ("Title", "Part")]
    assert [p.heading_path for p in of_file(b"= T\n\nx\n", "docs/x.adoc").passages] == [("T",)]


# --- files -----------------------------------------------------------------------------------


def test_a_file_becomes_passages_with_their_place() -> None:
    made = of_file(b"# Guide\n\nFirst.\n\n## Install\n\nRun it.\n")
    assert (made.status, made.reason, made.title) == (DocumentStatus.INDEXED, None, "Guide")
    assert (made.scope, made.kind, made.name) == (Scope.DOCS, "file", "docs/getting-started.md")
    assert (made.content_id, made.bytes, made.chunker, made.commit) == ("blob", 37, "v1", "c0ffee")
    places = [(p.ordinal, p.heading_path, p.start_line, p.end_line) for p in made.passages]
    assert places == [(0, ("Guide",), 1, 3), (1, ("Guide", "Install"), 5, 7)]
    assert made.passages[1].content == "## Install\n\nRun it."
    assert made.passages[1].content_hash == content_hash(
        "Guide", ("Guide", "Install"), "## Install\n\nRun it."
    )
    assert made.passages[0].event_id is None


def test_a_file_without_a_heading_has_no_title() -> None:
    made = of_file(b"Only words.\n")
    assert made.title is None
    assert made.passages[0].heading_path == ()


def test_the_name_of_a_file_changes_no_vector() -> None:
    one, other = of_file(b"Words.\n", "docs/a.md"), of_file(b"Words.\n", "docs/b.md")
    assert one.passages == other.passages


def test_a_paragraph_that_is_a_heading_by_mistake_is_cut() -> None:
    made = of_file(b"# " + b"word " * 20_000 + b"\n\nText.\n")
    headings = {heading for passage in made.passages for heading in passage.heading_path}
    assert made.title is not None
    assert headings == {made.title}
    assert len(made.title) <= MOST_HEADING_CHARACTERS
    assert made.title.startswith("word word")


@pytest.mark.parametrize(
    ("data", "status", "reason"),
    [
        (b"", DocumentStatus.EMPTY, "the file has no bytes"),
        (b" \n\t\n", DocumentStatus.EMPTY, None),
        (b"caf\xe9 society, in Latin-1\n", DocumentStatus.FAILED, None),
        (b"\xff\xfeh\0i\0", DocumentStatus.FAILED, None),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n",
            DocumentStatus.SKIPPED,
            None,
        ),
    ],
)
def test_a_file_that_gives_no_text_says_why(
    data: bytes, status: DocumentStatus, reason: str | None
) -> None:
    made = of_file(data)
    assert made.status is status
    assert made.reason
    assert reason is None or made.reason == reason
    assert (made.passages, made.title) == ((), None)
    assert (made.commit, made.content_id, made.chunker) == ("c0ffee", "blob", "v1")


def test_a_file_that_was_mended_says_what_was_changed() -> None:
    made = of_file(b"# T\n\nbefore\0after\n")
    assert made.status is DocumentStatus.INDEXED
    assert made.reason is not None
    assert "NUL" in made.reason
    assert "before\ufffdafter" in made.passages[-1].content


def test_a_skipped_file_keeps_its_reason_and_its_commit() -> None:
    found = Found(Scope.ADR, "file", "docs/adr/link.md", "blob", 9, skip="a symbolic link")
    made = skipped_document(found, commit="c0ffee", chunker="v1")
    assert (made.status, made.reason) == (DocumentStatus.SKIPPED, "a symbolic link")
    assert (made.scope, made.commit, made.passages) == (Scope.ADR, "c0ffee", ())


# --- sessions --------------------------------------------------------------------------------


def test_a_turn_becomes_a_passage_that_names_its_event() -> None:
    made = of_session(QUESTION, ANSWER, title="Starting", sizes=ChunkSizes())
    assert (made.scope, made.kind, made.name) == (Scope.SESSION, "session", "s1")
    assert (made.status, made.reason, made.title) == (DocumentStatus.INDEXED, None, "Starting")
    assert (made.source, made.commit) == ("/logs/a.jsonl", None)
    assert made.bytes == len(QUESTION + ANSWER)
    assert [(p.ordinal, p.event_id, p.last_event_id, p.speaker) for p in made.passages] == [
        (0, "e1", "e1", "human"),
        (1, "e2", "e2", "agent"),
    ]
    first = made.passages[0]
    assert (first.content, first.occurred_at) == (QUESTION, WHEN)
    assert (first.heading_path, first.start_line) == (("human, 1 March 2026",), None)
    assert first.content_hash == content_hash("Starting", ("human, 1 March 2026",), QUESTION)


def test_a_long_turn_becomes_several_passages_of_one_event() -> None:
    text = "A sentence of some words. " * 40
    made = of_session(text, "Yes.", "Then do it.")
    parts = [p for p in made.passages if p.event_id == "e1"]
    assert len(parts) > 2
    assert [p.ordinal for p in made.passages] == list(range(len(parts) + 2))
    assert all(text[p.start_char : p.end_char] == p.content for p in parts)


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("x" * MOST_HEADING_CHARACTERS, "x" * MOST_HEADING_CHARACTERS),
        ("x" * (MOST_HEADING_CHARACTERS + 1), "x" * (MOST_HEADING_CHARACTERS - 1) + "…"),
        ("two\n  lines\t", "two lines"),
        (None, None),
        ("", None),
    ],
)
def test_a_title_is_one_line_that_is_not_too_long(title: str | None, shown: str | None) -> None:
    made = of_session("One.", title=title)
    assert made.title == shown
    assert made.passages[0].content_hash == content_hash(shown, ("human, 1 March 2026",), "One.")


def test_a_session_in_which_nobody_spoke_says_so() -> None:
    for made in (of_session("", "  \n"), of_session()):
        assert made.status is DocumentStatus.EMPTY
        assert made.reason == "nobody said anything in it"


def test_a_turn_more_leaves_the_passages_before_it_as_they_were() -> None:
    before, after = of_session("One.", "Two."), of_session("One.", "Two.", "Three.")
    assert after.passages[: len(before.passages)] == before.passages
    assert after.content_id != before.content_id


def test_a_log_that_was_moved_is_cited_from_its_new_place() -> None:
    before, after = of_session("One."), of_session("One.", source=Path("/archive/a.jsonl"))
    assert after.content_id != before.content_id, "the row would keep the old path"
    assert after.passages == before.passages


def test_a_path_that_is_not_utf_8_can_be_stored() -> None:
    source = Path("/logs/caf\udce9.jsonl")
    for made in (
        of_session("One.", source=source),
        problem_document(LineProblem(3, "not JSON"), source, chunker="v1"),
    ):
        assert made.source is not None
        assert (made.name + made.source).encode()


@pytest.mark.parametrize(
    ("unfinished", "status"), [(False, DocumentStatus.FAILED), (True, DocumentStatus.SKIPPED)]
)
def test_an_unreadable_line_is_a_document_with_a_reason(
    unfinished: bool, status: DocumentStatus
) -> None:
    made = problem_document(LineProblem(7, "not JSON", unfinished), LOG, chunker="v1")
    assert (made.status, made.reason) == (status, "line 7: not JSON")
    assert (made.name, made.source) == ("/logs/a.jsonl#line 7", "/logs/a.jsonl")
    assert (made.scope, made.kind, made.passages) == (Scope.SESSION, "session", ())


def test_another_fault_in_the_same_line_is_another_content() -> None:
    one = problem_document(LineProblem(7, "not JSON"), LOG, chunker="v1")
    other = problem_document(LineProblem(7, "no text"), LOG, chunker="v1")
    assert (one.name, one.content_id != other.content_id) == (other.name, True)


def test_the_planner_sees_a_skipped_line_as_skipped_and_a_failed_one_as_read() -> None:
    documents = [
        of_session("One."),
        problem_document(LineProblem(7, "not JSON"), LOG, chunker="v1"),
        problem_document(LineProblem(8, "not finished", unfinished=True), LOG, chunker="v1"),
    ]
    found = found_documents(documents)
    assert [f.skip for f in found] == [None, None, "line 8: not finished"]
    assert [(f.scope, f.kind, f.name, f.content_id, f.bytes, f.source) for f in found] == [
        (d.scope, d.kind, d.name, d.content_id, d.bytes, d.source) for d in documents
    ]


# --- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["docs/a.md", "ü 🎉:\"'.md", "x" * MOST_NAME_BYTES, "a\nb.md"])
def test_a_name_that_can_be_stored_stays(name: str) -> None:
    assert storable_name(name) == name


def test_a_nul_in_a_name_is_replaced() -> None:
    assert storable_name("a\0b.md") == "a\ufffdb.md"


def test_long_names_are_told_apart_by_their_ends() -> None:
    names = ["é" * 1_500 + end for end in ("a.md", "b.md")]
    stored = [storable_name(name) for name in names]
    assert stored[0] != stored[1]
    assert all(name.startswith("é" * 900) for name in stored)


@given(st.text(st.characters(), max_size=3), st.integers(0, 3_000))
def test_any_name_can_be_stored(text: str, times: int) -> None:
    stored = storable_name(text * times)
    data = stored.encode()
    assert len(data) <= MOST_NAME_BYTES
    assert b"\0" not in data
    assert storable_name(stored) == stored


@pytest.mark.parametrize(
    ("commit", "kept"),
    [("c0ffee1", True), ("a" * 40, True), ("AKIA" + "X" * 16, False), ("", False)],
)
def test_a_commit_that_can_be_none_is_not_kept(commit: str, kept: bool) -> None:
    event = Event("s", "e1", "human", "Why?", None)
    session = Session("s", None, (event,), Workplace("/src/a", "main", commit))
    made = session_document(session, "log", chunker="v", sizes=ChunkSizes())
    assert made.commit == (commit if kept else None)
    assert (made.directory, made.branch) == ("/src/a", "main")
