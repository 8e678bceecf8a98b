"""A small corpus of two languages, three scopes and two projects, indexed and filled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from pydantic import SecretStr

from concordance.index import Index
from concordance.models import Answer, FileOrigin, Hit, SearchRequest, SessionOrigin
from concordance.settings import Configuration, Project, SessionSource, Settings
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import reindex
from tests.sources import GitSource, event, write_log

SHOP: dict[str, str | bytes] = {
    "README.md": "# Shop\n\nSells tea and kettles to everybody.\n",
    "docs/guide.md": "# Guide\n\n## Clone\n\nRetry the clone with exponential backoff when the "
    "remote resets the connection.\n\n## Water\n\nBoil the water before the tea.\n",
    "docs/more/kettle.md": "# Kettle\n\nThe kettle boils water for tea.\n",
    "docs/adr/0001-queue.md": "# 1. Queue\n\nWe use a queue for tea orders, in C++ of all.\n",
}
LADEN: dict[str, str | bytes] = {
    "docs/anleitung.md": "# Anleitung\n\nDie Kessel kochen das Wasser für den Tee.\n",
    "docs/adr/0001-warteschlange.md": "# 1. Warteschlange\n\nBestellungen warten im tea queue.\n",
}
TURNS = [
    ("how do we brew the tea", "chat.message"),
    ("boil the water, then wait", "agent.response"),
    ("and the kettle", "chat.message"),
]


def make_library(
    make_index: Callable[..., Index], folder: Path, *, embed: bool = True, **settings: object
) -> Index:
    """The corpus, indexed; `shop` is English and has a session log, `laden` is German."""
    shop = GitSource.make(folder / "shop", SHOP)
    laden = GitSource.make(folder / "laden", LADEN)
    write_log(
        folder / "logs" / "talk.jsonl",
        [
            event("talk", n, text, type=kind, title="About tea")
            for n, (text, kind) in enumerate(TURNS)
        ],
    )
    index = make_index(
        Project(slug="shop", path=shop.path, sessions=(SessionSource(path=folder / "logs"),)),
        Project(slug="laden", path=laden.path, language="german"),
        **settings,
    )
    for slug in ("shop", "laden"):
        reindex(index, slug, embed=embed)
    return index


@contextmanager
def shared_index(server_url: str, name: str, home: Path) -> Iterator[Callable[..., Index]]:
    """Opens indexes that several tests may ask: one database, and a provider that stays well."""
    opened: list[Index] = []
    with FakeOllama() as provider, psycopg.connect(server_url, autocommit=True) as connection:
        target = sql.Identifier(name)
        connection.execute(
            sql.SQL("create database {} template template strategy file_copy").format(target)
        )

        def make(*projects: Project) -> Index:
            settings = Settings(
                home=home,
                database_url=SecretStr(psycopg.conninfo.make_conninfo(server_url, dbname=name)),
                embedding_model="ollama/nomic-embed-text",
                ollama_url=provider.url,
                allowed_schemes=("file",),
            )
            configuration = Configuration(settings=settings, projects=projects)
            index = Index.open(configuration, environment=dict(os.environ))
            opened.append(index)
            return index

        yield make
        for index in opened:
            index.close()
        connection.execute(sql.SQL("drop database {} with (force)").format(target))


def search(index: Index, text: str, **more: object) -> Answer:
    request = {"text": text, "threshold": 0.0} | more
    return index.search(SearchRequest.model_validate(request))


def places(answer: Answer) -> list[str]:
    """Where each hit stands: project and path, or session and event."""
    return [place(hit) for hit in answer.hits]


def place(hit: Hit) -> str:
    match hit.origin:
        case FileOrigin() as at:
            return f"{hit.project}:{at.path}"
        case SessionOrigin() as at:
            return f"{hit.project}:{at.session_id}#{at.event_id}"
