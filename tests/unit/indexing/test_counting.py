"""Numbers with their nouns, and verbs that go with them; no text counts `1 chunks`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import concordance
from concordance.indexing.counting import agreeing, counted, counted_of

# A count in an f-string with a noun in the plural behind it, whatever the count is.
PLURAL = re.compile(
    r"\{(?!project\})[^{}'\"]*\}\s(?:chunk|question|file|document|passage|project|run|secret|session|log|turn|"
    r"hit|text|vector|record|difference|column|score|candidate|commit|table)s\b"
)
# Of these the number is never one.
LIMITS = ("largest", "most", "MOST_", "MAX_", "LEAST_", "_LIMIT")


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 hits"), (1, "1 hit"), (2, "2 hits"), (1_000, "1,000 hits")]
)
def test_a_number_and_its_noun(number: int, said: str) -> None:
    assert counted(number, "hit") == said


def test_a_part_of_a_number_and_a_verb() -> None:
    assert counted_of(1, 1, "chunk") == "1 of 1 chunk"
    assert counted_of(1, 2, "chunk") == "1 of 2 chunks"
    assert [agreeing(n, "waits", "wait") for n in (0, 1, 2)] == ["wait", "waits", "wait"]


def test_no_text_of_ours_counts_one_in_the_plural() -> None:
    root = Path(concordance.__file__).parents[1]
    found = [
        f"{path.name}: {match.group()}"
        for package in ("concordance", "flows", "tasks")
        for path in sorted((root / package).rglob("*.py"))
        for match in PLURAL.finditer(path.read_text(encoding="utf-8"))
        if not any(limit in match.group() for limit in LIMITS)
    ]
    # A tree over the limit has two files at least.
    assert found == ["reading.py: {len(entries):,} files"]
