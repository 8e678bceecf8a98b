"""Numbers with their nouns, and times, as a person would write them."""

from __future__ import annotations

from datetime import UTC, datetime


def counted(number: int, noun: str) -> str:
    """`1 hit`, `2 hits`, `1,000 hits`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def counted_of(part: int, whole: int, noun: str) -> str:
    """`1 of 1 hit`, `1 of 2 hits`."""
    return f"{part:,} of {counted(whole, noun)}"


def agreeing(number: int, one: str, many: str) -> str:
    """The form of a verb that goes with a number."""
    return one if number == 1 else many


def age(moment: datetime | None, now: datetime) -> str:
    """How long ago, in the largest unit that says something; never less than nothing."""
    if moment is None:
        return "never"
    # Within one zone Python subtracts what the clocks on the wall show.
    passed = now.astimezone(UTC) - moment.astimezone(UTC)
    seconds = max(0, int(passed.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def moment(at: datetime | None, now: datetime) -> str:
    """A time in UTC, and how long ago it was: `2026-03-01 02:30 UTC (3 h ago)`."""
    return "never" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC ({age(at, now)})"
