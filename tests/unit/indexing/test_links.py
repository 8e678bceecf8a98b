"""Addresses of the cited lines, at the cited commit."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.indexing.links import belongs, commit_link, line_link, web_address

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("https://github.com/o/r.git", "https://github.com/o/r"),
        ("https://github.com/o/r", "https://github.com/o/r"),
        ("https://GitHub.com/o/r/", "https://github.com/o/r"),
        ("https://github.com:443/o/r.git", "https://github.com/o/r"),
        ("git@github.com:o/r.git", "https://github.com/o/r"),
        ("git@GitHub.com:o/r.git", "https://github.com/o/r"),
        ("git@github.com:/o/r.git", "https://github.com/o/r"),
        ("ssh://git@github.com/o/r.git", "https://github.com/o/r"),
        ("ssh://git@gitlab.com:22/group/sub/r.git", "https://gitlab.com/group/sub/r"),
        ("https://codeberg.org/o/r.git", "https://codeberg.org/o/r"),
        ("git@gitea.com:o/r.git", "https://gitea.com/o/r"),
        ("git@github.com:o/a b#c.git", "https://github.com/o/a%20b%23c"),
        ("https://github.com/o/a%20b", "https://github.com/o/a%20b"),
        ("https://git.example.org/o/r.git", None),
        ("https://github.com.example.org/o/r", None),
        ("https://notgithub.com/o/r", None),
        ("git@git.example.org:o/r", None),
        ("/srv/github.com/o/r", None),
        ("//[srv/r", None),
        ("file:///srv/r", None),
    ],
)
def test_the_pages_of_known_hosts(location: str, expected: str | None) -> None:
    assert web_address(location, None) == expected


def test_a_configured_address_goes_before_any_guess() -> None:
    assert web_address("/srv/r", "https://git.example.org/o/r/") == "https://git.example.org/o/r"
    assert web_address("https://github.com/o/r", "https://x.org/r") == "https://x.org/r"
    assert web_address("https://github.com/o/r", "") == "https://github.com/o/r"


@pytest.mark.parametrize(
    ("web", "expected"),
    [
        ("https://github.com/o/r", f"/blob/{COMMIT}/docs/a.md?plain=1#L3-L9"),
        ("https://github.example.org/o/r", f"/blob/{COMMIT}/docs/a.md?plain=1#L3-L9"),
        ("https://gitlab.com/o/r", f"/-/blob/{COMMIT}/docs/a.md?plain=1#L3-9"),
        ("https://gitlab.example.org/g/s/r", f"/-/blob/{COMMIT}/docs/a.md?plain=1#L3-9"),
        ("https://codeberg.org/o/r", f"/src/commit/{COMMIT}/docs/a.md?display=source#L3-L9"),
        ("https://gitea.com/o/r", f"/src/commit/{COMMIT}/docs/a.md?display=source#L3-L9"),
    ],
)
def test_each_host_shows_the_source_at_these_lines(web: str, expected: str) -> None:
    assert line_link(web, path="docs/a.md", commit=COMMIT, start=3, end=9) == web + expected


def test_an_unknown_host_gives_no_link() -> None:
    assert line_link(None, path="a.md", commit=COMMIT, start=1, end=1) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_path_comes_back_from_its_link(path: str) -> None:
    web = "https://github.com/o/r"
    link = line_link(web, path=path, commit=COMMIT, start=1, end=2)
    assert link is not None
    assert link.isascii()
    assert link.isprintable()
    parts = urlsplit(link)
    assert unquote(parts.path) == f"/o/r/blob/{COMMIT}/{path}"
    assert (parts.query, parts.fragment) == ("plain=1", "L1-L2")


@pytest.mark.parametrize(
    ("web", "expected"),
    [
        ("https://github.com/o/r", "https://github.com/o/r/commit/c0ffee"),
        ("https://gitlab.com/o/r", "https://gitlab.com/o/r/-/commit/c0ffee"),
        (None, None),
    ],
)
def test_a_commit_has_an_address_where_the_host_is_known(
    web: str | None, expected: str | None
) -> None:
    assert commit_link(web, "c0ffee") == expected
    assert commit_link(web, None) is None


@pytest.mark.parametrize(
    ("directory", "location", "expected"),
    [
        ("/home/ana/beacon", "https://git.example.org/team/beacon.git", True),
        ("/home/ana/beacon/docs", "git@git.example.org:team/beacon.git", True),
        ("C:\\work\\beacon", "git@git.example.org:beacon", True),
        ("/srv/repos/beacon", "/srv/repos/beacon/", True),
        ("/home/ana/other", "https://git.example.org/team/beacon.git", False),
        ("/home/ana/beacon-2", "https://git.example.org/team/beacon.git", False),
        (None, "/srv/repos/beacon", False),
        ("/anything", "/", False),
    ],
)
def test_a_folder_belongs_to_a_repository_by_its_name(
    directory: str | None, location: str, expected: bool
) -> None:
    assert belongs(directory, location) is expected
