"""Mirrors of remotes behind HTTP and ssh: credentials, silence, redirects, refusals."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from concordance.adapters.git import Credential, GitMirror, GitPolicy, RemoteHead
from concordance.errors import (
    BranchGone,
    SourceDenied,
    SourceError,
    SourceNotFound,
    SourceTimeout,
    SourceUnavailable,
)
from tests.git_server import (
    BASIC,
    TOKEN,
    GitServer,
    drip,
    files_that_hold,
    git,
    listening,
    processes_with,
    serving,
    silence,
)

PATH = os.environ["PATH"]
CREDENTIAL = Credential("x-token", SecretStr(TOKEN))
SILENT_SECONDS = 1.0
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    source = tmp_path / "work"
    git("init", "--quiet", "--initial-branch=main", str(source), directory=tmp_path)
    (source / "a.md").write_text("# A\n")
    git("add", ".", directory=source)
    git("commit", "--quiet", "-m", "m", directory=source)
    (tmp_path / "root").mkdir()
    git("clone", "--quiet", "--bare", str(source), str(tmp_path / "root" / "r.git"))
    with serving(GitServer(tmp_path / "root")) as running:
        yield running


def mirror_in(directory: Path, seconds: float = 20, path: str = PATH) -> GitMirror:
    policy = GitPolicy(allowed_schemes=("http", "ssh"), timeout_seconds=seconds)
    return GitMirror(directory, policy=policy, environment={"PATH": path})


def wrapper(folder: Path, name: str, script: str) -> str:
    """A PATH on which a script of ours comes before the real program."""
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:{PATH}"


def test_a_public_repository_is_fetched_without_credentials(
    server: GitServer, tmp_path: Path
) -> None:
    mirror = mirror_in(tmp_path / "state")
    head = mirror.remote_head(f"{server.url}/r.git", None, None)
    commit = mirror.fetch("p", f"{server.url}/r.git", head, None)
    assert commit == head.commit
    (entry,) = mirror.list_tree("p", commit)
    assert list(mirror.read_blobs("p", [entry.blob_id])) == [(entry.blob_id, b"# A\n")]
    assert set(server.authorizations) == {None}
    with pytest.raises(BranchGone, match=r"'gone' does not exist.*: main$"):
        mirror.remote_head(f"{server.url}/r.git", "gone", None)


def test_the_token_opens_and_is_found_nowhere(server: GitServer, tmp_path: Path) -> None:
    server.token_wanted = True
    log = tmp_path / "arguments"
    real = shutil.which("git")
    script = f'echo "$@" >> {log}\nexec {real} "$@"'
    mirror = mirror_in(tmp_path / "state", path=wrapper(tmp_path / "bin", "git", script))
    url = f"{server.url}/r.git"
    commit = mirror.fetch("p", url, mirror.remote_head(url, None, CREDENTIAL), CREDENTIAL)
    assert mirror.has_commit("p", commit)
    assert f"Basic {BASIC}" in server.authorizations
    arguments = log.read_text()
    assert "fetch" in arguments
    assert "ls-remote" in arguments
    for secret in (TOKEN, BASIC):
        assert secret not in arguments
        assert files_that_hold(tmp_path / "state", secret) == []
    config = (tmp_path / "state" / "p.git" / "config").read_text()
    assert "remote" not in config
    assert "http" not in config


def test_the_token_is_in_no_argument_of_a_running_helper(tmp_path: Path) -> None:
    mirror = mirror_in(tmp_path / "state", seconds=SILENT_SECONDS)
    seen: list[str] = []

    def look(connection: socket.socket) -> None:
        seen.extend(processes_with(str(connection.getsockname()[1])))
        silence(connection)

    with listening(look) as url, pytest.raises(SourceTimeout) as caught:
        mirror.remote_head(url, None, CREDENTIAL)
    assert any("git-remote-http" in line or "remote-http" in line for line in seen)
    assert not any(TOKEN in line or BASIC in line for line in seen)
    assert TOKEN not in repr(caught.value)


@pytest.mark.parametrize("credential", [None, Credential("x", SecretStr("wrong" + TOKEN))])
def test_a_repository_that_wants_a_token_is_denied(
    credential: Credential | None, server: GitServer, tmp_path: Path
) -> None:
    server.token_wanted = True
    mirror = mirror_in(tmp_path / "state")
    url = f"{server.url}/r.git"
    for call in (
        lambda: mirror.remote_head(url, None, credential),
        lambda: mirror.fetch("p", url, RemoteHead("main", "0" * 40), credential),
    ):
        with pytest.raises(SourceDenied) as caught:
            call()
        assert url in caught.value.message
        assert "credentials" in str(caught.value)
        assert TOKEN not in repr(caught.value)
        assert caught.value.__context__ is None
    assert files_that_hold(tmp_path / "state", TOKEN) == []
    assert not (tmp_path / "state" / "p.git").exists()


def test_a_token_in_git_s_own_words_is_scrubbed(tmp_path: Path) -> None:
    script = f"echo 'fatal: no {TOKEN} {BASIC} http://{TOKEN}@h/' >&2; exit 128"
    mirror = mirror_in(tmp_path / "state", path=wrapper(tmp_path / "bin", "git", script))
    with pytest.raises(SourceError) as caught:
        mirror.remote_head("http://127.0.0.1:1/r.git", None, CREDENTIAL)
    assert caught.value.message.endswith("failed: fatal: no *** *** http://***@h/")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, SourceDenied),
        (404, SourceNotFound),
        (410, SourceNotFound),
        (429, SourceUnavailable),
        (500, SourceUnavailable),
        (503, SourceUnavailable),
    ],
)
def test_an_answer_becomes_a_type(
    status: int, error: type[SourceError], server: GitServer, tmp_path: Path
) -> None:
    server.status = status
    with pytest.raises(error) as caught:
        mirror_in(tmp_path / "state").remote_head(f"{server.url}/r.git", "main", CREDENTIAL)
    assert type(caught.value) is error
    assert f"{server.url}/r.git" in caught.value.message


def test_a_redirect_is_not_followed_and_the_token_stays_here(
    server: GitServer, tmp_path: Path
) -> None:
    with serving(GitServer(tmp_path / "root")) as other:
        server.redirect_to = other.url
        with pytest.raises(SourceNotFound, match="redirects to another address"):
            mirror_in(tmp_path / "state").remote_head(f"{server.url}/r.git", None, CREDENTIAL)
    assert other.authorizations == []


def test_nobody_listening_is_unavailable(tmp_path: Path) -> None:
    mirror = mirror_in(tmp_path / "state")
    for url in ("http://127.0.0.1:1/r.git", "http://no-such-host.invalid/r.git"):
        with pytest.raises(SourceUnavailable) as caught:
            mirror.remote_head(url, None, None)
        assert type(caught.value) is SourceUnavailable
    with (
        listening(lambda connection: None) as url,
        pytest.raises(SourceUnavailable, match=r"Empty reply|reset"),
    ):
        mirror.remote_head(url, None, None)


@pytest.mark.parametrize("answer", [silence, drip])
def test_silence_and_dripping_end_at_the_deadline_and_leave_nothing(
    answer: Callable[[socket.socket], None], server: GitServer, tmp_path: Path
) -> None:
    mirror = mirror_in(tmp_path / "state", seconds=SILENT_SECONDS)
    with listening(answer) as url:
        for call in (
            lambda: mirror.remote_head(url, None, None),
            lambda: mirror.fetch("p", url, RemoteHead("main", "0" * 40), None),
        ):
            with pytest.raises(SourceTimeout, match="timed out after 1 s") as caught:
                call()
            assert url in caught.value.message
        assert processes_with(url) == []
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == [".home", "p.lock"]
    again = mirror_in(tmp_path / "state")
    url = f"{server.url}/r.git"
    assert again.fetch("p", url, again.remote_head(url, None, None), None)


def test_a_renewal_that_is_ended_leaves_the_mirror_usable(
    server: GitServer, tmp_path: Path
) -> None:
    url = f"{server.url}/r.git"
    mirror = mirror_in(tmp_path / "state")
    head = mirror.remote_head(url, None, None)
    commit = mirror.fetch("p", url, head, None)
    with listening(silence) as silent, pytest.raises(SourceTimeout):
        mirror_in(tmp_path / "state", seconds=SILENT_SECONDS).fetch("p", silent, head, None)
    assert mirror.has_commit("p", commit)
    assert mirror.fetch("p", url, head, None) == commit


def test_ssh_gets_safe_options_and_no_agent_of_ours(server: GitServer, tmp_path: Path) -> None:
    log = tmp_path / "ssh-arguments"
    script = f'echo "$@" >> {log}\nfor last; do :; done\nexec sh -c "$last"'
    mirror = mirror_in(tmp_path / "state", path=wrapper(tmp_path / "bin", "ssh", script))
    url = f"git@127.0.0.1:{server.root}/r.git"
    assert mirror.fetch("p", url, mirror.remote_head(url, None, None), None)
    arguments = log.read_text().splitlines()[0]
    assert "-oBatchMode=yes" in arguments
    assert "git@127.0.0.1 git-upload-pack" in arguments


def test_ssh_that_is_denied_or_refused(tmp_path: Path) -> None:
    words = "git@h: Permission denied (publickey)."
    path = wrapper(tmp_path / "bin", "ssh", f"echo '{words}' >&2; exit 255")
    with pytest.raises(SourceDenied, match=r"Permission denied \(publickey\)"):
        mirror_in(tmp_path / "state", path=path).remote_head("git@127.0.0.1:r.git", None, None)
    with pytest.raises(SourceUnavailable, match="Connection refused"):
        mirror_in(tmp_path / "state").remote_head("ssh://git@127.0.0.1:1/r.git", None, None)
