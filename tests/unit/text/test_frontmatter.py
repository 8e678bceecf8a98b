"""Where metadata ends, and what it says."""

from __future__ import annotations

import pytest

from concordance.text.frontmatter import find_front_matter


def test_flat_scalars() -> None:
    text = (
        "---\n"
        "# These are optional elements.\n"
        "title: 'It''s here' # why\n"
        'Status: "accepted: \\"yes\\""\n'
        "date: 2024-01-02   # a Tuesday\n"
        "url: https://example.org/#part\n"
        "tags: [a, b]\n"
        "list:\n"
        "- one\n"
        "  - two\n"
        "folded: >\n"
        "  text: inside\n"
        "empty:\n"
        "nav order: 3\n"
        "---\n"
        "body"
    )
    end, pairs = find_front_matter(text)
    assert text[end:] == "body"
    assert pairs == {
        "title": "It's here",
        "status": 'accepted: "yes"',
        "date": "2024-01-02",
        "url": "https://example.org/#part",
        "tags": "[a, b]",
        "nav order": "3",
    }


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("closing", ["---", "...", "---  "])
def test_endings_and_closings(ending: str, closing: str) -> None:
    text = ending.join(["---", "status: accepted", closing, "", "# Use RRF"])
    end, pairs = find_front_matter(text)
    assert pairs == {"status": "accepted"}
    assert text[end:] == f"{ending}# Use RRF"


def test_toml() -> None:
    text = '+++\n# c\ntitle = "T"\ndraft = true\n[menu]\ntitle = "no"\n+++\nbody'
    end, pairs = find_front_matter(text)
    assert text[end:] == "body"
    assert pairs == {"title": "T", "draft": "true"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\n",
        "---\n---\n",
        "---\nkey: unclosed\n",
        "---\n\n# One\nx\n\n---\n\n# Two\ny",
        "---\n\nkey: value\n---\n",
        "---\nProse that opens with a rule.\n---\n",
        "---\nNote: prose\nthat goes on\n\nand on\n\n---\n",
        "---\n# One\n\nprose\n---\n",
        "\n---\nkey: value\n---\n",
        " ---\nkey: value\n---\n",
        "----\nkey: value\n----\n",
        "+++\nwords\n+++\n",
        "+++\nkey = 1\n",
    ],
)
def test_no_front_matter(text: str) -> None:
    assert find_front_matter(text) == (0, {})


def test_an_odd_line_is_forgiven_where_it_can_only_be_metadata() -> None:
    end, pairs = find_front_matter("---\ntitle: T\n{% if x %}\nkey:value\n---\n")
    assert end > 0
    assert pairs == {"title": "T"}


def test_front_matter_may_end_the_text() -> None:
    assert find_front_matter("---\na: b\n---") == (12, {"a": "b"})
