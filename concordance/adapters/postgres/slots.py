"""Places at an embedding provider: so many of all processes on one database have one at a time.

What belongs here: taking a place and giving it back. A place is an advisory lock of a session, so
that of a process that died is free at once. What is done in it is the caller's matter.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from concordance.adapters.postgres.database import Connection, Database, fetch_value
from sql import queries

SLOT_LOCKS = 0x434F4E07  # first key of our advisory locks on places at a provider
# Seconds between two looks for a free place: shorter than any batch takes.
LOOK_SECONDS = 0.1
# The second key holds the provider's name in its upper bits and the place in its lower ones.
PLACE_BITS = 10
NAME_MASK = 0x1FFFFF


class Slots:
    """The places at one provider, or as many as are wanted where there is no limit."""

    def __init__(self, connection: Connection | None, provider: str, most: int) -> None:
        self._connection = connection
        first = (zlib.crc32(provider.encode()) & NAME_MASK) << PLACE_BITS
        self._key = {"class": SLOT_LOCKS, "first": first, "last": first + most - 1}

    @contextmanager
    def taken(self, *, given_up: Callable[[], bool]) -> Iterator[bool]:
        """Wait for a place and keep it for the block; False where the wait was given up.

        Args:
            given_up: Asked between two looks whether to stop waiting.
        """
        if self._connection is None:
            yield True
            return
        ask = queries("embeddings")
        while (slot := fetch_value(self._connection, ask["take_slot"], self._key)) is None:
            if given_up():
                yield False
                return
            time.sleep(LOOK_SECONDS)
        try:
            yield True
        finally:
            key = {"class": SLOT_LOCKS, "slot": slot}
            self._connection.execute(ask["free_slot"], key)


@contextmanager
def open_slots(database: Database, provider: str, most: int | None) -> Iterator[Slots]:
    """The places at a provider, over a session of their own where there is a limit."""
    if most is None:
        yield Slots(None, provider, 1)
        return
    with database.session() as connection:
        yield Slots(connection, provider, most)
