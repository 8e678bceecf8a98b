"""Two tenants in one database, each with a reader's login."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from concordance.adapters.postgres.database import Database
from concordance.granting import Tenants
from concordance.index import Index
from concordance.models import Answer
from concordance.settings import Configuration, Project, SessionSource, Settings
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import reindex
from tests.postgres.library import make_library
from tests.sources import GitSource, event, write_log

# Logins are of the whole server.
READER, NEIGHBOUR = "tenant_reader", "tenant_neighbour"
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
# In every text, title, path, name and number of the tenant that must stay unseen.
MARK = "zanzibar"
VAULT: dict[str, str | bytes] = {
    f"docs/{MARK}.md": f"# {MARK} kettle\n\nThe {MARK} kettle boils tea water in the {MARK}.\n",
    f"docs/adr/0001-{MARK}.md": f"# 1. {MARK} queue\n\nStatus: Accepted\n\nA {MARK} tea queue.\n",
}


@dataclass
class House:
    """A database with the tenants `default` and `other`, and a reader's login for each."""

    url: str
    home: Path
    provider: FakeOllama
    owner: Index
    reader: Index
    projects: Sequence[Project]

    def url_of(self, login: str, **more: str) -> str:
        return make_conninfo(self.url, user=login, **more)

    @contextmanager
    def session(self, login: str = READER) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with psycopg.connect(self.url_of(login), autocommit=True) as connection:
            yield connection

    def ask(self, query: Any, *values: Any, login: str | None = None) -> list[tuple[Any, ...]]:
        url = self.url if login is None else self.url_of(login)
        with psycopg.connect(url, options="-c search_path=concordance,public") as connection:
            return connection.execute(query, values or None).fetchall()

    def open(self, login: str | None = None, *projects: Project, **settings: object) -> Index:
        url = self.url if login is None else self.url_of(login)
        return open_index(self.home, url, self.provider, *projects, **settings)


def open_index(
    home: Path, url: str, provider: FakeOllama, *projects: Project, **settings: object
) -> Index:
    values = {
        "home": home,
        "database_url": SecretStr(url),
        "embedding_model": "ollama/nomic-embed-text",
        "ollama_url": provider.url,
        "allowed_schemes": ("file",),
    } | settings
    configuration = Configuration(settings=Settings.model_validate(values), projects=projects)
    return Index.open(configuration, environment=dict(os.environ), clock=lambda: NOON)


@contextmanager
def open_house(server_url: str, name: str, folder: Path) -> Iterator[House]:
    opened: list[Index] = []
    url = make_conninfo(server_url, dbname=name)
    with (
        FakeOllama() as provider,
        logins(server_url, READER, NEIGHBOUR),
        database_of(server_url, name),
    ):

        def make(*projects: Project, login: str | None = None, **settings: object) -> Index:
            at = url if login is None else make_conninfo(url, user=login)
            opened.append(open_index(folder / "home", at, provider, *projects, **settings))
            return opened[-1]

        owner = make_library(make, folder)
        vault = GitSource.make(folder / "vault", VAULT)
        write_log(folder / MARK / "log.jsonl", [event(MARK, 0, f"{MARK} tea", title=MARK)])
        other = make(
            Project(
                slug="vault",
                path=vault.path,
                sessions=(SessionSource(path=folder / MARK),),
                web_url=f"https://{MARK}.example.org",
            ),
            tenant="other",
        )
        reindex(other, "vault")
        grant(url, {READER: "default", NEIGHBOUR: "other"})
        projects = owner.configuration.projects
        reader = make(*projects, login=READER)
        yield House(url, folder / "home", provider, owner, reader, projects)
        for index in opened:
            index.close()


def grant(url: str, wanted: dict[str, str]) -> None:
    database = Database(url, pool_size=1)
    database.open()
    try:
        for login, tenant in wanted.items():
            Tenants(database, lambda: NOON).grant(login, tenant)
    finally:
        database.close()


@contextmanager
def database_of(server_url: str, name: str, template: str = "template") -> Iterator[None]:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("create database {} template {} strategy file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        yield
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@contextmanager
def logins(server_url: str, *names: str, extra: str = "") -> Iterator[None]:
    """Logins for a test; their rights go with its database."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        _drop(connection, names)
        for name in names:
            connection.execute(
                sql.SQL("create role {} login " + extra).format(sql.Identifier(name))
            )
    yield
    with psycopg.connect(server_url, autocommit=True) as connection:
        _drop(connection, names)


def _drop(connection: psycopg.Connection[tuple[Any, ...]], names: Sequence[str]) -> None:
    for name in names:
        connection.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(name)))


def told(answer: Answer) -> dict[str, Any]:
    """What an answer says, without how long it took."""
    return answer.model_dump(exclude={"milliseconds"})


def tables_of(house: House) -> list[str]:
    """The tables of the schema."""
    return [
        row[0]
        for row in house.ask(
            "select relname from pg_class where relnamespace = 'concordance'::regnamespace "
            "and relkind in ('r', 'p') order by relname"
        )
    ]
