"""Two machines with homes of their own and one database: what they write and are told."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from concordance.adapters.postgres import diagnosis
from concordance.errors import DatabaseConflict, ProjectBusy, ProviderError, RunSuperseded
from concordance.index import Index
from concordance.indexing.vector_space import content_hash
from concordance.models import CoverageState
from concordance.settings import Project
from tests.fake_ollama import Asked, FakeModel, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.postgres.driver import (
    better_than_the_truth,
    covered,
    documents_of,
    embedded,
    fill,
    names_of,
    passages_of,
    reindex,
    statistics_of,
)
from tests.postgres.house import open_index
from tests.postgres.place import eventually, execute
from tests.postgres.rows import Shelf, document, space
from tests.sources import GitSource

PAGE = "# Page {0}\n\nShared words.\n\n## Part\n\nText {0} of version {1}.\n"
OTHER = "mxbai-embed-large"


def version(number: int) -> dict[str, str | bytes]:
    return {f"docs/{n}.md": PAGE.format(n, number if n % 2 else 0) for n in range(6)}


Machine = Callable[..., Index]


@pytest.fixture
def source(tmp_path: Path) -> GitSource:
    return GitSource.make(tmp_path / "source", version(0))


@pytest.fixture
def machine(
    tmp_path: Path, database_url: str, provider: FakeOllama, source: GitSource
) -> Iterator[Machine]:
    """Opens the index as one more machine does: another home, and so other mirrors."""
    opened: list[Index] = []
    numbers = itertools.count(1)
    projects = [Project(slug=slug, path=source.path) for slug in ("p", "q", "fresh")]

    def make(**settings: object) -> Index:
        home = tmp_path / f"machine-{next(numbers)}"
        values = {"project_lock_seconds": 30} | settings
        opened.append(open_index(home, database_url, provider, *projects, **values))
        return opened[-1]

    yield make
    for index in opened:
        index.close()


def as_fresh(index: Index, url: str, *slugs: str) -> None:
    reindex(index, "fresh")
    for slug in slugs:
        for rows in (documents_of, passages_of):
            assert rows(url, slug) == rows(url, "fresh")
        assert statistics_of(url, slug)[0] == statistics_of(url, "fresh")[0]
        assert covered(index, slug=slug).state is CoverageState.COMPLETE


@pytest.fixture
def conflicts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Postgres gave up for another transaction's sake, also where it was tried again."""
    told: list[str] = []

    class Noted(DatabaseConflict):
        def __init__(self, message: str, *, hint: str | None = None) -> None:
            told.append(message)
            super().__init__(message, hint=hint)

    monkeypatch.setattr(diagnosis, "DatabaseConflict", Noted)
    return told


def test_two_machines_at_once_give_the_rows_of_one(
    machine: Machine, source: GitSource, database_url: str, provider: FakeOllama
) -> None:
    machines = [machine(), machine()]
    together = threading.Barrier(2)

    def run(index: Index) -> None:
        together.wait()
        for slug in ("p", "q") if index is machines[0] else ("q", "p"):
            reindex(index, slug)

    with ThreadPoolExecutor(2) as pool:
        for number in range(3):
            source.commit(version(number))
            list(pool.map(run, machines))
            for slug in ("p", "q"):
                assert better_than_the_truth(machines[0], database_url, slug) == []
    # A text that another worker had in hand when this one ended is filled in by the next.
    for slug in ("p", "q"):
        fill(machines[1], slug)
    as_fresh(machines[1], database_url, "p", "q")
    made = embedded(provider)
    assert len(made) == len(set(made))


def test_no_deadlock_among_runs_workers_and_changes_of_model(
    machine: Machine,
    source: GitSource,
    database_url: str,
    provider: FakeOllama,
    conflicts: list[str],
) -> None:
    """All that locks several rows works on the same ones, refusals of the provider among it."""
    provider.models[f"{OTHER}:latest"] = FakeModel()
    provider.rule = refusing(random.Random(7))  # noqa: S311
    first, second = machine(embedding_attempts=99), machine(embedding_attempts=99)
    other = machine(embedding_model=f"ollama/{OTHER}")
    stop = threading.Event()

    def over_and_over(*steps: Callable[[], object]) -> None:
        while not stop.is_set():
            for step in steps:
                with contextlib.suppress(ProviderError):
                    step()

    with ThreadPoolExecutor(4) as pool:
        done = [
            pool.submit(over_and_over, other.prepare_space, first.prepare_space),
            pool.submit(over_and_over, lambda: fill(second, "q"), second.forgive_refused),
            pool.submit(over_and_over, lambda: fill(first, "p"), lambda: first.forget("fresh")),
            pool.submit(over_and_over, lambda: reindex(second, "p", full=True)),
        ]
        try:
            for number in range(2):
                source.commit(version(number))
                reindex(first, "q")
                with contextlib.suppress(RunSuperseded):  # it was forgotten meanwhile
                    reindex(second, "fresh")
        finally:
            stop.set()
        for one in done:
            one.result()
    assert conflicts == []
    provider.rule = None
    for slug in ("p", "q"):
        reindex(first, slug)
    as_fresh(first, database_url, "p", "q")


def refusing(chance: random.Random) -> Callable[[Asked], Fault | None]:
    """A model that now and then can't take a text, or any that stands with it."""

    def refuse(asked: Asked) -> Fault | None:
        passages = asked.inputs[0].startswith("search_document")
        return Fault.status(400, "no") if passages and chance.random() < 0.3 else None

    return refuse


def test_a_second_machine_waits_then_skips_and_says_so(machine: Machine) -> None:
    first, second = machine(), machine(project_lock_seconds=0.3)
    told: list[str] = []
    with (
        first.hold("p", uuid.uuid4(), on_wait=lambda: None),
        pytest.raises(ProjectBusy, match="'p' is held by another run"),
        second.hold("p", uuid.uuid4(), on_wait=lambda: told.append("waiting")),
    ):
        pass
    assert told == ["waiting"]


def test_a_machine_that_lost_its_session_is_taken_over_and_writes_nothing_more(
    machine: Machine, source: GitSource, database_url: str
) -> None:
    lost, second = machine(), machine()
    with lost.hold("p", uuid.uuid4(), on_wait=lambda: None) as held:
        old = lost.plan_files(held, "p", lost.fetch("p").commit)
        cut_off(database_url)
        source.commit(version(1))
        reindex(second, "p")
        with pytest.raises(RunSuperseded, match="writes nothing more"):
            lost.write(held, "p", old)
    as_fresh(second, database_url, "p")


def cut_off(url: str) -> None:
    """End the session that holds a project, as the server does when its machine is gone."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' "
            "and database = (select oid from pg_database where datname = current_database())"
        ).fetchall()
    assert ended == [(True,)]


def test_the_server_is_to_notice_within_a_minute_that_a_machine_is_gone(machine: Machine) -> None:
    asked = "select name, source from pg_settings where name like 'tcp_keepalives%' order by name"
    with machine()._resources.database.session() as connection:
        found = connection.execute(asked).fetchall()
        assert found == [
            (f"tcp_keepalives_{name}", "client") for name in ("count", "idle", "interval")
        ]
        assert connection.execute("show idle_session_timeout").fetchone() == ("0",)


def test_machines_with_other_rules_are_told_of_each_other_and_embed_nothing_twice(
    machine: Machine, source: GitSource, database_url: str, provider: FakeOllama
) -> None:
    source.commit({"docs/large.md": "# Large\n\n" + "More of the same words. " * 60})
    roomy, narrow = machine(), machine(max_file_bytes=1_024)
    reindex(roomy, "p")
    assert names_of(database_url)["docs/large.md"] == "docs indexed"
    large = {text for text in embedded(provider) if "More of the same" in text}
    for _ in range(2):
        for mine, other, status in ((narrow, roomy, "skipped"), (roomy, narrow, "indexed")):
            assert covered(mine).state is CoverageState.STALE
            assert "its rules changed" in covered(mine).reason
            (found,) = mine.survey(["p"])
            assert "made by other rules: a setting or the version differs" in found.reason
            reindex(mine, "p")
            assert names_of(database_url)["docs/large.md"] == f"docs {status}"
            assert covered(mine).state is CoverageState.COMPLETE
            assert covered(other).state is CoverageState.STALE
    others = [text for text in embedded(provider) if text not in large]
    assert len(others) == len(set(others))


def test_a_change_of_model_locks_texts_in_the_order_in_which_refusals_do(
    shelf: Shelf, database_url: str, conflicts: list[str]
) -> None:
    hashes = {content_hash(None, (), text): text for text in ("one", "two", "three", "four")}
    first, *_, last = sorted(hashes)
    # The order of passages is the other one.
    shelf.write(document("docs/a.md", *(hashes[key] for key in sorted(hashes, reverse=True))))
    stored = shelf.activate(space("m"))
    shelf.activate(space("n"))
    lock = (
        "select from concordance.embedding_backlog where model_id = %s and content_hash = %s "
        "for update"
    )
    blocked = "select count(*) from pg_locks where not granted and locktype = 'transactionid'"
    with psycopg.connect(database_url) as worker, ThreadPoolExecutor(1) as pool:
        worker.execute("set deadlock_timeout = '20ms'")
        worker.execute(lock, [stored.id, first])
        done = pool.submit(shelf.activate, space("m"))
        eventually(lambda: execute(database_url, blocked) == "1")
        worker.execute(lock, [stored.id, last])
        worker.commit()
        assert done.result().id == stored.id
    assert conflicts == []
