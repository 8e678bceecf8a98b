"""Mirrors of local repositories: heads, fetches, trees and blobs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from concordance.adapters.git import GitMirror, GitPolicy, RemoteHead
from concordance.errors import (
    BranchGone,
    SourceNotFound,
    SourceRefused,
    SourceUnavailable,
)

PATH = os.environ["PATH"]


class Source:
    """A repository to fetch from, with a work tree."""

    def __init__(self, path: Path, *init: str) -> None:
        self.path = path
        self.url = str(path)
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main", *init)

    def git(self, *arguments: str) -> str:
        environment = {"PATH": PATH, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        command = ["git", *identity, "-c", "safe.directory=*", *arguments]
        done = subprocess.run(
            command, cwd=self.path, env=environment, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    def commit(self, files: dict[str, str | None]) -> str:
        for name, content in files.items():
            path = self.path / name
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "m")
        return self.git("rev-parse", "HEAD")


def mirror_in(directory: Path, seconds: float = 30, path: str = PATH) -> GitMirror:
    policy = GitPolicy(allowed_schemes=("file",), timeout_seconds=seconds)
    return GitMirror(directory, policy=policy, environment={"PATH": path})


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path / "source")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "state" / "repositories"


@pytest.fixture
def mirror(store: Path) -> GitMirror:
    return mirror_in(store)


def fetch(mirror: GitMirror, url: str, branch: str | None = None) -> str:
    return mirror.fetch("p", url, mirror.remote_head(url, branch, None), None)


def contents(mirror: GitMirror, commit: str) -> dict[bytes, bytes]:
    entries = [entry for entry in mirror.list_tree("p", commit) if entry.kind == "file"]
    blobs = dict(mirror.read_blobs("p", [entry.blob_id for entry in entries]))
    return {entry.path: blobs[entry.blob_id] for entry in entries}


def test_one_commit_is_fetched_and_read(source: Source, mirror: GitMirror, store: Path) -> None:
    source.commit({"old.md": "old"})
    commit = source.commit({"docs/a.md": "# A\n", "empty.md": "", "old.md": None})
    assert mirror.remote_head(source.url, None, None) == RemoteHead("main", commit)
    assert mirror.remote_head(source.url, "main", None) == RemoteHead("main", commit)
    assert not mirror.has_commit("p", commit)
    assert fetch(mirror, source.url) == commit
    assert mirror.has_commit("p", commit)
    assert not mirror.has_commit("p", "0" * 40)
    assert contents(mirror, commit) == {b"docs/a.md": b"# A\n", b"empty.md": b""}
    entry = mirror.list_tree("p", commit)[0]
    assert (entry.kind, entry.size) == ("file", 4)
    assert (store / "p.git" / "shallow").read_text().split() == [commit]
    assert not list(store.glob("*.new"))
    assert store.stat().st_mode & 0o777 == 0o700


def test_a_file_address_and_a_path_are_the_same(source: Source, mirror: GitMirror) -> None:
    commit = source.commit({"a.md": "a"})
    assert fetch(mirror, f"file://{source.url}") == commit
    assert fetch(mirror, source.url) == commit


def test_only_what_changed_has_other_ids(source: Source, mirror: GitMirror) -> None:
    first = source.commit({"a.md": "a", "b.md": "b"})
    fetch(mirror, source.url)
    before = {entry.path: entry.blob_id for entry in mirror.list_tree("p", first)}
    second = source.commit({"a.md": None, "b.md": None, "c.md": "b"})
    assert fetch(mirror, source.url) == second
    after = {entry.path: entry.blob_id for entry in mirror.list_tree("p", second)}
    assert after == {b"c.md": before[b"b.md"]}
    assert mirror.has_commit("p", first)


def test_a_rewritten_history_is_followed(source: Source, mirror: GitMirror) -> None:
    source.commit({"a.md": "a"})
    fetch(mirror, source.url)
    source.git("checkout", "--quiet", "--orphan", "other")
    source.git("rm", "-rfq", ".")
    rewritten = source.commit({"b.md": "b"})
    source.git("branch", "-M", "other", "main")
    assert fetch(mirror, source.url) == rewritten
    assert contents(mirror, rewritten) == {b"b.md": b"b"}


def test_a_renamed_default_branch_is_found_and_the_old_one_missed_by_name(
    source: Source, mirror: GitMirror
) -> None:
    source.commit({"a.md": "a"})
    fetch(mirror, source.url)
    source.git("branch", "-M", "main", "trunk")
    commit = source.commit({"b.md": "b"})
    assert mirror.remote_head(source.url, None, None) == RemoteHead("trunk", commit)
    assert fetch(mirror, source.url) == commit
    for number in range(7):
        source.git("branch", f"b{number}")
    with pytest.raises(BranchGone) as caught:
        mirror.remote_head(source.url, "main", None)
    assert "'main'" in caught.value.message
    assert source.url in caught.value.message
    assert str(caught.value).endswith("(8 in all): trunk, b0, b1, b2, b3")
    with pytest.raises(BranchGone, match=r"'main'|refs/heads/main"):
        mirror.fetch("p", source.url, RemoteHead("main", commit), None)
    assert mirror.has_commit("p", commit)


def test_a_head_that_points_nowhere_is_no_empty_repository(
    source: Source, mirror: GitMirror
) -> None:
    source.commit({"a.md": "a"})
    source.git("symbolic-ref", "HEAD", "refs/heads/gone")
    with pytest.raises(BranchGone, match=r"HEAD points to does not exist.*: main$"):
        mirror.remote_head(source.url, None, None)


def test_a_detached_head_is_fetched(source: Source, mirror: GitMirror) -> None:
    first = source.commit({"a.md": "a"})
    source.commit({"a.md": "b"})
    source.git("checkout", "--quiet", "--detach", first)
    assert mirror.remote_head(source.url, None, None) == RemoteHead(None, first)
    assert fetch(mirror, source.url) == first


def test_an_empty_repository_has_no_commit_until_one_is_pushed(
    source: Source, mirror: GitMirror
) -> None:
    assert mirror.remote_head(source.url, None, None) == RemoteHead(None, None)
    assert mirror.remote_head(source.url, "main", None) == RemoteHead("main", None)
    with pytest.raises(SourceNotFound, match="no commit yet"):
        fetch(mirror, source.url)
    commit = source.commit({"a.md": "a"})
    assert fetch(mirror, source.url) == commit


def test_sha256_repositories_are_read_too_and_a_change_of_format_is_survived(
    tmp_path: Path, source: Source, mirror: GitMirror
) -> None:
    source.commit({"a.md": "a"})
    fetch(mirror, source.url)
    other = Source(tmp_path / "sha256", "--object-format=sha256")
    commit = other.commit({"b.md": "b"})
    assert len(commit) == 64
    assert fetch(mirror, other.url) == commit
    assert contents(mirror, commit) == {b"b.md": b"b"}
    assert mirror.has_commit("p", commit)


def test_links_and_submodules_are_reported_and_not_followed(
    source: Source, mirror: GitMirror
) -> None:
    (source.path / "leak.md").symlink_to("/etc/passwd")
    (source.path / "docs").mkdir()
    (source.path / "docs" / "up").symlink_to("../..")
    (source.path / "loop").symlink_to(".")
    source.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor/sub")
    source.git("add", "leak.md", "docs/up", "loop")
    source.git("commit", "--quiet", "-m", "m")
    commit = fetch(mirror, source.url)
    found = {entry.path: entry for entry in mirror.list_tree("p", commit)}
    assert {path: entry.kind for path, entry in found.items()} == {
        b"leak.md": "symlink",
        b"docs/up": "symlink",
        b"loop": "symlink",
        b"vendor/sub": "submodule",
    }
    assert found[b"vendor/sub"].size is None
    assert dict(mirror.read_blobs("p", [found[b"leak.md"].blob_id])).popitem()[1] == b"/etc/passwd"


def test_file_names_are_bytes(source: Source, mirror: GitMirror) -> None:
    names = [b"a\nb.md", b"q\"uo'te\t.md", b"caf\xe9.md", "ü/日本.md".encode(), b"-x.md", b" .md"]
    for name in names:
        path = os.path.join(os.fsencode(source.path), name)  # noqa: PTH118 - a path of bytes
        Path(os.fsdecode(path)).parent.mkdir(exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(name)
    commit = source.commit({})
    fetch(mirror, source.url)
    assert contents(mirror, commit) == {name: name for name in names}


def test_names_that_differ_by_case_filters_and_pointers_stay_as_they_are(
    source: Source, mirror: GitMirror
) -> None:
    attributes = "*.md text eol=crlf ident filter=lfs\n"
    pointer = "version https://git-lfs.github.com/spec/v1\n"
    files = {".gitattributes": attributes, "A.md": "A", "a.md": "$Id$\n", "b.md": pointer}
    commit = source.commit(dict(files))
    fetch(mirror, source.url)
    found = contents(mirror, commit)
    assert found == {name.encode(): content.encode() for name, content in files.items()}


def test_blobs_come_in_the_order_asked_and_only_while_they_are_wanted(
    source: Source, mirror: GitMirror
) -> None:
    names = [f"{number}.md" for number in range(300)]
    commit = source.commit({name: name * 1_000 for name in names})
    fetch(mirror, source.url)
    ids = [entry.blob_id for entry in mirror.list_tree("p", commit)]
    asked = [*reversed(ids), ids[7], ids[7]]
    assert [blob_id for blob_id, _ in mirror.read_blobs("p", asked)] == asked
    some = mirror.read_blobs("p", ids)
    next(some)
    some.close()  # type: ignore[attr-defined]
    assert list(mirror.read_blobs("p", [])) == []
    with pytest.raises(SourceRefused, match="no object id"):
        list(mirror.read_blobs("p", ["HEAD:0.md"]))


def test_this_process_s_environment_does_not_choose_the_repository(
    source: Source, mirror: GitMirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = source.commit({"a.md": "a"})
    other = Source(tmp_path / "other")
    for name in ("GIT_DIR", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(other.path / ".git"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.path / ".git" / "objects"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    assert fetch(mirror, source.url) == commit
    assert contents(mirror, commit) == {b"a.md": b"a"}
    assert not (tmp_path / "trace").exists()


def test_hooks_and_monitors_of_the_source_do_not_run(
    source: Source, mirror: GitMirror, tmp_path: Path
) -> None:
    pwned = tmp_path / "pwned"
    commit = source.commit({"a.md": "a"})
    hook = source.path / ".git" / "evil"
    hook.write_text(f"#!/bin/sh\ntouch {pwned}\n")
    hook.chmod(0o755)
    for name in ("post-checkout", "reference-transaction", "post-upload-pack"):
        shutil.copy(hook, source.path / ".git" / "hooks" / name)
    for name in ("core.fsmonitor", "uploadpack.packObjectsHook", "core.sshCommand"):
        source.git("config", name, str(hook))
    pwned.unlink(missing_ok=True)
    assert fetch(mirror, source.url) == commit
    assert not pwned.exists()


@pytest.mark.parametrize(
    "url",
    ['ext::sh -c "touch pwned"', "-u./x", "--upload-pack=touch pwned", "http://169.254.1.1/x"],
)
def test_refusals_come_before_anything_is_made(
    url: str, mirror: GitMirror, store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceRefused, match=r"^url "):
        mirror.remote_head(url, None, None)
    with pytest.raises(SourceRefused, match=r"^url "):
        mirror.fetch("p", url, RemoteHead("main", "0" * 40), None)
    for branch in ("--upload-pack=touch pwned", "-b x", "a..b"):
        with pytest.raises(SourceRefused, match=r"^branch "):
            mirror.remote_head("/srv/r.git", branch, None)
    for slug in ("../x", "", "a/b", "A", ".home"):
        with pytest.raises(SourceRefused, match="slug"):
            mirror.remove(slug)
    for commit in ("HEAD", "--x", ""):
        with pytest.raises(SourceRefused, match="commit"):
            mirror.list_tree("p", commit)
    assert not store.exists()
    assert not list(tmp_path.iterdir())


def test_what_is_no_repository_is_not_found(mirror: GitMirror, tmp_path: Path) -> None:
    for url in ("file:///etc", "/etc", str(tmp_path / "nothing")):
        with pytest.raises(SourceNotFound) as caught:
            mirror.remote_head(url, None, None)
        assert url in caught.value.message
    with pytest.raises(SourceUnavailable, match="no mirror"):
        mirror.list_tree("p", "0" * 40)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_repository_of_another_user_is_fetched(source: Source, mirror: GitMirror) -> None:
    commit = source.commit({"a.md": "a"})
    for folder, _, names in os.walk(source.path):
        for path in (Path(folder), *(Path(folder) / name for name in names)):
            os.chown(path, 12_345, 12_345)
    assert fetch(mirror, source.url) == commit
