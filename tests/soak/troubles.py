"""Every way in which an embedding provider can fail, at random, and a count of what was done.

What belongs here: faults that a run has to live with. That a provider is killed is one of them.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable

from tests.fake_ollama import Asked, FakeOllama
from tests.fake_ollama_faults import Fault

Decide = Callable[[Asked], Fault | None]
BAD_WORD = "walrus"
TIMEOUT_SECONDS = 1.5
"""What runs under fault are told to wait for an answer."""


def _always(fault: Fault) -> Decide:
    return lambda asked: fault


def _of_bad_texts(fault: Fault) -> Decide:
    return lambda asked: fault if any(BAD_WORD in text for text in asked.inputs) else None


def _of_batches(fault: Fault) -> Decide:
    return lambda asked: fault if len(asked.inputs) > 1 else None


FAULTS: dict[str, Decide] = {
    "reset": _always(Fault.connection_reset()),
    "503": _of_batches(Fault.status(503)),
    "500": _of_bad_texts(Fault.status(500, "the runner has ended")),
    "400": _of_bad_texts(Fault.status(400, "the input length exceeds the context length")),
    "404": _of_batches(Fault.status(404, "model not found, try pulling it first")),
    "401": _of_batches(Fault.status(401, "who are you?")),
    "429": _of_batches(Fault.busy()),
    "429 with Retry-After": _of_batches(Fault.busy("3600")),
    "NaN refused": _of_bad_texts(Fault.nan_error()),
    "NaN sent": _of_bad_texts(Fault.nans()),
    "zeros": _of_bad_texts(Fault.zeros()),
    "fewer": _of_batches(Fault.fewer()),
    "narrower": _of_batches(Fault.narrower()),
    "garbage": _of_batches(Fault.garbage()),
    "cut off": _of_batches(Fault.cut_off()),
    "slow": _of_batches(Fault.slow(0.05)),
    "too slow": _of_batches(Fault.slow(TIMEOUT_SECONDS + 1)),
    "trickling": _of_batches(Fault.trickling(0.1)),
}
STOPPED = "stopped"
DIES = "dies"


class Troubles:
    """A provider's faults: one kind at a time, on some of its requests, as `dice` fall.

    Attributes:
        done: How often each kind was done to a request, or to the provider itself.
    """

    def __init__(self, provider: FakeOllama) -> None:
        self.done: Counter[str] = Counter()
        self._provider = provider
        self._lock = threading.Lock()
        self._ending: threading.Thread | None = None

    def cure(self) -> None:
        """Let the provider be well."""
        if self._ending is not None:
            self._ending.join()
            self._ending = None
        self._provider.rule = None
        self._provider.dies_after = None
        self._provider.restart()

    def cause(self, dice: random.Random, *, well: float = 0.4) -> str | None:
        """Let the provider be well, with that chance, or fail in some way; the name of the way."""
        self.cure()
        if dice.random() < well:
            return None
        kind = dice.choice([*FAULTS, STOPPED, DIES])
        if kind == STOPPED:
            self._count(kind)
            self._provider.stop()
        elif kind == DIES:
            self.kill_after(dice.randrange(1, 5))
        else:
            self._provider.rule = self._some(FAULTS[kind], kind, dice.choice([0.3, 1.0]), dice)
        return kind

    def kill_after(self, requests: int) -> None:
        """Let the provider end, with every connection, at one of the requests to come."""
        left = requests

        def decide(asked: Asked) -> Fault | None:
            nonlocal left
            with self._lock:
                left -= 1
                if left:
                    return None
            self._count(DIES)
            # Not in this thread, whose own connection is to end.
            self._ending = threading.Thread(target=self._provider.stop, daemon=True)
            self._ending.start()
            return Fault.connection_reset()

        self._provider.rule = decide

    def _some(self, decide: Decide, kind: str, share: float, dice: random.Random) -> Decide:
        own = random.Random(dice.random())  # noqa: S311 - chance, no secret

        def decided(asked: Asked) -> Fault | None:
            fault = decide(asked)
            with self._lock:
                if fault is None or own.random() >= share:
                    return None
            self._count(kind)
            return fault

        return decided

    def _count(self, kind: str) -> None:
        with self._lock:
            self.done[kind] += 1
