"""A reader sees all of a document's old version or all of its new one, at every moment."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from concordance.index import Index
from concordance.models import SearchRequest
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.postgres.driver import reindex
from tests.sources import GitSource

VERSIONS = 8
PARTS = 30
VERSION = re.compile(r"kettle (\d+)\.")


def page(name: str, version: int) -> str:
    """Every passage of a document holds its version; some parts come and go with it."""
    parts = "".join(
        f"## Part {n}\n\nThe {name} kettle {version}. Part {n} of it.\n\n"
        for n in range(PARTS - version % 5)
    )
    return f"# {name} {version}\n\n{parts}"


def pages(version: int) -> dict[str, str | bytes]:
    return {f"docs/{name}.md": page(name, version) for name in ("red", "blue")}


@pytest.fixture
def source(tmp_path: Path) -> GitSource:
    return GitSource.make(tmp_path / "source", pages(0))


def test_every_hit_of_a_document_is_of_one_version_and_cites_its_commit(
    make_index: IndexMaker, source: GitSource
) -> None:
    project = Project(slug="p", path=source.path)
    writer, reader = make_index(project), make_index(project)
    commits = {source.git("rev-parse", "HEAD"): 0}
    reindex(writer)
    done = threading.Event()
    seen: list[set[tuple[str, int]]] = []
    faults: list[str] = []

    def look() -> None:
        while not done.is_set():
            seen.append(versions_of(reader, commits, faults))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for version in range(1, VERSIONS):
            commits[source.commit(pages(version))] = version
            reindex(writer)
    finally:
        done.set()
        thread.join()
    assert faults == []
    assert len(seen) > VERSIONS
    assert {version for found in seen for _, version in found} > {0, VERSIONS - 1} - {0}
    assert versions_of(reader, commits, faults) == {
        ("docs/red.md", VERSIONS - 1),
        ("docs/blue.md", VERSIONS - 1),
    }


def versions_of(index: Index, commits: dict[str, int], faults: list[str]) -> set[tuple[str, int]]:
    """The version of each document in one answer; whatever doesn't fit together is a fault."""
    request = SearchRequest(text="kettle part", top_k=100, threshold=0.0)
    found: dict[str, set[int]] = {}
    parts: dict[str, int] = {}
    for hit in index.search(request).hits:
        if hit.origin.kind != "file":
            continue
        told = VERSION.search(hit.content)
        if told is None:
            continue
        version = int(told[1])
        path = hit.origin.path
        found.setdefault(path, set()).add(version)
        parts[path] = parts.get(path, 0) + 1
        if commits[hit.origin.commit] != version:
            faults.append(f"{path}: text of {version}, commit of {commits[hit.origin.commit]}")
        if f" {version}" not in (hit.origin.title or ""):
            faults.append(f"{path}: text of {version}, title {hit.origin.title!r}")
    for path, versions in found.items():
        if len(versions) != 1:
            faults.append(f"{path}: versions {sorted(versions)} in one answer")
    return {(path, next(iter(versions))) for path, versions in found.items()}
