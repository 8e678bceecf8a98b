"""A person's wish to stop, for loops that would otherwise go on for minutes.

What belongs here: the wish alone. Loops look at it between two units of work that are whole by
themselves, so that nothing is left half done.
"""

from __future__ import annotations

import threading

_wished = threading.Event()
_abandoned = threading.Event()


def request_stop() -> None:
    """Ask every loop of this process to end at its next whole unit."""
    _wished.set()


def stop_requested() -> bool:
    """Whether somebody asked to stop."""
    return _wished.is_set()


def forget_request() -> None:
    """Go on as if nobody had asked."""
    _wished.clear()
    _abandoned.clear()


def abandon() -> None:
    """Note that nobody is left to take what this process still has to say."""
    _abandoned.set()


def abandoned() -> bool:
    """Whether the process should end without handing anything on."""
    return _abandoned.is_set()
