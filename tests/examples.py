"""Examples of the documentation, for the tests that run them."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page: str, language: str, *holding: str) -> list[str]:
    """The blocks of a page in one language, those that hold all of some words."""
    text = (DOCS / page).read_text("utf-8")
    found = [body for kind, body in _BLOCK.findall(text) if kind == language]
    return [body for body in found if all(word in body for word in holding)]


def example(page: str, language: str, *holding: str) -> str:
    """The one block of a page that holds some words."""
    (found,) = examples(page, language, *holding)
    return found
