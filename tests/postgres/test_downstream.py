"""What downstream jobs call: plain functions, and SQL by a reader's login, as documented."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import concordance
from concordance import sharing
from concordance.cli.asking import cite
from concordance.errors import BadRequest, SettingsError, UnknownProject
from concordance.settings import Project
from tests.examples import example, examples
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import reindex
from tests.postgres.house import database_of, grant, logins, open_index
from tests.sources import GitSource

ROOT = Path(__file__).parents[2]
READER = "downstream_reader"
FILES: dict[str, str | bytes] = {
    "docs/operations.md": "# Operations\n\n## Restore\n\nA backup is restored by `pg_restore`, "
    "into an empty database.\n\n## Disks\n\nThe person on call is told when a disk is full.\n"
}
CITED = "beacon:docs/operations.md:"


@dataclass
class Desk:
    """A folder without `projects.toml`, and what a job there has in its environment."""

    folder: Path
    url: str
    variables: dict[str, str]

    def run(self, program: str, **more: str) -> subprocess.CompletedProcess[str]:
        kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=self.folder,
            env=kept | self.variables | more,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def output(self, program: str) -> str:
        done = self.run(program)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


@pytest.fixture(scope="module")
def desk(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    url = make_conninfo(server_url, dbname="downstream")
    with (
        FakeOllama() as provider,
        logins(server_url, READER),
        database_of(server_url, "downstream"),
    ):
        beacon = GitSource.make(folder / "beacon", FILES)
        project = Project(slug="beacon", path=beacon.path)
        with open_index(folder / "home", url, provider, project) as owner:
            reindex(owner, "beacon")
        grant(url, {READER: "default"})
        variables = {
            "CONCORDANCE_DATABASE_URL": make_conninfo(url, user=READER),
            "CONCORDANCE_HOME": str(folder / "home"),
            "CONCORDANCE_EMBEDDING_MODEL": "ollama/nomic-embed-text",
            "CONCORDANCE_OLLAMA_URL": provider.url,
        }
        work = folder / "work"
        work.mkdir()
        yield Desk(work, make_conninfo(url, user=READER), variables)


@pytest.fixture
def here(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process as such a job."""
    monkeypatch.chdir(desk.folder)
    for name, value in desk.variables.items():
        monkeypatch.setenv(name, value)
    sharing.close_shared()
    yield
    sharing.close_shared()


@pytest.mark.usefixtures("here")
def test_each_plain_example_answers_with_a_reader_s_login(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answered = []
    for block in examples("downstream.md", "python", "from concordance import"):
        exec(compile(block, "downstream.md", "exec"), {"__name__": "job"})  # noqa: S102
        answered.append(capsys.readouterr().out)
    assert len(answered) == 3
    assert all(CITED in said for said in answered)


@pytest.mark.usefixtures("here")
def test_a_citation_is_shown_by_the_command_with_a_reader_s_login(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cited = concordance.search("backup").hits[0].citation
    assert cite(cited, around=0, json=True) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["citation"] == cited
    assert "pg_restore" in shown["parts"][0]["content"]
    assert cite(cited) == 0
    assert re.search(r"\d+ > .*pg_restore", capsys.readouterr().out)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("framework", ["langchain", "llamaindex"])
def test_each_retriever_s_example_answers_with_a_reader_s_login(
    framework: str, capsys: pytest.CaptureFixture[str]
) -> None:
    block = example("downstream.md", "python", f"concordance.retrievers.{framework}")
    exec(compile(block, "downstream.md", "exec"), {"__name__": "job"})  # noqa: S102
    assert CITED in capsys.readouterr().out


def test_importing_loads_nothing_and_a_call_is_loaded_by_its_name(desk: Desk) -> None:
    said = desk.output(
        "import concordance, sys\n"
        "heavy = ['psycopg', 'pydantic', 'numpy', 'prefect', 'concordance.index']\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "print(sorted(set(concordance.__all__) - set(dir(concordance))))\n"
        "concordance.SearchRequest\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    assert said.splitlines() == ["[]", "[]", "['pydantic']"]
    with pytest.raises(AttributeError, match="no attribute 'nobody'"):
        concordance.nobody  # noqa: B018


def test_every_name_that_the_package_gives_is_there() -> None:
    assert all(getattr(concordance, name) is not None for name in concordance.__all__)


@pytest.mark.usefixtures("here")
def test_calls_share_one_index_until_it_is_closed() -> None:
    assert concordance.search("backup").hits
    first = sharing.shared_index()
    assert concordance.coverage() == concordance.coverage("beacon") != []
    assert sharing.shared_index() is first
    sharing.close_shared()
    assert concordance.search("backup").hits
    assert sharing.shared_index() is not first


@pytest.mark.usefixtures("here")
def test_what_can_t_be_asked_is_told_by_type() -> None:
    for asked in (" ", "x" * 100_001):
        with pytest.raises(BadRequest, match="the question"):
            concordance.search(asked)
    with pytest.raises(UnknownProject, match="no project 'nobody'"):
        concordance.coverage("nobody")


@pytest.mark.usefixtures("here")
def test_an_opening_that_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as wrong:
        wrong.setenv("CONCORDANCE_DATABASE_POOL", "none")
        with pytest.raises(SettingsError, match="CONCORDANCE_DATABASE_POOL"):
            concordance.search("backup")
    assert concordance.search("backup").hits


def test_a_process_that_was_forked_off_has_connections_of_its_own_and_none_outlives_its_process(
    desk: Desk,
) -> None:
    said = desk.output(
        "import os\n"
        "from concordance import search\n"
        "before = search('backup').hits\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(0 if search('backup').hits == before else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0, 'the child found other hits'\n"
        "print(search('backup').hits == before, before[0].citation)\n"
    )
    assert said.startswith(f"True {CITED}")
    with psycopg.connect(desk.url, autocommit=True) as session:
        (left,) = session.execute(
            "select count(*) from pg_stat_activity where usename = %s and pid <> pg_backend_pid()",
            [READER],
        ).fetchall()
    assert left == (0,)


def test_the_examples_in_sql_answer_over_a_plain_driver(desk: Desk) -> None:
    with psycopg.connect(desk.url) as session:
        words = session.execute(example("downstream.md", "sql", "reader_words").encode()).fetchall()
        covered = session.execute(
            example("downstream.md", "sql", "reader_coverage").encode()
        ).fetchall()
    assert [row[:4] for row in words[:1]] == [("beacon", "docs/operations.md", 1, 5)]
    assert "pg_restore" in words[0][5]
    assert [row[:3] for row in covered] == [
        ("beacon", scope, "complete" if scope == "docs" else "absent")
        for scope in ("adr", "docs", "session")
    ]


def test_each_documented_function_of_a_reader_is_there(desk: Desk) -> None:
    page = (ROOT / "docs" / "tenants.md").read_text("utf-8")
    named = set(re.findall(r"`(reader_\w+)", page))
    with psycopg.connect(desk.url) as session:
        found = session.execute(
            "select proname from pg_proc where pronamespace = 'concordance'::regnamespace "
            "and proname ^@ 'reader_' and prosecdef and has_function_privilege(oid, 'execute')"
        ).fetchall()
    assert {row[0] for row in found} == named
