"""Codex: each kind of record, and why it is in or out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from concordance.sessions.codex import read_codex
from concordance.sessions.events import LogContent, Workplace
from concordance.sessions.reader import LogContext


def record(of: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2030-01-02T03:04:05Z", "type": of, "payload": payload}


def meta(**more: Any) -> dict[str, Any]:
    return record("session_meta", id="s", cwd="/src/buoy", **more)


def item(kind: str, text: str, number: str) -> dict[str, Any]:
    content = [{"type": "text" if kind == "UserMessage" else "Text", "text": text}]
    return record(
        "event_msg", type="item_completed", item={"type": kind, "id": number, "content": content}
    )


def message(role: str, text: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return record(
        "response_item", type="message", role=role, content=[{"type": part, "text": text}]
    )


def read(*lines: object, **context: Any) -> LogContent:
    data = "".join(json.dumps(one) + "\n" for one in lines).encode()
    return read_codex(data, LogContext("sessions/rollout-1.jsonl", **context))


def texts(content: LogContent) -> list[str]:
    return [event.text for event in content.events]


LINES: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("a person, newer", item("UserMessage", "Why?", "u1"), "Why?", ""),
    ("the agent, newer", item("AgentMessage", "So.", "a1"), "So.", ""),
    ("a person, older", record("event_msg", type="user_message", message="Why?"), "Why?", ""),
    ("the agent, older", record("event_msg", type="agent_message", message="So."), "So.", ""),
    ("a person, where nothing else says it", message("user", "Why?"), "Why?", ""),
    ("the agent, where nothing else says it", message("assistant", "So."), "So.", ""),
    ("words after what the editor shows",
     item("UserMessage", "# Context from my IDE setup:\nx\n## My request for Codex:\nWhy?\n", "u"),
     "Why?", ""),
    ("the developer", message("developer", "Be brief"), None, "response_item message developer"),
    ("injected context", message("user", "<environment_context>x</environment_context>"), None,
     "injected context"),
    ("injected instructions", message("user", "# AGENTS.md instructions for /work\nx"), None,
     "injected context"),
    ("injected context, newer", item("UserMessage", "<user_instructions>x", "u"), None,
     "injected context"),
    ("context with a kind",
     record("event_msg", type="user_message", message="x", kind="environment_context"), None,
     "injected context"),
    ("a thought", record("response_item", type="reasoning", summary=[]), None,
     "response_item reasoning"),
    ("a thought, newer", item("Reasoning", "hm", "r"), None, "event_msg item_completed Reasoning"),
    ("a call", record("response_item", type="function_call", name="ls"), None,
     "response_item function_call"),
    ("what it gave", record("response_item", type="function_call_output", output="x"), None,
     "response_item function_call_output"),
    ("a turn's settings", record("turn_context", cwd="/work"), None, "turn_context"),
    ("a compaction", record("compacted", message="x"), None, "compacted"),
    ("tokens", record("event_msg", type="token_count"), None, "event_msg token_count"),
    ("no words", record("event_msg", type="user_message", message=" "), None, "nothing said"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "one", "text", "kind"), LINES, ids=[what for what, *_ in LINES])
def test_each_kind_of_record_is_in_or_out(
    what: str, one: dict[str, Any], text: str | None, kind: str
) -> None:
    found = read(meta(), one)
    assert texts(found) == ([] if text is None else [text])
    assert found.left_out == {"session_meta": 1} | ({} if text is not None else {kind: 1})


def test_what_stands_twice_is_read_once() -> None:
    found = read(
        meta(),
        message("user", "Why?"),
        item("UserMessage", "Why?", "u1"),
        item("AgentMessage", "So.", "a1"),
        message("assistant", "So."),
        record("event_msg", type="task_complete", last_agent_message="So."),
    )
    assert [(e.event_id, e.text) for e in found.events] == [("u1", "Why?"), ("a1", "So.")]
    assert found.left_out["repeats what was said"] == 2


def test_where_one_side_stands_among_the_responses_alone_they_are_read() -> None:
    found = read(
        meta(),
        record("event_msg", type="user_message", message="Start"),
        message("user", "Start"),
        message("assistant", "Acknowledged."),
        message("user", "<environment_context>x"),
        message("user", "Step 1"),
        message("assistant", "Ok"),
    )
    assert texts(found) == ["Start", "Acknowledged.", "Step 1", "Ok"]
    assert found.left_out == {"injected context": 1, "repeats what was said": 1, "session_meta": 1}


def test_a_log_that_went_on_with_a_newer_version_is_read_whole() -> None:
    found = read(
        meta(),
        record("event_msg", type="user_message", message="Old"),
        record("event_msg", type="agent_message", message="Older"),
        item("UserMessage", "New", "u1"),
        item("AgentMessage", "Newer", "a1"),
        item("AgentMessage", "Newest", "a1"),
    )
    assert texts(found) == ["Old", "Older", "New", "Newer", "Newest"]
    assert len({event.event_id for event in found.events}) == 5


def test_turns_that_were_rolled_back_are_gone() -> None:
    found = read(
        meta(),
        item("UserMessage", "One", "u1"),
        item("AgentMessage", "1", "a1"),
        message("user", "Two"),
        item("UserMessage", "Two", "u2"),
        item("AgentMessage", "2", "a2"),
        record("event_msg", type="thread_rolled_back", num_turns=1),
        item("UserMessage", "Three", "u3"),
        item("AgentMessage", "3", "a3"),
    )
    assert texts(found) == ["One", "1", "Three", "3"]
    assert found.left_out["rolled back"] == 3


def test_a_fork_is_a_session_of_its_own() -> None:
    found = read(
        meta(forked_from_id="t"), record("session_meta", id="t"), item("UserMessage", "Why?", "u")
    )
    assert {event.session_id for event in found.events} == {"s"}


def test_a_sub_agents_session_is_left_out_unless_it_is_wanted() -> None:
    lines = [meta(source={"subagent": {"other": "x"}}), item("UserMessage", "Find it", "u1")]
    found = read(*lines)
    assert (found.events, found.left_out["sub-agent"]) == ((), 1)
    assert [note.session_id for note in found.notes] == ["s"]
    assert texts(read(*lines, subagents=True)) == ["Find it"]


def test_a_session_knows_its_name_and_the_commit_that_it_started_from() -> None:
    git = {"branch": "main", "commit_hash": "c0ffee", "repository_url": "https://example.org/r"}
    found = read(
        meta(git=git), record("event_msg", type="thread_name_updated", thread_name="The buoy")
    )
    (note,) = found.notes
    assert (note.title, note.workplace) == ("The buoy", Workplace("/src/buoy", "main", "c0ffee"))


def test_the_oldest_logs_have_no_envelope() -> None:
    found = read(
        {"id": "s", "timestamp": "2025-01-02T03:04:05Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why?"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "So."}],
        },
        {"type": "reasoning", "summary": []},
    )
    assert [(e.session_id, e.text) for e in found.events] == [("s", "Why?"), ("s", "So.")]


# --- what stands as an event and as a response ------------------------------------------------


def user(text: str) -> dict[str, Any]:
    return record("event_msg", type="user_message", message=text)


def agent(text: str) -> dict[str, Any]:
    return record("event_msg", type="agent_message", message=text)


E, R, A, B = user("Ok"), message("user", "Ok"), agent("Done."), message("assistant", "Done.")
ORDERS: list[tuple[str, list[dict[str, Any]], list[str]]] = [
    ("event first", [E, R, A, B], ["Ok", "Done."]),
    ("response first", [R, E, B, A], ["Ok", "Done."]),
    ("crossed", [E, R, B, A], ["Ok", "Done."]),
    ("with what is no speech between", [R, record("turn_context"), E, B, record("compaction"), A],
     ["Ok", "Done."]),
    ("with injected context between", [E, message("user", "<environment_context>x"), R, A, B],
     ["Ok", "Done."]),
    ("the agent in responses alone", [E, R, B], ["Ok", "Done."]),
    ("the person in responses alone", [R, A, B], ["Ok", "Done."]),
    ("the same again", [E, R, B, E, R, B], ["Ok", "Done.", "Ok", "Done."]),
    ("the same again without an answer", [E, R, E, R, B], ["Ok", "Ok", "Done."]),
    ("the same again, events first", [E, E, R, R, B], ["Ok", "Ok", "Done."]),
    ("the same again, in responses alone", [R, R, B, B], ["Ok", "Ok", "Done.", "Done."]),
    ("first as a response alone, then as both", [R, B, E, R, B], ["Ok", "Done.", "Ok", "Done."]),
    ("first as both, then as a response alone", [E, R, B, R, B], ["Ok", "Done.", "Ok", "Done."]),
    ("a log that an older version began", [R, B, E, R, A, B], ["Ok", "Done.", "Ok", "Done."]),
    ("lines that are broken otherwise", [user("Ok\n"), R, B], ["Ok\n", "Done."]),
    ("a message and an item", [E, item("UserMessage", "Ok", "u"), A,
     item("AgentMessage", "Done.", "a")], ["Ok", "Done."]),
    ("all three", [R, E, item("UserMessage", "Ok", "u"), item("AgentMessage", "Done.", "a"), A, B],
     ["Ok", "Done."]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "lines", "said"), ORDERS, ids=[what for what, *_ in ORDERS])
def test_an_event_and_a_response_of_one_turn_are_one(
    what: str, lines: list[dict[str, Any]], said: list[str]
) -> None:
    found = read(meta(), *lines)
    assert texts(found) == said
    assert len(found.events) + sum(found.left_out.values()) == len(lines) + 1


def test_an_event_and_a_response_of_two_turns_are_two() -> None:
    for end in ("task_complete", "turn_aborted"):
        found = read(meta(), E, record("event_msg", type=end), R)
        assert texts(found) == ["Ok", "Ok"]
    assert texts(read(meta(), E, record("session_meta", id="t"), R)) == ["Ok", "Ok"]


def test_where_both_sides_speak_in_events_other_responses_are_counted_as_such() -> None:
    found = read(meta(), E, message("user", "a skill, put in"), R, A, B)
    assert texts(found) == ["Ok", "Done."]
    assert found.left_out["in the responses alone"] == 1


def test_a_turn_in_three_kinds_of_record_is_rolled_back_as_one() -> None:
    both = [R, E, item("UserMessage", "Ok", "u"), B, A]
    back = record("event_msg", type="thread_rolled_back", num_turns=1)
    found = read(meta(), user("First"), agent("1"), *both, back)
    assert texts(found) == ["First", "1"]
    assert found.left_out["rolled back"] == 5
    found = read(meta(), E, R, A, E, R, A, back)
    assert texts(found) == ["Ok", "Done."]
