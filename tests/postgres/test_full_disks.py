"""A disk that is really full, where the machine lets a test make a small one."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from concordance.errors import DatabaseFull
from concordance.models import CoverageState
from concordance.settings import Project
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import (
    better_than_the_truth,
    covered,
    documents_of,
    names_of,
    passages_of,
    reindex,
)
from tests.postgres.house import open_index
from tests.postgres.place import Place, as_root, execute
from tests.sources import GitSource

SIZE = 64 * 1024 * 1024


def version(number: int) -> dict[str, str | bytes]:
    """Files of words that nothing makes smaller, other ones in each version."""
    chance = random.Random(number)  # noqa: S311
    return {
        f"docs/{n}.md": f"# Page {n}\n\n"
        + " ".join(f"{chance.getrandbits(40):x}" for _ in range(800))
        for n in range(12)
    }


@pytest.fixture
def small_disk(place: Place) -> Iterator[Path]:
    """A folder on a small disk, in which the place's server may write."""
    disk = place.top / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing may be mounted here")
    folder = disk / "space"
    folder.mkdir(mode=0o700)
    owner = place.location.data.stat()
    os.chown(folder, owner.st_uid, owner.st_gid)
    yield folder
    place.server().stop(force=True)
    subprocess.run(["umount", str(disk)], check=True)


def fill_up(disk: Path, *, but: int) -> Path:
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_bsize - but)
    return ballast


@as_root
def test_a_full_disk_costs_the_run_and_no_row(
    place: Place, small_disk: Path, provider: FakeOllama, tmp_path: Path
) -> None:
    server = place.server()
    root = server.start()
    execute(root, f"create tablespace small location '{small_disk}'")
    execute(root, "create database concordance tablespace small")
    url = make_conninfo(root, dbname="concordance")
    source = GitSource.make(tmp_path / "source", version(0))
    projects = [Project(slug=slug, path=source.path) for slug in ("p", "fresh")]
    with open_index(tmp_path / "home", url, provider, *projects) as index:
        reindex(index)
        for number, left in enumerate((0, 96 * 1024), start=1):
            source.commit(version(number))
            ballast = fill_up(small_disk.parent, but=left)
            # Where there is not even room for the account of the failure, that is an error, too.
            with contextlib.suppress(DatabaseFull):
                reindex(index)
            assert better_than_the_truth(index, url) == []
            assert covered(index).state is not CoverageState.COMPLETE
            assert set(names_of(url).values()) == {"docs indexed"}
            ballast.unlink()
        reindex(index)
        reindex(index, "fresh")
        for rows in (documents_of, passages_of):
            assert rows(url) == rows(url, "fresh")
        assert covered(index).state is CoverageState.COMPLETE
    server.stop()
