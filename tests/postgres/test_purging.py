"""Today's rules applied to what is stored: nothing of a key stays, and all counts are right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb
from pydantic import SecretStr

from concordance.adapters.postgres.purges import _REWRITES
from concordance.adapters.postgres.words import check_statistics
from concordance.cli import run
from concordance.index import Index
from concordance.purging import Purged
from concordance.settings import Configuration, Project
from sql import queries
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.planted import planted, traces
from tests.postgres.driver import (
    ask,
    covered,
    documents_of,
    fill,
    needs,
    passages_of,
    reindex,
    statistics_of,
)
from tests.postgres.house import database_of, open_index
from tests.postgres.test_secrets import KEYS, LEAKED, every_key, everything, leaks, plant
from tests.sources import GitSource

KEPT = "kept_as_it_was"


def statistics_are_right(index: Index, slug: str = "p") -> bool:
    resources = index._resources
    (number,) = [
        row["id"]
        for row in ask(
            resources.database._conninfo, "select id from projects where slug=%s", [slug]
        )
    ]
    return check_statistics(resources.database, number, rebuild=False) == []


@pytest.fixture(scope="module")
def kept(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project in a database of a time before there were any rules; each test has a copy."""
    folder = tmp_path_factory.mktemp("kept")
    project = plant(folder)
    long = "\n\n".join(
        f"Words before it, {'and more ' * (n * 7)}\n\n{line.format(key)}"
        for n, (line, key) in enumerate(KEYS.values())
    )
    key = KEYS["github"][1]
    record = (
        f"---\nstatus: accepted with {key}\ndeciders: [Ann, {key}]\n---\n\n# 7. Keys\n\n"
        f"Supersedes [an older one {key}](0001-{key}.md)\n\n"
        "## Context\n\nKeys.\n\n## Decision\n\nMarks.\n"
    )
    GitSource(folder / "repo").commit(
        {"docs/long.md": f"# Long\n\n{long}\n", "docs/adr/0007-keys.md": record}
    )
    plain = project.model_copy(update={"scrub": False})
    url = make_conninfo(server_url, dbname=KEPT)
    with FakeOllama() as provider, database_of(server_url, KEPT):
        with open_index(folder / "home", url, provider, plain) as index:
            reindex(index)
            index.record_question("p", f"what is {LEAKED} for", "README.md:5-7")
        yield project


@pytest.fixture
def database_template(kept: Project) -> str:
    return KEPT


@pytest.fixture
def index(make_index: IndexMaker, kept: Project) -> Index:
    return make_index(kept)


def test_nothing_of_a_key_stays_and_the_next_run_brings_the_rows_of_a_first_one(
    index: Index, make_index: IndexMaker, database_url: str
) -> None:
    assert leaks(every_key(), everything(database_url)) != []
    (done,) = index.purge_secrets()
    assert (done.project, done.left) == ("p", None)
    assert done.changed > len(KEYS) / 4
    assert sum(done.secrets.values()) > len(KEYS) * 3
    assert leaks(every_key(), everything(database_url)) == []
    assert statistics_are_right(index)
    assert [p["content"] for p in passages_of(database_url) if not p["lexemes"]] == []
    assert covered(index).secrets["aws access key"] >= 2
    assert covered(index).state.value != "complete"

    assert needs(index) == "index"
    reindex(index)
    configured = index.configuration.projects[0]
    fresh = make_index(configured.model_copy(update={"slug": "fresh"}))
    reindex(fresh, "fresh")
    assert documents_of(database_url) == documents_of(database_url, "fresh")
    assert passages_of(database_url) == passages_of(database_url, "fresh")
    counts = [statistics_of(database_url, slug)[0] for slug in ("p", "fresh")]
    assert counts[0] == counts[1]
    assert needs(index) == "none"


def test_a_purged_passage_waits_for_the_vector_of_its_new_text(
    index: Index, database_url: str, provider: Any
) -> None:
    before = {p["content"]: p["vector"] for p in passages_of(database_url)}
    index.purge_secrets(["p"])
    after = passages_of(database_url)
    marked = [p for p in after if "[secret: " in p["content"]]
    assert marked
    assert [p for p in marked if p["vector"] is not None] == []
    kept = [p for p in after if p["content"] in before and p["vector"] == before[p["content"]]]
    assert kept
    provider.forget()
    fill(index)
    assert [p for p in passages_of(database_url) if p["vector"] is None] == []
    assert leaks(every_key(), [("vector", text) for text in provider.inputs]) == []


def test_a_second_purge_finds_nothing(index: Index, database_url: str) -> None:
    index.purge_secrets()
    before = passages_of(database_url), documents_of(database_url)
    assert index.purge_secrets() == [Purged("p", len(before[1]))]
    assert (passages_of(database_url), documents_of(database_url)) == before


def test_the_source_is_not_needed(
    make_index: IndexMaker, database_url: str, tmp_path: Path
) -> None:
    elsewhere = make_index(home=tmp_path / "other")
    told: list[tuple[str, int, int]] = []
    (done,) = elsewhere.purge_secrets(progress=lambda *news: told.append(news))
    assert done.changed > 0
    assert told[-1] == ("p", done.documents, done.documents)
    assert leaks(every_key(), everything(database_url)) == []


def test_what_belongs_to_no_document_is_purged_too(index: Index, database_url: str) -> None:
    said = f"it said {LEAKED}"
    ask_nothing = psycopg.connect(
        database_url, autocommit=True, options="-c search_path=concordance,public"
    )
    with ask_nothing as connection:
        connection.execute(
            "update coverage set attempt_error = %s, embedding_error = %s", [said] * 2
        )
        connection.execute("update projects set branch = %s", [f"fix/{LEAKED}"])
        connection.execute(
            "insert into runs (id, tenant_id, kind, started_at, summary) "
            "select gen_random_uuid(), id, 'reindex', now(), %s from tenants limit 1",
            [Jsonb({"message": [said]})],
        )
    index.purge_secrets()
    assert leaks(every_key(), everything(database_url)) == []
    (question,) = index.recorded_questions()
    assert question.question == "what is [secret: aws access key] for"


def test_a_project_that_keeps_its_secrets_is_left_alone(
    make_index: IndexMaker, kept: Project, database_url: str
) -> None:
    (done,) = make_index(kept.model_copy(update={"scrub": False})).purge_secrets()
    assert done.left is not None
    assert leaks([LEAKED], everything(database_url)) != []


WITHOUT_SOURCES = {
    "tenants",
    "tenant_access",
    "embedding_models",
    "project_stats",
    "schema_migrations",
}
"""Tables whose text is of settings, of the server's logins and of the program alone."""


def test_every_table_that_holds_text_is_written_anew(index: Index, database_url: str) -> None:
    with_text = {
        row["name"]
        for row in ask(
            database_url,
            "select distinct c.relname as name from pg_class c join pg_attribute a on "
            "a.attrelid = c.oid join pg_namespace n on n.oid = c.relnamespace "
            "join pg_type t on t.oid = a.atttypid "
            "where n.nspname = 'concordance' and c.relkind in ('r', 'p') and a.attnum > 0 "
            "and t.typname in ('text', '_text', 'varchar', 'json', 'jsonb', 'tsvector', 'name')",
        )
    }
    written = {name.removeprefix("rewrite_") for name in _REWRITES}
    assert len(with_text) > len(WITHOUT_SOURCES)
    assert with_text - WITHOUT_SOURCES - written == set()
    for name in _REWRITES:
        assert queries("purges")[name].endswith(f" {name.removeprefix('rewrite_')}")


def test_files_written_anew_hold_no_old_row(index: Index, database_url: str) -> None:
    key = traces(KEYS["github"][1])[0].encode()

    def on_disk() -> int:
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("checkpoint")
            rows = connection.execute(
                "select pg_read_binary_file(pg_relation_filepath(c.oid)) from pg_class c "
                "join pg_namespace n on n.oid = c.relnamespace "
                "where (n.nspname = 'concordance' or c.relname like 'pg_toast%%') "
                "and pg_relation_filepath(c.oid) is not null and c.relkind in ('r', 'i', 't')"
            ).fetchall()
        return sum(key in bytes(row[0]) or key.lower() in bytes(row[0]) for row in rows)

    with psycopg.connect(database_url) as connection:
        connection.execute(
            "insert into concordance.project_commits (project_id, id, branch, committed_at) "
            "select id, 'abc', %s, now() from concordance.projects",
            [f"fix/{key.decode()}"],
        )
        connection.execute(
            "insert into concordance.calibrations select id, tenant_id, %s, '', 1, 1, '', '', "
            "null, null, null, '{}', now() from concordance.projects",
            [key.decode()],
        )
    index.purge_secrets()
    assert on_disk() > 0  # old versions of rows, which the command speaks of
    index.purge_secrets(rewrite=True)
    assert on_disk() == 0


@pytest.fixture
def shell(index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str) -> Path:
    file = tmp_path / "projects.toml"
    file.write_text(f'[[projects]]\nslug = "p"\npath = "{index.configuration.projects[0].path}"\n')
    monkeypatch.setenv("CONCORDANCE_PROJECTS_FILE", str(file))
    monkeypatch.setenv("CONCORDANCE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONCORDANCE_DATABASE_URL", SecretStr(database_url).get_secret_value())
    monkeypatch.setenv("CONCORDANCE_ALLOWED_SCHEMES", "https,ssh,file")
    return file


def test_the_command_says_what_it_did(
    shell: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["purge"]) == 2
    assert "--secrets" in capsys.readouterr().err
    assert run(["purge", "nobody", "--secrets"]) == 2
    capsys.readouterr()
    assert run(["purge", "--secrets"]) == 0
    said = capsys.readouterr().out
    assert "documents changed" in " ".join(said.split())
    assert "aws access key" in said
    assert "--rewrite" in said
    assert leaks(every_key(), [*everything(database_url), ("said", said)]) == []
    assert run(["purge", "p", "--secrets", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["projects"][0]["changed"] == 0
    assert run(["coverage", "--json"]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert counted[0]["secrets"]["aws access key"] >= 2
    run(["coverage"])
    assert "replaced by marks" in capsys.readouterr().out


def test_the_command_says_each_thing_once(
    shell: Path, tmp_path: Path, index: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    named = index.configuration.projects[0].model_copy(update={"slug": "q"})
    reindex(Index(replace(index._resources, configuration=_with(index, named))), "q", embed=False)
    shell.write_text(shell.read_text() + f'[[projects]]\nslug = "q"\npath = "{named.path}"\n')
    assert run(["purge", "--secrets", "--rewrite"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines))
    assert sum("written anew" in line for line in lines) == 1
    assert not any("--rewrite" in line for line in lines)


def _with(index: Index, project: Project) -> Configuration:
    given = index.configuration
    return given.model_copy(update={"projects": (*given.projects, project)})


def test_other_keys_than_these_exist() -> None:
    assert planted(1)["github"] != planted(2)["github"]
