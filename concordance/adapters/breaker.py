"""When a provider that failed is asked again.

What belongs here: remembering a failure, of a provider or of one of its hosts. Who asks looks here
first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from concordance.errors import (
    ProviderBusy,
    ProviderError,
    ProviderPaused,
    ProviderTimeout,
    ProviderUnavailable,
)

# Seconds for which a provider that failed that many times in a row is not asked again. The first
# two are shorter than what a task waits before its tries; the last spares the run's next projects.
PAUSES = (1.0, 4.0, 60.0)
# What a provider may ask for by Retry-After, in seconds: a process may live longer than its word.
LONGEST_PAUSE = 3_600.0


@dataclass(slots=True)
class Breaker:
    """Remembers that the provider is down, so that it is noticed once.

    A failure that may pass is remembered for a moment first, so that the next try of the same step
    reaches the provider; one that lasts, for a minute. A provider that lets its deadline pass is
    left alone for a minute at once: each try would cost as long again. One that says when to come
    back is left alone until then. After a pause one of those who ask is let through, and the others
    wait for what comes of it: else each of them would wait for a provider that hangs.
    """

    monotonic: Callable[[], float] = time.monotonic
    _until: float = 0.0
    _tried_until: float = 0.0
    _failures: int = 0
    _lasts: bool = False
    _error: ProviderError | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def failing(self) -> ProviderError | None:
        """The failure for which the provider is left alone now."""
        with self._lock:
            return self._error if self.monotonic() < self._until else None

    def trip(self, error: ProviderError) -> None:
        """Note that the provider just failed."""
        if isinstance(error, ProviderPaused):
            return  # it was not asked
        with self._lock:
            now = self.monotonic()
            if self._error is None or now >= self._until:
                # What was under way when it failed fails for the same reason, and counts once.
                self._failures += 1
            pause = self._pause(error)
            self._error, self._tried_until = error, 0.0
            self._until = max(self._until, now + pause)
            self._lasts = self._until - now >= PAUSES[-1]

    def reset(self) -> None:
        """Note that the provider embeds."""
        with self._lock:
            self._error, self._failures, self._lasts = None, 0, False
            self._until = self._tried_until = 0.0

    def answered(self) -> None:
        """Note that the provider answers, though nothing was embedded yet: failures still count."""
        with self._lock:
            self._tried_until = 0.0

    def check(self) -> None:
        """Raise the last failure again while it is fresh, or while another one tries.

        Raises:
            ProviderError: The failure itself, while the next try of the same step may find it over.
            ProviderPaused: It lasts, so that trying again soon is of no use.
        """
        with self._lock:
            now = self.monotonic()
            if self._error is None:
                return
            if now >= max(self._until, self._tried_until):
                self._tried_until = now + PAUSES[-1]
            elif self._lasts:
                raise ProviderPaused(self._error.message, hint=self._error.hint)
            else:
                raise self._error

    def _pause(self, error: ProviderError) -> float:
        passing = isinstance(error, ProviderUnavailable) and not isinstance(error, ProviderTimeout)
        pause = PAUSES[(min(self._failures, len(PAUSES)) if passing else len(PAUSES)) - 1]
        if isinstance(error, ProviderBusy) and error.retry_after is not None:
            return min(max(pause, error.retry_after), LONGEST_PAUSE)
        return pause
