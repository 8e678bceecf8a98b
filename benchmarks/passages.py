"""A hundred thousand real passages: what the libraries that this program uses bring as text."""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from concordance.text.chunking import chunk_plain

SEED = 7
ENDINGS = (".py", ".pyi", ".md", ".rst", ".txt")
WIDTH = 384


def passages(most: int) -> Iterator[tuple[str, str]]:
    """Paths and passages of sources, comments and documentation, in a fixed order."""
    root = Path(sysconfig.get_paths()["purelib"])
    made = 0
    paths = [path for ending in ENDINGS for path in sorted(root.rglob(f"*{ending}"))]
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace").replace("\0", "\ufffd")
        for chunk in chunk_plain(text):
            yield str(path.relative_to(root)), chunk.content
            made += 1
            if made == most:
                return


def questions(texts: list[str], count: int) -> list[str]:
    """Sentences that people wrote in these passages: first lines of docstrings."""
    found = []
    for text in texts:
        for line in text.splitlines():
            start, quotes, rest = line.partition('"""')
            words = rest.strip(' ".').split()
            if quotes and not start.strip() and 4 <= len(words) <= 14:
                found.append(" ".join(words))
    chosen = random.Random(SEED)  # noqa: S311 - the same questions in every run
    return chosen.sample(sorted(set(found)), count)
