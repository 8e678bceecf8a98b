"""Addresses, branches and credentials that pass, and those that are refused before git starts."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from concordance.adapters.git_environment import (
    Credential,
    credential_environment,
    secrets_of,
)
from concordance.adapters.git_policy import GitPolicy, check_branch, check_url, scheme_of
from concordance.errors import SourceRefused

ALL = ("https", "ssh", "http", "file", "git")


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("https://example.org/o/r.git", "https"),
        ("https://example.org:8443/o/r", "https"),
        ("https://example.org/o/~user/r%20s.git", "https"),
        ("https://[2001:db8::1]/r.git", "https"),
        ("http://127.0.0.1:8080/r.git", "http"),
        ("http://10.0.0.7/r.git", "http"),
        ("ssh://git@example.org/o/r.git", "ssh"),
        ("ssh://example.org:22/o/r.git", "ssh"),
        ("git@example.org:o/r.git", "ssh"),
        ("example.org:o/r.git", "ssh"),
        ("git@[::1]:r.git", "ssh"),
        ("git://example.org/r.git", "git"),
        ("file:///srv/r.git", "file"),
        ("/srv/with space/@2/ü.git", "file"),
    ],
)
def test_addresses_that_pass(url: str, scheme: str) -> None:
    check_url(url, ALL)
    assert scheme_of(url) == scheme


@pytest.mark.parametrize(
    "url",
    [
        "",
        'ext::sh -c "touch pwned"',
        "fd::17",
        "https::https://example.org/r",
        "-u./x",
        "--upload-pack=touch pwned",
        "ssh://-oProxyCommand=touch%20pwned/x",
        "ssh://-l@example.org/x",
        "-oProxyCommand=x@example.org:r",
        "example.org:-x",
        "ftp://example.org/r",
        "git+ssh://example.org/r",
        "HTTPS://example.org/r",
        "o/r.git",
        "./r.git",
        "../r.git",
        "C:\\r.git\n",
        "file://host/r.git",
        "file://",
        "https:///r.git",
        "https://exa mple.org/r",
        "https://example.org\\@evil.org/r",
        "https://example.org/r\r\nHost: evil",
        "https://example.org/\x1b[2J",
        "https://example.org/\ud800",
        "https://example.org/\u2028",
        "https://example.org/r?private_token=abc",
        "https://example.org/r#abc",
        "ssh://example.org?x@169.254.1.1/r",
        "https://example.org:99999/r",
        "https://exämple.org/r",
        "https://[::1/r",
        "https://169%2e254.1.1/r",
        "https://example.org/" + "a" * 2_000,
    ],
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(SourceRefused, match=r"^url "):
        check_url(url, ALL)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.1.1",
        "169.254.169.254",
        "169.254.169.254.",
        "2852039166",
        "0xA9FEA9FE",
        "0251.0376.0251.0376",
        "169.16689662",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "metadata.google.internal",
        "METADATA.google.internal.",
        "0.0.0.0",
        "224.0.0.1",
    ],
)
def test_addresses_of_machine_metadata_are_refused(host: str) -> None:
    for url in (f"http://{host}/x", f"ssh://git@{host}:22/x", f"git@{host}:x"):
        with pytest.raises(SourceRefused, match=r"^url "):
            check_url(url, ALL)


@pytest.mark.parametrize(
    "url",
    [
        "https://x-token:ghp_FAKE0000@git.example.com/o/r.git",
        "http://ghp_FAKE0000@127.0.0.1:80/o/r.git",
        "https://ghp_FAKE0000:@example.org/r",
        "https://@example.org/ghp_FAKE0000",
        "ssh://git:ghp_FAKE0000@example.org/r",
        "ssh://git%3Aghp_FAKE0000@example.org/r",
        "git:ghp_FAKE0000@example.org:r",
    ],
)
def test_user_information_is_refused_with_a_hint_and_never_repeated(url: str) -> None:
    with pytest.raises(SourceRefused) as caught:
        check_url(url, ALL)
    assert caught.value.message.startswith("url ")
    assert "'credentials'" in str(caught.value)
    assert "ghp_FAKE0000" not in repr(caught.value)


def test_only_allowed_schemes_pass() -> None:
    default = ("https", "ssh")
    for url in ("http://example.org/r", "file:///etc", "/etc", "git://example.org/r"):
        with pytest.raises(SourceRefused, match="url has the scheme"):
            check_url(url, default)
    check_url("git@example.org:r", default)
    with pytest.raises(SourceRefused, match="allowed_schemes"):
        GitPolicy(allowed_schemes=("https", "ext"), timeout_seconds=1)


@pytest.mark.parametrize("branch", ["main", "feature/a-b_c.d", "ümlaut", "v1.0", "a@b", "#12"])
def test_branches_that_pass(branch: str) -> None:
    check_branch(branch)


@pytest.mark.parametrize(
    "branch",
    [
        *("", "--upload-pack=touch pwned", "-b x", "a..b", "a~1", "a:b", "a@{1}", "HEAD", "@"),
        *("a b", "a^", "a?", "a*", "a[b", "a\\b", "/a", "a/", "a//b", ".a", "a/.b", "a."),
        *("a.lock/b", "a\n", "a\x7f", "\ud800", "a" * 1_001),
    ],
)
def test_branches_that_are_refused(branch: str) -> None:
    with pytest.raises(SourceRefused, match=r"^branch "):
        check_branch(branch)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab.-/@{~^:?*[\\ lock\t", min_size=1, max_size=8))
def test_branches_pass_exactly_when_git_would_take_them(branch: str) -> None:
    command = ["git", "check-ref-format", "--branch", branch]
    if "@{" in branch:  # git expands `@{-1}` instead of checking it
        command = ["git", "check-ref-format", f"refs/heads/{branch}"]
    git_takes_it = subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        check_branch(branch)
    except SourceRefused:
        assert not git_takes_it or branch == "@"
    else:
        assert git_takes_it


def test_a_credential_is_for_one_origin_and_never_shows() -> None:
    credential = Credential("x", SecretStr("ghp_FAKE/0000"))
    environment = credential_environment("https://example.org:8443/o/r.git", credential)
    assert environment["GIT_CONFIG_KEY_0"] == "http.https://example.org:8443/.extraHeader"
    assert environment["GIT_CONFIG_VALUE_0"] == "Authorization: Basic eDpnaHBfRkFLRS8wMDAw"
    assert "ghp" not in repr(credential)
    assert {"ghp_FAKE/0000", "ghp_FAKE%2F0000", "eDpnaHBfRkFLRS8wMDAw"} < {*secrets_of(credential)}
    assert credential_environment("https://example.org/r", None) == {}
    assert secrets_of(None) == ()


@pytest.mark.parametrize(
    ("url", "username", "token"),
    [
        ("git@example.org:r", "x", "ghp_FAKE0000"),
        ("/srv/r.git", "x", "ghp_FAKE0000"),
        ("https://example.org/r", "x", "ghp_FAKE0000\n"),
        ("https://example.org/r", "x", ""),
        ("https://example.org/r", "", "ghp_FAKE0000"),
        ("https://example.org/r", "a:b", "ghp_FAKE0000"),
        ("http://example.org/r", "x", "ghp_FAKE0000"),
        ("http://127.example.org/r", "x", "ghp_FAKE0000"),
        ("http://127.0.0.1.example.org/r", "x", "ghp_FAKE0000"),
        ("http://localhost.example.org/r", "x", "ghp_FAKE0000"),
    ],
)
def test_credentials_that_cannot_be_used_are_refused(url: str, username: str, token: str) -> None:
    with pytest.raises(SourceRefused, match="credentials") as caught:
        credential_environment(url, Credential(username, SecretStr(token)))
    assert "ghp_FAKE0000" not in repr(caught.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "127.1.2.3", "[::1]:80"])
def test_a_token_goes_over_http_to_this_machine_alone(host: str) -> None:
    credential = Credential("x", SecretStr("ghp_FAKE0000"))
    assert credential_environment(f"http://{host}/r", credential)["GIT_CONFIG_COUNT"] == "1"
