"""Titles without their markup."""

from __future__ import annotations

import pytest

from concordance.text.headings import MAX_TITLE, plain_title


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("Plain words", "Plain words"),
        ("  two\nlines\tof it ", "two lines of it"),
        ("*One* **two** ***three*** ~~four~~ _five_ __six__", "One two three four five six"),
        ("`snake_case_name` and `*args`", "snake_case_name and *args"),
        ("``a ` tick``", "a ` tick"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("[ADR-0012](0012-x.md): [use][ref] it", "ADR-0012: use it"),
        ("[`code` link](https://a.b/c_(d))", "code link"),
        ("[![badge](b.svg)](https://ci) Project", "badge Project"),
        ("![logo](logo.png)", "logo"),
        ("![](logo.png)", "![](logo.png)"),
        ("[Deprecated] old way", "[Deprecated] old way"),
        (r"1\. Not a \*list\*", "1. Not a *list*"),
        ("Options {#options}", "Options"),
        ("Kramdown {: .no_toc }", "Kramdown"),
        ("Set {a, b}", "Set {a, b}"),
        ('<a name="x"></a>Anchor<br/>', "Anchor"),
        ("Vec<T> and Map<K, V>", "Vec<T> and Map<K, V>"),
        ("<https://example.org>", "https://example.org"),
        ('{{< icon "fab fa-x" >}} Drive', "Drive"),
        ("R&amp;D &lt;now&gt;", "R&D <now>"),
        ("C#", "C#"),
        ("**unclosed and `half", "**unclosed and `half"),
        ("", ""),
    ],
)
def test_plain_title(source: str, title: str) -> None:
    assert plain_title(source) == title


def test_a_title_has_a_bound() -> None:
    title = plain_title("long " * 100_000)
    assert len(title) <= MAX_TITLE
    assert title.endswith("…")


@pytest.mark.parametrize("mark", ["*", "_", "`", "[", "![", "<", "~~", "\\", "{{", "**a", "[a]("])
def test_unbalanced_marks_end(mark: str) -> None:
    assert plain_title(mark * 1000)
