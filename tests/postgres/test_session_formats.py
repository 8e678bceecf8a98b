"""Logs of every format in one project: what is in and out, run twice, grown, rewound, cut, gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from concordance.index import Index
from concordance.models import CoverageState, Scope, SearchRequest, SessionOrigin
from tests.postgres.conversations import lay, rows, turns
from tests.postgres.driver import ask, covered, documents_of, needs, passages_of, reindex
from tests.session_logs import ANSWER, EXAMPLES, GROWN, QUESTION, Example
from tests.sources import event, write_log

GROWING = [e for e in EXAMPLES if e.format in ("jsonl", "claude-code", "codex", "gemini", "aider")]


def test_a_log_of_each_format_is_found_under_its_own_name(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    for example in EXAMPLES:
        lay(logs, example)
    index = open_logs()
    reindex(index)
    found = turns(database_url)
    assert len(found) == len(EXAMPLES)
    for example in EXAMPLES:
        name = f"logs/{example.sessions[0]}" if example.format == "aider" else example.sessions[0]
        assert found[name] == [QUESTION, ANSWER]
    said = covered(index, Scope.SESSION)
    assert (said.state, said.turns) == (CoverageState.COMPLETE, 2 * len(EXAMPLES))
    assert said.turns_left_out == {
        "another branch": 1,
        "channel_join": 1,
        "event_msg token_count": 1,
        "head of the log": 1,
        "say api_req_started": 1,
        "session_meta": 1,
        "start of a session": 1,
        "sub-agent": 1,
        "tool": 1,
        "tool.call": 1,
        "type info": 1,
        "type permission-mode": 1,
    }
    assert str(said.last_event) == "2030-01-02 04:00:02.100000+00:00"
    assert needs(index) == "none"


def test_a_run_over_unchanged_logs_does_nothing(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    for example in EXAMPLES:
        lay(logs, example)
    index = open_logs()
    reindex(index)
    before = (documents_of(database_url), passages_of(database_url), rows(database_url))
    written = reindex(index, scopes=[Scope.SESSION])
    assert [(w.written, w.deleted, w.unchanged) for w in written] == [(0, 0, len(EXAMPLES))]
    assert (documents_of(database_url), passages_of(database_url), rows(database_url)) == before


@pytest.mark.parametrize("example", GROWING, ids=lambda e: e.format)
def test_a_log_that_grew_adds_its_new_turns_alone(
    open_logs: Callable[..., Index], logs: Path, database_url: str, example: Example
) -> None:
    other = next(e for e in EXAMPLES if e is not example)
    lay(logs, other)
    path = lay(logs, example)
    index = open_logs()
    reindex(index, embed=False)
    before = rows(database_url)
    path.write_bytes(example.grown())
    (written,) = reindex(index, scopes=[Scope.SESSION], embed=False)
    assert (written.written, written.unchanged) == (1, 1)
    after = rows(database_url)
    assert any(GROWN in content for content in after.values())
    assert len(after.keys() - before.keys()) <= 1, "at most the last exchange is made anew"
    fresh = turns(database_url)
    reindex(index, full=True, embed=False)
    assert turns(database_url) == fresh


def test_a_log_that_is_cut_rewound_edited_or_deleted_is_followed(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    gemini = next(e for e in EXAMPLES if e.format == "gemini")
    codex = next(e for e in EXAMPLES if e.format == "codex")
    first, second = lay(logs, gemini), lay(logs, codex)
    index = open_logs()
    reindex(index)
    first.write_bytes(gemini.data + b'{"$rewindTo": "2"}\n')
    second.write_bytes(codex.data.replace(b"three heartbeats", b"four heartbeats"))
    reindex(index)
    found = turns(database_url)
    assert found["gemini-1"] == [QUESTION]
    assert "four heartbeats" in found["codex-1"][1]
    second.write_bytes(codex.data[: codex.data.index(b"AgentMessage")])
    reindex(index)
    assert turns(database_url)["codex-1"] == [QUESTION]
    assert covered(index, Scope.SESSION).skipped == 1, "the half line is read next time"
    second.unlink()
    reindex(index)
    assert set(turns(database_url)) == {"gemini-1"}
    assert ask(database_url, "select path from session_logs") == [{"path": str(first)}]


def test_a_packed_log_is_read_like_any_other(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    codex = next(e for e in EXAMPLES if e.format == "codex")
    packed = zstandard.ZstdCompressor().compress(codex.data)
    path = logs / (codex.name + ".zst")
    path.parent.mkdir(parents=True)
    path.write_bytes(packed)
    path.with_name("rollout-2.jsonl.zst").write_bytes(b"no such thing")
    index = open_logs()
    reindex(index)
    assert turns(database_url) == {"codex-1": [QUESTION, ANSWER]}
    assert covered(index, Scope.SESSION).failed == 1
    (failed,) = [d for d in documents_of(database_url) if d["status"] == "failed"]
    assert (failed["name"], failed["reason"]) == (
        str(path.with_name("rollout-2.jsonl.zst")),
        "no whole Zstandard data",
    )


def test_turns_are_counted_once_each_however_often_an_id_stands(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    write_log(logs / "a.jsonl", [event("s", n % 2, f"turn {n} of the otter") for n in range(6)])
    index = open_logs()
    reindex(index)
    said = covered(index, Scope.SESSION)
    assert said.turns == len(turns(database_url)["s"]) == 2
    assert said.turns_left_out == {"repeats an id, the last one counts": 4}


def test_a_named_format_is_kept_to(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    write_log(logs / "rollout-1.jsonl", [event("s", 1, "the otter said")])
    index = open_logs(format="codex")
    reindex(index)
    assert turns(database_url) == {}
    index = open_logs(format="otter")
    reindex(index)
    assert (
        "there is no session reader 'otter'. Known are aider, chatgpt"
        in covered(index, Scope.SESSION).reason
    )


def test_a_link_below_a_source_is_named_and_not_followed(
    open_logs: Callable[..., Index], logs: Path, tmp_path: Path, database_url: str
) -> None:
    write_log(logs / "a.jsonl", [event("s", 1, "the otter said")])
    write_log(tmp_path / "more" / "b.jsonl", [event("t", 1, "the seal said")])
    index = open_logs()
    reindex(index)
    link = logs / "more"
    link.symlink_to(tmp_path / "more")
    assert needs(index) == "index"
    reindex(index)
    assert set(turns(database_url)) == {"s"}
    said = covered(index, Scope.SESSION)
    assert (said.state, said.skipped) == (CoverageState.COMPLETE, 1)
    assert "name what it leads to as a source" in index.explain("p", str(link)).verdict
    assert needs(index) == "none"
    link.unlink()
    reindex(index)
    assert covered(index, Scope.SESSION).skipped == 0


def test_sub_agents_are_left_out_until_they_are_wanted(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    claude = next(e for e in EXAMPLES if e.format == "claude-code")
    lay(logs, claude)
    reindex(open_logs())
    assert set(turns(database_url)) == {"claude-1"}
    index = open_logs(subagents=True)
    assert needs(index) == "index"
    reindex(index)
    assert set(turns(database_url)) == {"claude-1", "claude-1/sidechain"}


def test_a_citation_leads_to_the_events_and_to_where_the_work_was_done(
    open_logs: Callable[..., Index], logs: Path
) -> None:
    codex = next(e for e in EXAMPLES if e.format == "codex")
    lay(logs, codex)
    index = open_logs()
    reindex(index)
    hit = index.search(
        SearchRequest(text="heartbeats January 2030", scopes=(Scope.SESSION,), threshold=0)
    ).hits[0]
    assert hit.citation == "p:session codex-1#a1"
    assert isinstance(hit.origin, SessionOrigin)
    assert (hit.origin.event_id, hit.origin.last_event_id) == ("a1", "a1")
    assert hit.origin.speaker == "agent"
    assert (hit.origin.directory, hit.origin.branch) == ("/src/beacon", "main")
    assert hit.origin.commit == "c0ffee" * 6 + "c0ff"
    assert str(hit.origin.occurred_at) == "2030-01-02 03:04:05+00:00"


def test_a_session_in_several_files_is_the_same_whichever_came_first(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    a = [event("s", 1, "first words"), event("t", 1, "theirs")]
    b = [event("s", 2, "second words"), event("s", 1, "first words, corrected")]
    write_log(logs / "b.jsonl", b)
    index = open_logs()
    reindex(index)
    write_log(logs / "a.jsonl", a)
    reindex(index)
    grown = passages_of(database_url)
    assert turns(database_url)["s"] == ["first words, corrected", "second words"]
    reindex(index, full=True)
    assert passages_of(database_url) == grown
    (logs / "b.jsonl").unlink()
    reindex(index)
    assert turns(database_url) == {"s": ["first words"], "t": ["theirs"]}


def test_a_session_with_mechanism_alone_is_found_and_empty(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    write_log(logs / "a.jsonl", [event("s", 1, "ls", type="tool.call")])
    index = open_logs()
    reindex(index)
    said = covered(index, Scope.SESSION)
    assert (said.found, said.empty, said.turns) == (1, 1, 0)
    assert said.turns_left_out == {"tool.call": 1}
    assert said.last_event is None
