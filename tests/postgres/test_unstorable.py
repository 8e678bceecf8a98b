"""A document that Postgres can't take costs itself alone, and is named with the reason."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

from concordance.indexing.build import file_document
from concordance.indexing.documents import Document
from concordance.indexing.plan import Found
from concordance.models import Scope
from concordance.settings import Project
from concordance.text.cutting import ChunkSizes
from concordance.writing import write_batch
from tests.conftest import IndexMaker
from tests.postgres.driver import reindex
from tests.sources import GitSource


def document(name: str, text: str) -> Document:
    data = text.encode()
    found = Found(Scope.DOCS, "file", name, name, len(data))
    return file_document(found, data, commit="c0ffee", chunker="v1", sizes=ChunkSizes())


def test_one_document_that_cannot_be_stored_costs_itself(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    GitSource.make(tmp_path / "p", {"docs/first.md": "# First\n"})
    index = make_index(Project(slug="p", path=tmp_path / "p"))
    reindex(index)
    good = [document(f"docs/{n}.md", f"# Page {n}\n\nIts own words, {n}.\n") for n in range(4)]
    bad = good[2]
    # No reader lets a NUL through; it stands for whatever Postgres refuses tomorrow.
    spoilt = replace(bad, passages=(replace(bad.passages[0], content="be\0fore"),))
    with index.hold("p", uuid.uuid4(), on_wait=lambda: None) as held:
        write_batch(index._resources, held, [good[0], good[1], spoilt, good[3]])
    assert [index.explain("p", f"docs/{n}.md").in_index for n in range(4)] == [
        True,
        True,
        False,
        True,
    ]
    told = index.explain("p", "docs/2.md")
    assert told.reason is not None
    assert told.reason.startswith("could not be stored: ")
