"""Claude Code: each kind of line, and why it is in or out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from concordance.sessions.claude_code import read_claude_code
from concordance.sessions.events import LogContent, Workplace
from concordance.sessions.reader import LogContext


def line(of: str, content: object, uuid: str = "x", **more: Any) -> dict[str, Any]:
    message = {"role": of, "content": content} | more.pop("message", {})
    stamp = "2030-01-02T03:04:05Z"
    base = {"type": of, "uuid": uuid, "sessionId": "s", "timestamp": stamp, "message": message}
    return base | more


def read(*lines: object, **context: Any) -> LogContent:
    data = "".join(json.dumps(one) + "\n" for one in lines).encode()
    return read_claude_code(data, LogContext("logs/s.jsonl", **context))


def queued(prompt: object, uuid: str = "x", **more: Any) -> dict[str, Any]:
    attached = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"} | more
    return {"type": "attachment", "uuid": uuid, "sessionId": "s", "attachment": attached}


TEXT = [{"type": "text", "text": "Said."}]
# What a line is, the line, the text that is kept, and the kind that the rest is counted as.
LINES: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("a person's words", line("user", "Why?"), "Why?", ""),
    ("a person's words in blocks", line("user", TEXT), "Said.", ""),
    ("words beside a picture", line("user", [{"type": "image", "source": {}}, *TEXT]), "Said.", ""),
    ("the agent's words", line("assistant", TEXT), "Said.", ""),
    ("words between a thought and a call",
     line("assistant", [{"type": "thinking", "thinking": "hm"}, *TEXT, {"type": "tool_use"}]),
     "Said.", ""),
    ("two blocks of words", line("assistant", [*TEXT, *TEXT]), "Said.\n\nSaid.", ""),
    ("a person's words with a reminder of the program",
     line("user", "Why?\n<system-reminder>be brief</system-reminder>"), "Why?",
     "injected context"),
    ("words after what the editor shows",
     line("user", [{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}, *TEXT]),
     "Said.", "injected context"),
    ("what the editor shows", line("user", "<ide_selection>x</ide_selection>"), None,
     "injected context"),
    ("a thought", line("assistant", [{"type": "thinking", "thinking": "x"}]), None, "thinking"),
    ("a call of a tool", line("assistant", [{"type": "tool_use", "name": "ls"}]), None, "tool_use"),
    ("what a tool gave, as type user",
     line("user", [{"type": "tool_result", "content": "x"}]), None, "tool_result"),
    ("the same, marked as meta",
     line("user", [{"type": "tool_result", "content": "x"}], isMeta=True), None, "tool_result"),
    ("an injected text", line("user", "Caveat: be careful", isMeta=True), None, "isMeta"),
    ("the summary of a compaction",
     line("user", "This session goes on", isCompactSummary=True), None,
     "summary of what was said before"),
    ("a summary that is not marked",
     line("user", "This session is being continued from a previous conversation that ran out of "
          "context. The conversation is summarized below:\nWhy?"), None,
     "summary of what was said before"),
    ("a person's words about one",
     line("user", "This session is being continued from a previous conversation, or is it?"),
     "This session is being continued from a previous conversation, or is it?", ""),
    ("a prompt that was typed while the agent worked", queued("Said."), "Said.", ""),
    ("one in blocks, with a reminder",
     queued([*TEXT, {"type": "text", "text": "<system-reminder>x</system-reminder>"}]),
     "Said.", "injected context"),
    ("a command of the shell that was queued", queued("ls", commandMode="bash"), None,
     "type attachment"),
    ("a notice that was queued", queued("Done.", origin={"kind": "task-notification"}), None,
     "sent by a task"),
    ("what the program queued", queued("Go on", isMeta=True), None, "isMeta"),
    ("an empty prompt that was queued", queued(" "), None, "nothing said"),
    ("an error of the API", line("assistant", TEXT, isApiErrorMessage=True), None,
     "error of the API"),
    ("words that the program put in the agent's mouth",
     line("assistant", TEXT, message={"model": "<synthetic>"}), None, "written by the program"),
    ("a sub-agent's words", line("assistant", TEXT, isSidechain=True), None, "sub-agent"),
    ("a notice of a task", line("user", "Done.", origin={"kind": "task-notification"}), None,
     "sent by a task"),
    ("a command", line("user", "<command-name>/clear</command-name>"), None,
     "command or injected context"),
    ("what a command put out", line("user", "<local-command-stdout>x</local-command-stdout>"),
     None, "command or injected context"),
    ("a reminder alone", line("user", "<system-reminder>x</system-reminder>"), None,
     "injected context"),
    ("an interruption", line("user", "[Request interrupted by user for tool use]"), None,
     "interruption"),
    ("no words", line("user", "  "), None, "nothing said"),
    ("a prompt that is repeated", {"type": "last-prompt", "sessionId": "s", "lastPrompt": "Why?"},
     None, "type last-prompt"),
    ("bookkeeping", {"type": "system", "sessionId": "s", "content": "x"}, None, "type system"),
    ("what is attached", {"type": "attachment", "attachment": {}}, None, "type attachment"),
    ("a summary", {"type": "summary", "summary": "x", "leafUuid": "y"}, None, "type summary"),
    ("no type", {"sessionId": "s"}, None, "no type"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "one", "text", "kind"), LINES, ids=[what for what, *_ in LINES])
def test_each_kind_of_line_is_in_or_out(
    what: str, one: dict[str, Any], text: str | None, kind: str
) -> None:
    found = read(one)
    assert [event.text for event in found.events] == ([] if text is None else [text])
    assert found.left_out == ({kind: 1} if kind else {})
    assert (text is None) <= bool(kind)
    assert found.problems == ()


ABOUT_TAGS = [
    "Why does the <system-reminder> tag show up in my transcript? Please remove it",
    "fix `<ide_selection>` parsing in the code",
    "Explain how <system-reminder>...</system-reminder> blocks get in, and <ide_selection> too",
    "Look:\n<system-reminder>\nand that is all I see",
    "<system-reminder> begins a line\nand <ide_selection> does not",
    "<system-reminder>...</system-reminder> blocks are odd",
    "Our page:\n```xml\n<system-reminder>be brief</system-reminder>\n```\nis wrong",
    "<task-notification> is what I grep for in the log",
    "<bash-stdout> elements should be escaped",
    "<bash-stdout> and </bash-stdout> should be escaped",
    "<command-name> is in <command-name>/x</command-name> as well",
    "What is `<bash-input>ls</bash-input>`?",
]


@pytest.mark.parametrize("text", ABOUT_TAGS)
@pytest.mark.parametrize("in_blocks", [False, True])
def test_what_a_person_says_about_tags_stays_whole(text: str, in_blocks: bool) -> None:
    found = read(line("user", [{"type": "text", "text": text}] if in_blocks else text))
    assert [event.text for event in found.events] == [text]
    assert found.left_out == {}


def test_what_the_program_added_is_taken_out_wherever_it_begins_a_line_and_counted() -> None:
    added = "<system-reminder>be\n```\nbrief</system-reminder>"
    shown = "<ide_selection>x = 1</ide_selection>"
    words = "Why is `<ide_selection>` there?"
    for text, number in (
        (f"{added}{shown}\n{words}", 2),
        (f"{words}\n  {added}\n\n{shown}", 2),
        (f"{shown} {words}", 1),
        (f"{words}\n```\n{shown}\n```\n{added}", 1),
    ):
        (event,) = (found := read(line("user", text))).events
        assert event.text.replace(f"\n```\n{shown}\n```", "") == words
        assert found.left_out == {"injected context": number}
    # Code that one block leaves open does not go on in the next one.
    blocks = [{"type": "text", "text": text} for text in ("```\nx", added, words)]
    (event,) = read(line("user", blocks)).events
    assert event.text == f"```\nx\n\n{words}"


@pytest.mark.parametrize(
    "text",
    [
        "<command-message>x is running</command-message>\n<command-name>/x</command-name>",
        "<bash-stdout></bash-stdout><bash-stderr>no</bash-stderr>",
        "<bash-stdout>a </bash-stdout> b\n</bash-stdout>",
        '<teammate-message teammate_id="a">Done.</teammate-message>',
        "<task-notification>\n<task-id>1</task-id>\n</task-notification>\nFull text at: /tmp/x",
        "Caveat: The messages below were generated by the user while running local commands.",
    ],
)
def test_what_is_all_the_programs_is_no_turn(text: str) -> None:
    found = read(line("user", text))
    assert (found.events, found.left_out) == ((), {"command or injected context": 1})


@pytest.mark.parametrize("part", ["<system-reminder>", "</ide_x>", "<bash-stdout>", "\n", " "])
def test_a_text_made_to_be_slow_is_not(part: str) -> None:
    text = f"<bash-stdout>{part * 100_000}x"
    assert len(read(line("user", text)).events) == 1
    names = "".join(f"\n<ide_{'a' * (n % 97)}{'b' * (n // 97 % 97)}>{part}" for n in range(20_000))
    assert len(read(line("user", names)).events) == 1


def test_a_queued_prompt_that_stands_again_is_one_turn() -> None:
    found = read(
        line("user", "Start", "u1"),
        queued("go on", "q1"),
        queued("and test", "q2"),
        line("assistant", "On it.", "a1"),
        line("user", "and test\n", "u2"),
        line("user", "go on", "u3"),
        line("user", "go on", "u4"),
        queued("stop", "q3"),
        line("user", "wait", "u5"),
        line("user", "stop", "u6"),
    )
    assert [e.event_id for e in found.events] == [
        *("u1", "q1", "q2", "a1", "u4", "q3", "u5", "u6"),
    ]
    assert found.left_out == {"repeats a prompt that was queued": 2}


def test_one_answer_in_several_lines_is_one_event() -> None:
    def part(uuid: str, *blocks: dict[str, Any]) -> dict[str, Any]:
        return line("assistant", list(blocks), uuid, message={"id": "m1"})

    def text(said: str) -> dict[str, Any]:
        return {"type": "text", "text": said}

    found = read(
        line("user", "Go on", "u1"),
        part("a1", {"type": "thinking", "thinking": "x"}),
        part("a2", text("First.")),
        part("a3", {"type": "tool_use", "name": "ls"}),
        line("user", [{"type": "tool_result", "content": "x"}], "u2"),
        part("a4", text("Second.")),
        part("a5", text("Second.")),
        line("assistant", [text("Other.")], "a6", message={"id": "m2"}),
    )
    assert [(e.event_id, e.text) for e in found.events] == [
        ("u1", "Go on"),
        ("a2", "First.\n\nSecond."),
        ("a6", "Other."),
    ]
    assert sum(found.left_out.values()) + len(found.events) == 8


def test_what_is_taken_back_is_gone_and_what_comes_after_stays() -> None:
    found = read(
        line("assistant", "One.", "a1"),
        line("assistant", "Better.", "a2", supersedesUuids=["a1"]),
        line("assistant", "No.", "a3"),
        {"type": "system", "sessionId": "s", "retractedMessageUuids": ["a3"]},
        line("assistant", "Yes.", "a3"),
    )
    assert [(e.event_id, e.text) for e in found.events] == [("a2", "Better."), ("a3", "Yes.")]
    assert found.left_out == {"taken back": 2, "type system": 1}


def test_sub_agents_are_sessions_of_their_own_when_they_are_wanted() -> None:
    lines = [
        line("user", "Ask it", "u1"),
        line("user", "Find it", "u2", isSidechain=True, agentId="7f"),
    ]
    assert [e.session_id for e in read(*lines).events] == ["s"]
    kept = read(*lines, subagents=True)
    assert [(e.session_id, e.text) for e in kept.events] == [
        ("s", "Ask it"),
        ("s/agent-7f", "Find it"),
    ]


def test_a_session_knows_its_title_and_where_it_was_at_work() -> None:
    found = read(
        {"type": "summary", "summary": "An old one", "leafUuid": "u1"},
        line("user", "Why?", "u1", cwd="/src/buoy", gitBranch="main"),
        {"type": "ai-title", "sessionId": "s", "aiTitle": "A guess"},
        {"type": "custom-title", "sessionId": "s", "customTitle": "Mine"},
        {"type": "ai-title", "sessionId": "s", "aiTitle": "A later guess"},
    )
    (note,) = found.notes
    assert (note.title, note.workplace) == ("Mine", Workplace("/src/buoy", "main"))


def test_a_session_in_which_nobody_spoke_is_known_all_the_same() -> None:
    found = read(line("assistant", TEXT, isSidechain=True))
    assert [note.session_id for note in found.notes] == ["s"]
    assert found.events == ()


def test_a_part_of_an_answer_that_ends_like_the_one_before_is_kept() -> None:
    lines = [
        line("assistant", text, uuid, message={"id": "m"})
        for uuid, text in (("a1", "It is ok."), ("a2", "ok."), ("a3", "ok."))
    ]
    found = read(*lines)
    assert [e.text for e in found.events] == ["It is ok.\n\nok."]
    assert found.left_out == {"goes on with the answer before": 2}


def test_a_branch_that_a_rewind_left_stays_in_as_parallel_calls_look_the_same() -> None:
    found = read(
        line("user", "One?", "u1", parentUuid=None),
        line("assistant", "1", "a1", parentUuid="u1"),
        line("user", "Two?", "u2", parentUuid="a1"),
        line("assistant", "2", "a2", parentUuid="u2"),
        line("user", "Three?", "u3", parentUuid="a1"),
    )
    assert [e.text for e in found.events] == ["One?", "1", "Two?", "2", "Three?"]
