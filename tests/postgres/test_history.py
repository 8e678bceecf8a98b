"""Whatever happened before, the same source gives the same rows: random histories.

Files, branches, logs, models and rules change and the provider fails, as a seed decides, and an
observer looks at coverage and tables all the while. Runs that are killed: `test_killed.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from concordance.index import Index
from concordance.models import Scope
from concordance.settings import Configuration, Project, Settings
from tests.conftest import Clock
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import needs
from tests.soak.comparing import compare, compare_coverage
from tests.soak.histories import History
from tests.soak.observing import Observer
from tests.soak.rules import Rules
from tests.soak.running import run_all
from tests.soak.troubles import TIMEOUT_SECONDS, Troubles

STEPS = 10


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


@dataclass
class Pair:
    """The index that has a history, and one that is built anew for each step."""

    home: Path
    urls: tuple[str, str]
    providers: tuple[FakeOllama, FakeOllama]
    clock: Clock

    @contextmanager
    def open(self, project: Project, rules: Rules) -> Iterator[tuple[Index, Index]]:
        """Both by the rules of the step, in force to the end of the block."""
        with rules.in_force(), ExitStack() as opened:
            indexes = [
                opened.enter_context(self._open(project, rules, number)) for number in (0, 1)
            ]
            yield indexes[0], indexes[1]

    def _open(self, project: Project, rules: Rules, number: int) -> Index:
        rules.serve(self.providers[number])
        settings = Settings(
            home=self.home / str(number),
            database_url=SecretStr(self.urls[number]),
            embedding_model=f"ollama/{rules.model}",
            embedding_attempts=100,
            embedding_timeout_seconds=TIMEOUT_SECONDS,
            ollama_url=self.providers[number].url,
            allowed_schemes=("file",),
        )
        configuration = Configuration(settings=settings, projects=(project,))
        return Index.open(configuration, environment={"PATH": "/usr/bin:/bin"}, clock=self.clock)


@pytest.mark.parametrize("seed", [1, 2])
def test_any_history_ends_in_the_rows_of_a_fresh_build(  # noqa: PLR0917 - fixtures
    database_url: str,
    fresh_url: str,
    provider: FakeOllama,
    healthy: FakeOllama,
    tmp_path: Path,
    clock: Clock,
    seed: int,
) -> None:
    history, rules = History(tmp_path, seed), Rules()
    troubles = Troubles(provider)
    pair = Pair(tmp_path / "homes", (database_url, fresh_url), (provider, healthy), clock)
    for number in range(1, STEPS + 1):
        moves = [history.step()]
        if history.dice.random() < 0.4:
            name, rules = rules.changed(history.dice)
            moves.append(name)
        with pair.open(history.project(rules), rules) as (index, fresh):
            fresh.forget("p")
            assert run_all(fresh, ["p"]) == []
            scopes = history.dice.sample(list(Scope), k=history.dice.choice((1, 2, 3, 3)))
            moves.append(str(troubles.cause(history.dice)))
            found = []
            with Observer(index._resources, database_url, lambda: {"p": history.trees}) as observer:
                assert run_all(index, ["p"], scopes=scopes) == []
                if len(scopes) == len(Scope):
                    found += _differences(pair.urls, index, fresh, whole=False)
                troubles.cure()
                index.reset_breaker()  # the next run would be another process, minutes later
                assert run_all(index, ["p"]) == []
            found += _differences(pair.urls, index, fresh, whole=True)
            assert observer.found == {}, (number, moves)
            assert found == [], (number, moves)
            assert observer.looks
            # What can't be read stays unread, and is no reason to run again.
            assert needs(index) == "none", moves


def _differences(urls: tuple[str, str], index: Index, fresh: Index, *, whole: bool) -> list[str]:
    rows = compare(*urls, "p", whole=whole)
    said = compare_coverage(urls[0], index.coverage(), fresh.coverage(), whole=whole)
    assert rows.rows + said.rows
    return rows.found + said.found
