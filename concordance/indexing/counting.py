"""Numbers with their nouns, as a person would write them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 hit`, `2 hits`, `1,000 hits`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def counted_of(part: int, whole: int, noun: str) -> str:
    """`1 of 1 hit`, `1 of 2 hits`."""
    return f"{part:,} of {counted(whole, noun)}"


def agreeing(number: int, one: str, many: str) -> str:
    """The form of a verb that goes with a number."""
    return one if number == 1 else many
