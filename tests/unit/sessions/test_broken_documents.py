"""Documents of which not everything can be read: what is whole is read, the rest is counted."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.sessions import aider, slack
from concordance.sessions.documents import Broken, read_document
from concordance.sessions.events import LogContent
from concordance.sessions.lines import LineError
from concordance.sessions.reader import LogContext, NotThisFormat
from concordance.sessions.registry import by_name, read
from tests.session_logs import ANSWER, EXAMPLES, QUESTION, Example

READERS = by_name()
LISTS = [e for e in EXAMPLES if e.format in ("chatgpt", "open-webui", "cline", "slack")]
NAMES = {example.format: example.name for example in EXAMPLES}


def read_entries(of: str, parts: list[bytes], end: bytes = b"]") -> LogContent:
    data = b"[" + b",".join(parts) + end
    named, found = read(data, LogContext(NAMES[of]), READERS)
    assert named == of
    assert read(data, LogContext(NAMES[of]), READERS, of) == (named, found)
    return found


def parts_of(example: Example) -> list[bytes]:
    return [json.dumps(entry).encode() for entry in json.loads(example.data)]


def said(content: LogContent) -> list[tuple[str, str]]:
    return [(event.speaker, event.text) for event in content.events]


# --- one bad entry costs itself alone --------------------------------------------------------

BAD: list[tuple[bytes, str]] = [
    (b"null", ""),
    (b'"text"', ""),
    (b"7", ""),
    (b"[]", ""),
    (b'{"mapping": 7, "history": [], "chat": "x"}', ""),
    (b'{"a": \\q}', "not JSON: Expecting value at line 1, character"),
    (b'{"a": 1,}', "not JSON: Expecting property name"),
    (b'{"a": "\xff"}', "not UTF-8 at line 1, character"),
    (b'{"a": ' + b"9" * 5_000 + b"}", "Exceeds the limit"),
    (b"[" * 100_000 + b"]" * 100_000, "nested too deeply, from line 1, character"),
    (b"", "not JSON: Expecting value"),
    (b'{"a": 1} {"b": 2}', "not JSON: no comma at line 1, character"),
]


@pytest.mark.parametrize("example", LISTS, ids=lambda example: example.format)
@pytest.mark.parametrize(("bad", "reason"), BAD, ids=lambda value: repr(value)[:24])
def test_a_bad_entry_costs_itself_alone_wherever_it_stands(
    example: Example, bad: bytes, reason: str
) -> None:
    good = parts_of(example)
    whole = read(example.data, LogContext(example.name), READERS)[1]
    for place in range(len(good) + 1):
        if example.format == "cline" and not place and bad.startswith(b'{"mapping'):
            continue  # an object is a message of no type there
        found = read_entries(example.format, [*good[:place], bad, *good[place:]])
        assert said(found) == said(whole) == [("human", QUESTION), ("agent", ANSWER)]
        if example.format == "cline" and bad.startswith(b'{"mapping'):
            assert found.left_out == {**whole.left_out, "no type": 1}
            continue
        assert found.left_out == whole.left_out
        (problem,) = found.problems
        assert (problem.line, problem.unfinished) == (place + 1, False)
        assert reason in problem.reason
        assert not found.cut


def test_an_older_session_of_gemini_has_bad_entries_as_well() -> None:
    messages = [
        b'"x"',
        b'{"id":"1","type":"user","content":"Why?"}',
        b'{"id":"2","type":"user","content":"\xfe"}',
        b'{"id":"3","type":"gemini","content":"So."}',
    ]
    data = b'{\n"sessionId":"s","messages":[' + b",\n".join(messages) + b'],"summary":"T"}'
    named, found = read(data, LogContext("chats/session-1.json"), READERS)
    assert (named, said(found)) == ("gemini", [("human", "Why?"), ("agent", "So.")])
    assert [(p.line, p.unit) for p in found.problems] == [(1, "entry"), (3, "entry")]
    assert "not UTF-8 at line 4, character" in found.problems[1].reason
    assert [(n.session_id, n.title) for n in found.notes] == [("s", "T")]


def test_names_of_users_outlive_a_bad_entry() -> None:
    users = b'[{"id":"U1","name":"ana"},{"id":"U2","name":"\xff"},null]'
    message = {"type": "message", "ts": "1.1", "user": "U1", "text": "Hi"}
    context = LogContext("export/general/2030-01-02.json", {slack.USERS: users})
    (event,) = slack.read_slack(json.dumps([message]).encode(), context).events
    assert event.author == "ana"


# --- messages of a tree ----------------------------------------------------------------------


def chatgpt(mapping: dict[str, Any], **more: Any) -> LogContent:
    whole = [{"conversation_id": "s", "mapping": mapping} | more]
    return read(json.dumps(whole).encode(), LogContext(NAMES["chatgpt"]), READERS)[1]


def webui(messages: dict[str, Any], current: object) -> LogContent:
    chat = {"history": {"currentId": current, "messages": messages}}
    data = json.dumps([{"id": "s", "chat": chat}]).encode()
    return read(data, LogContext(NAMES["open-webui"]), READERS)[1]


def message(text: str, role: str = "user") -> dict[str, Any]:
    return {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}}


def test_chatgpt_bad_nodes_are_counted_and_cost_no_others() -> None:
    found = chatgpt(
        {
            "root": {"parent": None, "message": None},
            "a": {"parent": "root", "message": message("Why?")},
            "b": {"parent": "a", "message": "text"},
            "c": {"parent": "b", "message": message("So.", "assistant")},
            "d": None,
            "e": "text",
            "f": {"parent": 7, "message": ["x"]},
        },
        current_node="c",
    )
    assert said(found) == [("human", "Why?"), ("agent", "So.")]
    assert (found.left_out, found.problems) == ({"malformed": 4}, ())


def test_open_webui_bad_messages_are_counted_and_cost_no_others() -> None:
    messages = {
        "1": {"parentId": None, "role": "user", "content": "Why?"},
        "2": None,
        "3": {"parentId": "1", "role": "assistant", "content": "So."},
        "4": "text",
    }
    for current in ("3", None, "2", "never", 7):
        found = webui(messages, current)
        assert said(found) == [("human", "Why?"), ("agent", "So.")]
        assert found.left_out == {"malformed": 2}


@pytest.mark.parametrize("current", ["a", "b", None, "never"])
def test_parents_that_go_round_in_a_circle_are_read_once(current: str | None) -> None:
    found = chatgpt(
        {
            "a": {"parent": "b", "message": message("one")},
            "b": {"parent": "a", "message": message("two")},
        },
        current_node=current,
    )
    assert sorted(text for _, text in said(found)) == ["one", "two"]
    found = webui(
        {
            "a": {"parentId": "b", "role": "user", "content": "one"},
            "b": {"parentId": "b", "role": "user", "content": "two"},
        },
        current,
    )
    assert len(found.events) + found.left_out.get("another branch", 0) == 2


def test_a_parent_that_is_not_there_ends_the_branch() -> None:
    found = webui(
        {
            "1": {"parentId": None, "role": "user", "content": "before"},
            "2": {"parentId": "gone", "role": "user", "content": "Why?"},
            "3": {"parentId": "2", "role": "assistant", "content": "So."},
        },
        "3",
    )
    assert said(found) == [("human", "Why?"), ("agent", "So.")]
    assert found.left_out == {"another branch": 1}


# --- a document that breaks off --------------------------------------------------------------


@pytest.mark.parametrize("of", ["cline", "slack"])
def test_what_is_whole_is_read_wherever_a_document_breaks_off(of: str) -> None:
    example = next(e for e in EXAMPLES if e.format == of)
    parts = parts_of(example)
    data = b"[" + b",\n".join(parts) + b"]"
    ends = [1 + sum(map(len, parts[:n])) + 2 * (n - 1) for n in range(1, len(parts) + 1)]
    for cut in range(ends[0], len(data) - 1):
        _, found = read(data[:cut], LogContext(example.name), READERS)
        whole = sum(cut >= end for end in ends)
        assert len(found.events) + sum(found.left_out.values()) == whole
        (problem,) = found.problems
        assert (problem.line, problem.unit) == (whole + 1, "entry")
        assert problem.reason.startswith("the document breaks off at line")
        assert found.cut


def test_an_older_session_of_gemini_that_breaks_off_is_read_as_far_as_it_is_whole() -> None:
    start = '{"sessionId":"s","messages":[{"id":"1","type":"user","content":"Why?"}'
    for rest in ("", ",", ',{"id":"2","type":"gem', ',{"id":"2"'):
        named, found = read((start + rest).encode(), LogContext("session-1.json"), READERS)
        assert (named, said(found), found.cut) == ("gemini", [("human", "Why?")], True)
        assert [p.line for p in found.problems] == [2]
    named, found = read((start + '],"summ').encode(), LogContext("session-1.json"), READERS)
    assert (said(found), found.cut, len(found.problems)) == ([("human", "Why?")], True, 1)


@pytest.mark.parametrize("cut", [2, 30, 80])
def test_where_nothing_is_whole_it_is_said_where_it_breaks(cut: int) -> None:
    example = next(e for e in EXAMPLES if e.format == "chatgpt")
    for named in (None, "chatgpt"):
        with pytest.raises(NotThisFormat, match=r"no whole JSON document: .* at line 1, char"):
            read(example.data[:cut], LogContext(example.name), READERS, named)


def test_a_quote_too_few_makes_nothing_an_entry_that_was_said_in_one() -> None:
    found = read_document(b'[{"a": 1},\n{"a": "he"said"},\n{"a": "}, {\\"b\\": 2}, "}]')
    assert found.value[0] == {"a": 1}
    assert [type(entry) for entry in found.value[1:]] == [Broken, Broken]
    assert "line 2, character 11" in found.value[1].reason
    found = read_document(b'[{"a": 1},\n{"a": "he"said"},\n{"a": "b"}]')
    assert (found.value[0], found.cut, len(found.value)) == ({"a": 1}, True, 2)
    assert found.value[1].reason.startswith("the document breaks off at line 2, character 1")


def test_what_stands_after_a_list_is_counted() -> None:
    found = read_document(b'[{"a": 1}]\n[{"b": 2}]')
    assert found.value == [{"a": 1}, Broken("more stands after the list at line 2, character 1")]
    assert not found.cut


def test_lines_of_json_are_no_document() -> None:
    for data in (b'{"a": [1]}\n{"b": [2]}\n', b'{"a": [1]}\n{"b', b"7 7", b"", b"[", b"[\xff]"):
        with pytest.raises(LineError):
            read_document(data)


@given(st.binary(max_size=80))
def test_no_bytes_at_all_break_the_reading_of_a_document(data: bytes) -> None:
    for whole in (data, b"[1," + data, b'{"a":[1,' + data):
        with suppress(LineError):
            read_document(whole)


@given(
    st.lists(st.sampled_from([b'{"a":1}', b"null", b'"x"', b"[", b"}", b'"', b",", b"\xff", b" "]))
)
def test_entries_that_are_read_are_entries_that_were_written(parts: list[bytes]) -> None:
    data = b"[1," + b"".join(parts)
    try:
        found = read_document(data)
    except LineError:
        return
    written = data.replace(b" ", b"").decode(errors="replace")
    for entry in found.value:
        shown = "" if isinstance(entry, Broken) else json.dumps(entry, separators=(",", ":"))
        assert shown.replace(" ", "") in written
    assert found.value[0] == 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "data",
    [
        b'[1,{"a":' + b'},{"a":' * 100_000,
        b"[1," + b'{"a":"x' * 100_000,
        b'[1,"' + b'\\"' * 500_000,
        b'[1,"' + b"\\" * 500_000,
        b"[1," + b"\xff," * 100_000 + b"1]",
        b"[1," + b"{" * 500_000,
    ],
    ids=lambda data: repr(data[:16]),
)
def test_a_document_made_to_be_slow_takes_time_that_grows_with_its_length(data: bytes) -> None:
    assert read_document(data).value[0] == 1


# --- Aider's history -------------------------------------------------------------------------

HISTORY = b"""# aider chat started at 2030-01-02 03:04:05

> Aider v0.80.0

#### Why is it dark?

Its clock ran slow.
The buoy \xff was late.
So it was.

#### and \xfe the other?

That one is fine.
"""
PLACE = LogContext("demo/.aider.chat.history.md")


def test_aider_a_line_that_is_not_utf_8_costs_itself_alone() -> None:
    found = aider.read_aider(HISTORY, PLACE)
    assert said(found) == [
        ("human", "Why is it dark?"),
        ("agent", "Its clock ran slow.\nSo it was."),
        ("agent", "That one is fine."),
    ]
    assert [(p.line, p.reason, p.unit) for p in found.problems] == [
        (8, "not UTF-8 at byte 10 of the line", "line"),
        (11, "not UTF-8 at byte 10 of the line", "line"),
    ]


def test_aider_a_fence_that_is_not_utf_8_is_one_all_the_same() -> None:
    data = b"#### go\n\n```sh \xff\n#### a comment\n```\n\n#### thanks\n"
    found = aider.read_aider(data, PLACE)
    assert [speaker for speaker, _ in said(found)] == ["human", "agent", "human"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_aider_lines_may_end_as_on_any_system(end: bytes, mark: bytes) -> None:
    example = next(e for e in EXAMPLES if e.format == "aider")
    data = mark + example.data.replace(b"\n", end)
    for name in (example.name, "notes/history.md"):
        named, found = read(data, LogContext(name), READERS)
        assert (named, said(found)) == ("aider", list(example.said))
        assert [e.event_id for e in found.events] == ["line-6", "line-8"]


def test_aider_binary_data_under_its_name_is_refused() -> None:
    with pytest.raises(NotThisFormat, match="NUL"):
        aider.read_aider("#### hello there\n\nyes\n".encode("utf-16-le"), PLACE)
    assert len(aider.read_aider(b"#### a\0b\n", PLACE).events) == 1


# --- other encodings and line ends -----------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.format)
def test_a_log_in_another_encoding_is_refused_as_a_document_is(
    example: Example, encoding: str
) -> None:
    data = example.data.decode().encode(encoding)
    for named in (None, example.format):
        with pytest.raises(NotThisFormat, match="not UTF-8: the file starts with the mark of UTF-"):
            read(data, LogContext(example.name), READERS, named)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.format)
def test_every_format_is_read_whatever_ends_its_lines(
    example: Example, mark: bytes, end: bytes
) -> None:
    data = mark + example.data.replace(b"\n", end)
    named, found = read(data, LogContext(example.name), READERS)
    assert (named, said(found)) == (example.format, list(example.said))
    assert found.problems == ()


def test_a_bad_byte_in_a_log_of_lines_costs_its_line_alone() -> None:
    for example in EXAMPLES:
        if example.format in ("jsonl", "claude-code", "codex", "gemini"):
            data = example.data.replace(b"Its clock", b"Its \xff clock")
            named, found = read(data, LogContext(example.name), READERS)
            assert (named, said(found)) == (example.format, [("human", QUESTION)])
            assert [p.reason[:9] for p in found.problems] == ["not UTF-8"]
