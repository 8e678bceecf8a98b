"""Keys planted in a run's settings: looked for in every process, file and table that it leaves."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psycopg
import pytest
from psycopg import sql

from tests.acceptance.conftest import Person
from tests.fake_ollama import FakeOllama
from tests.git_server import BASIC, TOKEN, GitServer, files_that_hold, git, serving
from tests.sources import GitSource

ROOT = Path(__file__).parents[2]
# Of no known form, so that it is not scrubbing that hides them.
PLANTED = {
    "CONCORDANCE_DATABASE_URL": "planted-database-one",
    "SESSIONS_URL": "planted-sessions-two",
    "CONCORDANCE_RERANKER_KEY": "planted-reranker-three",
    "OLLAMA_API_KEY": "planted-ollama-four",
    "SOME_OTHER_KEY": "planted-other-five",
    "READ_TOKEN": TOKEN,
}
QUERY = (
    "select 's' as session_id, 1 as event_id, 'chat.message' as type, 'tea' as text, "
    "now() as occurred_at"
)
SECRETS = (*PLANTED.values(), BASIC)


@dataclass
class Watched:
    """What was seen of the processes of one home, while they ran."""

    home: Path
    lines: set[bytes] = field(default_factory=set)
    environments: dict[bytes, bytes] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        mine = f"HOME={self.home}".encode()
        while not self._ended.wait(0.05):
            for place in Path("/proc").glob("[0-9]*"):
                try:
                    held = (place / "environ").read_bytes()
                    line = (place / "cmdline").read_bytes().replace(b"\0", b" ").strip()
                except OSError:
                    continue
                if mine in held:
                    self.lines.add(line)
                    self.environments[line] = held


@dataclass
class Desk:
    """A person whose environment is full of keys, and what their git was told."""

    person: Person
    log: Path
    variables: dict[str, str]

    def run(self, *arguments: str) -> str:
        ran = self.person.run(*arguments, **self.variables)
        return ran.out + ran.err


@pytest.fixture
def desk(
    tmp_path: Path, database_url: str, provider: FakeOllama, secret_rules: Path
) -> Iterator[Desk]:
    source = GitSource.make(tmp_path / "work", {"docs/a.md": "# A\n\nkettle\n"})
    (tmp_path / "root").mkdir()
    git("clone", "--quiet", "--bare", str(source.path), str(tmp_path / "root" / "r.git"))
    person = Person(tmp_path / "desk", tmp_path / "home")
    for folder in (person.folder, person.home, tmp_path / "bin"):
        folder.mkdir()
    shutil.copytree(secret_rules, person.home / "state" / "secret-rules")
    log = tmp_path / "git.log"
    wrapper = tmp_path / "bin" / "git"
    wrapper.write_text(
        f'#!/bin/sh\n{{ echo "$@"; env; }} >> {log}\nexec {shutil.which("git")} "$@"\n'
    )
    wrapper.chmod(0o755)
    with serving(GitServer(tmp_path / "root")) as server:
        server.token_wanted = True
        (person.folder / "projects.toml").write_text(
            f"""
            [settings]
            allowed_schemes = ["http"]
            embedding_model = "ollama/nomic-embed-text"
            ollama_url = "{provider.url}"
            [[projects]]
            slug = "p"
            url = "{server.url}/r.git"
            credentials = {{ env = "READ_TOKEN", username = "x-token" }}
            sessions = [{{ query = "{QUERY}", url_env = "SESSIONS_URL" }}]
            """
        )
        addresses = {
            name: psycopg.conninfo.make_conninfo(database_url, password=PLANTED[name])
            for name in ("CONCORDANCE_DATABASE_URL", "SESSIONS_URL")
        }
        variables = (
            PLANTED
            | addresses
            | {
                "PATH": f"{wrapper.parent}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
            }
        )
        yield Desk(person, log, variables)
        person.run("down", PYTHONPATH=str(ROOT))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_no_key_reaches_a_process_that_needs_none_nor_a_file_nor_a_table(
    desk: Desk, database_url: str
) -> None:
    with Watched(desk.person.home) as seen:
        said = desk.run("reindex", "--verbose")
    assert "complete: 1 project, 2 chunks, all with a vector" in said
    servers = [line for line in seen.lines if b"prefect server start" in line]
    assert servers, seen.lines
    for secret in SECRETS:
        assert secret not in said
        assert [line for line in seen.lines if secret.encode() in line] == []
        own = [line for line, held in seen.environments.items() if secret.encode() in held]
        # Ours alone: what reads the settings has them, and git its own token.
        assert [line for line in own if b"concordance" not in line and secret != BASIC] == []
        assert not set(own) & set(servers)
        for folder in (desk.person.folder, desk.person.home):
            assert files_that_hold(folder, secret) == []
    told = desk.log.read_text()
    assert "fetch" in told
    assert "cat-file" in told
    assert [name for name in SECRETS if name in told and name != BASIC] == []
    for row in rows_of(database_url):
        assert [secret for secret in SECRETS if secret in row] == []


def rows_of(url: str) -> Iterator[str]:
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "select schemaname, tablename from pg_tables "
            "where schemaname not in ('pg_catalog', 'information_schema')"
        ).fetchall()
        for schema, table in tables:
            query = sql.SQL("select t::text from {} t").format(sql.Identifier(schema, table))
            yield from (row[0] for row in connection.execute(query))


@pytest.mark.parametrize("location", [f"https://ada:{TOKEN}@h/r.git", f"ada:{TOKEN}@h:o/r.git"])
def test_an_address_with_a_token_is_refused_and_not_repeated(tmp_path: Path, location: str) -> None:
    person = Person(tmp_path, tmp_path)
    added = person.run("projects", "add", "p", location, PYTHONPATH=str(ROOT))
    assert added.code == 2
    assert TOKEN not in added.out + added.err
    assert "user information" in added.err or "it is an address" in added.err
    assert not (tmp_path / "projects.toml").exists()
