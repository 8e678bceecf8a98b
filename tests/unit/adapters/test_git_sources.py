"""Sources that are no plain repository, and settings of git that are not ours."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from concordance.adapters.git import GitMirror, GitPolicy
from concordance.adapters.git_objects import read_blobs
from concordance.adapters.git_refs import HEADS, RemoteHead, choose_head
from concordance.errors import BranchGone, SourceError, SourceRefused
from tests.git_server import git
from tests.sources import GitSource
from tests.unit.adapters.test_git_hostile import commit_tree, mirror_in, store, tree

PATH = os.environ["PATH"]


@pytest.fixture
def source(tmp_path: Path) -> GitSource:
    return GitSource.make(tmp_path / "source", {"a.md": "# A\n"})


@pytest.fixture
def mirror(tmp_path: Path) -> GitMirror:
    return mirror_in(tmp_path / "state")


def fetch(mirror: GitMirror, url: str) -> str:
    return mirror.fetch("p", url, mirror.remote_head(url, None, None), None)


def contents(mirror: GitMirror, commit: str) -> dict[bytes, bytes]:
    entries = mirror.list_tree("p", commit)
    blobs = dict(mirror.read_blobs("p", [entry.blob_id for entry in entries]))
    return {entry.path: blobs[entry.blob_id] for entry in entries}


# --- what is not a plain repository ----------------------------------------------------------


def test_attributes_change_no_byte_of_what_is_read(source: GitSource, mirror: GitMirror) -> None:
    files = {
        b".gitattributes": b"*.md export-subst ident eol=crlf working-tree-encoding=UTF-16\n",
        b"a.md": b"$Id$ $Format:%H %an$\r\n",
        b"b.md": "# Ü\n".encode(),
        b"c.md": "# Ü\n".encode("utf-16"),
    }
    entries = [("100644", name, store(source, "blob", data)) for name, data in files.items()]
    commit_tree(source, tree(source, entries))
    assert contents(mirror, fetch(mirror, str(source.path))) == files


def test_a_shallow_source_is_fetched(source: GitSource, mirror: GitMirror, tmp_path: Path) -> None:
    source.commit({"b.md": "# B\n"})
    shallow = str(tmp_path / "shallow")
    git("clone", "--quiet", "--bare", "--depth=1", f"file://{source.path}", shallow)
    assert sorted(contents(mirror, fetch(mirror, shallow))) == [b"a.md", b"b.md"]


def test_a_source_that_lacks_its_files_asks_nobody_for_them(
    source: GitSource, mirror: GitMirror, tmp_path: Path
) -> None:
    source.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    origin = f"file://{source.path}"
    git("clone", "--quiet", "--bare", "--filter=blob:none", origin, str(partial))
    pwned = tmp_path / "pwned"
    for url in (f"ext::sh -c touch% {pwned}", origin):
        git("config", "remote.origin.url", url, directory=partial)
        with pytest.raises(SourceError):
            fetch(mirror, str(partial))
    assert not pwned.exists()
    assert not (tmp_path / "state" / "p.git").exists(), "no half of it is left"


def test_a_source_that_borrows_objects_lends_none(
    source: GitSource, mirror: GitMirror, tmp_path: Path
) -> None:
    borrower = tmp_path / "borrower"
    git("clone", "--quiet", "--bare", "--shared", str(source.path), str(borrower))
    assert (borrower / "objects" / "info" / "alternates").exists()
    commit = fetch(mirror, str(borrower))
    assert not (tmp_path / "state" / "p.git" / "objects" / "info" / "alternates").exists()
    source.path.rename(tmp_path / "gone")
    assert contents(mirror, commit) == {b"a.md": b"# A\n"}


def test_a_bundle_is_read_like_a_repository_or_refused_by_name(
    source: GitSource, mirror: GitMirror, tmp_path: Path
) -> None:
    bundle = tmp_path / "all.bundle"
    source.git("bundle", "create", str(bundle), "main", "HEAD")
    assert contents(mirror, fetch(mirror, str(bundle))) == {b"a.md": b"# A\n"}
    whole = bundle.read_bytes()
    for broken in (whole[: len(whole) // 2], b"# v2 git bundle\n" + b"x" * 1_000, b""):
        bundle.write_bytes(broken)
        with pytest.raises(SourceError, match=r"all\.bundle"):
            fetch(mirror_in(tmp_path / "other"), str(bundle))


# --- names that a server makes up ------------------------------------------------------------


@contextmanager
def advertising(names: list[bytes], head: bytes, commit: bytes) -> Iterator[str]:
    """A server of the old kind, which may say of its references whatever it likes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listed = b"".join(commit + b"\t" + name + b"\n" for name in names)
            bodies = {"info/refs": listed, "HEAD": b"ref: " + head + b"\n"}
            body = bodies.get(self.path.partition("?")[0].removeprefix("/r.git/"))
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/r.git"
        server.shutdown()
        thread.join()


ODD = ["--upload-pack=touch pwned", "a b", "x\x1b[31m", "y\u2028z", "-x", "..", "é" * 2_000]


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_a_branch_of_an_odd_name_is_no_option_and_no_place(
    source: GitSource, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commit = source.git("rev-parse", "HEAD").encode()
    mirror = mirror_in(tmp_path / "state")
    full = (HEADS + name).encode()
    with advertising([full, b"refs/heads/main"], full, commit) as url:
        with pytest.raises(SourceError) as caught:
            mirror.fetch("p", url, mirror.remote_head(url, None, None), None)
        assert str(caught.value).isprintable()
        with pytest.raises(SourceRefused, match=r"^branch "):
            mirror.fetch("p", url, RemoteHead(name, commit.decode()), None)
    assert not (tmp_path / "pwned").exists()


def test_names_in_a_message_are_shown_and_not_obeyed() -> None:
    refs = {HEADS + name: "1" * 40 for name in [*ODD, "\udcff"]}
    with pytest.raises(BranchGone) as caught:
        choose_head(refs, "main", "https://git.example.org/r")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1_000


# --- settings of git that are not ours -------------------------------------------------------


def test_the_users_and_the_systems_settings_of_git_lead_nowhere_else(
    source: GitSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GitSource.make(tmp_path / "other", {"b.md": "# Other\n"})
    home = tmp_path / "somebody"
    (home / "git").mkdir(parents=True)
    pwned = tmp_path / "pwned"
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {pwned}\n")
    hook.chmod(0o755)
    text = (
        f'[url "{other.path}"]\n\tinsteadOf = {source.path}\n'
        f"[core]\n\thooksPath = {tmp_path}\n\tfsmonitor = {hook}\n\talternateRefsCommand = {hook}\n"
        f"[uploadpack]\n\tpackObjectsHook = {hook}\n"
    )
    for file in (home / ".gitconfig", home / "git" / "config", tmp_path / "system"):
        file.write_text(text)
    given = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_SYSTEM": str(tmp_path / "system"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{other.path}.insteadOf",
        "GIT_CONFIG_VALUE_0": str(source.path),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(other.path / ".git" / "objects"),
        "GIT_EXEC_PATH": str(tmp_path),
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    policy = GitPolicy(("file",), 60)
    mirror = GitMirror(tmp_path / "state", policy=policy, environment={"PATH": PATH} | given)
    commit = fetch(mirror, str(source.path))
    assert contents(mirror, commit) == {b"a.md": b"# A\n"}
    assert not pwned.exists()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_a_process_that_reads_a_mirror_sees_no_variable_of_ours(
    source: GitSource, mirror: GitMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = fetch(mirror, str(source.path))
    for name in ("CONCORDANCE_DATABASE_URL", "READ_TOKEN", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, "planted-secret")
    (entry,) = mirror.list_tree("p", commit)
    reading = mirror.read_blobs("p", [entry.blob_id] * 2)
    next(reading)
    children = Path("/proc/self/task").glob("*/children")
    numbers = {number for file in children for number in file.read_text().split()}
    seen = [(Path("/proc") / number / "environ").read_bytes() for number in numbers]
    assert any(b"GIT_DIR=" in held for held in seen)
    assert [held for held in seen if b"planted-secret" in held] == []
    reading.close()  # type: ignore[attr-defined]


def test_git_that_is_missing_is_named_when_a_mirror_is_read(
    source: GitSource, mirror: GitMirror, tmp_path: Path
) -> None:
    commit = fetch(mirror, str(source.path))
    (entry,) = mirror.list_tree("p", commit)
    with pytest.raises(SourceError, match="found no git"):
        list(read_blobs(tmp_path / "state" / "p.git", {"PATH": "/nowhere"}, [entry.blob_id]))
