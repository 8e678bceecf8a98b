"""Why something is, or is not, in the index: by path, by log, and by what an answer cites."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from concordance.cli.printing import print_explanation
from concordance.index import Index
from concordance.indexing.counting import counted
from concordance.models import Explanation, Scope, SearchRequest
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.postgres.driver import reindex
from tests.sources import GitSource, event, write_log

FILES: dict[str, str | bytes] = {
    "docs/guide.md": "# Guide\n\nBoil the water.\n",
    "docs/broken.md": b"# Broken\n\n\xb2\xe2\xca\xd4\n",
    "docs/a:1-2.md": "# Odd\n\nA name like a citation.\n",
    "docs/b.md:1": "no text format\n",
}


@pytest.fixture
def index(make_index: IndexMaker, tmp_path: Path, logs: Path) -> Index:
    source = GitSource.make(tmp_path / "p", FILES)
    write_log(logs / "a.jsonl", [event("s#1", n, f"turn {n}") for n in range(3)])
    write_log(logs / "b.jsonl", [event("t", 0, "other", type="tool.call")])
    (logs / "c.jsonl").write_text('{"no": "format"}\n{"of": "ours"}\n', encoding="utf-8")
    made = make_index(Project(slug="p", path=source.path, sessions=(SessionSource(path=logs),)))
    reindex(made)
    return made


@pytest.mark.parametrize(
    "written",
    [
        "docs/guide.md",
        "./docs/guide.md",
        "docs/guide.md:1-3",
        "docs/guide.md:3",
        "docs/guide.md:1-3@0123456789ab",
        "p:docs/guide.md:1-3@0123456789ab",
        "p:docs/guide.md",
        "docs/guide.md#L1-L3",
        "p:docs/guide.md#L3",
    ],
)
def test_a_citation_of_a_file_is_told_of_as_the_file(index: Index, written: str) -> None:
    told = index.explain("p", written)
    assert (told.path, told.in_index, told.scope) == ("docs/guide.md", True, Scope.DOCS)


def test_each_citation_of_an_answer_can_be_asked_about(index: Index) -> None:
    answer = index.search(SearchRequest(text="turn water name", threshold=0.0))
    assert len(answer.hits) >= 3
    for hit in answer.hits:
        assert index.explain("p", hit.citation).in_index, hit.citation


def test_a_name_that_looks_like_a_citation_is_itself_first(index: Index) -> None:
    assert index.explain("p", "docs/a:1-2.md").path == "docs/a:1-2.md"
    assert index.explain("p", "docs/a:1-2.md:1-3").path == "docs/a:1-2.md"


def test_a_citation_of_a_file_that_is_not_there_is_told_of_as_the_file(index: Index) -> None:
    told = index.explain("p", "p:docs/gone.md:1-3@0123456789ab")
    assert (told.path, told.in_index) == ("docs/gone.md", False)
    assert "there is no such file at the indexed commit" in told.verdict


@pytest.mark.parametrize("written", ["s#1", "session s#1", "session s#1#s#1-2", "p:session s#1#e"])
def test_a_citation_of_a_turn_is_told_of_as_its_session(index: Index, written: str) -> None:
    told = index.explain("p", written)
    assert (told.path, told.in_index, told.scope) == ("s#1", True, Scope.SESSION)


def test_the_path_of_a_log_is_told_of_as_the_log(
    index: Index, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(logs.parent)
    for written in (str(logs / "a.jsonl"), "logs/a.jsonl", "./logs/a.jsonl"):
        told = index.explain("p", written)
        assert told.verdict == (
            "a session log: 3 turns of 1 session, indexed under the id of each session"
        )
        chunks = index.explain("p", "s#1").chunks
        assert (told.in_index, told.rule, told.chunks) == (True, "session log", chunks)
        assert told.details == (f"session s#1: {counted(chunks, 'chunk')}",)


def test_a_log_without_turns_and_one_that_is_new(index: Index, logs: Path) -> None:
    empty = index.explain("p", str(logs / "b.jsonl"))
    assert (empty.in_index, empty.verdict) == (
        False,
        "a session log in which nobody said anything",
    )
    assert any("1 line of" in detail for detail in empty.details)
    write_log(logs / "new.jsonl", [event("n", 0, "new")])
    new = index.explain("p", str(logs / "new.jsonl"))
    assert new.verdict == "not in the index yet: a session log that the next run reads"
    assert "session log" not in index.explain("p", str(logs / "none.jsonl")).verdict


def test_a_reason_is_told_once(index: Index, logs: Path) -> None:
    for name, reason in (
        ("docs/broken.md", "not UTF-8"),
        (os.fspath(logs / "c.jsonl"), "no known format"),
    ):
        said = printed(index.explain("p", name))
        assert said.count(reason) == 1, said


def printed(explanation: Explanation) -> str:
    out = io.StringIO()
    print_explanation(Console(file=out, width=400), explanation)
    return out.getvalue()
