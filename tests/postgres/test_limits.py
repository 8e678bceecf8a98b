"""Limits through the front door: a refusal is kept in the coverage, with the limit and the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from concordance.models import CoverageState
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.postgres.driver import covered, names_of, reindex
from tests.sources import GitSource
from tests.unit.adapters.test_git_hostile import commit_tree, tree

PAGES: dict[str, str | bytes] = {f"docs/{n}.md": f"# {n}\n\n" + "word " * 400 for n in range(5)}
# A name that could be markup, to show that it is told as it is.
ODD = "docs/<b>[red]x.md"


@pytest.mark.parametrize(
    ("limit", "named"),
    [
        ({"max_files": 3}, ["6 files", "limit of 3", "'docs/3.md'", "CONCORDANCE_MAX_FILES"]),
        (
            {"max_text_bytes": 5_000},
            ["more than 5,000 bytes", "'docs/2.md'", "CONCORDANCE_MAX_TEXT_BYTES"],
        ),
        (
            {"max_fetch_bytes": 1_024},
            ["brings more than 1,024 bytes", "source", "CONCORDANCE_MAX_FETCH_BYTES"],
        ),
        (
            {"git_timeout_seconds": 0.001},
            ["timed out after 0.001 s", "source", "CONCORDANCE_GIT_TIMEOUT_SECONDS"],
        ),
    ],
)
def test_a_project_over_a_limit_fails_by_its_name_and_passes_without(
    make_index: IndexMaker, tmp_path: Path, limit: dict[str, float], named: list[str]
) -> None:
    import random  # noqa: PLC0415

    noise = random.Random(1).randbytes(4_000)  # noqa: S311 - what no pack makes smaller
    source = GitSource.make(tmp_path / "source", PAGES | {"noise.bin": noise})
    project = Project(slug="p", path=source.path)
    index = make_index(project, **limit)
    reindex(index, embed=False)
    said = covered(index)
    assert said.state is CoverageState.FAILED
    for words in named:
        assert words in said.reason
    within = make_index(project)
    reindex(within, embed=False)
    assert covered(within).state is not CoverageState.FAILED
    assert covered(within).indexed == 5
    reindex(index, embed=False)
    if "git_timeout_seconds" not in limit and "max_fetch_bytes" not in limit:
        assert covered(index).state is CoverageState.STALE, "what was indexed stays, and is old"
        assert covered(index).indexed == 5


def test_a_file_over_the_limit_is_skipped_by_its_name_and_costs_no_other(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(tmp_path / "source", {"docs/a.md": "# A\n", ODD: "# B\n" * 1_000})
    index = make_index(Project(slug="p", path=source.path), max_file_bytes=2_000)
    reindex(index, embed=False)
    assert names_of(database_url) == {"docs/a.md": "docs indexed", ODD: "docs skipped"}
    (problem,) = index.problems("p")
    assert problem.name == ODD
    assert problem.reason == "4,000 bytes, over the limit of 2,000 (CONCORDANCE_MAX_FILE_BYTES)"
    assert covered(index).skipped == 1


def test_one_blob_under_many_names_counts_for_each_of_them(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    source = GitSource.make(tmp_path / "source", {"docs/0.md": "word " * 1_000})
    blob = source.git("rev-parse", "HEAD:docs/0.md")
    many = tree(source, [("100644", f"{n:04}.md".encode(), blob) for n in range(2_000)])
    commit_tree(source, tree(source, [("40000", b"docs", many)]))
    index = make_index(Project(slug="p", path=source.path), max_text_bytes=1_000_000)
    reindex(index, embed=False)
    said = covered(index)
    assert said.state is CoverageState.FAILED
    assert "'docs/0200.md' is the first one over the limit" in said.reason


def test_a_path_that_leads_out_of_the_repository_is_skipped_and_linked_nowhere(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(tmp_path / "source", {"docs/a.md": "# A\n\nkettle\n"})
    blob = source.git("rev-parse", "HEAD:docs/a.md")
    up = tree(source, [("40000", b"..", tree(source, [("100644", b"host.md", blob)]))])
    docs = [("100644", b"../../b.md", blob), ("100644", b"/c.md", blob), ("100644", b"d.md", blob)]
    commit_tree(
        source, tree(source, [("40000", b"docs", tree(source, docs)), ("40000", b"doc", up)])
    )
    project = Project(slug="p", path=source.path, web_url="https://git.example.org/o/r")
    index = make_index(project)
    reindex(index, embed=False)
    assert names_of(database_url) == {
        "docs/../../b.md": "docs skipped",
        "docs//c.md": "docs skipped",
        "doc/../host.md": "docs skipped",
        "docs/d.md": "docs indexed",
    }
    assert {p.reason for p in index.problems("p")} == {
        "the file's path is absolute or holds '.' or '..'"
    }
    links = [hit.origin.link for hit in index.search("kettle").hits if hit.origin.kind == "file"]
    assert [link for link in links if link and ".." in link] == []
    assert len(links) == 1
