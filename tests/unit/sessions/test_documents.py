"""Formats of one JSON document or of Markdown: each kind of entry, and why it is in or out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from concordance.sessions import chatgpt, cline, gemini, open_webui, slack
from concordance.sessions.events import LogContent
from concordance.sessions.reader import LogContext, NotThisFormat, Reader


def read(reader: Reader, value: object, name: str = "logs/x.json", **more: Any) -> LogContent:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return reader.read(data, LogContext(name, **more))


def lines(*values: object) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def said(content: LogContent) -> list[tuple[str, str]]:
    return [(event.speaker, event.text) for event in content.events]


# --- Gemini CLI ------------------------------------------------------------------------------

HEAD = {"sessionId": "s", "projectHash": "h", "startTime": "2030-01-01T00:00:00Z", "kind": "main"}
GEMINI: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("a person", {"id": "1", "type": "user", "content": [{"text": "Why?"}]}, "Why?", ""),
    ("a person who names a file",
     {"id": "1", "type": "user", "content": [{"text": "Why @a?"}, {"text":
      "--- Content from referenced files ---\nx"}]}, "Why @a?", ""),
    ("a person's only part", {"id": "1", "type": "user", "content": {"text": "Why?"}}, "Why?", ""),
    ("the agent", {"id": "1", "type": "gemini", "content": "So."}, "So.", ""),
    ("the agent with a call", {"id": "1", "type": "gemini", "content": "So.", "toolCalls": [{}]},
     "So.", ""),
    ("calls alone", {"id": "1", "type": "gemini", "content": "", "toolCalls": [{}]}, None,
     "tool calls"),
    ("thoughts alone", {"id": "1", "type": "gemini", "content": "", "thoughts": [{}]}, None,
     "nothing said"),
    ("a notice", {"id": "1", "type": "info", "content": "x"}, None, "type info"),
    ("an error", {"id": "1", "type": "error", "content": "x"}, None, "type error"),
    ("a warning", {"id": "1", "type": "warning", "content": "x"}, None, "type warning"),
    ("bookkeeping", {"$set": {"lastUpdated": "x"}}, None, "$set"),
    ("context", {"id": "1", "type": "user", "content": "<session_context>x"}, None,
     "injected context"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "one", "text", "kind"), GEMINI, ids=[w for w, *_ in GEMINI])
def test_gemini_each_kind_of_line_is_in_or_out(
    what: str, one: dict[str, Any], text: str | None, kind: str
) -> None:
    found = read(gemini.READER, lines(HEAD, one))
    assert [event.text for event in found.events] == ([] if text is None else [text])
    assert found.left_out == {"head of the log": 1} | ({} if text is not None else {kind: 1})


def test_gemini_the_last_writing_counts_and_a_rewind_takes_back() -> None:
    found = read(
        gemini.READER,
        lines(
            HEAD,
            {"id": "1", "type": "user", "content": "one"},
            {"id": "2", "type": "gemini", "content": ""},
            {"id": "2", "type": "gemini", "content": "two"},
            {"id": "3", "type": "user", "content": "undone"},
            {"id": "4", "type": "gemini", "content": "undone too"},
            {"$rewindTo": "3"},
            {"$rewindTo": "never"},
            {"id": "5", "type": "user", "content": "three"},
        ),
    )
    assert said(found) == [("human", "one"), ("agent", "two"), ("human", "three")]
    assert found.left_out["rewound"] == 2


def test_gemini_messages_that_are_set_anew_without_ids_are_all_kept() -> None:
    messages: list[Any] = [{"type": "user", "content": text} for text in ("one", "two")]
    data = lines(HEAD, {"id": "9", "type": "user", "content": "gone"}, {"$set": {"messages": []}})
    data += lines({"$set": {"messages": [*messages, 7]}})
    found = read(gemini.READER, data)
    assert said(found) == [("human", "one"), ("human", "two")]
    assert found.left_out == {"head of the log": 1, "$set": 2, "rewound": 1, "malformed": 1}


def test_gemini_older_sessions_are_one_document() -> None:
    whole = HEAD | {"messages": [{"id": "1", "type": "user", "content": "Why?"}, 7]}
    found = read(gemini.READER, json.dumps(whole, indent=2).encode())
    assert said(found) == [("human", "Why?")]
    assert [(p.line, p.unit) for p in found.problems] == [(2, "entry")]


def test_gemini_a_sub_agents_session_is_left_out_unless_it_is_wanted() -> None:
    data = lines(HEAD | {"kind": "subagent"}, {"id": "1", "type": "user", "content": "Find it"})
    assert read(gemini.READER, data).left_out["sub-agent"] == 1
    assert said(read(gemini.READER, data, subagents=True)) == [("human", "Find it")]


# --- ChatGPT ---------------------------------------------------------------------------------


def node(name: str, parent: str | None, message: dict[str, Any] | None) -> dict[str, Any]:
    return {"id": name, "parent": parent, "children": [], "message": message}


def spoken(role: str, *parts: object, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    return {"author": {"role": role}, "content": content, "create_time": 1.5} | more


CHATGPT: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("a person", spoken("user", "Why?"), "Why?", ""),
    ("the assistant", spoken("assistant", "So.", "Therefore."), "So.\n\nTherefore.", ""),
    ("words beside a picture",
     spoken("user", {"content_type": "image_asset_pointer"}, "What?",
            content={"content_type": "multimodal_text",
                     "parts": [{"content_type": "image_asset_pointer"}, "What?"]}), "What?", ""),
    ("what was spoken aloud",
     spoken("user", content={"content_type": "multimodal_text", "parts": [{"text": "Hi"}]}),
     "Hi", ""),
    ("no time", spoken("user", "Why?", create_time=None), "Why?", ""),
    ("a citation", spoken("assistant", "So. \ue200cite\ue202turn0\ue201"), "So. ", ""),
    ("the system", spoken("system", "x"), None, "role system"),
    ("a tool", spoken("tool", "x"), None, "role tool"),
    ("hidden", spoken("user", "x", metadata={"is_visually_hidden_from_conversation": True}), None,
     "hidden"),
    ("to a tool", spoken("assistant", "x", recipient="python"), None, "to a tool"),
    ("code", spoken("assistant", content={"content_type": "code", "text": "x"}), None,
     "content code"),
    ("thoughts", spoken("assistant", content={"content_type": "thoughts"}), None,
     "content thoughts"),
    ("nothing", spoken("user", ""), None, "nothing said"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "one", "text", "kind"), CHATGPT, ids=[w for w, *_ in CHATGPT])
def test_chatgpt_each_kind_of_message_is_in_or_out(
    what: str, one: dict[str, Any], text: str | None, kind: str
) -> None:
    mapping = {"root": node("root", None, None), "m": node("m", "root", one)}
    found = read(
        chatgpt.READER, [{"conversation_id": "s", "current_node": "m", "mapping": mapping}]
    )
    assert [event.text for event in found.events] == ([] if text is None else [text])
    assert found.left_out == ({} if text is not None else {kind: 1})


def test_chatgpt_the_current_branch_alone_is_read_and_a_circle_ends() -> None:
    mapping = {
        "a": node("a", "d", spoken("user", "Why?")),
        "b": node("b", "a", spoken("assistant", "first answer")),
        "c": node("c", "a", spoken("assistant", "second answer")),
        "d": node("d", "c", spoken("user", "Thanks.")),
    }
    one = {"id": "s", "title": "T", "current_node": "d", "mapping": mapping}
    found = read(chatgpt.READER, [one, 7, {"id": "t"}])
    assert [text for _, text in said(found)] == ["Why?", "second answer", "Thanks."]
    assert found.left_out == {"another branch": 1}
    assert [(p.line, p.unit) for p in found.problems] == [(2, "conversation"), (3, "conversation")]
    assert [(n.session_id, n.title) for n in found.notes] == [("s", "T")]


# --- Cline and Roo Code ----------------------------------------------------------------------

CLINE: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("what a person wrote back", {"say": "user_feedback", "text": "No"}, "No", ""),
    ("the agent's words", {"say": "text", "text": "I will."}, "I will.", ""),
    ("the result", {"say": "completion_result", "text": "Done.HAS_CHANGES"}, "Done.", ""),
    ("a question", {"ask": "followup", "text": '{"question": "Which?", "options": ["1"]}'},
     "Which?", ""),
    ("a question in plain words", {"ask": "followup", "text": "Which?"}, "Which?", ""),
    ("an answer in plan mode",
     {"ask": "plan_mode_respond", "text": '{"response": "First this.", "options": ["Go"]}'},
     "First this.", ""),
    ("an answer in plan mode without words", {"ask": "plan_mode_respond", "text": "{}"}, None,
     "nothing said"),
    ("an old answer in plan mode", {"ask": "plan_mode_response", "text": "So."}, "So.", ""),
    ("an answer in plan mode that is not whole",
     {"ask": "plan_mode_respond", "text": "So", "partial": True}, None, "partial"),
    ("a result that is confirmed", {"ask": "completion_result", "text": ""}, None,
     "ask completion_result"),
    ("words that are not whole", {"say": "text", "text": "I w", "partial": True}, None, "partial"),
    ("a request", {"say": "api_req_started", "text": "{}"}, None, "say api_req_started"),
    ("a thought", {"say": "reasoning", "text": "hm"}, None, "say reasoning"),
    ("a tool", {"ask": "tool", "text": "{}"}, None, "ask tool"),
    ("a command", {"ask": "command", "text": "ls"}, None, "ask command"),
    ("no words", {"say": "text", "text": ""}, None, "nothing said"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "one", "text", "kind"), CLINE, ids=[w for w, *_ in CLINE])
def test_cline_each_kind_of_message_is_in_or_out(
    what: str, one: dict[str, Any], text: str | None, kind: str
) -> None:
    task = {"ts": 1, "type": "say", "say": "task", "text": "Do it"}
    message = {"ts": 1_893_456_000_000, "type": "ask" if "ask" in one else "say"} | one
    found = read(cline.READER, [task, message], "tasks/17/ui_messages.json")
    assert [event.text for event in found.events] == ["Do it", *([text] if text else [])]
    assert found.left_out == ({} if text is not None else {kind: 1})
    assert {event.session_id for event in found.events} == {"17"}


def test_cline_roo_writes_the_task_as_a_text() -> None:
    found = read(
        cline.READER,
        [
            {"ts": 1, "type": "say", "say": "text", "text": "Do it"},
            {"ts": 2, "type": "say", "say": "text", "text": "I will"},
            {"ts": 2, "type": "say", "say": "completion_result", "text": "Done"},
        ],
        "tasks/17/ui_messages.json",
    )
    assert said(found) == [("human", "Do it"), ("agent", "I will"), ("agent", "Done")]
    assert [event.event_id for event in found.events] == ["1", "2", "2-2"]


def test_cline_what_the_api_was_sent_is_not_read() -> None:
    name = "tasks/17/api_conversation_history.json"
    found = read(cline.READER, [{"role": "user", "content": "Do it"}], name)
    assert (found.events, found.beside is not None) == ((), True)


# --- Open WebUI ------------------------------------------------------------------------------

WEBUI: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("a person", {"role": "user", "content": "Why?"}, "Why?", ""),
    ("a model", {"role": "assistant", "content": "So.", "done": True}, "So.", ""),
    ("a model that thought",
     {"role": "assistant", "content": '<details type="reasoning">hm</details>So.'}, "So.", ""),
    ("a model that is at it", {"role": "assistant", "content": "S", "done": False}, None,
     "not done"),
    ("the system", {"role": "system", "content": "x"}, None, "role system"),
    ("no words", {"role": "user", "content": ""}, None, "nothing said"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "one", "text", "kind"), WEBUI, ids=[w for w, *_ in WEBUI])
def test_open_webui_each_kind_of_message_is_in_or_out(
    what: str, one: dict[str, Any], text: str | None, kind: str
) -> None:
    history = {"currentId": "m", "messages": {"m": one | {"parentId": None, "timestamp": 1}}}
    found = read(open_webui.READER, [{"id": "s", "chat": {"title": "T", "history": history}}, {}])
    assert [event.text for event in found.events] == ([] if text is None else [text])
    assert found.left_out == ({} if text is not None else {kind: 1})
    assert [(p.line, p.unit) for p in found.problems] == [(2, "chat")]


def test_open_webui_answers_that_were_made_again_are_left_out() -> None:
    messages = {
        "1": {"parentId": None, "role": "user", "content": "Why?"},
        "2": {"parentId": "1", "role": "assistant", "content": "first"},
        "3": {"parentId": "1", "role": "assistant", "content": "second"},
    }
    history = {"currentId": "3", "messages": messages}
    found = read(open_webui.READER, {"id": "s", "chat": {"history": history}})
    assert said(found) == [("human", "Why?"), ("agent", "second")]
    assert found.left_out == {"another branch": 1}


# --- Slack -----------------------------------------------------------------------------------

SLACK: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("a person", {"user": "U1", "text": "Hi"}, "Hi", ""),
    ("a bot", {"subtype": "bot_message", "bot_id": "B1", "text": "Built"}, "Built", ""),
    ("a bot's attachment",
     {"subtype": "bot_message", "bot_id": "B1", "text": "", "attachments": [{"fallback": "Down"}]},
     "Down", ""),
    ("an attachment that Slack could not show",
     {"bot_id": "B1", "text": "", "attachments": [{"fallback": "[no preview available]", "blocks": [
      {"type": "section", "text": {"type": "mrkdwn", "text": "*Built* by <@U2>"}},
      {"type": "actions", "elements": [{"type": "button", "text": {"text": "Retry"}}]}]}]},
     "*Built* by @Bo Example", ""),
    ("blocks alone",
     {"user": "U1", "text": "", "blocks": [
      {"type": "header", "text": {"type": "plain_text", "text": "Buoys"}},
      {"type": "section", "fields": [{"text": "North"}, {"text": "3"}]},
      {"type": "context", "elements": [{"type": "mrkdwn", "text": "since noon"}, {}]},
      {"type": "rich_text", "elements": [
       {"type": "rich_text_section", "elements": [
        {"type": "text", "text": "a < b, says "}, {"type": "user", "user_id": "U2"},
        {"type": "text", "text": " at "}, {"type": "link", "url": "https://x.org", "text": "x"}]},
       {"type": "rich_text_list", "elements": [
        {"type": "rich_text_section", "elements": [{"type": "text", "text": "one"}]},
        {"type": "rich_text_section", "elements": [{"type": "link", "url": "https://y.org"}]}]}]}]},
     "Buoys\n\nNorth\n3\n\nsince noon\n\na < b, says @Bo Example at x (https://x.org)\none\nhttps://y.org",
     ""),
    ("blocks without words", {"user": "U1", "text": "", "blocks": [{"type": "divider"}, 7, {}]},
     None, "nothing said"),
    ("a reply that is shown to all", {"subtype": "thread_broadcast", "user": "U1", "text": "Hi"},
     "Hi", ""),
    ("escapes and ids",
     {"user": "U1", "text": "<@U2> a &lt; b &amp;&amp; <https://x.org|this> <#C1|dev> <!here>"},
     "@Bo Example a < b && this (https://x.org) #dev @here", ""),
    ("Slack's own reminder", {"user": "USLACKBOT", "text": "Reminder: water"}, None, "Slackbot"),
    ("Slack's own answer",
     {"subtype": "bot_message", "bot_id": "B01", "user": "USLACKBOT", "text": "Hi"}, None,
     "Slackbot"),
    ("somebody came", {"subtype": "channel_join", "user": "U1", "text": "x"}, None, "channel_join"),
    ("somebody left", {"subtype": "channel_leave", "user": "U1", "text": "x"}, None,
     "channel_leave"),
    ("a deleted one", {"subtype": "tombstone", "text": "x"}, None, "tombstone"),
    ("no words", {"user": "U1", "text": ""}, None, "nothing said"),
]  # fmt: skip
USERS = [
    {"id": "U1", "name": "ana", "real_name": "Ana Example"},
    {"id": "U2", "name": "bo", "profile": {"real_name": "Bo Example"}},
]


@pytest.mark.parametrize(("what", "one", "text", "kind"), SLACK, ids=[w for w, *_ in SLACK])
def test_slack_each_kind_of_message_is_in_or_out(
    what: str, one: dict[str, Any], text: str | None, kind: str
) -> None:
    beside = {slack.USERS: json.dumps(USERS).encode()}
    message = {"type": "message", "ts": "1893556800.000100"} | one
    found = read(slack.READER, [message, 7], "export/general/2030-01-02.json", beside=beside)
    assert [event.text for event in found.events] == ([] if text is None else [text])
    assert found.left_out == ({} if text is not None else {kind: 1})
    assert [(p.line, p.unit) for p in found.problems] == [(2, "entry")]


def test_slack_says_who_spoke_in_which_thread_of_which_channel() -> None:
    beside = {slack.USERS: json.dumps(USERS).encode()}
    messages = [
        {"type": "message", "ts": "1.1", "user": "U1", "text": "Why?", "thread_ts": "1.1"},
        {"type": "message", "ts": "1.2", "user": "U9", "text": "So.", "thread_ts": "1.1"},
        {"type": "message", "ts": "1.3", "username": "ci", "bot_id": "B1", "text": "Built"},
        {"type": "message", "ts": "1.4", "user": "U2", "bot_id": None, "text": "Thanks"},
    ]
    found = read(slack.READER, messages, "export/general/2030-01-02.json", beside=beside)
    assert [(e.session_id, e.event_id, e.speaker, e.author, e.thread) for e in found.events] == [
        ("general", "1.1", "human", "Ana Example", "1.1"),
        ("general", "1.2", "human", "U9", "1.1"),
        ("general", "1.3", "agent", "ci", None),
        ("general", "1.4", "human", "Bo Example", None),
    ]


@pytest.mark.parametrize(
    "reader", [chatgpt.READER, cline.READER, open_webui.READER, slack.READER], ids=lambda r: r.name
)
@pytest.mark.parametrize("data", [b"[{", b"7", b'"x"', b"\xff", b"nonsense"])
def test_what_is_no_such_document_is_refused(reader: Reader, data: bytes) -> None:
    with pytest.raises(NotThisFormat):
        read(reader, data)
