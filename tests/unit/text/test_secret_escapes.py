"""A key behind a colour or an escaped sign is the same key."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.text.scrubbing import Scrubber
from concordance.text.secret_escapes import Shown
from tests.planted import Keys, planted

SCRUBBER = Scrubber()
KEYS = Keys(11)
ESC = "\x1b"
FORMATS = {
    **{
        kind: planted()[kind][1]
        for kind in (
            *("aws access key", "gcp api key", "github", "gitlab", "slack", "stripe", "openai"),
            *("anthropic", "npm", "pypi", "hugging face", "sendgrid", "jwt", "discord"),
        )
    },
    "telegram": "1234567890" + ":AA" + KEYS.of(33),
    "databricks": "dapi" + KEYS.of(32, "0123456789abcdef"),
    "azure": KEYS.of(3) + "8" + "Q~" + KEYS.of(34),
    "groq": "gs" + "k_" + KEYS.of(52),
}
ESCAPES = [
    *[f"{ESC}[32m", f"{ESC}[1;31m", f"{ESC}[0m", f"{ESC}[m", f"{ESC}[38;5;120m", f"{ESC}[K"],
    *[f"{ESC}[48:2::1:2:3m", f"{ESC}(B", "[32m", "\u241b[32m", "^[[32m", "`e[32m"],
    *["\\033[31m", "\\e[31m", "\\x1b[31m", "\\u001b[32m", "\\\\u001b[32m", "\\u{1b}[1m"],
    *["a\\u003d", "\\u0027", "\\u0022", "\\x27", "\\x3d", "\\u{27}", "\\047", "\\\\x3D", "\\u000a"],
]


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_key_is_found_behind_an_escape(kind: str, escape: str) -> None:
    key = FORMATS[kind]
    done = SCRUBBER.scrub(f"with {escape}{key} and more")
    assert key[8:] not in done.text
    assert done.text.startswith("with ")
    assert done.text.endswith(" and more")


@pytest.mark.parametrize(
    "line",
    [
        f"API_KEY {ESC}[0m= {ESC}[33m{{}}{ESC}[0m",
        f"DB_PASSWORD={ESC}[32m{{}}",
        f"DB_PASSWORD{ESC}[0m{ESC}[36m={ESC}[0m{ESC}[32m{{}}{ESC}[0m",
        f"{ESC}[36mpassword{ESC}[0m: {ESC}[32m{{}}{ESC}[0m",
        "password\\u003d{}",
        "\\u0022password\\u0022: \\u0022{}\\u0022",
        "postgres:\\x2f\\x2fapp:{}\\x40db.example.org",
        f"{ESC}[1mAuthorization: Bearer {ESC}[2m{{}}{ESC}[0m",
    ],
)
def test_a_value_is_told_by_its_place_behind_an_escape(line: str) -> None:
    value = KEYS.of(20)
    assert value not in SCRUBBER.text(line.format(value))


@pytest.mark.parametrize(
    "text",
    [
        f"{ESC}[32mok{ESC}[0m 12 passed, token: {ESC}[33mstring{ESC}[0m",
        "C:\\users\\xab\\token\\u0020",
        "re.compile(r'\\x1b\\[[0-9;]*m')",
        "caf\\u00e9 password: \\u2026",
        "weights[12m] and a[0m",
    ],
)
def test_text_with_escapes_stays(text: str) -> None:
    assert SCRUBBER.text(text) == text


@given(st.text(max_size=200) | st.lists(st.sampled_from([*ESCAPES, "\\", "x"])).map("".join))
def test_every_character_has_its_place(text: str) -> None:
    shown = Shown(text)
    places = [shown.place(at, at + 1) for at in range(len(shown.text))]
    assert all(a[1] <= b[0] for a, b in pairwise(places))
    for character, (start, end) in zip(shown.text, places, strict=True):
        assert 0 <= start < end <= len(text)
        assert text[start:end] == character or end - start > 1 or character == " "


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    ["\\" * 500_000, f"{ESC}[" * 300_000, "[1;" * 300_000, "\\u" * 300_000, f"{ESC}]8;" * 100_000],
    ids=range(5),
)
def test_the_time_grows_with_the_length_alone(text: str) -> None:
    SCRUBBER.scrub(text)
