"""Logs as they are found out there, in one project: what is in, and what is left out of each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from concordance.models import Scope
from concordance.settings import Project, SessionSource
from tests.conftest import IndexMaker
from tests.postgres.driver import ask, covered, documents_of, passages_of, reindex
from tests.sources import GitSource

SHARED = Path(__file__).parents[3] / "shared" / "sessions"
# What the files hold, counted by hand: turns that are in, and how many lines of each kind are not.
IN: dict[str, int] = {
    "chatgpt-export/conversations_branch.json": 4,
    "claude-code/many_line_types_v2.jsonl": 3,
    "claude-code/old_and_drift.jsonl": 2,
    "claude-code/representative_messages.jsonl": 7,
    "claude-code/subagents/agent-a0ad4f44468bdf20d.jsonl": 0,
    "claude-code/tools_and_thinking_v2.jsonl": 9,
    "codex/rollout_v0106.jsonl": 13,
    "codex/rollout_v0146_all_events.jsonl": 7,
    "gemini/session_v040.jsonl": 2,
    "synthetic/aider/.aider.chat.history.md": 4,
    "synthetic/cline/task-1/ui_messages.json": 5,
    "synthetic/codex_v0148.jsonl": 2,
    "synthetic/gemini_rewind.jsonl": 2,
    "synthetic/hostile.jsonl": 3,
    "synthetic/openwebui_export.json": 2,
    "synthetic/slack_export/general/2030-01-02.json": 3,
}
OUT: dict[str, dict[str, int]] = {
    "chatgpt-export/conversations_branch.json": {"another branch": 1, "role system": 1},
    "claude-code/old_and_drift.jsonl": {
        "sent by a task": 1,
        "type attachment": 1,
        "type mode": 1,
        "type permission-mode": 1,
        "type system": 2,
        "type tool_result": 1,
        "type tool_use": 1,
    },
    "claude-code/representative_messages.jsonl": {
        "tool_result": 2,
        "tool_use": 2,
        "type summary": 1,
    },
    "claude-code/subagents/agent-a0ad4f44468bdf20d.jsonl": {"sub-agent": 3, "type attachment": 1},
    "claude-code/tools_and_thinking_v2.jsonl": {"tool_result": 1},
    "codex/rollout_v0106.jsonl": {
        "event_msg token_count": 1,
        "injected context": 1,
        "repeats what was said": 1,
        "response_item tool_call": 1,
        "response_item tool_result": 1,
        "session_meta": 1,
        "turn_context": 1,
    },
    "gemini/session_v040.jsonl": {"$set": 1, "head of the log": 1, "tool calls": 1},
    "synthetic/aider/.aider.chat.history.md": {"command": 1, "start of a session": 2, "tool": 5},
    "synthetic/cline/task-1/ui_messages.json": {
        "ask tool": 1,
        "partial": 1,
        "say api_req_started": 1,
    },
    "synthetic/codex_v0148.jsonl": {
        "event_msg task_complete": 1,
        "event_msg token_count": 1,
        "injected context": 1,
        "repeats what was said": 2,
        "response_item function_call": 1,
        "response_item function_call_output": 1,
        "response_item message developer": 1,
        "session_meta": 1,
    },
    "synthetic/gemini_rewind.jsonl": {
        "$rewindTo": 1,
        "$set": 1,
        "head of the log": 1,
        "rewound": 1,
        "type info": 1,
        "written again, the last one counts": 1,
    },
    "synthetic/hostile.jsonl": {"tool_result": 1},
    "synthetic/openwebui_export.json": {"another branch": 1},
    "synthetic/slack_export/general/2030-01-02.json": {"channel_join": 1},
}
REFUSED = {
    "LICENSES/daaain+claude-code-log.txt",
    "LICENSES/jazzyalex+agent-sessions.txt",
    "LICENSES/mitkury+chatgpt-export-parser.txt",
    "synthetic/otel_genai_event.json",
}
BESIDE = {
    "synthetic/cline/task-1/api_conversation_history.json",
    "synthetic/slack_export/channels.json",
    "synthetic/slack_export/users.json",
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the examples are not on this machine")
def test_every_example_in_one_project_by_one_run(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    git = GitSource.make(tmp_path / "source", {"README.md": "# Beacon\n\nText.\n"})
    sources = (SessionSource(path=SHARED, pattern="**/*"),)
    index = make_index(Project(slug="p", path=git.path, sessions=sources))
    reindex(index, embed=False)
    found = ask(database_url, "select path, turns, left_out, refused, beside from session_logs")
    by_path = {str(Path(row["path"]).relative_to(SHARED)): row for row in found}
    assert {path: row["turns"] for path, row in by_path.items() if row["turns"] or path in IN} == IN
    for path, kinds in OUT.items():
        assert by_path[path]["left_out"] == kinds, path
    assert {path for path, row in by_path.items() if row["refused"]} == REFUSED
    assert {path for path, row in by_path.items() if row["beside"]} == BESIDE
    assert set(by_path) == set(IN) | REFUSED | BESIDE
    lines = {
        "claude-code/many_line_types_v2.jsonl": 89,
        "codex/rollout_v0146_all_events.jsonl": 118,
    }
    for path, number in lines.items():
        row = by_path[path]
        assert row["turns"] + sum(row["left_out"].values()) == number, path
    said = covered(index, Scope.SESSION)
    assert said.turns == sum(IN.values())
    # Two lines of the hostile log, and the files that are none; its half line is read next time.
    assert (said.failed, said.skipped) == (len(REFUSED) + 2, len(BESIDE) + 1)
    before = documents_of(database_url)
    reindex(index, scopes=[Scope.SESSION], full=True, embed=False)
    assert documents_of(database_url) == before
    texts = json.dumps([passage["content"] for passage in passages_of(database_url)])
    assert "Do thing" not in texts
    assert "to be undone" not in texts
    assert "first answer, later regenerated" not in texts
