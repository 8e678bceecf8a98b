"""Numbers with their nouns, as a person would write them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 hit`, `2 hits`, `1,000 hits`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
