"""A key that is planted anywhere at the source is found nowhere: rows, vectors, logs, answers."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from concordance.cli import run
from concordance.errors import ConcordanceError
from concordance.index import Index
from concordance.models import DocumentStatus, FileOrigin, Fusion, Scope, SearchRequest
from concordance.settings import Project, SessionSource
from concordance.text.scrubbing import Scrubber
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.planted import Keys, planted, traces
from tests.postgres.driver import covered, documents_of, needs, passages_of, reindex
from tests.postgres.house import database_of, open_index
from tests.postgres.shop import found
from tests.sources import GitSource, event, write_log

KEYS = planted(11) | {
    # A format that the scanner alone knows.
    "pulumi": ("({}), for example", "pul" + "-" + Keys(11).of(40, "0123456789abcdef"))
}
SCRUBBER = Scrubber()
# Lines that may be the name of a file, and keys that may be a part of a branch's.
AS_NAMES = {
    kind: line.format(key)
    for kind, (line, key) in KEYS.items()
    if len(key) < 100 and not {"/", "\n"} & set(line + key)
}
IN_BRANCHES = [
    *(
        key
        for kind, (_, key) in KEYS.items()
        if len(key) < 240
        and not set(key) & set("/~")
        and (kind == "pulumi" or SCRUBBER.text(key) != key)
    ),
    "DB_PASSWORD=" + KEYS["env"][1],
]
# A branch's name has at most 1000 characters.
BRANCHES = ["fix/" + "/".join(IN_BRANCHES[at::3]) for at in range(3)]
NAMED = ("aws access key", "github", "gitlab", "stripe")
LEAKED = planted(12)["aws access key"][1]


def everything(url: str) -> Iterator[tuple[str, str]]:
    """Every value of every column of every table of ours, as text."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        tables = connection.execute(
            "select tablename from pg_tables where schemaname = 'concordance'"
        ).fetchall()
        for table in tables:
            name = sql.Identifier("concordance", table["tablename"])
            rows = connection.execute(
                sql.SQL("select to_jsonb(t)::text as row from {} t").format(name)
            )
            for row in rows:
                yield table["tablename"], row["row"]


def leaks(keys: list[str], texts: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> list[str]:
    """Where a key, or a line of one, stands; words are stored in lower case."""
    wanted = [trace.lower() for key in keys for trace in traces(key)]
    return [
        f"{place}: {trace}" for place, text in texts for trace in wanted if trace in text.lower()
    ]


def every_key() -> list[str]:
    return [key for _, key in KEYS.values()] + [LEAKED]


def plant(folder: Path) -> Project:
    """A project whose files, names, log and commit message hold a key of each kind."""
    lines = "\n\n".join(line.format(key) for line, key in KEYS.values())
    steps = "\n\n".join(f"Step {n}: pour, then wait." for n in range(100))
    source = GitSource.make(folder / "repo")
    files: dict[str, str | bytes] = {
        "docs/guide.md": f"# Guide {LEAKED}\n\nHow to brew.\n\n{lines}\n\n{steps}\n",
        "docs/adr/0001-keys.md": f"# Keys\n\n## Context {KEYS['github'][1]}\n\n{lines}\n",
        "README.md": f"---\ntitle: Home {LEAKED}\n---\n\n# Shop\n\nSells tea.\n",
    }
    for kind in NAMED:
        files[f"docs/{KEYS[kind][1]}/about {kind}.md"] = f"# About\n\nKettles of {kind}.\n"
        files[f"docs/broken {KEYS[kind][1]}.md"] = b"\xff\xfe broken"
    for kind, name in AS_NAMES.items():
        files[f"docs/files/{name}.md"] = f"# About\n\nCups of {kind}.\n"
        files[f"docs/folders/{name}/page.md"] = f"# About\n\nPots of {kind}.\n"
    source.commit(files, message=f"Rotate {LEAKED}\n\n{lines}")
    author = " ".join(line.format(key) for line, key in KEYS.values())
    author = author.translate(dict.fromkeys(map(ord, "<>\n"), " "))
    source.git("commit", "-q", "--amend", "--no-edit", f"--author={author} <a@example.org>")
    source.git("branch", "-m", BRANCHES[0])
    turns = [
        event(f"s {LEAKED}", n, line.format(key), title=f"Talk of {LEAKED}")
        for n, (line, key) in enumerate(KEYS.values())
    ]
    turns.append(event("t", 1, "kettle", event_id=f"e {LEAKED}", occurred_at=f"at {LEAKED}"))
    turns.append(event("t", 2, "a second kettle", event_id=f"e {LEAKED}"))
    log = write_log(folder / "logs" / f"log {LEAKED}.jsonl", turns)
    return Project(slug="p", path=source.path, sessions=(SessionSource(path=log.parent),))


@pytest.fixture
def shop(
    make_index: IndexMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> tuple[Index, Project]:
    caplog.set_level(logging.DEBUG)
    project = plant(tmp_path)
    index = make_index(project)
    reindex(index)
    return index, project


@dataclass(frozen=True)
class Planted:
    """The same, where no test changes it."""

    index: Index
    url: str
    folder: Path


@pytest.fixture(scope="module")
def indexed(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    folder = tmp_path_factory.mktemp("planted")
    url = make_conninfo(server_url, dbname="planted")
    project = plant(folder)
    with (
        FakeOllama() as provider,
        database_of(server_url, "planted"),
        open_index(folder / "home", url, provider, project) as index,
    ):
        reindex(index)
        index.record_question("p", f"what is {LEAKED} for", "README.md:5-7")
        yield Planted(index, url, folder)


def test_no_planted_key_is_found_anywhere(
    shop: tuple[Index, Project],
    database_url: str,
    provider: FakeOllama,
    caplog: pytest.LogCaptureFixture,
) -> None:
    index, _ = shop
    assert index.explain("p", "docs/guide.md").in_index
    names = {document["name"] for document in documents_of(database_url)}
    assert len(names) > 2 * len(AS_NAMES)
    assert leaks(every_key(), everything(database_url)) == []
    assert leaks(every_key(), [("vector", text) for text in provider.inputs]) == []
    assert leaks(every_key(), [("log", caplog.text)]) == []
    told = [c.model_dump_json() for c in index.coverage()] + [repr(index.problems("p"))]
    for question in ("brew", "keys", "kettles", "secret", "second kettle"):
        answer = index.search(SearchRequest(text=question, threshold=0.0, top_k=100))
        assert answer.hits
        told.append(answer.model_dump_json())
    told += [
        index.explain("p", document["name"]).model_dump_json()
        for document in documents_of(database_url)
    ]
    assert leaks(every_key(), [("answer", text) for text in told]) == []


def test_most_kinds_are_planted_in_names_and_branches() -> None:
    assert len(KEYS) > 50
    assert len(AS_NAMES) > 35
    assert len(IN_BRANCHES) >= 25


@pytest.mark.parametrize("branch", BRANCHES[1:])
def test_no_key_of_a_branch_is_found_anywhere(
    shop: tuple[Index, Project],
    branch: str,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    index, project = shop
    assert project.path is not None
    source = GitSource(project.path)
    source.git("checkout", "-q", "-b", branch)
    source.commit({"docs/new.md": "# New\n\nNews.\n"})
    reindex(index)
    assert index.explain("p", "docs/new.md").in_index
    assert leaks(every_key(), everything(database_url)) == []
    told = [str(index.remote_head("p")), *(c.model_dump_json() for c in index.coverage())]
    assert leaks(every_key(), [("log", caplog.text), *(("told", one) for one in told)]) == []

    source.git("checkout", "-q", "-b", "other")
    source.git("branch", "-D", branch)
    gone = index.configuration.model_copy(
        update={"projects": (project.model_copy(update={"branch": branch}),)}
    )
    index._resources.configuration = gone
    with index.hold("p", uuid.uuid4(), on_wait=lambda: None):
        with pytest.raises(ConcordanceError) as raised:
            index.fetch("p")
        assert leaks(every_key(), [("error", f"{raised.value} {raised.value!r}")]) == []


@pytest.mark.parametrize(
    "command",
    [
        ["coverage"],
        ["coverage", "--json"],
        ["coverage", "--check"],
        ["search", "brew keys", "--full", "--threshold", "0"],
        ["search", "brew keys", "--json", "--threshold", "0", "--top-k", "100"],
        ["explain", "p", "docs/guide.md", "--json"],
        ["explain", "p", f"docs/folders/{AS_NAMES['github']}/page.md", "--json"],
        ["adr", "p", "--json"],
        ["projects", "list", "--json"],
        ["projects", "check", "p", "--json"],
        ["statistics", "--json"],
        ["questions", "list", "--json"],
    ],
    ids=" ".join,
)
def test_no_command_shows_a_key(
    indexed: Planted,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "projects.toml"
    file.write_text(
        f'[[projects]]\nslug = "p"\npath = "{indexed.folder / "repo"}"\n'
        f'sessions = [{{ path = "{indexed.folder / "logs"}" }}]\n'
    )
    monkeypatch.setenv("CONCORDANCE_PROJECTS_FILE", str(file))
    monkeypatch.setenv("CONCORDANCE_HOME", str(indexed.folder / "home"))
    monkeypatch.setenv("CONCORDANCE_DATABASE_URL", indexed.url)
    monkeypatch.setenv("CONCORDANCE_ALLOWED_SCHEMES", "https,ssh,file")
    assert run(command) in (0, 1)
    said = capsys.readouterr()
    assert said.out
    assert leaks(every_key(), [("out", said.out), ("err", said.err)]) == []


def test_errors_hold_no_key(
    make_index: IndexMaker, tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = GitSource.make(tmp_path / "repo", {"docs/a.md": "# A\n\nText.\n"})
    logs = tmp_path / f"logs {LEAKED}"
    project = Project(slug="p", path=source.path, sessions=(SessionSource(path=logs),))
    index = make_index(project)
    reindex(index)
    assert covered(index, Scope.SESSION).state.value == "failed"
    with (
        index.hold("p", uuid.uuid4(), on_wait=lambda: None) as held,
        pytest.raises(ConcordanceError) as raised,
    ):
        index.plan_sessions(held, "p")
    # Words of others: a step's that keeps no secret back itself, and a provider's.
    index.fail_attempt("p", [Scope.DOCS], f"no {LEAKED} there")
    index.note_embedding(["p"], f"I know no {LEAKED}")
    assert covered(index).reason.endswith(": no [secret: aws access key] there")
    told = [("error", f"{raised.value} {raised.value!r}"), ("log", caplog.text)]
    assert leaks([LEAKED], [*everything(database_url), *told]) == []


def test_secrets_are_counted_by_scope(indexed: Planted) -> None:
    docs, adr, session = (covered(indexed.index, scope).secrets for scope in Scope)
    assert docs["aws access key"] == 3
    assert sum(adr.values()) == len(KEYS) + 1
    assert sum(session.values()) >= len(KEYS)
    assert adr["private key"] == 3


def test_lines_of_citations_are_the_lines_of_the_file(indexed: Planted) -> None:
    source = (indexed.folder / "repo/docs/guide.md").read_text(encoding="utf-8").split("\n")
    passages = [p for p in passages_of(indexed.url) if p["name"] == "docs/guide.md"]
    assert len(passages) > 1
    for passage in passages:
        lines = passage["content"].split("\n")
        assert passage["end_line"] - passage["start_line"] + 1 == len(lines)
        for number, line in enumerate(lines, start=passage["start_line"]):
            if "secret:" not in line:
                assert line in source[number - 1] or not line


def test_a_name_with_a_key_is_kept_apart_found_explained_renamed_and_deleted(
    shop: tuple[Index, Project], database_url: str, tmp_path: Path
) -> None:
    index, _ = shop
    names = {d["name"] for d in documents_of(database_url)}
    assert len([name for name in names if name.startswith("docs/[secret: ")]) == len(NAMED)
    assert len([name for name in names if name.startswith("docs/broken [secret: ")]) == len(NAMED)
    old = f"docs/{KEYS['github'][1]}/about github.md"
    told = index.explain("p", old)
    assert told.in_index
    assert told.scope is Scope.DOCS
    assert told.path in names
    hits = index.search(
        SearchRequest(text="kettles github", fusion=Fusion.LEXICAL, threshold=0.0)
    ).hits
    assert isinstance(hits[0].origin, FileOrigin)
    assert (hits[0].origin.path, hits[0].origin.link) == (told.path, None)

    source = GitSource(tmp_path / "repo")
    other = f"docs/{planted(13)['github'][1]}/about github.md"
    (source.path / other).parent.mkdir()
    source.git("mv", old, other)
    source.commit({}, delete=[f"docs/{KEYS['stripe'][1]}/about stripe.md"])
    written = reindex(index)[0]
    assert (written.renamed, written.deleted, written.written) == (1, 1, 0)
    moved = index.explain("p", other)
    assert moved.in_index
    assert moved.path != told.path
    assert not index.explain("p", old).in_index
    assert needs(index) == "none"


def test_a_project_may_keep_its_secrets_and_change_its_mind(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    project = plant(tmp_path)
    plain = make_index(project.model_copy(update={"scrub": False}))
    reindex(plain)
    kept = "\n".join(text for _, text in everything(database_url))
    assert LEAKED in kept
    assert covered(plain).secrets == {}
    index = make_index(project)
    assert needs(index) == "index"
    reindex(index)
    assert leaks(every_key(), everything(database_url)) == []
    fresh = [d for d in documents_of(database_url) if d["status"] == DocumentStatus.INDEXED]
    assert fresh
    assert needs(plain) == "index"


def test_a_recorded_question_is_scrubbed(indexed: Planted) -> None:
    (kept,) = indexed.index.recorded_questions("p")
    assert kept.question == "what is [secret: aws access key] for"
    assert leaks(every_key(), everything(indexed.url)) == []


def test_a_scrubbed_text_is_found_by_what_is_left_of_it(indexed: Planted) -> None:
    assert any("docs/guide.md" in citation for citation in found(indexed.index, "guide brew"))
    assert found(indexed.index, LEAKED) == []
