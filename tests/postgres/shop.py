"""The small project that the pipeline is run over, and how it is asked."""

from __future__ import annotations

from pathlib import Path

from concordance.index import Index
from concordance.models import SearchRequest
from concordance.settings import Project
from tests.sources import GitSource

FILES: dict[str, str | bytes] = {
    "README.md": "# Shop\n\nSells tea and kettles.\n",
    "docs/guide.md": "# Guide\n\nHow to brew.\n\n## Water\n\nBoil it first.\n",
    "docs/adr/0001-queue.md": "# 1. Queue\n\nWe use a queue for orders.\n",
    "src/main.py": "print('no documentation')\n",
}


def found(index: Index, text: str, **more: object) -> list[str]:
    request = {"text": text, "fusion": "lexical", "threshold": 0.0} | more
    return [hit.citation for hit in index.search(SearchRequest.model_validate(request)).hits]


def large_projects(folder: Path, projects: int, parts: int) -> list[Project]:
    made = []
    for number in range(projects):
        texts = "".join(f"## Part {n}\n\nText {n} of {number}.\n\n" for n in range(parts))
        source = GitSource.make(folder / f"p{number}", {"docs/many.md": texts})
        made.append(Project(slug=f"p{number}", path=source.path))
    return made
