"""Session logs in a database of their own: read by a query, in one order, and started again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from concordance.adapters.session_query import SessionQuery
from concordance.errors import LogsUnavailable, LogsUnreadable
from concordance.index import Index
from concordance.models import CoverageState, Scope
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.postgres.driver import covered, documents_of, needs, passages_of, reindex
from tests.sources import GitSource

# As people write it: an end, a comment, and a sign that could be taken for a parameter.
QUERY = """
select room as session_id, number as event_id,
       case kind when 'q' then 'chat.message' when 'a' then 'agent.response' else kind end as type,
       body as text, said_at as occurred_at, 'About ' || room as title
from chat.events where body not like '%nobody%' -- without spam
;
"""
MARKER = "select count(*) || '-' || coalesce(max(number), 0) from chat.events"
VARIABLE = "CHAT_DATABASE_URL"
BREAK = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name = 'concordance-sessions'
"""


@pytest.fixture
def chat(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("create schema chat")
        connection.execute(
            "create table chat.events (room text, number int, kind text, body text,"
            " said_at timestamptz)"
        )
        say(connection, "tea", 2, "a", "Boil the water, then wait.")
        say(connection, "tea", 1, "q", "How do we brew the tea?")
        say(connection, "tea", 3, "tool", "kettle --on")
        say(connection, "buoy", 1, "q", "Why was the buoy dark?")
        yield connection


def say(connection: psycopg.Connection[Any], room: str, number: int, kind: str, body: str) -> None:
    when = f"2026-03-01 10:{number:02d}:00+00"
    row = [room, number, kind, body, when]
    connection.execute("insert into chat.events values (%s, %s, %s, %s, %s)", row)


@pytest.fixture
def made(make_index: IndexMaker, tmp_path: Path, database_url: str) -> Any:
    git = GitSource.make(tmp_path / "source", {"README.md": "# Beacon\n\nText.\n"})

    def make(url: str = database_url, **more: Any) -> Index:
        source = SessionSource.model_validate({"query": QUERY, "url_env": VARIABLE} | more)
        project = Project(slug="p", path=git.path, sessions=(source,))
        return make_index(project, environment={VARIABLE: url})

    return make


def source(**more: Any) -> SessionSource:
    return SessionSource.model_validate({"query": QUERY, "url_env": VARIABLE} | more)


def test_the_rows_of_a_query_are_sessions_in_the_order_of_their_times(
    made: Any, chat: psycopg.Connection[Any], database_url: str
) -> None:
    index = made()
    reindex(index)
    found = [(p["name"], p["content"]) for p in passages_of(database_url) if p["kind"] == "session"]
    assert found == [
        ("buoy", "Why was the buoy dark?"),
        ("tea", "How do we brew the tea?"),
        ("tea", "Boil the water, then wait."),
    ]
    said = covered(index, Scope.SESSION)
    assert (said.state, said.turns, said.turns_left_out) == (CoverageState.COMPLETE, 3, {"tool": 1})
    assert {d["title"] for d in documents_of(database_url) if d["kind"] == "session"} == {
        "About buoy",
        "About tea",
    }


@pytest.mark.parametrize("when", ["infinity", "-infinity", "0044-03-15 BC", "12000-01-01"])
def test_a_time_that_python_has_no_value_for_costs_its_row_alone(
    made: Any, chat: psycopg.Connection[Any], when: str
) -> None:
    chat.execute("insert into chat.events values ('tea', 9, 'q', 'Late?', %s)", [when])
    # Columns that nobody reads may hold such values as well.
    more = "as title, 'infinity'::date as noted, '[-infinity,infinity]'::tstzrange as span"
    index = made(query=QUERY.replace("as title", more))
    reindex(index)
    said = covered(index, Scope.SESSION)
    assert (said.state, said.failed, said.turns) == (CoverageState.PARTIAL, 1, 3)
    assert "'occurred_at' is no ISO 8601 time" in said.reason


def test_a_second_run_writes_nothing_and_new_rows_alone_are_added(
    made: Any, chat: psycopg.Connection[Any], database_url: str
) -> None:
    index = made(marker=MARKER)
    reindex(index)
    before = documents_of(database_url)
    assert needs(index) == "none"
    (written,) = reindex(index, scopes=[Scope.SESSION])
    assert (written.written, written.deleted) == (0, 0)
    assert documents_of(database_url) == before
    say(chat, "buoy", 2, "a", "Its clock ran slow.")
    assert needs(index) == "index"
    (written,) = reindex(index, scopes=[Scope.SESSION])
    assert (written.written, written.unchanged) == (1, 1)
    chat.execute("delete from chat.events where room = 'tea'")
    (written,) = reindex(index, scopes=[Scope.SESSION])
    assert (written.written, written.deleted) == (0, 1)


def test_without_a_marker_the_query_has_to_be_read_to_know(
    made: Any, chat: psycopg.Connection[Any]
) -> None:
    index = made()
    reindex(index)
    assert needs(index) == "index"
    (written,) = reindex(index, scopes=[Scope.SESSION])
    assert (written.written, written.unchanged) == (0, 2)
    assert covered(index, Scope.SESSION).state is CoverageState.COMPLETE


def test_a_bad_row_costs_itself_alone(
    made: Any, chat: psycopg.Connection[Any], database_url: str
) -> None:
    chat.execute("insert into chat.events values ('tea', 9, 'q', null, now())")
    index = made(query=QUERY.replace("body not like '%nobody%'", "true"))
    reindex(index)
    (failed,) = [d for d in documents_of(database_url) if d["status"] == "failed"]
    assert failed["reason"] == "row 5: 'text' is missing or no text"
    assert covered(index, Scope.SESSION).indexed == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"query": "select 1 as session_id"}, "occurred_at does not exist"),
        ({"query": "select nonsense"}, 'column "nonsense" does not exist'),
        ({"query": "insert into chat.events values ('x') returning *"}, "syntax error"),
        ({"url": "postgresql://u:otter@127.0.0.1:1/x"}, "onnection"),
        ({"url": "otter=otter"}, "the address in that variable can't be read"),
        ({"url": ""}, f"the environment variable {VARIABLE}"),
    ],
    ids=["columns", "query", "a write", "down", "address", "not set"],
)
def test_a_database_that_can_not_be_read_deletes_nothing_and_tells_no_secret(
    made: Any,
    chat: psycopg.Connection[Any],
    database_url: str,
    change: dict[str, str],
    reason: str,
) -> None:
    reindex(made())
    index = made(**change)
    reindex(index, scopes=[Scope.SESSION])
    said = covered(index, Scope.SESSION)
    assert said.state is CoverageState.STALE
    assert reason in said.reason
    assert "otter" not in said.reason
    assert sum(d["kind"] == "session" for d in documents_of(database_url)) == 2


def test_a_connection_that_breaks_goes_on_after_the_last_whole_session(
    chat: psycopg.Connection[Any], database_url: str
) -> None:
    for room in range(3_000):
        say(chat, f"room-{room:04d}", 1, "q", f"Question {room}?")
    query = SessionQuery(source(), SecretStr(database_url))
    found: list[str] = []
    for session_id, _ in query.sessions():
        found.append(session_id)
        if len(found) == 100:
            chat.execute(BREAK)
    assert len(found) == 3_002
    assert found == sorted(set(found))


def test_a_database_that_breaks_off_again_and_again_is_an_error_of_ours(
    chat: psycopg.Connection[Any], database_url: str
) -> None:
    for room in range(100):
        for number in range(100):
            say(chat, f"room-{room:04d}", number % 60, "q", f"Question {number}?")
    query = SessionQuery(source(), SecretStr(database_url))

    def read_and_break() -> None:
        for _ in query.sessions():
            chat.execute(BREAK)

    with pytest.raises(LogsUnavailable):
        read_and_break()


def test_only_wanted_sessions_are_asked_for(
    chat: psycopg.Connection[Any], database_url: str
) -> None:
    query = SessionQuery(source(), SecretStr(database_url))
    assert [session_id for session_id, _ in query.sessions(["tea", "gone"])] == ["tea"]
    assert list(query.sessions([])) == []


def test_the_database_is_only_read(chat: psycopg.Connection[Any], database_url: str) -> None:
    chat.execute(
        "create function chat.harm() returns text language plpgsql as "
        "$$ begin insert into chat.events values ('harm'); return 'x'; end $$"
    )
    query = SessionQuery(source(marker="select chat.harm()"), SecretStr(database_url))
    with pytest.raises(LogsUnreadable, match="read-only"):
        query.marker()
