"""What tests of several rooms share: a Postgres server for the run, and a database a test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kingfisher_sdk import Rules
from psycopg import sql
from pydantic import SecretStr

from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.adapters.postgres.database import Database, create_database
from concordance.adapters.postgres.schema import migrate
from concordance.index import Index
from concordance.settings import Configuration, Project, Settings
from tests.fake_ollama import FakeOllama

# Folders whose files share what takes long to start.
TOGETHER = ("tests/flows/", "tests/http/")
_numbers = itertools.count(1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: tests of flows and of the command line wait for processes."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deals out whole files; those that share a server go together."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # noqa: PLC0415

    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = _dealt_out_together
    return scheduling


def _dealt_out_together(test: str) -> str:
    folder = next((folder for folder in TOGETHER if test.startswith(folder)), None)
    return folder or test.partition("::")[0]


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """One real server for each process of the run, with a migrated database named `template`.

    Processes of a run share none: tests look at the locks and the sessions of a whole server.
    """
    with tempfile.TemporaryDirectory(prefix="concordance-test-") as home:
        server = EmbeddedPostgres(Path(home))
        url = server.start()
        with psycopg.connect(url, autocommit=True) as connection:
            # What is thrown away need not outlast a power cut; a kill it outlasts all the same.
            connection.execute("alter system set fsync = off")
            connection.execute("select pg_reload_conf()")
        template = Database(create_database(url, "template"), pool_size=2)
        template.open()
        migrate(template)
        template.close()
        yield url
        base = server.status().location.base
        server.stop()
        # As root it lies outside the folder that is thrown away here.
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def secret_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scanner's rules as it compiles them, which takes seconds in each new home."""
    cache = tmp_path_factory.mktemp("secret-rules")
    Rules(cache_dir=cache)
    return cache


@pytest.fixture
def database_template() -> str:
    """The database that a test's own is a copy of; a module may have one with rows."""
    return "template"


@pytest.fixture
def database_url(server_url: str, database_template: str) -> Iterator[str]:
    """A database of this test's own."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("create database {} template {} strategy file_copy").format(
                sql.Identifier(name), sql.Identifier(database_template)
            )
        )
    yield psycopg.conninfo.make_conninfo(server_url, dbname=name)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The test's database, opened."""
    opened = Database(database_url, pool_size=8)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def provider() -> Iterator[FakeOllama]:
    """An embedding provider on a real socket."""
    with FakeOllama() as fake:
        yield fake


class Clock:
    """A clock that moves a second each time it is read."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


IndexMaker = Callable[..., Index]


@pytest.fixture
def make_index(
    tmp_path: Path, database_url: str, provider: FakeOllama, clock: Clock
) -> Iterator[IndexMaker]:
    """Opens an index over some projects, with the test's database and provider."""
    opened: list[Index] = []

    def make(
        *projects: Project, environment: Mapping[str, str] | None = None, **settings: object
    ) -> Index:
        values = {
            "home": tmp_path / "home",
            "projects_file": tmp_path / "projects.toml",
            "database_url": SecretStr(database_url),
            "embedding_model": "ollama/nomic-embed-text",
            "ollama_url": provider.url,
            "allowed_schemes": ("https", "ssh", "file"),
            "git_timeout_seconds": 30,
            "project_lock_seconds": 5,
        } | settings
        configuration = Configuration(
            settings=Settings.model_validate(values), projects=tuple(projects)
        )
        index = Index.open(
            configuration, environment=_environment() | dict(environment or {}), clock=clock
        )
        opened.append(index)
        return index

    yield make
    for index in opened:
        index.close()


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}
