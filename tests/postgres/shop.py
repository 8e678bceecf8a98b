"""The small project that the pipeline is run over, and how it is asked."""

from __future__ import annotations

from concordance.index import Index
from concordance.models import SearchRequest

FILES: dict[str, str | bytes] = {
    "README.md": "# Shop\n\nSells tea and kettles.\n",
    "docs/guide.md": "# Guide\n\nHow to brew.\n\n## Water\n\nBoil it first.\n",
    "docs/adr/0001-queue.md": "# 1. Queue\n\nWe use a queue for orders.\n",
    "src/main.py": "print('no documentation')\n",
}


def found(index: Index, text: str, **more: object) -> list[str]:
    request = {"text": text, "fusion": "lexical", "threshold": 0.0} | more
    return [hit.citation for hit in index.search(SearchRequest.model_validate(request)).hits]
