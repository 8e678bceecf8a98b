"""Whether the Prefect server that a command works with is still there, and what becomes of it.

What belongs here: the watch alone. Prefect's own client tries each of its events for seconds after
its server went, so a run that lost it would take hours to end.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from concordance.errors import ServerLost
from concordance.interruption import abandon, request_stop

LOOK_SECONDS = 1.0
# A server of somebody's own may be started anew; ours tells at once that it ended.
PATIENCE_SECONDS = 120.0
# For steps that are at work; what they have not committed then is read again by the next run.
GRACE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Connection:
    """A Prefect server: where it is, and whether it is there now.

    `patience` is for how many seconds without an answer it still counts as there.
    """

    url: str
    there: Callable[[], bool]
    patience: float = 0.0


class Absence:
    """Looks again and again, and says when a server has been away for too long."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last_seen = time.monotonic()

    def lasts(self) -> bool:
        """Whether the server is gone for good, as far as can be told now."""
        if self._connection.there():
            self._last_seen = time.monotonic()
            return False
        return time.monotonic() - self._last_seen >= self._connection.patience


class Watched:
    """Runs a block in the main thread for as long as its Prefect server is there.

    Where that goes away the block is interrupted, and `give_up` is called if it does not end then.

    Raises:
        ServerLost: It went away.
    """

    def __init__(self, connection: Connection, give_up: Callable[[], None]) -> None:
        self._connection = connection
        self._give_up = give_up
        self._over = threading.Event()
        self._lost = threading.Event()
        self._deciding = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="watch-prefect", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._deciding:
            self._over.set()
        if self._lost.is_set() or (error is not None and not self._connection.there()):
            # Whatever Prefect made of it: without its server there is no other cause to look for.
            abandon()
            raise lost() from error

    def _watch(self) -> None:
        absence = Absence(self._connection)
        while not self._over.wait(LOOK_SECONDS):
            if not absence.lasts():
                continue
            with self._deciding:
                if self._over.is_set():
                    return
                self._lost.set()
                request_stop()
                # A signal of the system's own: it also wakes a thread that waits for another.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            if not self._over.wait(GRACE_SECONDS):
                self._give_up()
            return


def lost() -> ServerLost:
    """The error of a command whose Prefect server went away."""
    return ServerLost(
        "the Prefect server went away while it was used",
        hint="What was committed stays, and the next run goes on; one of this machine's own is "
        "started by the next command",
    )
