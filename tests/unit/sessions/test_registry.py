"""Which format a log has; and that no bytes at all do more than be refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.sessions.events import LeftOut, LogContent, by_session
from concordance.sessions.reader import LogContext, NotThisFormat, Reader
from concordance.sessions.registry import BUILT_IN, by_name, read
from tests.planted import planted
from tests.session_logs import EXAMPLES, Example

READERS = by_name()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.format)
def test_each_format_is_told_by_what_a_log_holds(example: Example) -> None:
    context = LogContext(example.name)
    name, found = read(example.data, context, READERS)
    assert name == example.format
    assert [(e.speaker, e.text) for e in found.events] == list(example.said)
    assert read(example.data, context, READERS, example.format) == (name, found)


def test_there_is_an_example_of_each_format() -> None:
    assert {example.format for example in EXAMPLES} == {reader.name for reader in BUILT_IN}


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b'{"when": "x", "name": "y"}', "one JSON object with the keys 'when', 'name'"),
        (b'[{"a": 1}, 2]', "a JSON list of 2, the first object with the keys 'a'"),
        (b"[]", "a JSON list of 0"),
        (b'{"a": 1}\n{"b": 2}\n', "JSON lines, the first object with the keys 'a'"),
        (b"{}\n{}\n", "JSON lines, the first object with no keys"),
        (b"\x1f\x8b\0\0binary", "binary data"),
        (b"Dear diary,\n", "text that is no JSON"),
        (json.dumps({f"k{n}": n for n in range(20)}).encode(), "'k7', …"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_refused_with_what_was_seen(data: bytes, seen: str) -> None:
    with pytest.raises(NotThisFormat, match="no known format of session logs") as refused:
        read(data, LogContext("x"), READERS)
    assert seen in str(refused.value)


def test_a_refusal_repeats_nothing_that_was_said() -> None:
    with pytest.raises(NotThisFormat) as refused:
        read(b'{"note": "the password is otter"}', LogContext("x"), READERS)
    assert "otter" not in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_log_holds_nothing(data: bytes) -> None:
    assert read(data, LogContext("x"), READERS) == (None, LogContent(()))


def test_a_log_of_half_a_line_is_read_next_time() -> None:
    name, found = read(b'{"type":"user","uuid":"1","sess', LogContext("x"), READERS)
    (problem,) = found.problems
    assert (name, problem.line, problem.unfinished) == (None, 1, True)


def test_readers_of_other_packages_are_asked_last() -> None:
    def take_all(data: bytes, _context: LogContext) -> LogContent:
        return LogContent((), left_out={"bytes": len(data)})

    greedy = Reader("greedy", "anything", ("**/*",), lambda _sample: True, take_all)
    readers = by_name([greedy])
    assert read(b"Dear diary,", LogContext("x"), readers)[0] == "greedy"
    for example in EXAMPLES:
        assert read(example.data, LogContext(example.name), readers)[0] == example.format


def test_a_reader_of_another_package_can_not_take_a_name() -> None:
    other = Reader("codex", "another", (), lambda _sample: True, lambda _data, _c: LogContent(()))
    assert by_name([other])["codex"] is not other


def test_names_that_were_seen_are_whole_so_that_a_secret_is_known_as_one() -> None:
    key = f"{'x' * 50} {planted()['github'][1]}"
    with pytest.raises(NotThisFormat) as refused:
        read(json.dumps({key: 1}).encode(), LogContext("x"), READERS)
    assert key in str(refused.value)
    left_out = LeftOut()
    left_out.add(f"type {key}")
    assert left_out.counts == {f"type {key}": 1}


@pytest.mark.parametrize("data", [b'{"a":' * 100_000 + b"1" + b"}" * 100_000, b'{"a": "\xff"}'])
def test_a_whole_line_that_can_not_be_read_is_not_waited_for(data: bytes) -> None:
    with pytest.raises(NotThisFormat, match="no whole JSON document"):
        read(data, LogContext("x"), READERS)


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("export/conversations.json", "chatgpt"),
        ("export/conversations-002.json", "chatgpt"),
        ("tasks/1/ui_messages.json", "cline"),
        ("export/general/2030-01-02.json", "slack"),
    ],
)
def test_an_export_of_nothing_holds_nothing(name: str, format_: str) -> None:
    named, found = read(b"[]", LogContext(name), READERS)
    assert (named, found.events, found.problems) == (format_, (), ())


# --- anything --------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
    | st.sampled_from(["user", "assistant", "message", "text", "a", "2030-01-01", "all", "say"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [*("type", "message", "content", "uuid", "sessionId", "payload", "item", "id", "role"),
             *("mapping", "parent", "current_node", "author", "parts", "content_type", "history"),
             *("messages", "chat", "currentId", "parentId", "say", "ask", "text", "ts", "partial"),
             *("subtype", "thread_ts", "user", "origin", "$rewindTo", "$set", "num_turns", "git"),
             *("supersedesUuids", "source", "timestamp", "done", "recipient", "metadata", "a")]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


def check(content: LogContent) -> None:
    """What holds of everything that is read: it can be stored, and its sessions are named."""
    for event in content.events:
        assert event.session_id.strip()
        assert event.event_id.strip()
        assert event.occurred_at is None or event.occurred_at.tzinfo is not None
    told = [*(e.text + e.session_id + e.event_id + str(e.author) for e in content.events)]
    told += [*content.left_out, *(p.reason for p in content.problems)]
    for text in told:
        assert "\0" not in text
        assert text.encode() is not None
    assert {e.session_id for e in content.events} <= by_session(content, "p").keys()


@given(st.binary(max_size=200), st.sampled_from([None, *READERS]))
def test_no_bytes_do_more_than_be_refused(data: bytes, named: str | None) -> None:
    with suppress(NotThisFormat):
        check(read(data, LogContext("logs/x"), READERS, named)[1])


@given(st.lists(VALUES, max_size=4), st.sampled_from([None, *READERS]), st.booleans())
def test_no_json_does_more_than_be_refused(
    values: list[Any], named: str | None, subagents: bool
) -> None:
    whole = json.dumps(values).encode()
    lines = "".join(json.dumps(value) + "\n" for value in values).encode()
    one = json.dumps(values[0]).encode() if values else b"{}"
    for data in (whole, lines, one):
        context = LogContext("logs/x.json", {"../users.json": whole}, subagents)
        with suppress(NotThisFormat):
            check(read(data, context, READERS, named)[1])


@given(st.data())
def test_a_log_that_is_cut_anywhere_does_no_more_than_be_refused(data: st.DataObject) -> None:
    example = data.draw(st.sampled_from(EXAMPLES))
    cut = data.draw(st.integers(0, len(example.data)))
    flipped = data.draw(st.integers(0, len(example.data) - 1))
    harmed = bytearray(example.data)
    harmed[flipped] ^= data.draw(st.integers(1, 255))
    for bytes_ in (example.data[:cut], bytes(harmed)):
        with suppress(NotThisFormat):
            check(read(bytes_, LogContext(example.name), READERS)[1])


@given(st.lists(VALUES, max_size=6))
def test_every_entry_of_a_list_is_in_or_out_or_failed(values: list[Any]) -> None:
    data = json.dumps(values).encode()
    for named in ("cline", "slack"):
        found = read(data, LogContext("logs/x.json"), READERS, named)[1]
        counted = len(found.events) + sum(found.left_out.values()) + len(found.problems)
        assert counted == len(values)


@given(st.lists(VALUES, max_size=6), st.booleans())
def test_every_line_of_a_log_is_in_or_out_or_failed(values: list[Any], subagents: bool) -> None:
    data = "".join(json.dumps(value) + "\n" for value in values).encode()
    for named in ("jsonl", "claude-code", "codex"):
        found = read(data, LogContext("logs/x", {}, subagents), READERS, named)[1]
        counted = len(found.events) + sum(found.left_out.values()) + len(found.problems)
        assert counted == len(values)


@given(st.dictionaries(st.sampled_from("abcd"), VALUES), VALUES)
def test_every_message_of_a_tree_is_in_or_out(messages: dict[str, Any], last: Any) -> None:
    chat = {"history": {"messages": messages, "currentId": last}}
    found = read(json.dumps(chat).encode(), LogContext("x"), READERS, "open-webui")[1]
    assert len(found.events) + sum(found.left_out.values()) == len(messages)
    nodes = {"mapping": messages, "current_node": last}
    found = read(json.dumps(nodes).encode(), LogContext("x"), READERS, "chatgpt")[1]
    silent = [m for m in messages.values() if isinstance(m, dict) and not m.get("message", None)]
    counted = len(found.events) + sum(found.left_out.values())
    assert len(messages) - len(silent) <= counted <= len(messages)
