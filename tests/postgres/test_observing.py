"""The observer of runs finds nothing in an honest index, and each thing that is set by hand."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest

from concordance.index import Index
from concordance.models import Scope
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import covered, reindex
from tests.soak.histories import History
from tests.soak.observing import Observer, better_than_the_truth, glance
from tests.soak.rules import Rules

LIES = {
    "a vector that is gone": "delete from embeddings where chunk_id = (select min(id) from chunks)",
    "a passage that nobody counted": """
        insert into chunks (tenant_id, project_id, document_id, ordinal, heading_path, titled,
            start_char, end_char, content, content_hash)
        select tenant_id, project_id, document_id, 99, '{}', false, 0, 1, 'x', 'x'
        from chunks where id = (select min(id) from chunks)
        """,
    "a document that is gone": "delete from documents where name = 'docs/a.md'",
    "a file that is older": "update documents set content_id = 'x' where name = 'docs/a.md'",
    "a file of another commit": "update documents set commit = 'x' where name = 'docs/a.md'",
    "a failure that was not told": "update documents set status = 'failed' where kind = 'file'",
    "an attempt that is open": "update coverage set attempt_open = true",
    "rows of older rules": "update documents set chunker = 'v0'",
    "a marker set by hand": "update coverage set chunks_with_vector = chunks_with_vector + 1",
}


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path, "observed")


@pytest.fixture
def index(make_index: IndexMaker, provider: FakeOllama, history: History) -> Index:
    Rules().serve(provider)
    opened = make_index(history.project(Rules()))
    history.source.commit({"docs/adr/1.md": "# 1. Tea\n\nStatus: accepted\n"})
    history._note_tree()
    reindex(opened)
    return opened


def test_an_honest_index_is_found_to_be_one(
    index: Index, database_url: str, history: History
) -> None:
    assert {covered(index, scope).state.value for scope in Scope} == {"complete"}
    observer = Observer(index._resources, database_url, lambda: {"p": history.trees})
    assert observer.look() == []
    observer.close()


def test_each_lie_is_found(index: Index, database_url: str, history: History) -> None:
    path = "-c search_path=concordance,public"
    with psycopg.connect(database_url, autocommit=True, options=path) as connection:
        for name, lie in LIES.items():
            with connection.transaction(force_rollback=True):
                assert connection.execute(lie.encode()).rowcount, name
                seen = glance(index._resources, connection)
                trees = {"p": history.trees}
                assert better_than_the_truth(seen, index._resources, trees) != [], name


def test_a_lie_of_a_moment_is_found_by_the_thread(
    index: Index, database_url: str, history: History
) -> None:
    observer = Observer(index._resources, database_url, lambda: {"p": history.trees})
    told = LIES["a marker set by hand"]
    back = told.replace("+ 1", "- 1")
    deadline = time.monotonic() + 20
    path = "-c search_path=concordance"
    with observer, psycopg.connect(database_url, autocommit=True, options=path) as connection:
        connection.execute(told.encode())
        while not observer.found:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        connection.execute(back.encode())
    assert any("vectors said" in wrong for wrong in observer.found)
