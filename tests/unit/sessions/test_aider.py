"""Aider's Markdown: each kind of line, and why it is in or out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from concordance.sessions import aider
from concordance.sessions.events import LogContent
from concordance.sessions.reader import LogContext, Reader


def read(reader: Reader, value: object, name: str = "logs/x.json", **more: Any) -> LogContent:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return reader.read(data, LogContext(name, **more))


def lines(*values: object) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def said(content: LogContent) -> list[tuple[str, str]]:
    return [(event.speaker, event.text) for event in content.events]


AIDER = b"""
# aider chat started at 2030-01-02 03:04:05

> Aider v0.80.0
> Git repo: .git

#### rename foo to bar
#### and keep the tests green

Sure:

```sh
#### a comment in code
> out.txt
```

Done.

> Applied edit to app.py

#### /add b.py
#### /ask why bar?

Because.

# aider chat started at 2030-01-02 04:00:00

#### thanks
"""


def test_aider_each_kind_of_line_is_in_or_out() -> None:
    found = read(aider.READER, AIDER, "demo/.aider.chat.history.md")
    human, answer, *rest = found.events
    assert (human.speaker, human.text) == ("human", "rename foo to bar\nand keep the tests green")
    assert answer.text.startswith("Sure:")
    assert "#### a comment in code\n> out.txt" in answer.text, "code is the agent's"
    assert answer.text.endswith("Done.")
    assert [(e.speaker, e.text) for e in rest] == [("agent", "Because."), ("human", "thanks")]
    assert found.left_out == {"command": 1, "start of a session": 2, "tool": 3}
    assert len({event.session_id for event in found.events}) == 2
    assert [str(e.occurred_at) for e in (human, rest[1])] == [
        "2030-01-02 03:04:05+00:00",
        "2030-01-02 04:00:00+00:00",
    ]


def test_aider_commands_for_the_shell_are_commands() -> None:
    log = b"#### !git status\n\n> Add the output?\n\n#### !\n\n#### fix it! now\n"
    found = read(aider.READER, log, "demo/.aider.chat.history.md")
    assert said(found) == [("human", "fix it! now")]
    assert found.left_out == {"command": 2, "tool": 1}


def test_aider_an_event_leads_to_its_line() -> None:
    found = read(aider.READER, AIDER, "demo/.aider.chat.history.md")
    shown = AIDER.decode().split("\n")
    for event in found.events:
        number = int(event.event_id.removeprefix("line-"))
        assert event.text.split("\n")[0] in shown[number - 1]


# Two blanks at the end of a line are written as two underscores.
AIDER_WITH_BREAKS = """# aider chat started at 2030-01-02 03:04:05

> Aider v0.80.0__

#### explain the turbines plan__

Here is the turbines plan:

#### 1. Rename turbines
We rename foo.

> **Note:** keep the tests.

```md
#### 2. In code
> too
```

> Tokens: 1.2k sent, 80 received.__

#### <blank>__

#### thanks__
####__
#### and the rest__

Fine.
""".replace("__", "  ").encode()


def test_aider_headings_and_quotes_of_an_answer_are_the_agents() -> None:
    found = read(aider.READER, AIDER_WITH_BREAKS, "demo/.aider.chat.history.md")
    answer = AIDER_WITH_BREAKS.decode().split("plan  \n")[1].split("> Tokens")[0].strip()
    assert said(found) == [
        ("human", "explain the turbines plan"),
        ("agent", answer),
        ("human", "thanks\n\nand the rest"),
        ("agent", "Fine."),
    ]
    assert found.left_out == {"nothing said": 1, "start of a session": 1, "tool": 2}


def test_aider_an_empty_input_is_nothing_said_with_or_without_breaks() -> None:
    for end in ("", "  "):
        data = f"#### <blank>{end}\n\n#### what is <blank>?{end}\n".encode()
        found = read(aider.READER, data, "demo/.aider.chat.history.md")
        assert said(found) == [("human", "what is <blank>?")]
        assert found.left_out == {"nothing said": 1}


@pytest.mark.parametrize("first", [AIDER_WITH_BREAKS, AIDER], ids=["as written", "trimmed"])
def test_aider_a_log_that_grows_keeps_who_said_what(first: bytes) -> None:
    data = first + AIDER_WITH_BREAKS
    before: dict[tuple[str, str], str] = {}
    for end in range(len(data) + 1):
        found = read(aider.READER, data[:end], "demo/.aider.chat.history.md")
        now = {(event.session_id, event.event_id): event.speaker for event in found.events}
        gone = [key for key, speaker in before.items() if now.get(key, speaker) != speaker]
        assert not gone, data[:end][-40:]
        if data[:end].endswith(b"\n"):
            before |= now
    whole = read(aider.READER, first, "demo/.aider.chat.history.md")
    assert said(found)[: len(whole.events)] == said(whole)
    assert not found.problems


def test_aider_a_last_line_whose_end_is_to_come_is_read_next_time() -> None:
    for half in (b"#### 2. Ren", b"> **No"):
        found = read(aider.READER, AIDER_WITH_BREAKS + half, "demo/.aider.chat.history.md")
        assert said(found)[-1] == ("agent", "Fine.")
        assert [problem.unfinished for problem in found.problems] == [True]
