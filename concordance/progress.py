"""News of long work, for whoever shows it: a bar on a terminal, or nobody.

What belongs here: handing news on. The steps announce; the command line listens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class News:
    """`done` of `total` units of a stage of one subject, such as a project."""

    stage: str
    subject: str
    done: int
    total: int


Listener = Callable[[News], None]

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have a listener told of all work of this process; it may be called from any thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def announcer(stage: str, subject: str) -> Callable[[int, int], None]:
    """A callback for one piece of work, which passes its progress on to all listeners."""

    def announce(done: int, total: int) -> None:
        for listener in tuple(_listeners):
            listener(News(stage, subject, done, total))

    return announce
