"""Thoughts and tools in the text of an answer: they stay out, the answer's own words stay in."""

from __future__ import annotations

import json

import pytest

from concordance.sessions.reader import LogContext
from concordance.sessions.registry import by_name, read
from concordance.sessions.thoughts import without_thoughts
from tests.session_logs import ANSWER, EXAMPLES, Example

FOLDED = (
    '<details type="reasoning" done="true" duration="3">\n<summary>x</summary>\n> hm\n</details>'
)
TOOL = "<details id='1' type='tool_calls' arguments='&quot;a &gt; b&quot;'>x</details>"
SAME = "the same"
CASES: list[tuple[str, str, str | None]] = [
    ("a thought, folded", f"{FOLDED}\nSo.", "So."),
    ("a call, folded, other attributes first", f"{TOOL}\nSo.", "So."),
    ("two in a row", f"{FOLDED}{TOOL}So.", "So."),
    ("between words", f"First.\n{TOOL}\nSecond.", "First.\n\nSecond."),
    ("code that was run", '<details type="code_interpreter">x</details>So.', "So."),
    ("capitals", '<DETAILS TYPE="Reasoning">hm</DETAILS>So.', "So."),
    ("one without quotes", "<details type=reasoning>hm</details>So.", "So."),
    ("a folded section in a folded one",
     '<details type="reasoning">a<details>b</details>c</details>So.', "So."),
    ("not closed", 'So.\n<details type="reasoning">hm', "So."),
    ("a thought in tags", "<think>hm</think>So.", "So."),
    ("a longer tag", "<thinking>\nhm\n</thinking>\n\nSo.", "So."),
    ("with attributes", '<think effort="high">hm</think >So.', "So."),
    ("capitals in a tag", "<Think>hm</THINK>So.", "So."),
    ("a thought later", "First.\n<think>hm</think>\nSo.", "First.\n\nSo."),
    ("a thought within a line", "First. <think>hm</think>So.", "First. So."),
    ("a thought that is not closed", "First.\n<think>hm", "First."),
    ("a thought that nothing opened", "hm\n</think>\n\nSo.", "So."),
    ("a fence in a thought", "<think>\n```\nhm\n</think>\nSo.", "So."),
    ("thoughts alone", "<think>hm</think>", None),
    ("a call alone", TOOL, None),
    # The answer's own.
    ("a section of the answer", "<details><summary>More</summary>So.</details>", SAME),
    ("a section of another type", '<details type="faq">So.</details>', SAME),
    ("a tag in a span of code", "Write `<think>` first.", SAME),
    ("a tag in code", "```xml\n<think>hm</think>\n```\nSo.", SAME),
    ("a folded section in code", '~~~\n<details type="reasoning">x</details>\n~~~', SAME),
    ("a tag in prose", "The tag <think> opens it.", SAME),
    ("an end in prose", "It ends at </think> there.", SAME),
    ("a tag without content", "<think/>So.", SAME),
    ("another tag", "<thinker>x</thinker>", SAME),
    ("less than", "a <b and c> d", SAME),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "own"), CASES, ids=[what for what, *_ in CASES])
def test_thoughts_stay_out_and_words_stay_in(what: str, text: str, own: str | None) -> None:
    assert without_thoughts(text)[0] == (text if own == SAME else own)


def test_where_nothing_else_was_it_is_said_what_was() -> None:
    assert without_thoughts(TOOL) == (None, "tool_calls")
    assert without_thoughts(f"{FOLDED}\n{TOOL}\n") == (None, "reasoning")
    assert without_thoughts("<think>hm") == (None, "thinking")
    assert without_thoughts("So.") == ("So.", None)
    assert without_thoughts(None) == (None, None)


@pytest.mark.parametrize(
    "example",
    [e for e in EXAMPLES if e.format not in ("jsonl", "slack")],
    ids=lambda example: example.format,
)
def test_every_format_of_an_agents_program_leaves_them_out(example: Example) -> None:
    thought = "<think>hm</think>"
    for text, said in ((f"{thought}{ANSWER}", ANSWER), (thought, None)):
        data = example.data.replace(json.dumps(ANSWER)[1:-1].encode(), text.encode())
        whole = read(data, LogContext(example.name), by_name())[1]
        found = [event.text for event in whole.events if event.speaker == "agent"]
        assert found == ([] if said is None else [said])
        assert whole.left_out.get("thinking", 0) == (said is None)


def test_a_persons_own_words_are_not_looked_into() -> None:
    example = next(e for e in EXAMPLES if e.format == "open-webui")
    data = example.data.replace(b"Why was", b"<think>Why was")
    found = read(data, LogContext(example.name), by_name())[1]
    assert found.events[0].text.startswith("<think>Why")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 100_000,
        "x <think>" * 100_000,
        "x <think> </thinking>" * 50_000,
        "<details " * 100_000,
        '<details "' * 100_000,
        '<details type="reasoning">' * 50_000,
        "`" * 500_000,
        "```\n" * 100_000 + "<think>",
        "</think" * 100_000,
        "<details>" * 100_000,
        " " * 500_000 + "<think>",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_a_text_made_to_be_slow_takes_time_that_grows_with_its_length(text: str) -> None:
    without_thoughts(text)
