"""The time, in UTC; every other module is given it."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The present moment, with its zone."""
    return datetime.now(UTC)
