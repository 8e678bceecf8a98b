"""What keeps a mirror usable: damage, left-overs, locks, a full disk, removal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from concordance.adapters.git import GitMirror, GitPolicy, RemoteHead
from concordance.adapters.git_folder import held
from concordance.adapters.git_process import Deadline
from concordance.errors import (
    DiskFull,
    SourceTimeout,
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


def test_left_overs_of_a_git_that_was_ended_are_swept(
    source: Source, mirror: GitMirror, store: Path
) -> None:
    source.commit({"a.md": "a"})
    fetch(mirror, source.url)
    left = ["shallow.lock", "HEAD.lock", "packed-refs.lock", "refs/concordance/head.lock", "gc.pid"]
    left += ["objects/pack/tmp_pack_x", "shallow_abc"]
    for name in left:
        (store / "p.git" / name).touch()
    (store / "p.new").mkdir()
    commit = source.commit({"a.md": "b"})
    assert fetch(mirror, source.url) == commit
    assert not [name for name in left if (store / "p.git" / name).exists()]
    assert not (store / "p.new").exists()


@pytest.mark.parametrize("damage", ["HEAD", "config", "objects", "ref", "pack", "shallow", "all"])
def test_a_damaged_mirror_is_made_anew(
    damage: str, source: Source, mirror: GitMirror, store: Path
) -> None:
    source.commit({"a.md": "a" * 2_000, "b.md": "b"})
    fetch(mirror, source.url)
    place = store / "p.git"
    if damage in ("HEAD", "config", "shallow"):
        (place / damage).write_text("garbage")
    elif damage == "ref":
        (place / "refs" / "concordance" / "head").write_text("garbage\n")
    elif damage == "pack":
        for pack in place.glob("objects/pack/*.pack"):
            pack.chmod(0o644)
            pack.write_bytes(pack.read_bytes()[:40] + b"garbage")
    else:
        shutil.rmtree(place / "objects" if damage == "objects" else place)
    if damage == "all":
        place.mkdir()
    commit = source.commit({"a.md": "a" * 2_000 + "!"})
    assert fetch(mirror, source.url) == commit
    assert contents(mirror, commit) == {b"a.md": b"a" * 2_000 + b"!", b"b.md": b"b"}


def test_a_blob_that_cannot_be_read_makes_the_next_fetch_start_anew(
    source: Source, mirror: GitMirror, store: Path
) -> None:
    commit = source.commit({"a.md": "a"})
    fetch(mirror, source.url)
    with pytest.raises(SourceUnavailable, match="can't give blob 1111"):
        list(mirror.read_blobs("p", ["1" * 40]))
    assert not mirror.has_commit("p", commit)
    assert fetch(mirror, source.url) == commit
    assert mirror.has_commit("p", commit)
    (pack,) = (store / "p.git" / "objects" / "pack").glob("*.pack")
    pack.unlink()
    with pytest.raises(SourceUnavailable, match="ls-tree of p failed"):
        mirror.list_tree("p", commit)
    assert not mirror.has_commit("p", commit)


def test_many_fetches_leave_few_packs(source: Source, mirror: GitMirror, store: Path) -> None:
    for number in range(23):
        commit = source.commit({"a.md": str(number)})
        assert mirror.fetch("p", source.url, RemoteHead("main", commit), None) == commit
    assert len(list((store / "p.git").glob("objects/pack/*.pack"))) < 10
    assert contents(mirror, commit) == {b"a.md": b"22"}
    assert fetch(mirror, source.url) == commit


def test_two_processes_fetch_at_once(source: Source, mirror: GitMirror, store: Path) -> None:
    commit = source.commit({f"{number}.md": str(number) for number in range(50)})
    script = (
        "import sys; from pathlib import Path;"
        "from concordance.adapters.git import GitMirror, GitPolicy, RemoteHead;"
        "policy = GitPolicy(allowed_schemes=('file',), timeout_seconds=30);"
        "mirror = GitMirror(Path(sys.argv[1]), policy=policy, environment={'PATH': sys.argv[4]});"
        "print(mirror.fetch('p', sys.argv[2], RemoteHead('main', sys.argv[3]), None))"
    )
    command = [sys.executable, "-c", script, str(store), source.url, commit, PATH]
    root = Path(__file__).parents[3]
    processes = [
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in processes] == [commit, commit]
    assert len(contents(mirror, commit)) == 50


def test_waiting_for_another_fetch_ends_at_the_deadline(source: Source, store: Path) -> None:
    commit = source.commit({"a.md": "a"})
    mirror = mirror_in(store, seconds=0.5)
    mirror.remote_head(source.url, None, None)
    with (
        held(store / "p.lock", Deadline.after(1)),
        pytest.raises(SourceTimeout, match=r"timed out after 0\.5 s"),
    ):
        mirror.fetch("p", source.url, RemoteHead("main", commit), None)
    assert mirror_in(store).fetch("p", source.url, RemoteHead("main", commit), None) == commit


def test_removal_leaves_nothing_and_may_be_repeated(
    source: Source, mirror: GitMirror, store: Path
) -> None:
    commit = source.commit({"a.md": "a"})
    fetch(mirror, source.url)
    mirror.remove("p")
    mirror.remove("p")
    assert [path.name for path in store.iterdir()] == [".home"]
    assert not mirror.has_commit("p", commit)
    failures: list[BaseException] = []
    threads = [threading.Thread(target=_churn, args=(mirror, source, failures)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def _churn(mirror: GitMirror, source: Source, failures: list[BaseException]) -> None:
    try:
        for _ in range(3):
            fetch(mirror, source.url)
            mirror.remove("p")
    except SourceUnavailable as error:
        failures.append(error)


def test_a_full_disk_is_told_and_leaves_the_old_mirror(source: Source, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(small)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system of a small size can be made here")
    try:
        mirror = mirror_in(small / "r")
        first = source.commit({"a.md": "a"})
        assert fetch(mirror, source.url) == first
        (source.path / "big.md").write_bytes(os.urandom(1_000_000))
        second = source.commit({})
        with pytest.raises(DiskFull) as caught:
            fetch(mirror, source.url)
        assert source.url in caught.value.message
        assert contents(mirror, first) == {b"a.md": b"a"}
        assert not mirror.has_commit("p", second)
    finally:
        subprocess.run(["umount", str(small)], check=True)
