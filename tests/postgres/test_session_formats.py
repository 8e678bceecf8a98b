"""Logs of every format in one project: what is in and out, run twice, grown, rewound, cut, gone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from concordance.index import Index
from concordance.models import CoverageState, Scope, SearchRequest, SessionOrigin
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.planted import planted
from tests.postgres.driver import ask, covered, documents_of, names_of, needs, passages_of, reindex
from tests.session_logs import ANSWER, EXAMPLES, GROWN, QUESTION, Example
from tests.sources import GitSource, event, write_log

GROWING = [e for e in EXAMPLES if e.format in ("jsonl", "claude-code", "codex", "gemini", "aider")]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def make(make_index: IndexMaker, tmp_path: Path, logs: Path) -> Callable[..., Index]:
    def made(**source: Any) -> Index:
        git = tmp_path / "source"
        if not git.exists():
            GitSource.make(git, {"README.md": "# Beacon\n\nText.\n"})
        sources = (SessionSource(path=logs, **source),)
        return make_index(Project(slug="p", path=git, sessions=sources))

    return made


def lay(logs: Path, example: Example, data: bytes | None = None) -> Path:
    path = logs / example.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(example.data if data is None else data)
    return path


def turns(url: str) -> dict[str, list[str]]:
    """What was said in each session, by passage."""
    found: dict[str, list[str]] = {}
    for passage in passages_of(url):
        if passage["kind"] == "session":
            found.setdefault(passage["name"], []).append(passage["content"])
    return found


def rows(url: str) -> dict[int, str]:
    found = ask(url, "select id, content from chunks where event_id is not null")
    return {row["id"]: row["content"] for row in found}


def test_a_log_of_each_format_is_found_under_its_own_name(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    for example in EXAMPLES:
        lay(logs, example)
    index = make()
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
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    for example in EXAMPLES:
        lay(logs, example)
    index = make()
    reindex(index)
    before = (documents_of(database_url), passages_of(database_url), rows(database_url))
    written = reindex(index, scopes=[Scope.SESSION])
    assert [(w.written, w.deleted, w.unchanged) for w in written] == [(0, 0, len(EXAMPLES))]
    assert (documents_of(database_url), passages_of(database_url), rows(database_url)) == before


@pytest.mark.parametrize("example", GROWING, ids=lambda e: e.format)
def test_a_log_that_grew_adds_its_new_turns_alone(
    make: Callable[..., Index], logs: Path, database_url: str, example: Example
) -> None:
    other = next(e for e in EXAMPLES if e is not example)
    lay(logs, other)
    path = lay(logs, example)
    index = make()
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
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    gemini = next(e for e in EXAMPLES if e.format == "gemini")
    codex = next(e for e in EXAMPLES if e.format == "codex")
    first, second = lay(logs, gemini), lay(logs, codex)
    index = make()
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
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    codex = next(e for e in EXAMPLES if e.format == "codex")
    packed = zstandard.ZstdCompressor().compress(codex.data)
    path = logs / (codex.name + ".zst")
    path.parent.mkdir(parents=True)
    path.write_bytes(packed)
    path.with_name("rollout-2.jsonl.zst").write_bytes(b"no such thing")
    index = make()
    reindex(index)
    assert turns(database_url) == {"codex-1": [QUESTION, ANSWER]}
    assert covered(index, Scope.SESSION).failed == 1
    (failed,) = [d for d in documents_of(database_url) if d["status"] == "failed"]
    assert (failed["name"], failed["reason"]) == (
        str(path.with_name("rollout-2.jsonl.zst")),
        "no whole Zstandard data",
    )


def test_a_packed_log_that_breaks_off_takes_nothing_away(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    codex = next(e for e in EXAMPLES if e.format == "codex")
    packed = zstandard.ZstdCompressor().compress(codex.data)
    path = logs / (codex.name + ".zst")
    path.parent.mkdir(parents=True)
    path.write_bytes(packed[:-5])
    index = make()
    reindex(index, embed=False)
    assert turns(database_url) == {}
    breaks_off = "the compressed file breaks off; it is read again when it changes"
    (begun,) = [d for d in documents_of(database_url) if d["kind"] == "session"]
    assert (begun["status"], begun["reason"]) == ("skipped", f"line 1: {breaks_off}")
    path.write_bytes(packed)
    reindex(index, embed=False)
    before = turns(database_url)
    assert before == {"codex-1": [QUESTION, ANSWER]}
    assert covered(index, Scope.SESSION).skipped == 0
    path.write_bytes(packed[:-7])
    reindex(index, embed=False)
    assert turns(database_url) == before
    (broken,) = [d for d in documents_of(database_url) if d["status"] == "failed"]
    assert broken["reason"] == f"{breaks_off}; what was read of it before stays"


def test_an_unknown_format_is_refused_with_what_was_seen_and_costs_itself_alone(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    write_log(logs / "good.jsonl", [event("s", 1, "the otter said")])
    (logs / "odd.jsonl").write_text('{"when": 1, "what": "a secret of the otter"}\n')
    (logs / "users.json").write_text('[{"id": "U1", "name": "ana"}]')
    index = make(pattern="**/*")
    reindex(index)
    said = covered(index, Scope.SESSION)
    assert (said.indexed, said.failed, said.skipped) == (1, 1, 1)
    assert said.state is CoverageState.PARTIAL
    assert "no known format of session logs" in said.reason
    assert "'when', 'what'" in said.reason
    assert "secret" not in said.reason
    assert names_of(database_url)[str(logs / "users.json")] == "session skipped"


@pytest.mark.parametrize("full", [False, True])
def test_a_document_that_is_half_written_deletes_nothing(
    make: Callable[..., Index], logs: Path, database_url: str, full: bool
) -> None:
    chat = next(e for e in EXAMPLES if e.format == "chatgpt")
    path = lay(logs, chat)
    index = make()
    reindex(index)
    before = rows(database_url)
    path.write_bytes(chat.data[:-40])
    for _ in range(2):
        reindex(index, scopes=[Scope.SESSION], full=full)
        said = covered(index, Scope.SESSION)
        assert (said.state, said.failed) == (CoverageState.PARTIAL, 1)
        assert "what was read of it before stays" in said.reason
        assert rows(database_url) == before
    path.write_bytes(chat.data.replace(b"heartbeats", b"signals"))
    reindex(index)
    assert covered(index, Scope.SESSION).state is CoverageState.COMPLETE
    assert "signals" in turns(database_url)["gpt-1"][1]


def test_an_export_that_breaks_off_is_read_as_far_as_it_is_whole_and_loses_nothing(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    slack = next(e for e in EXAMPLES if e.format == "slack")
    path = lay(logs, slack, slack.data[:-60])
    index = make()
    reindex(index)
    assert turns(database_url) == {"general": [QUESTION]}
    said = covered(index, Scope.SESSION)
    assert (said.state, said.failed, said.turns) == (CoverageState.PARTIAL, 1, 1)
    assert "entry 3: the document breaks off at line 1, character" in said.reason
    path.write_bytes(slack.data)
    reindex(index)
    assert turns(database_url) == {"general": [QUESTION, ANSWER]}
    assert covered(index, Scope.SESSION).state is CoverageState.COMPLETE
    before = rows(database_url)
    path.write_bytes(slack.data[:-61])
    for full in (False, True):
        reindex(index, scopes=[Scope.SESSION], full=full)
        assert "what was read of it before stays" in covered(index, Scope.SESSION).reason
        assert rows(database_url) == before
    path.write_bytes(slack.data.replace(b"heartbeats", b"signals"))
    reindex(index)
    assert "signals" in turns(database_url)["general"][1]


def test_a_bad_entry_of_an_export_is_a_row_with_its_number_and_reason(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    for example in EXAMPLES:
        if example.format in ("chatgpt", "open-webui", "cline", "slack"):
            lay(logs, example, b'[{"a": \\q},' + example.data.lstrip()[1:])
    reindex(make())
    found = turns(database_url)
    assert list(found.values()) == [[QUESTION, ANSWER]] * 4
    failed = [name for name, kind in names_of(database_url).items() if kind == "session failed"]
    assert sorted(Path(name).name for name in failed) == [
        "2030-01-02.json#entry 1",
        "chat-export-1.json#chat 1",
        "conversations.json#conversation 1",
        "ui_messages.json#entry 1",
    ]


def test_a_secret_in_a_name_that_is_told_is_replaced_before_the_name_is_cut(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    logs.mkdir()
    secret = planted()["github"][1]
    long = f"{'x' * 48} {secret}"
    (logs / "a.jsonl").write_text(json.dumps({long: 1}) + "\n")
    write_log(logs / "b.jsonl", [event("s", 1, "the otter said"), {"type": long}])
    (logs / "c.jsonl").write_text(json.dumps({f"{'y' * 2_000}": 1}) + "\n")
    index = make()
    reindex(index)
    shown = json.dumps(
        ask(database_url, "select refused, left_out, problems from session_logs")
        + ask(database_url, "select reason from documents where reason is not null")
        + [covered(index, Scope.SESSION).model_dump(mode="json")]
    )
    assert not any(secret[at : at + 8] in shown for at in range(len(secret) - 8))
    assert f"{'x' * 48} [secret: github token]" in shown
    assert "y" * 600 not in shown
    assert covered(index, Scope.SESSION).turns_left_out == {f"{'x' * 48} [secret: g…": 1}


HOSTILE: tuple[bytes, ...] = (
    b"",
    b"[]",
    b"{}",
    b"null",
    b"[null]",
    b"x" * 1_000_000,
    b"[" * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b'{"type":"user","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    b"\0" * 1_000,
    b"\xff\xfe[\0]\0",
    b'[{"type":"message","ts":"1.1","text":"\\ud800 \\u0000"},{"type":"message","ts":NaN}]',
    b'[{"mapping":{"\\u0000":{"message":{"author":{"role":"user"},"content":{"parts":["a"]}}}}}]',
    b'[{"ts":Infinity,"type":"say","say":"text","text":"<think>"}]',
    b"#### \xff\n\n```\n\xfe\r\r\0",
)


def test_no_bytes_under_any_name_end_a_run_or_are_lost_silently(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    names = [Path(example.name) for example in EXAMPLES]
    for number, data in enumerate(HOSTILE):
        for name in names:
            path = logs / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    good = lay(logs, EXAMPLES[0])
    index = make(pattern="**/*")
    reindex(index, embed=False)
    assert turns(database_url)[EXAMPLES[0].sessions[0]] == [QUESTION, ANSWER]
    found = ask(
        database_url,
        "select path, turns, left_out, refused, beside, problems from session_logs",
    )
    assert len(found) == len(HOSTILE) * len(names) + 1
    for row in found:
        told = row["turns"] or row["left_out"] or row["refused"] or row["problems"]
        empty = Path(row["path"]).read_bytes() in (b"", b"[]")
        assert told or empty or row["path"] == str(good), row
    assert covered(index, Scope.SESSION).state is CoverageState.PARTIAL


def test_turns_are_counted_once_each_however_often_an_id_stands(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    write_log(logs / "a.jsonl", [event("s", n % 2, f"turn {n} of the otter") for n in range(6)])
    index = make()
    reindex(index)
    said = covered(index, Scope.SESSION)
    assert said.turns == len(turns(database_url)["s"]) == 2
    assert said.turns_left_out == {"repeats an id, the last one counts": 4}


def test_a_named_format_is_kept_to(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    write_log(logs / "rollout-1.jsonl", [event("s", 1, "the otter said")])
    index = make(format="codex")
    reindex(index)
    assert turns(database_url) == {}
    index = make(format="otter")
    reindex(index)
    assert (
        "there is no session reader 'otter'. Known are aider, chatgpt"
        in covered(index, Scope.SESSION).reason
    )


def test_a_link_below_a_source_is_named_and_not_followed(
    make: Callable[..., Index], logs: Path, tmp_path: Path, database_url: str
) -> None:
    write_log(logs / "a.jsonl", [event("s", 1, "the otter said")])
    write_log(tmp_path / "more" / "b.jsonl", [event("t", 1, "the seal said")])
    index = make()
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
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    claude = next(e for e in EXAMPLES if e.format == "claude-code")
    lay(logs, claude)
    reindex(make())
    assert set(turns(database_url)) == {"claude-1"}
    index = make(subagents=True)
    assert needs(index) == "index"
    reindex(index)
    assert set(turns(database_url)) == {"claude-1", "claude-1/sidechain"}


def test_a_citation_leads_to_the_events_and_to_where_the_work_was_done(
    make: Callable[..., Index], logs: Path
) -> None:
    codex = next(e for e in EXAMPLES if e.format == "codex")
    lay(logs, codex)
    index = make()
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
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    a = [event("s", 1, "first words"), event("t", 1, "theirs")]
    b = [event("s", 2, "second words"), event("s", 1, "first words, corrected")]
    write_log(logs / "b.jsonl", b)
    index = make()
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
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    write_log(logs / "a.jsonl", [event("s", 1, "ls", type="tool.call")])
    index = make()
    reindex(index)
    said = covered(index, Scope.SESSION)
    assert (said.found, said.empty, said.turns) == (1, 1, 0)
    assert said.turns_left_out == {"tool.call": 1}
    assert said.last_event is None


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read anything")
def test_a_log_that_may_not_be_read_deletes_nothing(
    make: Callable[..., Index], logs: Path, database_url: str
) -> None:
    path = write_log(logs / "a.jsonl", [event("s", 1, "the otter said")])
    index = make()
    reindex(index)
    path.write_text(path.read_text() * 2)
    path.chmod(0)
    reindex(index)
    path.chmod(0o600)
    assert covered(index, Scope.SESSION).state is CoverageState.STALE
    assert "s" in turns(database_url)
