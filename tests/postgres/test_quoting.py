"""What a citation names is shown as it is stored, or it is said that it is not."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import pytest
from rich.console import Console

from concordance.cli.printing import print_cited
from concordance.errors import BadRequest, OutdatedCitation, UnknownCitation
from concordance.index import Index
from concordance.models import FileOrigin, SearchRequest, SessionOrigin
from concordance.quoting import CitedText
from concordance.settings import Project, SessionSource
from tests.postgres.driver import reindex
from tests.postgres.library import shared_index
from tests.sources import GitSource, event, write_log

LONG = "# Long\n\n" + "".join(f"Line {n} of a long page.\n" for n in range(3, 400))
WIDE = "".join(f"Line {n} {'of a wide page ' * 100}{n}\n" for n in range(1, 301))
FILES: dict[str, str | bytes] = {
    "docs/long.md": LONG,
    "docs/wide.md": WIDE,
    "docs/crlf.md": b"# Windows\r\n\r\none\r\n\r\n## Two\r\n\r\n  two\r\n",
    "docs/cr.md": b"# Mac\r\rone\r\r## Two\r\rtwo\r",
    "docs/a:1-2.md": "# Odd\n\nA name like a citation.\n",
    "docs/broken.md": b"# Broken\n\n\xb2\xe2\xca\xd4\n",
    "docs/key.md": "# Key\n\ntoken: ghp_" + "a1B2" * 9 + "\n\nafter it\n",
}
TALK = "A long turn of a talk. " * 300


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> GitSource:
    return GitSource.make(tmp_path_factory.mktemp("quoting") / "p", FILES)


@pytest.fixture(scope="module")
def index(
    server_url: str, source: GitSource, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("quoting")
    turns = ["what is it?", TALK, "and then?", "nothing", "good, so it is done for today"]
    write_log(
        folder / "logs" / "a.jsonl",
        [
            event("s#1", n, said, type=("chat.message", "agent.response")[n % 2])
            for n, said in enumerate(turns)
        ],
    )
    with shared_index(server_url, "quoting", folder / "home") as make:
        made = make(
            Project(slug="p", path=source.path, sessions=(SessionSource(path=folder / "logs"),))
        )
        reindex(made, embed=False)
        yield made


def cited(text: CitedText) -> str:
    (part,) = [part for part in text.parts if part.cited]
    return part.content


def numbered(text: CitedText) -> dict[int, str]:
    return {
        number: line
        for part in text.parts
        for number, line in enumerate(part.content.split("\n"), part.start_line or 1)
    }


def test_citations_of_files_are_read(index: Index, source: GitSource) -> None:
    lines = LONG.splitlines()
    commit = source.git("rev-parse", "HEAD").strip()
    for first, last, around in [(1, 3, 0), (50, 60, 5), (390, 399, 200), (1, 399, 0), (2, 2, 0)]:
        text = index.read_citation(f"p:docs/long.md:{first}-{last}", around=around)
        start, end = max(1, first - around), min(399, last + around)
        assert numbered(text) == {n: lines[n - 1] for n in range(start, end + 1)}
        assert cited(text).split("\n") == lines[first - 1 : last]
        assert text.citation == f"p:docs/long.md:{first}-{last}@{commit[:12]}"
        assert isinstance(text.origin, FileOrigin)
        assert (text.origin.start_line, text.origin.end_line) == (first, last)
        assert (text.more_before, text.more_after) == (start > 1, end < 399)


def test_of_a_text_that_is_too_long_the_nearest_lines_are_read_whole(index: Index) -> None:
    lines = WIDE.splitlines()
    around = index.read_citation("p:docs/wide.md:150-151", around=200)
    shown = numbered(around)
    assert shown == {n: lines[n - 1] for n in shown}
    assert 50 < min(shown) < 150 < max(shown) < 250, "as much on either side"
    assert (around.more_before, around.more_after) == (True, True)
    cited_alone = index.read_citation("p:docs/wide.md:10-290", around=3)
    shown = numbered(cited_alone)
    assert shown == {n: lines[n - 1] for n in shown}
    assert min(shown) == 10
    assert max(shown) < 290
    assert cited_alone.more_after
    assert f":10-{max(shown)}@" in cited_alone.citation


def test_whatever_ends_a_line(index: Index) -> None:
    windows = index.read_citation("p:docs/crlf.md:1-7", around=0)
    assert numbered(windows) == {
        **dict.fromkeys(range(1, 8), ""),
        1: "# Windows",
        3: "one",
        5: "## Two",
        7: "  two",
    }
    assert index.read_citation("p:docs/cr.md:7").parts[-1].content == "two"


def test_a_citation_of_an_answer_gives_the_passage(index: Index) -> None:
    answer = index.search(SearchRequest(text="line 7 long talk name", threshold=0, top_k=50))
    kinds = set()
    for hit in answer.hits:
        text = index.read_citation(hit.citation)
        kinds.add(hit.origin.kind)
        assert re.sub(r"\s+", " ", hit.content) in re.sub(r"\s+", " ", cited(text))
        assert text.scope is hit.scope
        if isinstance(hit.origin, FileOrigin):
            assert text.citation == hit.citation
    assert kinds == {"file", "session"}
    odd = index.read_citation("p:docs/a:1-2.md:3")
    assert cited(odd) == "A name like a citation."


def test_a_turn_is_read_whole_with_those_around_it(index: Index) -> None:
    text = index.read_citation("p:session s#1#s#1-1")
    assert cited(text) == TALK.strip()
    assert isinstance(text.origin, SessionOrigin)
    assert [part.event_id for part in text.parts] == ["s#1-0", "s#1-1", "s#1-2"]
    assert [part.speaker for part in text.parts][:2] == ["human", "agent"]
    assert (text.more_before, text.more_after) == (False, True)
    alone = index.read_citation("p:session s#1#s#1-1", around=0)
    assert [part.cited for part in alone.parts] == [True]
    assert alone.more_before


def test_secrets_stay_replaced(index: Index) -> None:
    text = index.read_citation("p:docs/key.md:1-5")
    assert "ghp_" not in str(text)
    assert numbered(text)[5] == "after it"


@pytest.mark.parametrize(
    ("citation", "error", "said"),
    [
        ("docs/long.md", BadRequest, "no citation"),
        ("p:docs/long.md", BadRequest, "no citation"),
        ("no slug:docs/long.md:1", BadRequest, "no citation"),
        ("p:docs/long.md:0-3", BadRequest, "lines 0-3"),
        ("p:docs/long.md:1-999999999", BadRequest, "at most"),
        ("p:docs/long.md:400-410", UnknownCitation, "line 400 is behind"),
        ("p:docs/none.md:1-3", UnknownCitation, "no file"),
        ("q:docs/long.md:1-3", UnknownCitation, "no file"),
        ("p:docs/broken.md:1-3", UnknownCitation, "failed|skipped"),
        ("p:session s#1#none", UnknownCitation, "no such turn"),
        ("p:session none#s#1-1", UnknownCitation, "no such turn"),
        ("p:docs/\0.md:1-3", UnknownCitation, "no file"),
        ("p:docs/\ud800.md:1-3", UnknownCitation, "no file"),
    ],
)
def test_what_is_not_stored_is_told_apart_from_what_is_no_citation(
    index: Index, citation: str, error: type[BadRequest], said: str
) -> None:
    with pytest.raises(error, match=said) as refused:
        index.read_citation(citation)
    assert type(refused.value) is error


def test_on_a_terminal_every_line_is_marked(index: Index) -> None:
    for citation in ("p:docs/long.md:50-51", "p:session s#1#s#1-2"):
        written = io.StringIO()
        print_cited(Console(file=written, width=40), index.read_citation(citation))
        head, *lines = written.getvalue().splitlines()
        assert head.startswith("p:")
        marked = re.compile(r" *\d+ > | *> |  (human|agent|human, agent)$")
        assert [line for line in lines if not marked.match(line)] == []


def test_what_changed_since_is_not_shown_for_what_was_cited(
    index: Index, source: GitSource
) -> None:
    before = index.read_citation("p:docs/long.md:3")
    source.commit({"docs/new.md": "# New\n"})
    reindex(index, embed=False)
    with pytest.raises(OutdatedCitation, match="is stored as of") as refused:
        index.read_citation(before.citation)
    assert refused.value.hint is not None
    now = index.read_citation(before.citation.partition("@")[0])
    assert now.citation != before.citation
    assert cited(now) == cited(before)
