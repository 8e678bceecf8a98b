"""Logs that break off, can't be read, or were made to do harm: they cost themselves alone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from concordance.index import Index
from concordance.models import CoverageState, Scope
from tests.planted import planted
from tests.postgres.conversations import lay, rows, turns
from tests.postgres.driver import ask, covered, documents_of, names_of, reindex
from tests.session_logs import ANSWER, EXAMPLES, QUESTION
from tests.sources import event, write_log


def test_a_packed_log_that_breaks_off_takes_nothing_away(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    codex = next(e for e in EXAMPLES if e.format == "codex")
    packed = zstandard.ZstdCompressor().compress(codex.data)
    path = logs / (codex.name + ".zst")
    path.parent.mkdir(parents=True)
    path.write_bytes(packed[:-5])
    index = open_logs()
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
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    write_log(logs / "good.jsonl", [event("s", 1, "the otter said")])
    (logs / "odd.jsonl").write_text('{"when": 1, "what": "a secret of the otter"}\n')
    (logs / "users.json").write_text('[{"id": "U1", "name": "ana"}]')
    index = open_logs(pattern="**/*")
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
    open_logs: Callable[..., Index], logs: Path, database_url: str, full: bool
) -> None:
    chat = next(e for e in EXAMPLES if e.format == "chatgpt")
    path = lay(logs, chat)
    index = open_logs()
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
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    slack = next(e for e in EXAMPLES if e.format == "slack")
    path = lay(logs, slack, slack.data[:-60])
    index = open_logs()
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
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    for example in EXAMPLES:
        if example.format in ("chatgpt", "open-webui", "cline", "slack"):
            lay(logs, example, b'[{"a": \\q},' + example.data.lstrip()[1:])
    reindex(open_logs())
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
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    logs.mkdir()
    secret = planted()["github"][1]
    long = f"{'x' * 48} {secret}"
    (logs / "a.jsonl").write_text(json.dumps({long: 1}) + "\n")
    write_log(logs / "b.jsonl", [event("s", 1, "the otter said"), {"type": long}])
    (logs / "c.jsonl").write_text(json.dumps({f"{'y' * 2_000}": 1}) + "\n")
    index = open_logs()
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
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    names = [Path(example.name) for example in EXAMPLES]
    for number, data in enumerate(HOSTILE):
        for name in names:
            path = logs / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    good = lay(logs, EXAMPLES[0])
    index = open_logs(pattern="**/*")
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


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read anything")
def test_a_log_that_may_not_be_read_deletes_nothing(
    open_logs: Callable[..., Index], logs: Path, database_url: str
) -> None:
    path = write_log(logs / "a.jsonl", [event("s", 1, "the otter said")])
    index = open_logs()
    reindex(index)
    path.write_text(path.read_text() * 2)
    path.chmod(0)
    reindex(index)
    path.chmod(0o600)
    assert covered(index, Scope.SESSION).state is CoverageState.STALE
    assert "s" in turns(database_url)
