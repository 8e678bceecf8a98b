"""Limits that an administrator set, or that are reached: connections, time, room, writing."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from concordance import searching
from concordance.adapters.postgres import database, documents
from concordance.adapters.postgres.database import create_database
from concordance.errors import (
    ConcordanceError,
    DatabaseConflict,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnavailable,
)
from concordance.gathering import gather
from concordance.index import Index
from concordance.indexing.documents import Document
from concordance.models import CoverageState, SearchRequest
from concordance.settings import Project
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import (
    better_than_the_truth,
    covered,
    documents_of,
    fill,
    names_of,
    passages_of,
    reindex,
)
from tests.postgres.house import logins, open_index
from tests.sources import GitSource

OWNER, NAME = "limits_owner", "limits"
PAGE = "# Page {0}\n\nShared words.\n\n## Part\n\nText {0} of version {1}.\n"


def version(number: int) -> dict[str, str | bytes]:
    return {f"docs/{n}.md": PAGE.format(n, number) for n in range(4)}


@dataclass
class Bounded:
    """An index whose database belongs to a login of its own, which an administrator can limit."""

    root: str
    url: str
    home: Path
    provider: FakeOllama
    source: GitSource
    index: Index = field(init=False)

    changes: int = 0

    def administer(self, statement: str) -> None:
        """Run a statement in the database as the server's administrator."""
        url = make_conninfo(self.root, dbname=NAME, options="-c default_transaction_read_only=off")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def change(self) -> None:
        """Give every file of the source another text."""
        self.changes += 1
        self.source.commit(version(self.changes))

    def open(self) -> Index:
        projects = self.index.configuration.projects
        return open_index(self.home, self.url, self.provider, *projects)

    def end_sessions(self) -> None:
        """End the login's sessions, so that what was set since holds; not those with a lock."""
        self.administer(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where usename = 'limits_owner' "
            "and pid not in (select pid from pg_locks where locktype = 'advisory')"
        )


@pytest.fixture
def bounded(one_for_all: Bounded) -> Iterator[Bounded]:
    """The same for each test, which may limit it in any way."""
    yield one_for_all
    one_for_all.administer(f"alter role {OWNER} connection limit -1")
    one_for_all.administer(f"alter role {OWNER} reset all")
    one_for_all.administer(f"alter database {NAME} reset all")
    for table in ("chunks", "embeddings"):
        one_for_all.administer(f"drop trigger if exists hurt on concordance.{table}")
    one_for_all.administer("drop function if exists hurt()")


@pytest.fixture(scope="module")
def one_for_all(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bounded]:
    """One for all tests of the module: each leaves its rows as those of a fresh build."""
    folder = tmp_path_factory.mktemp("bounded")
    with FakeOllama() as provider, logins(server_url, OWNER):
        url = make_conninfo(create_database(server_url, NAME), user=OWNER)
        source = GitSource.make(folder / "source", version(0))
        projects = [Project(slug=slug, path=source.path) for slug in ("p", "fresh")]
        at = Bounded(server_url, url, folder / "home", provider, source)
        at.administer("create extension vector")
        at.administer(f"alter database {NAME} owner to {OWNER}")
        at.index = open_index(folder / "home", url, provider, *projects)
        mended(at)
        yield at
        at.index.close()
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"drop database {NAME} with (force)")


def mended(at: Bounded) -> None:
    """The next run gives the rows of a fresh build."""
    for slug in ("p", "fresh"):
        reindex(at.index, slug)
    for rows in (documents_of, passages_of):
        assert rows(at.url) == rows(at.url, "fresh")
    assert covered(at.index).state is CoverageState.COMPLETE


def told(error: pytest.ExceptionInfo[ConcordanceError], *parts: str) -> None:
    said = str(error.value)
    assert "\n" not in said
    assert "Traceback" not in said
    for part in parts:
        assert part in said


# --- connections -----------------------------------------------------------------------------


def test_no_connection_left_is_said_at_once_at_the_start(bounded: Bounded) -> None:
    bounded.administer(f"alter role {OWNER} connection limit 0")
    with pytest.raises(DatabaseUnavailable) as error:
        bounded.open()
    bounded.administer(f"alter role {OWNER} connection limit -1")
    told(error, "can't be reached", "connections", "one more connection")


def test_connections_that_run_out_in_mid_run_are_named_with_the_server_s_words(
    bounded: Bounded,
) -> None:
    bounded.change()
    with bounded.index.hold("p", uuid.uuid4(), on_wait=lambda: None) as held:
        plan = bounded.index.plan_files(held, "p", bounded.index.fetch("p").commit)
        bounded.administer(f"alter role {OWNER} connection limit 1")
        # A run holds its project by one session; the pool's are gone, and no other is given.
        bounded.end_sessions()
        pool = bounded.index._resources.database
        with pytest.raises(DatabaseUnavailable) as error, pool.transaction(wait_seconds=1):
            pass
        told(error, "too many connections", "one more connection")
        bounded.administer(f"alter role {OWNER} connection limit -1")
        assert better_than_the_truth(bounded.index, bounded.url) == []
        assert covered(bounded.index).state is CoverageState.STALE
        assert plan.plan.writes
    mended(bounded)


# --- time ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "hurt", "said"),
    [
        ("statement_timeout = '800ms'", "perform pg_sleep(1)", "statement_timeout"),
        ("idle_in_transaction_session_timeout = '400ms'", "", "ended a session that waited"),
        ("lock_timeout = '100ms'", "perform pg_advisory_xact_lock(7)", "lock_timeout"),
    ],
)
def test_a_time_out_that_the_administrator_set_fails_the_run_and_says_which(
    bounded: Bounded, monkeypatch: pytest.MonkeyPatch, limit: str, hurt: str, said: str
) -> None:
    bounded.change()
    bounded.administer(f"alter role {OWNER} set {limit}")
    if hurt:
        slow(bounded, hurt)
    else:
        wait_inside_transactions(monkeypatch)
    with psycopg.connect(bounded.root, dbname=NAME) as other:
        other.execute("select pg_advisory_xact_lock(7)")
        index = bounded.open()
        reindex(index, embed=False)
    scope = covered(index)
    assert scope.state is CoverageState.STALE
    assert said in scope.reason
    assert better_than_the_truth(index, bounded.url) == []
    assert set(names_of(bounded.url).values()) == {"docs indexed"}
    monkeypatch.undo()
    bounded.administer(f"alter role {OWNER} reset all")
    if hurt:
        bounded.administer("drop trigger hurt on concordance.chunks")
    index.close()
    bounded.end_sessions()
    mended(bounded)


def slow(at: Bounded, statement: str) -> None:
    """Have something happen whenever passages are written."""
    at.administer(
        f"create function hurt() returns trigger language plpgsql as $$ begin {statement}; "
        "return null; end $$; create trigger hurt after insert on concordance.chunks "
        "for each statement execute function hurt()"
    )


def wait_inside_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = documents._copy

    def late(connection: database.Connection, given: Sequence[Document]) -> None:
        time.sleep(0.6)
        copy(connection, given)

    monkeypatch.setattr(documents, "_copy", late)


def test_a_search_waits_for_its_reranker_whatever_idle_transactions_may(bounded: Bounded) -> None:
    bounded.administer(f"alter role {OWNER} set idle_in_transaction_session_timeout = '30ms'")
    bounded.administer(f"alter role {OWNER} set idle_session_timeout = '50ms'")
    bounded.end_sessions()
    request = SearchRequest(text="shared words")
    with gather(bounded.index._resources, request) as gathered:
        time.sleep(0.1)
        assert gathered.snapshot.records([1]) == {}
    # Nor does a project slip out of the hands of the run that holds it.
    with bounded.index.hold("p", uuid.uuid4(), on_wait=lambda: None) as held:
        time.sleep(0.15)
        assert bounded.index.plan_files(held, "p", None) is not None
        with psycopg.connect(bounded.root, dbname=NAME) as other:
            found = other.execute("select count(*) from pg_locks where locktype = 'advisory'")
            assert found.fetchone() == (1,)


# --- room ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "said"), [("53100", "no room left"), ("53200", "no memory left")]
)
def test_no_room_fails_the_run_and_no_document(bounded: Bounded, state: str, said: str) -> None:
    slow(bounded, f"raise exception 'could not extend file' using errcode = '{state}'")
    bounded.change()
    reindex(bounded.index)
    scope = covered(bounded.index)
    assert scope.state is CoverageState.STALE
    assert said in scope.reason
    assert better_than_the_truth(bounded.index, bounded.url) == []
    # A document that failed would not be read again before it changes.
    assert set(names_of(bounded.url).values()) == {"docs indexed"}
    bounded.administer("drop trigger hurt on concordance.chunks")
    mended(bounded)


def test_no_room_for_vectors_loses_none_that_are_there(bounded: Bounded) -> None:
    bounded.change()
    reindex(bounded.index, embed=False)
    bounded.administer(
        "create function hurt() returns trigger language plpgsql as $$ begin "
        "raise exception 'no' using errcode = '53100'; end $$; create trigger hurt after insert "
        "on concordance.embeddings for each statement execute function hurt()"
    )
    with pytest.raises(DatabaseFull) as error:
        fill(bounded.index)
    told(error, "no room left", "Free disk space")
    assert better_than_the_truth(bounded.index, bounded.url) == []
    bounded.administer("drop trigger hurt on concordance.embeddings")
    mended(bounded)


# --- writing ---------------------------------------------------------------------------------


def test_a_database_that_was_set_to_be_read_only_answers_and_says_why_it_takes_no_writes(
    bounded: Bounded,
) -> None:
    bounded.administer("alter database limits set default_transaction_read_only = on")
    with bounded.open() as index:
        assert index.search("shared words").hits
        assert covered(index).state is CoverageState.COMPLETE
        with pytest.raises(DatabaseReadOnly) as error:
            reindex(index)
        told(error, "takes no writes", "to the primary")
    bounded.administer("alter database limits reset default_transaction_read_only")
    bounded.end_sessions()
    bounded.change()
    mended(bounded)


# --- two at once -----------------------------------------------------------------------------


def test_a_search_that_was_given_up_for_another_one_s_sake_is_asked_again(
    bounded: Bounded, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = searching._search
    failures = iter([DatabaseConflict("conflict with recovery")] * 2)

    def conflicting(*given: object) -> object:
        for failure in failures:
            raise failure
        return found(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(searching, "_search", conflicting)
    assert bounded.index.search("shared words").hits
    monkeypatch.setattr(searching, "_search", always(DatabaseConflict("conflict")))
    with pytest.raises(DatabaseConflict):
        bounded.index.search(SearchRequest(text="words", deadline_seconds=0.01))


def always(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail
