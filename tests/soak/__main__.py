"""`make soak`: histories with kills and faults for some time, and what they came to.

    python -m tests.soak --minutes 30 --seed 1 [--history 7]

Ends with 1 where anything differed. A history is decided by the seed and its number alone, so each
can be made again by itself.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from dataclasses import dataclass

from tests.soak.flows import FlowHistory
from tests.soak.kills import KillHistory
from tests.soak.sites import Site
from tests.soak.tallies import Tally

TELL_SECONDS = 15.0
STEPS = 12
FLOW_STEPS = 2
# Every so manieth history is one of the real flow, which takes a minute to set up.
FLOW_EVERY = 8
MOST_HISTORIES = 1_000_000


@dataclass(frozen=True)
class Asked:
    """What was asked for on the command line."""

    minutes: float
    seed: str
    history: int | None
    flows: bool


def main() -> int:
    """Soak, tell how it goes, and tell what it came to."""
    asked = _arguments()
    # A shell that starts it in the background has it ignore an interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tally = Tally(asked.seed)
    ends = time.monotonic() + asked.minutes * 60
    print(f"SEED={asked.seed} MINUTES={asked.minutes:g}", flush=True)
    numbers = range(1, MOST_HISTORIES) if asked.history is None else [asked.history]

    progress = Progress(tally, ends)

    def over() -> bool:
        return asked.history is None and time.monotonic() > ends

    try:
        with Site.open() as site:
            for number in numbers:
                if asked.flows and number % FLOW_EVERY == FLOW_EVERY // 2:
                    FlowHistory(site, number, tally).run(FLOW_STEPS, over)
                else:
                    KillHistory(site, number, tally, tell=progress).run(STEPS, over)
                progress(now=True)
                if over():
                    break
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(tally.summary(), flush=True)
    return 1 if tally.differences else 0


class Progress:
    """How it goes, told now and then."""

    def __init__(self, tally: Tally, ends: float) -> None:
        self._tally = tally
        self._ends = ends
        self._told = 0.0
        self._differences = 0

    def __call__(self, *, now: bool = False) -> None:
        """Tell it, unless it was told a moment ago; a difference, at once."""
        for difference in self._tally.differences[self._differences :]:
            print(difference, flush=True)
        self._differences = len(self._tally.differences)
        if not now and time.monotonic() < self._told + TELL_SECONDS:
            return
        self._told = time.monotonic()
        tally, left = self._tally, max(0.0, self._ends - self._told) / 60
        print(
            f"{tally.histories} histories, {tally.steps} steps, {tally.kills.total()} kills, "
            f"{tally.faults.total()} faults, {tally.rows:,} rows compared, "
            f"{len(tally.differences)} differences; {left:.1f} minutes left",
            flush=True,
        )


def _arguments() -> Asked:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", default=str(time.time_ns() // 1_000_000_000))
    parser.add_argument("--history", type=int, default=None, help="only this one")
    parser.add_argument("--no-flows", action="store_true", help="leave out the real flow")
    given = parser.parse_args()
    return Asked(given.minutes, given.seed, given.history, not given.no_flows)


if __name__ == "__main__":
    sys.exit(main())
