"""A citation holds: the lines it names, at the commit it names, are the passage."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from concordance.models import FileOrigin, SearchRequest
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.postgres.driver import documents_of, passages_of, reindex
from tests.sources import GitSource

LINE_END = re.compile(rb"\r\n|\r|\n")
PAGES: dict[str, str | bytes] = {
    "docs/blank.md": "\n\n\n# Late\n\nstarts late\n",
    "docs/crlf.md": b"# Windows\r\n\r\none\r\n\r\n## Two\r\n\r\ntwo\r\n",
    "docs/cr.md": b"# Mac\r\rone\r\r## Two\r\rtwo\r",
    "docs/odd.md": "# Odd\n\npage\x0cbreak \x85 and \u2028 inside\nmore\n\n## Next\n\nlast\n",
    "docs/front.md": "---\nstatus: accepted\n---\n\n# Use it\n\ntext\n",
    "docs/tiny.md": "# A\n\n## B\n\n## C\n\ntext\n",
    "docs/bom.md": "\ufeff# Mark\n\ntext\n",
    "docs/long.md": "# Long\n\n" + "".join(f"Line {n} of a long page.\n" for n in range(900)),
    "docs/code.md": "# Code\n\n~~~sh\n# no heading\n~~~\n\n````md\n```\n# nor this\n```\n````\n",
    "docs/table.md": "# T\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter\n",
    "docs/noend.md": "no heading and no line end",
}


def _lines(data: bytes, start: int, end: int) -> str:
    """Lines by number, where LF, CR LF and CR end one, as editors count."""
    ends = [match.end() for match in LINE_END.finditer(data)]
    starts = [0, *ends]
    stop = ends[end - 1] if end <= len(ends) else len(data)
    return data[starts[start - 1] : stop].decode("utf-8-sig")


def test_every_passage_is_in_its_lines_at_its_commit_md_6(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(tmp_path / "source", PAGES)
    index = make_index(Project(slug="p", path=source.path))
    reindex(index, embed=False)
    # Most files now stand at a commit that did not touch them, and one has another name.
    source.git("mv", "docs/odd.md", "docs/even.md")
    source.commit({"docs/tiny.md": "\n\n# A\n\n## B\n\n## C\n\ntext\n"})
    reindex(index, embed=False)
    passages = passages_of(database_url)
    assert {p["name"] for p in passages} == {name.replace("odd", "even") for name in PAGES}
    for p in passages:
        data = (source.path / p["name"]).read_bytes()
        at_commit = source.git("rev-parse", f"{p['commit']}:{p['name']}")
        assert source.git("hash-object", "--no-filters", p["name"]) == at_commit
        cited = _lines(data, p["start_line"], p["end_line"])
        assert p["content"] in cited, (p["name"], p["start_line"], p["end_line"])
        # No line too many on either side: the first and the last hold the passage's ends.
        lines = LINE_END.split(cited.lstrip("\r\n").encode())
        assert p["content"].encode().startswith(lines[0]) or p["content"] in lines[0].decode()


@pytest.mark.parametrize("stop_after", ["rename", "nothing"])
def test_a_passage_is_cited_where_it_stands_even_before_the_run_is_over(
    make_index: IndexMaker, tmp_path: Path, stop_after: str
) -> None:
    import uuid  # noqa: PLC0415

    source = GitSource.make(tmp_path / "source", {"docs/a.md": "# A\n\nthe walrus\n"})
    index = make_index(Project(slug="p", path=source.path))
    reindex(index, embed=False)
    source.git("mv", "docs/a.md", "docs/b.md")
    source.commit({})
    with index.hold("p", uuid.uuid4(), on_wait=lambda: None) as held:
        plan = index.plan_files(held, "p", index.fetch("p").commit)
        if stop_after == "rename":
            index.write(held, "p", plan)
    (hit,) = index.search(SearchRequest(text="walrus", threshold=0.0)).hits
    assert isinstance(hit.origin, FileOrigin)
    shown = source.git("show", f"{hit.origin.commit}:{hit.origin.path}")
    assert "the walrus" in shown.split("\n")[hit.origin.start_line - 1 : hit.origin.end_line]


def test_markdown_is_cut_at_headings_and_nowhere_else_md_1_md_3_md_4(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(
        tmp_path / "source",
        {
            "docs/fences.md": "# Guide\n\n~~~sh\n# not a heading\n~~~\n\n### Check\ntext\n",
            "docs/front.md": "---\nstatus: accepted\n---\n\n# Use RRF\ntext\n",
            "docs/intro.md": "Short intro.\n\n# Agenda\n\n# Actions\n",
            "docs/title.md": "# Only title\n",
        },
    )
    index = make_index(Project(slug="p", path=source.path))
    reindex(index, embed=False)
    paths = {tuple(p["heading_path"]) for p in passages_of(database_url)}
    assert ("Guide", "Check") in paths
    assert not any("not a heading" in heading for path in paths for heading in path)
    for words, name in {
        "accepted": "docs/front.md",
        "agenda": "docs/intro.md",
        "actions": "docs/intro.md",
        "intro": "docs/intro.md",
        "only title": "docs/title.md",
    }.items():
        hits = index.search(SearchRequest(text=words, threshold=0.0)).hits
        assert [h.origin.path for h in hits if isinstance(h.origin, FileOrigin)][:1] == [name]


def test_a_large_file_is_indexed_whole(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    body = "".join(f"Paragraph {n} speaks of number{n}.\n\n" for n in range(12_000))
    source = GitSource.make(tmp_path / "source", {"docs/big.md": "# Big\n\n" + body * 6})
    index = make_index(Project(slug="p", path=source.path))
    reindex(index, embed=False)
    (big,) = [d for d in documents_of(database_url) if d["name"] == "docs/big.md"]
    assert big["bytes"] > 2_500_000
    assert big["status"] == "indexed"
    last = [p for p in passages_of(database_url) if p["name"] == "docs/big.md"][-1]
    assert "number11999" in last["content"]
    assert index.search(SearchRequest(text="number11999")).hits
