"""Questions as plain functions, for programs that want an answer and nothing to look after.

What belongs here: the four calls that `from concordance import …` gives. A program that chooses its
own settings, or closes what it opened at a moment of its own, uses `concordance.index.Index`.
"""

from __future__ import annotations

import asyncio

from concordance.models import Answer, ScopeCoverage, SearchRequest
from concordance.sharing import shared_index


def search(request: SearchRequest | str) -> Answer:
    """The passages that answer a question, from the index that the environment names.

    The first call of a process opens that index, with a pool of connections that all threads share;
    it is closed at exit.

    Raises:
        UsageError: The question, a setting or the projects file can't be used.
        ProviderError: `vector` fusion was asked for, and the question can't be embedded.
        DatabaseError: Postgres can't be reached, or refuses.
    """
    return shared_index().search(request)


def coverage(*projects: str) -> list[ScopeCoverage]:
    """What is indexed of some projects, or of all, and how far it can be trusted.

    Raises:
        UsageError: A project is unknown, or a setting or the projects file can't be used.
        DatabaseError: Postgres can't be reached, or refuses.
    """
    return shared_index().coverage(list(projects) or None)


async def search_async(request: SearchRequest | str) -> Answer:
    """The same as `search`, in a thread: the event loop goes on meanwhile."""
    return await asyncio.to_thread(search, request)


async def coverage_async(*projects: str) -> list[ScopeCoverage]:
    """The same as `coverage`, in a thread: the event loop goes on meanwhile."""
    return await asyncio.to_thread(coverage, *projects)
