"""Markdown that is easily misread, lines that a citation must hit, and half-written logs."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from concordance.models import CoverageState, Scope
from concordance.settings import Project, SessionSource
from concordance.text.chunking import Chunk, chunk_markdown
from concordance.text.markdown import MarkdownDocument, parse_markdown
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import covered, documents_of, names_of, passages_of, reindex
from tests.postgres.library import places, search
from tests.sources import GitSource, event

LINE_END = re.compile(rb"\r\n|\r|\n")


def chunked(text: str) -> tuple[MarkdownDocument, tuple[Chunk, ...]]:
    document = parse_markdown(text)
    return document, chunk_markdown(text, document)


def headings(document: MarkdownDocument) -> list[str]:
    return [s.heading_path[-1] for s in document.sections if s.level]


FENCES = {
    "tildes": "~~~sh\n# one\n~~~\n",
    "four that hold three": "````md\n```\n# two\n```\n````\n",
    "in a list item": "- item\n\n  ```sh\n  # three\n  ```\n",
    "in a quote": "> ```\n> # four\n> ```\n",
    "a comment": "<!--\n# five\n\n# six\n-->\n",
    "never closed": "```\n# seven\n",
}


@pytest.mark.parametrize("fence", FENCES.values(), ids=FENCES.keys())
def test_what_only_looks_like_a_heading_opens_no_section_md_1(fence: str) -> None:
    before = "# Handbook\n\n## Set up\n\n"
    document, chunks = chunked(f"{before}{fence}")
    assert headings(document) == ["Handbook", "Set up"]
    text = f"{before}{fence}"
    assert any(fence.strip() in text[chunk.start : chunk.end] for chunk in chunks), "in one passage"


def test_what_follows_many_fences_keeps_its_parents_md_1() -> None:
    closed = [fence for name, fence in FENCES.items() if name != "never closed"]
    text = "# Handbook\n\n## Set up\n\n" + "\n".join(closed) + "\n### Try it\nthe end\n"
    document, chunks = chunked(text)
    assert headings(document) == ["Handbook", "Set up", "Try it"]
    (last,) = [chunk for chunk in chunks if "the end" in text[chunk.start : chunk.end]]
    assert last.heading_path == ("Handbook", "Set up", "Try it")


MARKS_AND_ENDINGS = list(itertools.product(["", "\ufeff"], ["\n", "\r\n"]))


@pytest.mark.parametrize("closing", ["---", "..."])
@pytest.mark.parametrize(("mark", "ending"), MARKS_AND_ENDINGS)
def test_front_matter_is_no_heading_md_3(  # noqa: PLR0917 - fixtures are arguments
    make_index: IndexMaker, tmp_path: Path, database_url: str, closing: str, ending: str, mark: str
) -> None:
    lines = ["---", "status: accepted", "date: 2025-03-04", closing, "", "# Take it", "words", ""]
    data = (mark + ending.join(lines)).encode()
    source = GitSource.make(tmp_path / "source", {"docs/adr/0001-take-it.md": data})
    reindex(make_index(Project(slug="p", path=source.path)), embed=False)
    passages = passages_of(database_url)
    assert {tuple(p["heading_path"]) for p in passages if "# Take it" in p["content"]} == {
        ("Take it",)
    }
    assert {heading for p in passages for heading in p["heading_path"]} == {"Take it"}
    document = parse_markdown(ending.join(lines))
    assert (document.title, document.front_matter["status"]) == ("Take it", "accepted")
    at = next(p for p in passages if "# Take it" in p["content"])
    cited = LINE_END.split(data)[at["start_line"] - 1 : at["end_line"]]
    assert b"# Take it" in cited
    assert LINE_END.split(data)[5] == b"# Take it", "the sixth line, as editors count"


def test_a_rule_at_the_top_hides_no_heading_md_3() -> None:
    document, _ = chunked("---\n\n# First\na\n\n---\n\n# Second\nb\n")
    assert headings(document) == ["First", "Second"]
    assert document.front_matter == {}


SPARSE: dict[str, str | bytes] = {
    "docs/before.md": "A short word before.\n\n# Topics\n\n# Todo\n",
    "docs/plain.md": "Nothing here is a heading.\n",
    "docs/alone.md": "# Solitary\n",
    "docs/empty.md": "",
    "docs/blank.md": "\n  \n\t\n\n",
}


def test_text_without_a_section_and_sections_without_text_are_found_md_4(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(tmp_path / "source", SPARSE)
    index = make_index(Project(slug="p", path=source.path))
    reindex(index)
    for words, name in {
        "short word before": "docs/before.md",
        "topics": "docs/before.md",
        "todo": "docs/before.md",
        "nothing here": "docs/plain.md",
        "solitary": "docs/alone.md",
    }.items():
        assert places(search(index, words, fusion="lexical"))[:1] == [f"p:{name}"], words
    said = covered(index)
    assert (said.found, said.indexed, said.empty, said.failed) == (5, 3, 2, 0)
    assert said.state is CoverageState.COMPLETE
    passages = passages_of(database_url)
    assert len([p for p in passages if p["name"] == "docs/plain.md"]) == 1
    assert all(p["content"].strip() for p in passages), "nothing blank is embedded"
    for name, text in SPARSE.items():
        shown = {
            line
            for p in passages
            if p["name"] == name
            for line in str(text).split("\n")[p["start_line"] - 1 : p["end_line"]]
        }
        assert {line for line in str(text).split("\n") if line.strip()} <= shown


CITED: dict[str, str | bytes] = {
    "docs/late.md": "\n\n\n# Late\n\nfirst words\n",
    "docs/crlf.md": b"# Win\r\n\r\nfirst\r\n\r\n## More\r\n\r\nlast\r\n",
    "docs/cr.md": b"# Mac\r\rfirst\r\r## More\r\rlast\r",
    "docs/odd.md": "# Odd\n\nsome\x0cpage \x85 and \u2028 here\nto the end\n\n## More\n\nlast\n",
    "docs/front.md": "---\nowner: ada\n---\n\n# Front\n\nfirst\n",
    "docs/tiny.md": "# One\n\na\n\n## Two\n\nb\n",
}


def test_the_lines_that_are_cited_hold_the_passage_and_no_line_more_md_6(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(tmp_path / "source", CITED)
    reindex(make_index(Project(slug="p", path=source.path)), embed=False)
    # The commit moves on; most files stay as they were.
    source.commit({"docs/tiny.md": "\n\n# One\n\na\n\n## Two\n\nb\n"})
    reindex(make_index(Project(slug="p", path=source.path)), embed=False)
    passages = passages_of(database_url)
    assert {p["name"] for p in passages} == set(CITED)
    for p in passages:
        shown = source.git("rev-parse", f"{p['commit']}:{p['name']}")
        data = (source.path / p["name"]).read_bytes()
        assert source.git("hash-object", "--no-filters", p["name"]) == shown
        lines = [line.decode() for line in LINE_END.split(data)]
        lines = lines[:-1] if lines[-1] == "" else lines
        assert 1 <= p["start_line"] <= p["end_line"] <= len(lines)
        cited = lines[p["start_line"] - 1 : p["end_line"]]
        content = [line.decode() for line in LINE_END.split(p["content"].encode())]
        assert [line for line in cited if line.strip()] == [
            line for line in content if line.strip()
        ], (p["name"], p["start_line"], p["end_line"])


def test_a_log_that_is_being_written_loses_no_turn_and_repeats_none_md_8(
    make_index: IndexMaker, tmp_path: Path, provider: FakeOllama, database_url: str
) -> None:
    log = tmp_path / "logs" / "log.jsonl"
    log.parent.mkdir()
    good = [json.dumps(event("s", n, f"remark number{n}")) for n in range(5)]
    bad = '{"session_id": "s", "event_id": "s-5", "type": "chat.message", "text": "\\q"}'
    odd = json.dumps(event("s", 6, "left\u2028right"), ensure_ascii=False)
    huge = json.dumps(event("s", 7, "sand " * 1_000_000))
    half = json.dumps(event("s", 8, "the unfinished one"))
    written = "\n".join([*good, bad, odd, huge, ""])
    log.write_text(written + half[: len(half) // 2], encoding="utf-8")
    source = GitSource.make(tmp_path / "source", {"README.md": "# P\n\nwords\n"})
    project = Project(slug="p", path=source.path, sessions=(SessionSource(path=log.parent),))
    index = make_index(project)
    reindex(index)
    turns = {p["event_id"] for p in passages_of(database_url) if p["kind"] == "session"}
    assert turns == {f"s-{n}" for n in (0, 1, 2, 3, 4, 6, 7)}
    said = covered(index, Scope.SESSION)
    assert said.turns == 7
    problems = [d for d in documents_of(database_url) if d["status"] in ("failed", "skipped")]
    assert (len(problems), said.failed + said.skipped) == (2, 2), "the bad line and the half one"
    assert all(problem["reason"] for problem in problems)
    assert any("left\u2028right" in p["content"] for p in passages_of(database_url))
    assert names_of(database_url)["s"] == "session indexed"
    provider.forget()
    more = json.dumps(event("s", 9, "the one after"))
    log.write_text(f"{written}{half}\n{more}\n", encoding="utf-8")
    reindex(index)
    now = {p["event_id"] for p in passages_of(database_url) if p["kind"] == "session"}
    assert now - turns == {"s-8", "s-9"}
    assert turns <= now
    sent = [text for text in provider.inputs if text.startswith("search_document")]
    assert len(sent) == 2, "no other turn is embedded again"
    assert covered(index, Scope.SESSION).turns == 9
