"""Repositories made to fill the disk, the memory or the time, with limits lowered for the test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from concordance.adapters.git import GitMirror, GitPolicy
from concordance.adapters.git_process import Deadline, Quota, QuotaExceeded, run
from concordance.errors import SourceNotFound, SourceRefused
from tests.git_server import GitServer, git, serving
from tests.sources import GitSource

PATH = os.environ["PATH"]
MEGABYTE = 1 << 20


def mirror_in(
    directory: Path, *, fetch_bytes: int | None = None, memory_bytes: int | None = None
) -> GitMirror:
    policy = GitPolicy(("file", "http"), 60, fetch_bytes=fetch_bytes, memory_bytes=memory_bytes)
    return GitMirror(directory, policy=policy, environment={"PATH": PATH})


def fetch(mirror: GitMirror, source: GitSource) -> str:
    url = str(source.path)
    return mirror.fetch("p", url, mirror.remote_head(url, None, None), None)


def store(source: GitSource, kind: str, data: bytes) -> str:
    """Write any object, also one that git itself would not make."""
    done = subprocess.run(
        ["git", "hash-object", "-t", kind, "-w", "--stdin", "--literally"],
        cwd=source.path,
        input=data,
        check=True,
        capture_output=True,
    )
    return done.stdout.decode().strip()


def tree(source: GitSource, entries: Sequence[tuple[str, bytes, str]]) -> str:
    data = b"".join(
        mode.encode() + b" " + name + b"\0" + bytes.fromhex(target)
        for mode, name, target in entries
    )
    return store(source, "tree", data)


def commit_tree(source: GitSource, root: str) -> None:
    commit = source.git("commit-tree", "-m", "m", root)
    source.git("update-ref", "refs/heads/main", commit)


# --- disk ------------------------------------------------------------------------------------


def test_a_fetch_that_brings_too_much_is_refused_by_the_limit_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    source = GitSource.make(tmp_path / "source", {"big.bin": os.urandom(3 * MEGABYTE)})
    mirror = mirror_in(tmp_path / "state", fetch_bytes=MEGABYTE)
    for _ in range(2):
        with pytest.raises(SourceRefused, match="brings more than 1,048,576 bytes") as caught:
            fetch(mirror, source)
        assert "CONCORDANCE_MAX_FETCH_BYTES" in str(caught.value)
        assert str(source.path) in caught.value.message
        left = sorted(path.name for path in (tmp_path / "state").iterdir())
        assert left == [".home", "p.lock"]
    assert fetch(mirror_in(tmp_path / "state"), source), "a higher limit lets it pass"


def test_a_commit_that_brings_too_much_does_not_pass_the_next_time(tmp_path: Path) -> None:
    source = GitSource.make(tmp_path / "source", {"a.md": "# A\n"})
    mirror = mirror_in(tmp_path / "state", fetch_bytes=MEGABYTE)
    fetch(mirror, source)
    large = source.commit({"big.bin": os.urandom(3 * MEGABYTE)})
    for _ in range(2):
        with pytest.raises(SourceRefused, match="brings more than"):
            fetch(mirror, source)
        assert not mirror.has_commit("p", large)
    source.commit({}, delete=["big.bin"])
    assert fetch(mirror, source)


@pytest.mark.timeout(20)
def test_what_writes_without_end_is_ended_while_it_writes(tmp_path: Path) -> None:
    folder = tmp_path / "objects"
    folder.mkdir()
    (folder / "before").write_bytes(b"x" * MEGABYTE)
    with pytest.raises(QuotaExceeded):
        run(
            ["sh", "-c", "while :; do head -c 65536 /dev/zero >> objects/pack; sleep 0.01; done"],
            environment={"PATH": PATH},
            directory=tmp_path,
            deadline=Deadline.after(600),
            quota=Quota.of(folder, MEGABYTE),
        )
    size = (folder / "pack").stat().st_size
    time.sleep(0.1)
    assert (folder / "pack").stat().st_size == size, "nothing of it is left running"


# --- memory ----------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="another process is limited on Linux alone")
def test_memory_is_limited_for_git_and_what_it_starts() -> None:
    take = f"{sys.executable} -c \"b'x' * 400_000_000\""
    for memory, code in ((None, 0), (100 * MEGABYTE, 1)):
        finished = run(
            ["sh", "-c", f"sleep 0.2; {take}"],
            environment={"PATH": PATH},
            directory=Path("/"),
            deadline=Deadline.after(30),
            memory_bytes=memory,
        )
        assert finished.code == code, finished.err


@pytest.mark.skipif(sys.platform != "linux", reason="another process is limited on Linux alone")
def test_a_small_pack_that_unpacks_to_much_costs_no_memory(tmp_path: Path) -> None:
    zeros = {f"docs/{n}.md": bytes([48 + n]) * (80 * MEGABYTE) for n in range(1, 2)}
    source = GitSource.make(tmp_path / "source", {"a.md": "# A\n", **zeros})
    mirror = mirror_in(tmp_path / "state", fetch_bytes=MEGABYTE, memory_bytes=64 * MEGABYTE)
    commit = fetch(mirror, source)
    sizes = {entry.path: entry.size for entry in mirror.list_tree("p", commit)}
    assert sizes[b"docs/1.md"] == 80 * MEGABYTE, "known before it is read, so it is not"
    (small,) = [e for e in mirror.list_tree("p", commit) if e.path == b"a.md"]
    assert list(mirror.read_blobs("p", [small.blob_id])) == [(small.blob_id, b"# A\n")]


@pytest.mark.skipif(sys.platform != "linux", reason="another process is limited on Linux alone")
def test_git_that_runs_out_of_memory_is_a_refusal_that_names_the_limit(tmp_path: Path) -> None:
    wide = [("100644", f"{n:08d}.md".encode() + b"x" * 200, "1" * 40) for n in range(400_000)]
    source = GitSource.make(tmp_path / "source", {"a.md": "# A\n"})
    data = b"".join(b"100644 " + name + b"\0" + bytes.fromhex(target) for _, name, target in wide)
    blob = source.git("rev-parse", "HEAD:a.md")
    root = store(source, "tree", data.replace(bytes.fromhex("1" * 40), bytes.fromhex(blob)))
    commit_tree(source, root)
    mirror = mirror_in(tmp_path / "state", memory_bytes=64 * MEGABYTE)
    with pytest.raises(SourceRefused, match=r"(?i)memory") as caught:
        fetch(mirror, source)
    assert "CONCORDANCE_GIT_MEMORY_BYTES" in str(caught.value)


# --- numbers and names -----------------------------------------------------------------------


@pytest.mark.timeout(60)
def test_ten_million_paths_from_a_few_objects_are_refused_soon(tmp_path: Path) -> None:
    source = GitSource.make(tmp_path / "source", {"a.md": "# A\n"})
    below = tree(
        source,
        [("100644", f"{n}.md".encode(), source.git("rev-parse", "HEAD:a.md")) for n in range(10)],
    )
    for _ in range(6):
        below = tree(source, [("40000", str(n).encode(), below) for n in range(10)])
    commit_tree(source, below)
    mirror = mirror_in(tmp_path / "state")
    commit = fetch(mirror, source)
    assert mirror.has_commit("p", commit)
    with pytest.raises(SourceRefused, match=r"more than 1,000 files") as caught:
        mirror.list_tree("p", commit, most=1_000)
    assert "CONCORDANCE_MAX_FILES" in str(caught.value)


def test_names_that_lead_out_of_the_repository_are_names_and_no_places(tmp_path: Path) -> None:
    source = GitSource.make(tmp_path / "source", {"a.md": "# A\n"})
    blob = source.git("rev-parse", "HEAD:a.md")
    up = tree(source, [("40000", b"..", tree(source, [("100644", b"host.md", blob)]))])
    root = tree(
        source,
        [
            ("100644", b"../../evil.md", blob),
            ("100644", b"/etc/evil.md", blob),
            ("40000", b"docs", up),
            ("40000", b".git", tree(source, [("100644", b"config", blob)])),
        ],
    )
    commit_tree(source, root)
    mirror = mirror_in(tmp_path / "state")
    before = {path for path in tmp_path.rglob("*") if tmp_path / "state" not in path.parents}
    commit = fetch(mirror, source)
    paths = [entry.path for entry in mirror.list_tree("p", commit)]
    assert sorted(paths) == [b"../../evil.md", b".git/config", b"/etc/evil.md", b"docs/../host.md"]
    after = {path for path in tmp_path.rglob("*") if tmp_path / "state" not in path.parents}
    assert after - before <= {tmp_path / "state"}
    assert not list((tmp_path / "state").rglob("evil.md"))


# --- redirects -------------------------------------------------------------------------------


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "target",
    [
        "file:///etc",
        "http://169.254.169.254/latest",
        "http://10.0.0.1",
        "ftp://127.0.0.1",
        "ext::sh -c touch% pwned;",
        "https://127.0.0.1:1",
    ],
)
def test_no_redirect_is_followed_wherever_it_leads(tmp_path: Path, target: str) -> None:
    source = GitSource.make(tmp_path / "work", {"a.md": "# A\n"})
    (tmp_path / "root").mkdir()
    git("clone", "--quiet", "--bare", str(source.path), str(tmp_path / "root" / "r.git"))
    with serving(GitServer(tmp_path / "root")) as server:
        server.redirect_to = target
        mirror = mirror_in(tmp_path / "state")
        with pytest.raises(SourceNotFound, match="redirects to another address"):
            mirror.remote_head(f"{server.url}/r.git", None, None)
        assert len(server.authorizations) == 1
    assert list(tmp_path.rglob("pwned")) == []
