"""Whatever happened before, the same source gives the same rows: random histories."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from concordance.index import Index
from concordance.models import CoverageState, Scope
from concordance.settings import Configuration, Project, SessionSource, Settings
from tests.conftest import Clock, IndexMaker
from tests.fake_ollama import FakeOllama, Fault
from tests.postgres.driver import (
    better_than_the_truth,
    covered,
    documents_of,
    fill,
    needs,
    passages_of,
    reindex,
    statistics_of,
)
from tests.sources import GitSource, event, write_log

WORDS = ["tea", "kettle", "queue", "walrus", "retry", "brew", "water", "clone"]
NAMES = [
    "README.md",
    "docs/a.md",
    "docs/b.md",
    "docs/adr/1.md",
    "docs/adr/2.md",
    "docs/sub/c.md",
    "src/x.md",
]
STEPS = 15


class History:
    """A source that changes by chance, in ways that its seed alone decides."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - chance, no secret
        self.source = GitSource.make(folder / "source", {"docs/a.md": "# Start\n\ntea\n"})
        self.logs = folder / "logs"
        self.turns = 0
        self.log()

    def text(self) -> str | bytes:
        parts = [
            f"## {self.dice.choice(WORDS)}\n\n{' '.join(self.dice.choices(WORDS, k=3))}.\n"
            for _ in range(self.dice.randrange(4))
        ]
        odd = self.dice.random()
        if odd < 0.1:
            return b"# Bad\n\n\xff\xfe\0\n" if odd < 0.05 else ""
        return f"# {self.dice.choice(WORDS)}\n\n" + "\n".join(parts)

    def present(self) -> list[str]:
        return [name for name in NAMES if (self.source.path / name).exists()]

    def change(self) -> None:
        chosen = self.dice.sample(NAMES, k=self.dice.randrange(1, 4))
        self.source.commit({name: self.text() for name in chosen})

    def rename(self) -> None:
        free = [name for name in NAMES if name not in self.present()]
        if free and self.present():
            target = self.source.path / self.dice.choice(free)
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.source.path / self.dice.choice(self.present())).rename(target)
        self.source.commit({})

    def delete(self) -> None:
        if len(self.present()) > 1:
            self.source.commit({}, delete=[self.dice.choice(self.present())])

    def rewrite(self) -> None:
        if int(self.source.git("rev-list", "--count", "HEAD")) > 1:
            self.source.git("reset", "-q", "--hard", "HEAD~1")
        self.change()

    def log(self) -> None:
        self.turns += self.dice.randrange(1, 3)
        turns = [event("s", n, f"turn {n} {WORDS[n % len(WORDS)]}") for n in range(self.turns)]
        write_log(self.logs / "a.jsonl", turns)

    def step(self) -> str:
        moves: list[Callable[[], None]] = [
            self.change,
            self.rename,
            self.delete,
            self.rewrite,
            self.log,
        ]
        move = self.dice.choice(moves)
        move()
        return move.__name__


@pytest.fixture
def fresh_url(server_url: str) -> Iterator[str]:
    """A second database, for what a fresh build gives."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("create database fresh template template strategy file_copy")
    yield psycopg.conninfo.make_conninfo(server_url, dbname="fresh")
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database fresh with (force)"))


@pytest.fixture
def healthy() -> Iterator[FakeOllama]:
    with FakeOllama() as fake:
        yield fake


def _without_vectors(passages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in p.items() if k not in ("vector", "vector_scope")} for p in passages]


def _trouble(history: History, provider: FakeOllama) -> bool:
    """Let the provider fail in some way, or not; whether it is well."""
    chance = history.dice.random()
    provider.rule = None
    provider.restart()
    if chance < 0.15:
        provider.stop()
    elif chance < 0.3:
        provider.rule = lambda asked: (
            Fault.nan_error() if any("walrus" in text for text in asked.inputs) else None
        )
    elif chance < 0.4:
        provider.rule = lambda asked: Fault.status(503) if len(asked.inputs) > 1 else None
    return provider.rule is None and chance >= 0.15


@pytest.mark.parametrize("seed", [1, 2])
def test_any_history_ends_in_the_rows_of_a_fresh_build(  # noqa: PLR0917 - fixtures
    make_index: IndexMaker,
    provider: FakeOllama,
    healthy: FakeOllama,
    database_url: str,
    fresh_url: str,
    tmp_path: Path,
    clock: Clock,
    seed: int,
) -> None:
    history = History(tmp_path, seed)
    project = Project(
        slug="p", path=history.source.path, sessions=(SessionSource(path=history.logs),)
    )
    index = make_index(project, embedding_attempts=100)
    fresh = Index.open(
        Configuration(
            settings=Settings.model_validate(
                index.configuration.settings.model_dump()
                | {"database_url": SecretStr(fresh_url), "ollama_url": healthy.url}
            ),
            projects=(project,),
        ),
        environment=dict(index._resources.environment),
        clock=clock,
    )
    for _ in range(STEPS):
        move = history.step()
        well = _trouble(history, provider)
        reindex(index)
        assert better_than_the_truth(index, database_url) == [], move
        fresh.forget("p")
        reindex(fresh)
        _compare(database_url, fresh_url, whole=well)
    provider.rule = None
    provider.restart()
    fill(index)
    _compare(database_url, fresh_url, whole=True)
    for scope in Scope:
        mine, theirs = covered(index, scope), covered(fresh, scope)
        moments = {"last_attempt", "last_success", "last_complete"}
        assert mine.model_dump(exclude=moments) == theirs.model_dump(exclude=moments)
        assert mine.state is not CoverageState.LEXICAL_ONLY
    # What can't be read stays unread, and is no reason to run again.
    assert needs(index) == "none"
    fresh.close()


def _compare(url: str, fresh_url: str, *, whole: bool) -> None:
    assert documents_of(url) == documents_of(fresh_url)
    mine, theirs = passages_of(url), passages_of(fresh_url)
    assert _without_vectors(mine) == _without_vectors(theirs)
    for one, other in zip(mine, theirs, strict=True):
        if one["vector"] is not None or whole:
            assert (one["vector"], one["vector_scope"]) == (
                other["vector"],
                other["vector_scope"],
            )
    counts, largest = statistics_of(url)
    true_counts, true_largest = statistics_of(fresh_url)
    assert counts == true_counts
    # What was the largest weight once may be gone: too large costs time, too small an answer.
    assert all(largest[word] >= weight for word, weight in true_largest.items())
