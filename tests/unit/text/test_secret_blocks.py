"""A private key leaves nothing behind, whatever stands before or between its lines."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concordance.text.lines import LINE_END
from concordance.text.scrubbing import Scrubber
from tests.planted import Keys

SCRUBBER = Scrubber()
BLOCK = Keys().block("").split("\n")
ESC = "\x1b"

BEFORE: dict[str, Callable[[int], str]] = {
    "a removed line": lambda _: "-",
    "a removed line, apart": lambda _: "- ",
    "an added line": lambda _: "+",
    "a comment": lambda _: "// ",
    "a comment of SQL": lambda _: "-- ",
    "a number and a tab": lambda n: f"{n:6}\t",
    "a number and an arrow": lambda n: f"{n:6}->",
    "a number and a printed arrow": lambda n: f"{n:6}\u2192",
    "a number and a colon": lambda n: f"{n}:",
    "a number and a bar": lambda n: f"{n:3} | ",
    "grep": lambda n: f"key.pem:{n}:",
    "what stands below it in grep": lambda n: f"key.pem{':' if n == 1 else '-'}{n}-",
    "compose": lambda _: "web_1  | ",
    "a log": lambda n: f"2024-05-01T10:00:{n:02}.123Z app[12] INFO: ",
    "a colour": lambda _: f"{ESC}[32m",
    "a quotation": lambda _: "> > ",
}


def no_line_left(text: str) -> None:
    done = SCRUBBER.text(text)
    assert [line for line in BLOCK[1:-1] if line[:12] in done or line[-12:] in done] == []
    assert LINE_END.findall(done) == LINE_END.findall(text)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("cut", ["whole", "no footer", "no header"])
@pytest.mark.parametrize("before", BEFORE)
def test_a_key_is_found_behind_what_its_lines_begin_with(
    before: str, cut: str, ending: str
) -> None:
    prefixed = [BEFORE[before](number) + line for number, line in enumerate(BLOCK, 1)]
    kept = prefixed[:-1] if cut == "no footer" else prefixed[1:] if cut == "no header" else prefixed
    text = ending.join(["words before", *kept, "words after it stay"])
    no_line_left(text)
    done = SCRUBBER.text(text)
    assert done.startswith("words before")
    assert done.endswith("words after it stay")


@pytest.mark.parametrize(
    "between",
    [
        "<br>",
        "<br/>",
        "&#10;",
        "&#xA;",
        "%0A",
        "%0D%0A",
        "`n",
        "`r`n",
        "\\n",
        "\\\\n",
        "\\r\\n",
        " ",
    ],
)
@pytest.mark.parametrize("footer", [True, False])
def test_a_key_is_found_between_line_ends_of_any_notation(between: str, *, footer: bool) -> None:
    no_line_left(between.join(BLOCK if footer else BLOCK[:-1]))


@pytest.mark.parametrize("size", [10, 12, 76])
@pytest.mark.parametrize("prefix", ["", "-", "  | "])
def test_a_key_is_found_with_lines_of_any_length(size: int, prefix: str) -> None:
    body = "".join(BLOCK[1:-1])
    lines = [body[at : at + size] for at in range(0, len(body), size)]
    done = SCRUBBER.text("\n".join(prefix + line for line in (BLOCK[0], *lines, BLOCK[-1])))
    assert [line for line in lines[:-1] if line in done] == []


@pytest.mark.parametrize(
    "text",
    [
        f"{BLOCK[0]}\n...\n{BLOCK[-1]}",
        f"{BLOCK[0]}\n<the key of your certificate>\n{BLOCK[-1]}",
        f"A block starts with {BLOCK[0]}, then base64 follows, and ends with {BLOCK[-1]}.",
        f"-{BLOCK[0]}\n-your-private-key-goes-here\n-{BLOCK[-1]}",
        f"grep {BLOCK[0]} *\nconfiguration\ndocumentation\n",
    ],
)
def test_edges_around_something_else_stay(text: str) -> None:
    assert SCRUBBER.text(text) == text


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        f"{BLOCK[0]}" + "\\\\n" * 40 + "x",
        f"{BLOCK[0]}\n" + "\\\\n" * 300_000,
        f"- {BLOCK[0]}\n" * 20_000,
        f"- {BLOCK[-1]}\n" * 20_000,
        (f"- {BLOCK[0]}\n" + f"- {BLOCK[3]}\n" * 2) * 8_000,
        (f"- {BLOCK[3]}\n" * 2 + f"- {BLOCK[-1]}\n") * 8_000,
        f"- {BLOCK[0]}\n" + f"- {BLOCK[3]}\n" * 20_000,
        f"- {BLOCK[0]}" + "-\n" * 300_000 + BLOCK[-1],
    ],
    ids=range(8),
)
def test_the_time_grows_with_the_length_alone(text: str) -> None:
    SCRUBBER.scrub(text)
