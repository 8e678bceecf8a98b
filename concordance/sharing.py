"""The one index that everything in a process shares, opened on first use and closed at exit.

What belongs here: holding it. Who asks it are the plain functions of `concordance.calling` and the
tasks.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from functools import cache

from concordance.adapters.environment import process_environment, read_configuration
from concordance.index import Index


class _Shared:
    """What is open in this process, under a lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.opened: list[Index] = []
        # Indexes of the process that this one was forked from: its connections, not ours. They are
        # kept, since whatever ends them says goodbye to the server in the other's name.
        self.others: list[Index] = []

    def forked(self) -> None:
        """Begin anew in a process that was forked off, whoever held the lock then."""
        self.lock = threading.Lock()
        self.others += self.opened
        self.opened = []


@cache
def _shared() -> _Shared:
    made = _Shared()
    atexit.register(close_shared)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made.forked)
    return made


def open_from_environment() -> Index:
    """The index that the environment names; `projects.toml` need not be there to ask it.

    Raises:
        UsageError: A setting or the projects file can't be used.
        DatabaseError: Postgres can't be reached, or is not what is needed.
    """
    environ = process_environment()
    return Index.open(read_configuration(environ, need_projects=False), environment=environ)


def shared_index(opening: Callable[[], Index] = open_from_environment) -> Index:
    """This process's index; `opening` makes it where there is none yet."""
    shared = _shared()
    with shared.lock:
        if not shared.opened:
            shared.opened.append(opening())
        return shared.opened[0]


def opened_index() -> Index | None:
    """This process's index, where one is open already."""
    shared = _shared()
    with shared.lock:
        return shared.opened[0] if shared.opened else None


def adopt_index(index: Index) -> None:
    """Use an index that is open already, for programs and tests that configure it themselves."""
    close_shared()
    shared = _shared()
    with shared.lock:
        shared.opened.append(index)


def close_shared() -> None:
    """Close this process's index; the next question opens it anew."""
    shared = _shared()
    with shared.lock:
        while shared.opened:
            shared.opened.pop().close()
