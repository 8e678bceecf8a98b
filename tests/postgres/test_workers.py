"""Workers of several processes at one backlog: nothing is embedded twice, and a limit holds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from concordance.adapters.postgres.database import Database
from concordance.adapters.postgres.slots import Slots, open_slots
from concordance.errors import DatabaseUnavailable
from concordance.index import Index
from concordance.settings import Project
from tests.fake_ollama import Asked, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.postgres.driver import covered, reindex
from tests.postgres.house import open_index
from tests.postgres.place import CHECKOUT, eventually
from tests.sources import GitSource

PAGE = "".join(f"## Part {n}\n\nThe text of part {n} of page {{0}}.\n\n" for n in range(60))
WORK = """
import sys
from concordance.errors import DatabaseUnavailable
from concordance.index import Index
with Index.open() as index:
    print("ready", flush=True)
    sys.stdin.readline()
    done = index.fill_vectors(started=index.now())
    print(done.embedded, *done.troubles, flush=True)
"""


@pytest.fixture
def second() -> Iterator[FakeOllama]:
    with FakeOllama() as fake:
        yield fake


@pytest.fixture
def index(tmp_path: Path, database_url: str, provider: FakeOllama) -> Iterator[Index]:
    """A project with words, and no vector yet."""
    pages: dict[str, str | bytes] = {f"docs/{n}.md": PAGE.replace("{0}", str(n)) for n in range(10)}
    source = GitSource.make(tmp_path / "source", pages)
    project = Project(slug="p", path=source.path)
    with open_index(tmp_path / "home", database_url, provider, project) as opened:
        opened.prepare_space()
        reindex(opened, embed=False)
        provider.forget()
        yield opened


def passages(*servers: FakeOllama) -> list[str]:
    """The passages that servers were asked to embed, by name."""
    found = [text for server in servers for text in server.inputs]
    return [text for text in found if "The text of part" in text]


def start(folder: Path, url: str, *servers: FakeOllama, **settings: str) -> subprocess.Popen[str]:
    """A worker in a process of its own, on another machine as it were: with another home."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": CHECKOUT} | {
        f"CONCORDANCE_{name.upper()}": value
        for name, value in {
            "home": str(folder),
            "database_url": url,
            "embedding_model": "ollama/nomic-embed-text",
            "ollama_url": ",".join(server.url for server in servers),
            "projects_file": str(folder / "projects.toml"),
            **settings,
        }.items()
    }
    folder.mkdir()
    (folder / "projects.toml").write_text("", encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-c", WORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def run_together(*workers: subprocess.Popen[str]) -> list[str]:
    """Let workers begin at the same moment; what each says at its end."""
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    with ThreadPoolExecutor(len(workers)) as pool:
        said = list(pool.map(lambda worker: worker.communicate("\n", timeout=60)[0], workers))
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    return said


def test_two_processes_and_two_servers_drain_one_backlog(
    tmp_path: Path, database_url: str, provider: FakeOllama, second: FakeOllama, index: Index
) -> None:
    """The limit of one lets one worker at a time send, to both servers."""
    servers = (provider, second)
    watch = Watch()
    for server in servers:
        server.rule = watch.rule
    workers = [
        start(tmp_path / name, database_url, *servers, embedding_concurrency="1") for name in "ab"
    ]
    said = run_together(*workers)
    sent = Counter(passages(*servers))
    assert len(sent) == 600
    assert set(sent.values()) == {1}
    assert sum(int(line) for line in said) == 600
    assert all(int(line) > 0 for line in said), "one worker did everything"
    assert all(passages(server) for server in servers), "one server did everything"
    assert watch.most <= len(servers)
    index.note_embedding(["p"], None)
    assert covered(index).chunks_with_vector == covered(index).chunks == 600


class Watch:
    """How many batches of passages servers work on at a time."""

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()
        self._tick = threading.Event()

    def rule(self, asked: Asked) -> Fault | None:
        if len(asked.inputs) == 1:
            return None
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self._tick.wait(0.02)  # long enough for a request that should not be there to come
        with self._lock:
            self._now -= 1
        return None


def test_no_more_workers_send_than_the_limit_lets(database: Database) -> None:
    together = threading.Barrier(6)
    watch, asked = Watch(), Asked("m", ("a", "b"), {}, {})

    def work(_: int) -> None:
        with open_slots(database, "ollama", 2) as slots:
            together.wait()
            for _ in range(3):
                with slots.taken(given_up=lambda: False) as mine:
                    assert mine
                    watch.rule(asked)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert watch.most == 2


def test_places_of_other_providers_and_of_nobody_are_free(database: Database) -> None:
    def is_free(slots: Slots) -> bool:
        with slots.taken(given_up=lambda: True) as mine:
            return mine

    with open_slots(database, "ollama", 1) as first, open_slots(database, "ollama", 1) as other:
        with first.taken(given_up=lambda: False), open_slots(database, "local", 1) as local:
            assert not is_free(other)
            assert is_free(local)
            with open_slots(database, "ollama", None) as unlimited:
                assert is_free(unlimited)
        assert is_free(other)


def test_the_place_of_a_worker_that_is_gone_is_free(database: Database) -> None:
    found = []

    def is_free(slots: Slots) -> bool:
        with slots.taken(given_up=lambda: True) as mine:
            return mine

    def lose() -> None:
        with (
            open_slots(database, "ollama", 1) as other,
            open_slots(database, "ollama", 1) as lost,
            lost.taken(given_up=lambda: False),
        ):
            found.append(is_free(other))
            assert lost._connection is not None
            lost._connection.close()
            eventually(lambda: is_free(other))
            found.append(is_free(other))

    with pytest.raises(DatabaseUnavailable):
        lose()
    assert found == [False, True]
