"""The lexical leg on questions as people ask them."""

from __future__ import annotations

from pathlib import Path

import pytest

from concordance.errors import BadRequest
from concordance.index import Index
from concordance.models import CoverageState, Scope, SearchRequest
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import ask, covered, documents_of, names_of, passages_of, reindex
from tests.postgres.library import make_library, places, search
from tests.sources import GitSource, event, write_log


@pytest.fixture
def index(make_index: IndexMaker, tmp_path: Path) -> Index:
    return make_library(make_index, tmp_path, embed=False)


def test_one_missing_word_does_not_empty_the_leg_fts_1(index: Index) -> None:
    answer = search(index, "how do we retry a clone on flaky wifi", fusion="lexical")
    assert places(answer)[0] == "shop:docs/guide.md"
    assert "exponential backoff" in answer.hits[0].content


def test_questions_without_a_word_are_no_error_fts_2(index: Index) -> None:
    for question in ("what is this about", "a", "🚀", "???"):
        answer = search(index, question, fusion="lexical", projects=["shop"], scopes=["docs"])
        assert answer.hits == ()
        assert answer.empty_reason
        assert not answer.degraded


@pytest.mark.parametrize("fusion", ["convex", "rrf", "weighted", "vector"])
def test_a_question_without_a_word_is_answered_by_vectors_and_says_so_fts_2(
    make_index: IndexMaker, tmp_path: Path, fusion: str
) -> None:
    index = make_library(make_index, tmp_path)
    for question in ("what is this about", "a", "🚀", "???"):
        answer = search(index, question, fusion=fusion, projects=["shop"], scopes=["docs"])
        assert answer.hits
        assert all(hit.lexical_score is None for hit in answer.hits)
        if fusion != "vector":
            assert any("no word" in note for note in answer.notes), question
    with pytest.raises(BadRequest, match="blank"):
        search(index, "   ", fusion=fusion)
    with pytest.raises(ValueError, match="at least 1 character"):
        SearchRequest(text="")


def test_a_nul_costs_nothing_but_itself_fts_4(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, database_url: str
) -> None:
    pages: dict[str, str | bytes] = {
        f"docs/{n:02}.md": f"# Page {n}\n\nline of page {n}\n" for n in range(20)
    }
    pages["docs/07.md"] = b"# Page 7\n\nbefore\x00after\n\nlast line\n"
    pages["docs/08.md"] = b'---\ntitle: "eight\x00th"\n---\n\n# Page 8\n\nline of page 8\n'
    logs = tmp_path / "logs"
    write_log(
        logs / "a.jsonl",
        [
            event("s\0one", 1, "fine\0broken", title="a\0title"),
            event("other", 1, "untouched words"),
        ],
    )
    source = GitSource.make(tmp_path / "source", pages)
    index = make_index(Project(slug="p", path=source.path, sessions=(SessionSource(path=logs),)))
    reindex(index)
    said = covered(index)
    assert said.found == said.indexed + said.empty + said.failed + said.skipped == 20
    names = names_of(database_url)
    bad = [name for name, what in names.items() if what == "docs failed"]
    assert set(bad) <= {"docs/07.md", "docs/08.md"}
    assert [b for b in documents_of(database_url) if b["name"] in bad and not b["reason"]] == []
    unharmed = [f"docs/{n:02}.md" for n in range(20) if n not in (7, 8)]
    assert [names[name] for name in unharmed] == ["docs indexed"] * 18
    for name in ("docs/07.md", "docs/08.md"):
        for passage in (p for p in passages_of(database_url) if p["name"] == name):
            assert "\0" not in passage["content"]
            if "last line" in passage["content"]:
                assert passage["end_line"] == 5, "lines are counted as before"
    turns = [p["content"] for p in passages_of(database_url) if p["kind"] == "session"]
    assert sorted(turns) == ["fine\ufffdbroken", "untouched words"]
    assert covered(index, Scope.SESSION).state is CoverageState.COMPLETE
    held = ask(database_url, "select count(*) as n from embeddings")
    assert held == [{"n": len(passages_of(database_url))}], "each passage has its vector"
    assert not any("\0" in text for text in provider.inputs)


def test_a_name_can_hold_no_nul_fts_4() -> None:
    """Paths come from `git ls-tree -z`, where a NUL ends a path."""
    from concordance.adapters.git_objects import parse_tree  # noqa: PLC0415

    blob = b"1" * 40
    listing = b"100644 blob " + blob + b"       1\tdocs/a\x00100644 blob " + blob
    listing += b"       1\tdocs/b.md\x00"
    assert [entry.path for entry in parse_tree(listing)] == [b"docs/a", b"docs/b.md"]
