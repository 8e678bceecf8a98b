"""A server that is restarted or killed in mid-run: idle, in a transaction, while vectors come."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from concordance import writing
from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.adapters.postgres import documents
from concordance.adapters.postgres.database import Database, create_database
from concordance.embedding import CLAIM_TEXTS
from concordance.errors import DatabaseUnavailable
from concordance.index import Index
from concordance.models import CoverageState, SearchRequest
from concordance.settings import Project
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import (
    better_than_the_truth,
    covered,
    documents_of,
    embedded,
    fill,
    needs,
    passages_of,
    reindex,
    statistics_of,
)
from tests.postgres.house import open_index
from tests.postgres.place import Place, execute, postmaster
from tests.sources import GitSource

TEXT = "# Page {0}\n\nShared words.\n\n## Part\n\nText {0} of version {1}.\n"


def version(number: int) -> dict[str, str | bytes]:
    return {f"docs/{n}.md": TEXT.format(n, number) for n in range(6)}


@dataclass
class Site:
    """A server of the test's own, with an index over one project on it."""

    place: Place
    server: EmbeddedPostgres
    url: str
    source: GitSource
    index: Index

    def restart(self) -> None:
        self.server.stop(force=True)
        self.server.start()

    def kill(self) -> None:
        os.kill(postmaster(self.place), signal.SIGKILL)
        self.server.start()


@pytest.fixture
def site(
    place: Place, provider: FakeOllama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    server = place.server()
    root = server.start()
    execute(root, "alter system set fsync = off")
    url = create_database(root, "concordance")
    source = GitSource.make(tmp_path / "source", version(0))
    projects = [Project(slug=slug, path=source.path) for slug in ("p", "fresh")]
    # Several transactions to each run.
    monkeypatch.setattr(writing, "BATCH_DOCUMENTS", 2)
    index = open_index(tmp_path / "home", url, provider, *projects)
    yield Site(place, server, url, source, index)
    index.close()
    server.stop(force=True)


def once(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, hurt: Callable[[], None]
) -> list[str]:
    """Hurt the server when a function is called first; what is returned tells that it was."""
    real = getattr(module, name)
    done: list[str] = []

    def first(*given: Any, **more: Any) -> Any:
        if not done:
            done.append(name)
            hurt()
        return real(*given, **more)

    monkeypatch.setattr(module, name, first)
    return done


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_server_that_goes_away_in_mid_run_costs_that_run_and_no_row(
    site: Site, provider: FakeOllama, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    hurt: Callable[[], None] = getattr(site, how)
    reindex(site.index)
    moments = [(documents, "write_words"), (writing, "settle_successions")]
    for number, (module, name) in enumerate(moments, start=1):
        site.source.commit(version(number))
        with monkeypatch.context() as patched:
            done = once(patched, module, name, hurt)
            reindex(site.index)
        assert done == [name]
        said = covered(site.index)
        assert said.state is CoverageState.STALE
        assert "can't be reached" in said.reason
        assert better_than_the_truth(site.index, site.url) == []
        assert needs(site.index) == "index"
    # Between two transactions nothing fails: the pool's connections are made anew.
    site.source.commit(version(3))
    with monkeypatch.context() as patched:
        patched.setattr(writing, "WRITERS", 1)  # else another batch is inside its transaction
        done = once(patched, documents, "write_documents", hurt)
        reindex(site.index)
    assert done
    assert covered(site.index).state is CoverageState.COMPLETE
    # While texts are with the provider, the session that holds the worker's claims is lost.
    site.source.commit(version(4))
    reindex(site.index, embed=False)
    asked = len(embedded(provider))
    hurting = iter([hurt])
    provider.rule = lambda _: next(hurting, lambda: None)()
    with contextlib.suppress(DatabaseUnavailable):
        fill(site.index)
    provider.rule = None
    assert better_than_the_truth(site.index, site.url) == []
    reindex(site.index)
    made = embedded(provider)[asked:]
    # What was on its way when the session was lost is nobody's any more, and made anew.
    assert len(made) - len(set(made)) <= CLAIM_TEXTS
    assert covered(site.index).state is CoverageState.COMPLETE
    compare_with_fresh(site)


def compare_with_fresh(site: Site) -> None:
    reindex(site.index, "fresh")
    for rows in (documents_of, passages_of):
        assert rows(site.url) == rows(site.url, "fresh")
    assert statistics_of(site.url)[0] == statistics_of(site.url, "fresh")[0]


@pytest.mark.timeout(60, func_only=True)
def test_a_server_that_is_away_is_waited_for_and_then_told_of(site: Site) -> None:
    reindex(site.index)
    site.index._resources.database._pool.timeout = 600
    site.server.stop(force=True)
    # A search has a deadline, and nobody waits longer for it.
    with pytest.raises(DatabaseUnavailable, match="can't be reached"):
        site.index.search(SearchRequest(text="words", deadline_seconds=0.5))
    database = Database(make_conninfo(site.url, password="hunter2"), pool_size=1)
    with pytest.raises(DatabaseUnavailable) as told:
        database.open()
    assert "hunter2" not in str(told.value)
    assert "is it up" in str(told.value).lower()
    site.server.start()
    assert site.index.search("shared words").hits
