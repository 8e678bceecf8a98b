"""The backlog: who embeds which text, and that none is lost, whatever happens meanwhile."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import pytest

from concordance.adapters.postgres import documents, embeddings
from concordance.adapters.postgres.database import Connection, Database
from concordance.adapters.postgres.embeddings import Backlog, StoredSpace
from concordance.indexing.vector_space import content_hash
from concordance.models import Scope
from tests.postgres.rows import NOW, Shelf, document, vector_of

LATER = NOW + timedelta(hours=1)
CLAIM_AND_WAIT = """
import sys
from datetime import datetime
from concordance.adapters.postgres import embeddings
from concordance.adapters.postgres.database import Database
database = Database(sys.argv[1], pool_size=2)
database.open()
space = embeddings.active_space(database, int(sys.argv[2]))
with embeddings.open_backlog(database, int(sys.argv[2]), space) as backlog:
    before = datetime.fromisoformat(sys.argv[3])
    print(len(backlog.claim(projects=None, most=3, attempts=5, before=before)), flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def stored(shelf: Shelf) -> StoredSpace:
    return shelf.activate()


@contextmanager
def _worker(shelf: Shelf, stored: StoredSpace) -> Iterator[Backlog]:
    with embeddings.open_backlog(shelf.database, shelf.tenant, stored) as backlog:
        yield backlog


def _claim(backlog: Backlog, most: int = 10, **more: object) -> list[str]:
    values = {"projects": None, "most": most, "attempts": 5, "before": NOW} | more
    return sorted(text.content for _, text in backlog.claim(**values))  # type: ignore[arg-type]


def _store(backlog: Backlog, *texts: str) -> int:
    claims = [embeddings.Claimed(content_hash(None, (), text)) for text in texts]
    return backlog.store([(c, vector_of(c.content_hash, "1")) for c in claims])


def _refuse(backlog: Backlog, *texts: str) -> None:
    backlog.refuse({content_hash(None, (), text): "NaN" for text in texts}, now=NOW)


def test_an_equal_text_is_embedded_once_in_the_tenant(shelf: Shelf, stored: StoredSpace) -> None:
    shelf.write(document("docs/a.md", "same", "same", "one"))
    shelf.write(document("docs/b.md", "same"), project="q")
    assert shelf.fill(stored) == ["one", "same"]
    assert {row.vector for row in shelf.rows() if row.content == "same"} == {
        row.vector for row in shelf.rows("q")
    }
    shelf.write(document("docs/c.md", "same"), project="r")
    assert shelf.rows("r")[0].vector is not None
    assert shelf.backlog() == []


def test_other_tenants_share_nothing(shelf: Shelf, stored: StoredSpace) -> None:
    other = Shelf(shelf.database, "other")
    shelf.write(document("docs/a.md", "same"))
    shelf.fill(stored)
    other_space = other.activate()
    other.write(document("docs/a.md", "same"), project="theirs")
    assert other.rows("theirs")[0].vector is None
    assert other.fill(other_space) == ["same"]
    assert {model["tenant_id"] for model in shelf.ask("select * from concordance.embeddings")} == {
        shelf.tenant,
        other.tenant,
    }


def test_two_workers_never_have_the_same_text(shelf: Shelf, stored: StoredSpace) -> None:
    shelf.write(document("docs/a.md", *(f"text {n}" for n in range(400))))

    def work(_: int) -> list[str]:
        mine: list[str] = []
        with _worker(shelf, stored) as backlog:
            barrier.wait()
            while claimed := _claim(backlog, most=1):
                mine += claimed
            barrier.wait()
        return mine

    workers = 6
    barrier = threading.Barrier(workers)
    with ThreadPoolExecutor(workers) as pool:
        claimed = Counter(itertools.chain(*pool.map(work, range(workers))))
    assert len(claimed) == 400
    assert claimed.most_common(1)[0][1] == 1


def test_the_claims_of_a_killed_worker_are_free_at_once(
    shelf: Shelf, stored: StoredSpace, database_url: str
) -> None:
    shelf.write(document("docs/a.md", "one", "two", "three"))
    arguments = [database_url, str(shelf.tenant), NOW.isoformat()]
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM_AND_WAIT, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "3"
    with _worker(shelf, stored) as backlog:
        assert _claim(backlog) == [], "the other worker is alive"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        _until_no_worker_but(shelf, 1)
        assert _claim(backlog) == ["one", "three", "two"]


def _until_no_worker_but(shelf: Shelf, alive: int) -> None:
    """The server notices the closed socket in a moment of its own."""
    for _ in range(200):
        held = shelf.ask(
            "select count(*) as n from pg_locks where locktype = 'advisory' and classid = %(c)s",
            {"c": embeddings.WORKER_LOCKS},
        )
        if held[0]["n"] == alive:
            return
        threading.Event().wait(0.02)
    raise AssertionError("the dead worker still has its lock")


def test_what_a_worker_gives_back_is_free(shelf: Shelf, stored: StoredSpace) -> None:
    shelf.write(document("docs/a.md", "one", "two"))
    with _worker(shelf, stored) as first, _worker(shelf, stored) as second:
        assert _claim(first) == ["one", "two"]
        assert _claim(second) == []
        first.release()
        assert _claim(second) == ["one", "two"]


def test_what_is_given_back_behind_a_worker_is_not_missed(
    shelf: Shelf, stored: StoredSpace
) -> None:
    shelf.write(document("docs/a.md", "one"))
    shelf.write(document("docs/b.md", "two"))
    with _worker(shelf, stored) as first, _worker(shelf, stored) as second:
        assert _claim(first, most=1) == ["one"]
        assert _claim(second) == ["two"]
        first.release()
        assert _claim(second) == ["one"]
        assert _claim(second) == []


def test_texts_are_claimed_in_the_order_in_which_they_were_asked_for(
    shelf: Shelf, stored: StoredSpace
) -> None:
    for name in ("first", "second", "third"):
        shelf.write(document(f"docs/{name}.md", name))
    with _worker(shelf, stored) as backlog:
        assert [_claim(backlog, most=1) for _ in range(3)] == [["first"], ["second"], ["third"]]


def test_only_the_projects_asked_for_are_filled(shelf: Shelf, stored: StoredSpace) -> None:
    shelf.write(document("docs/a.md", "mine", "both"))
    shelf.write(document("docs/a.md", "theirs", "both"), project="q")
    ids = [shelf.project("q").id]
    left = embeddings.pending(shelf.database, stored, projects=ids, attempts=5)
    assert (left.pending, left.given_up) == (2, 0)
    with _worker(shelf, stored) as backlog:
        assert _claim(backlog, projects=ids) == ["both", "theirs"]
        assert _store(backlog, "both", "theirs") == 3, "a vector is for every passage of its text"
    assert [row.content for row in shelf.rows() if row.vector is None] == ["mine"]


def test_a_vector_is_not_written_onto_a_text_that_came_meanwhile(
    shelf: Shelf, stored: StoredSpace
) -> None:
    shelf.write(document("docs/a.md", "old", "stays"))
    with _worker(shelf, stored) as backlog:
        assert _claim(backlog) == ["old", "stays"]
        shelf.write(document("docs/a.md", "new", "stays"))
        assert _store(backlog, "old", "stays") == 1
        backlog.release()
    assert {row.content: bool(row.vector) for row in shelf.rows()} == {"new": False, "stays": True}
    assert shelf.fill(stored) == ["new"]
    assert shelf.backlog() == []


def test_a_passage_that_is_being_replaced_is_passed_over(shelf: Shelf, stored: StoredSpace) -> None:
    """The store neither waits for the other run nor forgets the text if that run fails."""
    shelf.write(document("docs/a.md", "one", "two"))
    with _worker(shelf, stored) as backlog, shelf.database.session() as other:
        _claim(backlog)
        with other.transaction(force_rollback=True):
            other.execute("delete from concordance.chunks where content = 'one'")
            assert _store(backlog, "one", "two") == 1
        backlog.release()
    assert shelf.fill(stored) == ["one"]


def test_a_passage_written_during_a_store_keeps_its_text_in_the_backlog(
    shelf: Shelf, stored: StoredSpace
) -> None:
    shelf.write(document("docs/a.md", "same"))
    with _worker(shelf, stored) as backlog, shelf.hold("q") as held:
        _claim(backlog)
        with shelf.database.transaction() as writing:
            # As a run does it whose transaction is open while the vector comes.
            one = cast("Database", _OneTransaction(writing))
            documents.write_documents(one, shelf.tenant, held, [document("docs/b.md", "same")])
            assert _store(backlog, "same") == 1
        assert [row.vector is None for row in shelf.rows("q")] == [True]
        backlog.release()
    assert shelf.fill(stored) == [], "the vector is copied"
    assert [row.vector is None for row in shelf.rows("q")] == [False]
    assert shelf.backlog() == []


@dataclass
class _OneTransaction:
    """A database whose only transaction is one that the test began, and ends."""

    connection: Connection

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        yield self.connection


def test_a_refused_text_is_tried_again_in_later_runs_and_then_given_up(
    shelf: Shelf, stored: StoredSpace
) -> None:
    shelf.write(document("docs/a.md", "bad", "good"))
    for run in range(3):
        started = NOW + timedelta(minutes=run)
        with _worker(shelf, stored) as backlog:
            claimed = _claim(backlog, attempts=3, before=started)
            assert claimed == (["bad", "good"] if run == 0 else ["bad"])
            if run == 0:
                _store(backlog, "good")
            backlog.refuse({content_hash(None, (), "bad"): "NaN"}, now=started)
            assert _claim(backlog, attempts=3, before=started) == [], "not twice in one run"
            backlog.release()
    left = embeddings.pending(shelf.database, stored, projects=None, attempts=3)
    assert (left.pending, left.given_up) == (1, 1)
    with _worker(shelf, stored) as backlog:
        assert _claim(backlog, attempts=3, before=LATER) == []
        assert embeddings.forgive(shelf.database, stored) == 1
        assert _claim(backlog, attempts=3, before=LATER) == ["bad"]
    assert embeddings.pending(shelf.database, stored, projects=None, attempts=3).given_up == 0


def test_a_refused_text_that_nobody_has_any_more_is_forgotten(
    shelf: Shelf, stored: StoredSpace
) -> None:
    shelf.write(document("docs/a.md", "bad"))
    with _worker(shelf, stored) as backlog:
        _claim(backlog)
        _refuse(backlog, "bad")
        shelf.write(document("docs/a.md", "mended"))
        backlog.release()
    assert shelf.fill(stored) == ["mended"]
    assert shelf.backlog() == []


def test_a_text_that_nobody_wants_by_now_is_not_handed_out(
    shelf: Shelf, stored: StoredSpace
) -> None:
    shelf.write(document("docs/a.md", "gone", "stays"))
    shelf.write(document("docs/a.md", "stays"))
    with _worker(shelf, stored) as backlog:
        assert _claim(backlog) == ["stays"]


def test_no_text_is_lost_and_nothing_locks_up_while_runs_write_and_workers_store(
    shelf: Shelf, stored: StoredSpace
) -> None:
    texts = [f"text {n}" for n in range(12)]
    writing = threading.Event()
    writing.set()

    def write(slug: str) -> None:
        dice = random.Random(slug)  # noqa: S311 - chance, no secret
        with shelf.hold(slug) as held:
            for _ in range(40):
                names = dice.sample("abcd", k=3)
                batch = [
                    document(
                        f"docs/{name}.md",
                        *dice.choices(texts, k=dice.randrange(6)),
                        scope=dice.choice([Scope.DOCS, Scope.ADR]),
                    )
                    for name in names
                ]
                documents.write_documents(shelf.database, shelf.tenant, held, batch)

    def work(number: int) -> None:
        dice = random.Random(number)  # noqa: S311 - likewise
        while writing.is_set():
            with _worker(shelf, stored) as backlog:
                for _ in range(5):
                    claims = backlog.claim(projects=None, most=5, attempts=99, before=LATER)
                    dice.shuffle(claims)
                    refused = claims[:1] if dice.random() < 0.3 else []
                    hashes = [c.content_hash for c, _ in claims if (c, _) not in refused]
                    backlog.store([(embeddings.Claimed(h), vector_of(h, "1")) for h in hashes])
                    backlog.refuse({c.content_hash: "NaN" for c, _ in refused}, now=NOW)
                backlog.release()
            embeddings.forgive(shelf.database, stored)

    with ThreadPoolExecutor(8) as pool:
        workers = [pool.submit(work, number) for number in range(3)]
        writers = [pool.submit(write, slug) for slug in ("p", "q", "r", "s")]
        try:
            for run in writers:
                run.result()
        finally:
            writing.clear()
        for run in workers:
            run.result()
    embeddings.forgive(shelf.database, stored)
    shelf.fill(stored)
    for slug in ("p", "q", "r", "s"):
        for row in shelf.rows(slug):
            assert row.vector is not None, (slug, row)
            found = [float(number) for number in row.vector[1:-1].split(",")]
            assert found == pytest.approx(list(vector_of(row.content, "1")), abs=1e-6)
    assert shelf.backlog() == []


def test_the_index_of_a_space_is_made_once_by_workers_that_end_together(
    shelf: Shelf, stored: StoredSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.write(document("docs/a.md", *(f"text {n}" for n in range(50))))
    shelf.fill(stored)
    monkeypatch.setattr(embeddings, "INDEX_FROM", 51)
    assert not embeddings.ensure_vector_index(shelf.database, stored)
    monkeypatch.setattr(embeddings, "INDEX_FROM", 50)
    with ThreadPoolExecutor(6) as pool:
        made = list(
            pool.map(lambda _: embeddings.ensure_vector_index(shelf.database, stored), range(6))
        )
    assert sorted(made) == [False] * 5 + [True]
