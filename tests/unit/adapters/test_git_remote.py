"""Mirrors of remotes behind HTTP and ssh: credentials, silence, redirects, refusals."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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

PATH = os.environ["PATH"]
TOKEN = "ghp_FAKE0000"
CREDENTIAL = Credential("x-token", SecretStr(TOKEN))
BASIC = base64.b64encode(f"x-token:{TOKEN}".encode()).decode()
SILENT_SECONDS = 1.0


class GitServer(ThreadingHTTPServer):
    """`git http-backend` on loopback; asks for a token, or answers with one status only."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.token_wanted = False
        self.status = 0
        self.redirect_to = ""
        self.authorizations: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: GitServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        authorization = self.headers.get("Authorization")
        self.server.authorizations.append(authorization)
        if self.server.redirect_to:
            self._refuse(301, "Location", self.server.redirect_to + self.path)
        elif self.server.status:
            self._refuse(self.server.status)
        elif self.server.token_wanted and authorization != f"Basic {BASIC}":
            self._refuse(401, "WWW-Authenticate", 'Basic realm="git"')
        else:
            self._serve()

    def _refuse(self, status: int, name: str = "X-Nothing", value: str = "") -> None:
        self.send_response(status)
        self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environment = {
            "PATH": PATH,
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": "/nonexistent",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, check=True, capture_output=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.partition(": ") for line in head.decode().split("\r\n")]
        status = next(
            (int(value.split()[0]) for name, _, value in headers if name == "Status"), 200
        )
        self.send_response(status)
        for name, _, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


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


@contextmanager
def serving(server: GitServer) -> Iterator[GitServer]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def git(*arguments: str, directory: Path = Path("/")) -> str:
    environment = {"PATH": PATH, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, check=True, capture_output=True)
    return done.stdout.decode().strip()


def mirror_in(directory: Path, seconds: float = 20, path: str = PATH) -> GitMirror:
    policy = GitPolicy(allowed_schemes=("http", "ssh"), timeout_seconds=seconds)
    return GitMirror(directory, policy=policy, environment={"PATH": path})


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that accepts, and does with each connection what it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                thread = threading.Thread(target=serve, args=(connection,))
                threads.append(thread)
                thread.start()

        def serve(connection: socket.socket) -> None:
            with connection:
                answer(connection)

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/r.git"
        listener.shutdown(socket.SHUT_RDWR)
        acceptor.join()
        for thread in threads:
            thread.join()


def silence(connection: socket.socket) -> None:
    while connection.recv(4_096):
        pass


def drip(connection: socket.socket) -> None:
    connection.recv(4_096)
    kind = b"application/x-git-upload-pack-advertisement"
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n\r\n")
        for byte in b"001e# service=git-upload-pack\n" * 20:
            connection.sendall(bytes([byte]))
            time.sleep(0.2)
    except OSError:
        return


def processes_with(words: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if words in line:
            found.append(line)
    return found


def wrapper(folder: Path, name: str, script: str) -> str:
    """A PATH on which a script of ours comes before the real program."""
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:{PATH}"


def files_that_hold(folder: Path, words: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if words.encode() in path.read_bytes()]


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
            started = time.monotonic()
            with pytest.raises(SourceTimeout, match="timed out after 1 s") as caught:
                call()
            assert SILENT_SECONDS - 0.1 < time.monotonic() - started < SILENT_SECONDS + 2
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
