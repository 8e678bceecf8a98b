"""What a terminal is shown of any text or time: nothing it would obey, no age below nothing."""

from __future__ import annotations

import io
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from concordance.cli.progress_bars import bars
from concordance.escaping import safe
from concordance.indexing.counting import age
from concordance.progress import announcer
from tests.unit.cli.terminal import LINK, NOW, OBEYED

# --- text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nand more", "plain\ttext\nand more"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        (LINK, "\ufffd]8;;https://evil.example\ufffdclick\ufffd]8;;\ufffd"),
        ("\x9d0;title\x9c", "\ufffd0;title\ufffd"),
        ("\x1bP+q\x1b\\", "\ufffdP+q\ufffd\\"),
        ("a\x08b\x7fc\0d\x0be\x0cf", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf"),
        ("user\u202e\u2066txt.exe\u2069", "user\ufffd\ufffdtxt.exe\ufffd"),
        ("a\u2028b\u2029c", "a\ufffdb\ufffdc"),
        ("half \ud800", "half \ufffd"),
        ("שלום 👩‍👩‍👧 é 中", "שלום 👩‍👩‍👧 é 中"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
        ("", ""),
    ],
)
def test_a_terminal_finds_nothing_to_obey(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_shown(text: str) -> None:
    shown = safe(text)
    assert not OBEYED.search(shown)
    assert shown.encode().decode() == safe(shown)


# --- ages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(0), "0 s ago"),
        (timedelta(seconds=59.9), "59 s ago"),
        (timedelta(seconds=60), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=1), "1 h ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (timedelta(days=1), "1 d ago"),
        (timedelta(days=400), "400 d ago"),
        (timedelta(seconds=-90), "0 s ago"),
        (timedelta(days=-3), "0 s ago"),
    ],
)
def test_an_age_is_told_in_its_largest_unit(ago: timedelta, shown: str) -> None:
    assert age(NOW - ago, NOW) == shown


def test_what_never_was_has_no_age() -> None:
    assert age(None, NOW) == "never"


def test_an_age_across_the_change_of_clocks_is_the_time_that_passed() -> None:
    summer, winter = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))
    before = datetime(2026, 10, 25, 2, 45, tzinfo=summer)
    after = datetime(2026, 10, 25, 2, 15, tzinfo=winter)
    assert age(before, after) == "30 min ago"
    assert age(after, before) == "0 s ago"


# --- bars ------------------------------------------------------------------------------------


def test_a_name_beside_a_bar_is_no_markup() -> None:
    out = io.StringIO()
    with bars(Console(file=out, force_terminal=True, width=100)):
        announcer("evaluate", "[/red]faq[bold]")(1, 2)
    assert "evaluate [/red]faq[bold]" in out.getvalue()
