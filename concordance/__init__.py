"""Concordance: a hybrid index over many projects' documentation, decisions and session logs.

`search` and `coverage`, and their `async` twins, ask this process's own index, which is opened at
the first question. They are loaded when they are first named: importing the package loads nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concordance.calling import coverage, coverage_async, search, search_async
    from concordance.errors import ConcordanceError
    from concordance.models import Answer, Hit, ScopeCoverage, SearchRequest

__all__ = [
    "Answer",
    "ConcordanceError",
    "Hit",
    "ScopeCoverage",
    "SearchRequest",
    "coverage",
    "coverage_async",
    "search",
    "search_async",
]

_ROOMS = {
    "concordance.calling": ("coverage", "coverage_async", "search", "search_async"),
    "concordance.errors": ("ConcordanceError",),
    "concordance.models": ("Answer", "Hit", "ScopeCoverage", "SearchRequest"),
}


def __getattr__(name: str) -> object:
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(room), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
