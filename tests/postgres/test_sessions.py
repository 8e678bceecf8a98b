"""Session logs through the pipeline: growing, broken, repeated and gone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from concordance.models import CoverageState, Scope
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import (
    ask,
    covered,
    names_of,
    needs,
    passages_of,
    reindex,
)
from tests.sources import event, write_log


def _with_logs(project: Project, path: Path) -> Project:
    return project.model_copy(update={"sessions": (SessionSource(path=path),)})


def test_a_growing_log_adds_only_what_is_new_md_8(
    make_index: IndexMaker,
    project: Project,
    logs: Path,
    provider: FakeOllama,
    database_url: str,
) -> None:
    good = [event("s", n, f"turn number{n}") for n in range(5)]
    lines = [json.dumps(e) for e in good]
    lines.insert(2, '{"session_id": "s", "text": "\\x"}')
    lines.append(json.dumps(event("s", 6, "before\u2028after"), ensure_ascii=False))
    lines.append(json.dumps(event("s", 7, "word " * 1_000_000)))
    logs.mkdir()
    half = json.dumps(event("s", 8, "the last"))
    (logs / "a.jsonl").write_text("\n".join([*lines, half[:20]]))
    index = make_index(_with_logs(project, logs))
    reindex(index, embed=False)
    turns = {p["event_id"] for p in passages_of(database_url) if p["kind"] == "session"}
    assert turns == {f"s-{n}" for n in (0, 1, 2, 3, 4, 6, 7)}
    said = covered(index, Scope.SESSION)
    assert (said.indexed, said.failed, said.skipped) == (1, 1, 1)
    before = {
        (p["event_id"], p["ordinal"]): p["content"]
        for p in passages_of(database_url)
        if p["kind"] == "session"
    }
    ids = {row["id"] for row in ask(database_url, "select id from chunks")}
    (logs / "a.jsonl").write_text(
        "\n".join([*lines, half, json.dumps(event("s", 9, "one more"))]) + "\n"
    )
    assert needs(index) == "index"
    reindex(index, embed=False)
    new = ask(database_url, "select id, event_id from chunks order by ordinal")
    assert [row["event_id"] for row in new if row["id"] not in ids] == ["s-8", "s-9"]
    after = {
        (p["event_id"], p["ordinal"]): p["content"]
        for p in passages_of(database_url)
        if p["kind"] == "session"
    }
    assert before.items() <= after.items()
    assert covered(index, Scope.SESSION).skipped == 0


def test_an_event_that_stands_twice_is_indexed_once_as_it_was_last(
    make_index: IndexMaker, project: Project, logs: Path, database_url: str
) -> None:
    write_log(logs / "a.jsonl", [event("s", 1, "first words"), event("s", 2, "other")])
    write_log(logs / "b.jsonl", [event("s", 1, "second words")])
    reindex(make_index(_with_logs(project, logs)))
    turns = [p["content"] for p in passages_of(database_url) if p["kind"] == "session"]
    assert turns == ["second words", "other"]


def test_turns_that_lie_in_several_logs_are_counted_once(
    make_index: IndexMaker, project: Project, logs: Path
) -> None:
    said = [event("s", n, f"turn number{n}") for n in range(5)]
    write_log(logs / "a" / "s.jsonl", said)
    write_log(logs / "b" / "s.jsonl", said)
    write_log(logs / "c" / "older.jsonl", said[:3])
    write_log(logs / "d" / "fork.jsonl", [*said[:2], event("s", 7, "another end")])
    write_log(logs / "e" / "t.jsonl", [event("t", 1, "else")])
    index = make_index(_with_logs(project, logs))
    reindex(index, embed=False)
    assert covered(index, Scope.SESSION).turns == 7
    (logs / "d" / "fork.jsonl").unlink()
    reindex(index, embed=False)
    assert covered(index, Scope.SESSION).turns == 6


def test_a_log_with_nul_and_lone_surrogates_is_stored_fts_4(
    make_index: IndexMaker, project: Project, logs: Path, database_url: str
) -> None:
    logs.mkdir()
    (logs / "a.jsonl").write_text(
        '{"session_id":"s","event_id":"1","type":"chat.message","text":"ok\\u0000bad"}\n'
        '{"session_id":"s","event_id":"2","type":"agent.response","text":"half \\ud800 pair"}\n'
    )
    index = make_index(_with_logs(project, logs))
    reindex(index)
    turns = [p["content"] for p in passages_of(database_url) if p["kind"] == "session"]
    assert turns == ["ok\ufffdbad\n\nhalf \ufffd pair"], "a word stands with its answer"
    assert covered(index, Scope.SESSION).state is CoverageState.COMPLETE


def _remove(logs: Path) -> None:
    logs.rename(logs.with_name("away"))


def _replace_by_a_file(logs: Path) -> None:
    logs.rename(logs.with_name("away"))
    logs.symlink_to("nowhere")


@pytest.mark.parametrize("harm", [_remove, _replace_by_a_file], ids=["missing", "broken link"])
def test_logs_that_cannot_be_read_delete_nothing_inc_1_inc_9(
    make_index: IndexMaker,
    project: Project,
    logs: Path,
    database_url: str,
    harm: Callable[[Path], None],
) -> None:
    write_log(logs / "a.jsonl", [event("s", 1, "the otter said")])
    index = make_index(_with_logs(project, logs))
    reindex(index)
    success = covered(index, Scope.SESSION).last_success
    harm(logs)
    assert needs(index) == "index"
    reindex(index)
    said = covered(index, Scope.SESSION)
    assert names_of(database_url)["s"] == "session indexed"
    assert said.state is CoverageState.STALE
    assert str(logs) in said.reason
    assert said.last_success == success
    assert covered(index, Scope.DOCS).state is CoverageState.COMPLETE, "the files are not to blame"


def test_logs_that_are_emptied_on_purpose_leave_nothing(
    make_index: IndexMaker, project: Project, logs: Path, database_url: str
) -> None:
    write_log(logs / "a.jsonl", [event("s", 1, "the otter said")])
    index = make_index(_with_logs(project, logs))
    reindex(index)
    (logs / "a.jsonl").unlink()
    reindex(index)
    assert "s" not in names_of(database_url)
    assert covered(index, Scope.SESSION).state is CoverageState.ABSENT


def test_events_of_other_projects_stay_out(
    make_index: IndexMaker, project: Project, logs: Path, database_url: str
) -> None:
    mine, theirs = event("s", 1, "mine", project="p"), event("t", 1, "theirs", project="q")
    write_log(logs / "a.jsonl", [mine, theirs, event("u", 1, "anybody's")])
    reindex(make_index(_with_logs(project, logs)))
    assert {n for n, what in names_of(database_url).items() if "session" in what} == {"s", "u"}
