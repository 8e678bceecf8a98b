"""Repositories that are renamed, empty or gone, and files that are odd: links, names, bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from concordance.index import Index
from concordance.models import CoverageState
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.postgres.driver import (
    ask,
    covered,
    documents_of,
    names_of,
    needs,
    reindex,
)
from tests.postgres.shop import found
from tests.sources import GitSource


def test_a_branch_that_was_renamed_at_the_same_commit_is_noticed(
    make_index: IndexMaker, source: GitSource, project: Project, database_url: str
) -> None:
    index = make_index(project)
    reindex(index)
    assert needs(index) == "none"
    source.git("branch", "-m", "main", "trunk")
    assert needs(index) == "index"
    reindex(index)
    assert ask(database_url, "select branch from projects") == [{"branch": "trunk"}]
    assert needs(index) == "none"


def test_a_branch_that_was_renamed_is_found_and_one_that_is_named_fails_git_4(
    make_index: IndexMaker, source: GitSource, project: Project, database_url: str
) -> None:
    index = make_index(project)
    reindex(index)
    named = make_index(project.model_copy(update={"slug": "named", "branch": "main"}))
    reindex(named, "named")
    source.git("branch", "-m", "main", "trunk")
    commit = source.commit({"docs/new.md": "# New\n\nOn the trunk.\n"})
    reindex(index)
    reindex(named, "named")
    assert covered(index).indexed_commit == commit
    assert "docs/new.md" in names_of(database_url)
    assert ask(database_url, "select branch from projects where slug = 'p'") == [
        {"branch": "trunk"}
    ]
    left = covered(named, slug="named")
    assert left.state is CoverageState.STALE
    assert "'main'" in left.reason
    assert "docs/guide.md" in names_of(database_url, "named"), "a lost branch deletes nothing"


def test_an_empty_repository_is_no_failure_and_its_first_commit_is_found_git_6(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    empty = GitSource.make(tmp_path / "empty")
    index = make_index(Project(slug="p", path=empty.path))
    reindex(index)
    said = covered(index)
    assert (said.reason, said.found, said.indexed_commit) == (
        "the source has nothing for this scope",
        0,
        None,
    )
    assert said.state is CoverageState.ABSENT
    assert said.last_success is not None
    assert needs(index) == "none"
    commit = empty.commit({"README.md": "# First\n\nhello\n"})
    reindex(index)
    assert names_of(database_url) == {"README.md": "docs indexed"}
    assert covered(index).indexed_commit == commit


def test_a_repository_that_lost_every_commit_keeps_its_rows(
    index: Index, source: GitSource, database_url: str
) -> None:
    before = documents_of(database_url)
    source.git("update-ref", "-d", "refs/heads/main")
    reindex(index)
    assert documents_of(database_url) == before
    assert covered(index).state is CoverageState.STALE


def test_a_remote_that_is_gone_leaves_rows_and_says_so_inc_9(
    index: Index, source: GitSource, database_url: str
) -> None:
    before, success = documents_of(database_url), covered(index).last_success
    source.path.rename(source.path.with_name("away"))
    for _ in range(2):
        assert needs(index) == "index"
        reindex(index)
    said = covered(index)
    assert documents_of(database_url) == before
    assert said.state is CoverageState.STALE
    assert said.last_success == success
    assert said.last_attempt is not None
    assert success is not None
    assert said.last_attempt > success
    source.path.with_name("away").rename(source.path)
    reindex(index)
    assert covered(index).state is CoverageState.COMPLETE


def test_links_are_not_followed_git_7(
    make_index: IndexMaker, source: GitSource, project: Project, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("the zebra password\n")
    (source.path / "docs" / "leak.md").symlink_to(tmp_path / "secret.md")
    (source.path / "docs" / "up").symlink_to("../..")
    (source.path / "docs" / "loop.md").symlink_to(".")
    (source.path / "docs" / "ok.md").symlink_to("guide.md")
    source.commit({})
    index = make_index(project)
    reindex(index)
    names = names_of(database_url)
    for link in ("docs/leak.md", "docs/loop.md", "docs/ok.md"):
        assert names[link] == "docs skipped"
    assert covered(index).skipped == 3
    assert found(index, "zebra") == []
    assert "symbolic link" in index.explain("p", "docs/leak.md").verdict


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n".format("a" * 64)


def test_files_that_cannot_be_read_cost_only_themselves_fts_4(
    make_index: IndexMaker, source: GitSource, project: Project, database_url: str
) -> None:
    source.commit(
        {
            "docs/nul.md": b"# Nul\n\nbefore\0after\n",
            "docs/latin.md": "# Über\n\nGrüße\n".encode("latin-1"),
            "docs/lfs.md": LFS,
            "docs/empty.md": "",
            "docs/blank.md": "\n \n\t\n",
            "docs/big.md": "# Big\n\n" + "word and another word.\n\n" * 130_000,
        }
    )
    index = make_index(project, max_file_bytes=2_000_000)
    reindex(index)
    names = names_of(database_url)
    assert {names[f"docs/{name}.md"] for name in ("empty", "blank")} == {"docs empty"}
    assert names["docs/big.md"] == "docs skipped"
    assert names["docs/guide.md"] == "docs indexed"
    assert names["docs/nul.md"] in ("docs indexed", "docs failed")
    said = covered(index)
    assert said.found == said.indexed + said.empty + said.failed + said.skipped == 8
    assert said.empty == 2
    for bad in index.problems("p"):
        assert bad.reason
    assert {p.name for p in index.problems("p")} >= {"docs/lfs.md", "docs/big.md"}


@pytest.mark.parametrize(
    "name",
    [
        b"docs/new\nline.md",
        b'docs/it\'s "quoted" \\ $(here).md',
        "docs/日本 é.md".encode(),
        b"docs/" + b"x" * 200 + b".md",
    ],
    ids=["newline", "quotes", "unicode", "long"],
)
def test_any_name_is_indexed_cited_and_explained(
    make_index: IndexMaker, source: GitSource, project: Project, name: bytes
) -> None:
    text = name.decode()
    commit = source.commit({text: "# Odd\n\nThe walrus lives here.\n"})
    index = make_index(project)
    reindex(index)
    assert found(index, "walrus") == [f"p:{text}:1-3@{commit[:12]}"]
    assert index.explain("p", text).in_index
    assert needs(index) == "none"


def test_a_name_that_is_no_text_is_listed_and_skipped(
    make_index: IndexMaker, source: GitSource, project: Project, database_url: str
) -> None:
    import os  # noqa: PLC0415 - bytes are needed for this one name

    with open(os.fsencode(source.path / "docs") + b"/caf\xe9.md", "wb") as file:  # noqa: PTH123
        file.write(b"# Coffee\n")
    source.commit({})
    reindex(make_index(project))
    assert names_of(database_url)["docs/caf\\xe9.md"] == "docs skipped"
