"""Questions in threads: so many at once, each for so long.

What belongs here: the limits on work. What is asked is the routes' matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from concordance.errors import RequestTimeout, TooManyRequests

Result = TypeVar("Result")


class Work:
    """Threads that answer; one is free again when its question is over, whoever still waits."""

    def __init__(self, *, most: int, seconds: float) -> None:
        self.seconds = seconds
        self._most = most
        self._busy = 0
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="concordance-http")

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run a call in a thread.

        Raises:
            TooManyRequests: Every thread is at work.
            RequestTimeout: It took too long; the call itself goes on to its own end.
        """
        if self._busy >= self._most:
            raise TooManyRequests(f"{self._most} requests are answered at once")
        self._busy += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, call)
        future.add_done_callback(self._free)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.seconds)
        except TimeoutError:
            raise RequestTimeout(f"it was not done within {self.seconds:g} seconds") from None

    def at_work(self) -> int:
        """How many calls there are now."""
        return self._busy

    async def close(self) -> None:
        """Wait for what is at work."""
        await asyncio.to_thread(self._threads.shutdown)

    def _free(self, future: asyncio.Future[Result]) -> None:
        self._busy -= 1
        if not future.cancelled():
            future.exception()  # of one that nobody waits for any more, nobody is to be told
