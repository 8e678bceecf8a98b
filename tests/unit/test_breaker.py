"""How long a provider that failed is left alone."""

from __future__ import annotations

import pytest

from concordance.errors import (
    ModelMissing,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
)
from concordance.resources import PAUSES, Breaker
from tasks.retrying import DELAYS, JITTER

DOWN = ProviderUnavailable("503")


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


def pause_after(breaker: Breaker, watch: Watch) -> float:
    """Seconds until the provider is asked again, to a tenth."""
    before = watch.now
    while True:
        try:
            breaker.check()
        except ProviderError:
            watch.now += 0.1
        else:
            return watch.now - before


def test_each_further_failure_is_remembered_for_longer(watch: Watch) -> None:
    breaker = Breaker(watch)
    breaker.check()
    for pause in (*PAUSES, PAUSES[-1]):
        breaker.trip(DOWN)
        assert pause_after(breaker, watch) == pytest.approx(pause, abs=0.11)


def test_a_task_that_tries_again_reaches_the_provider() -> None:
    # Prefect spreads a delay over a range; its lower end is about 0.63 of it for this factor.
    assert JITTER == 0.5
    for pause, delay in zip(PAUSES, DELAYS, strict=False):
        assert pause < 0.6 * delay
    assert len(PAUSES) == len(DELAYS) + 1, "the last try's failure is the one that lasts"


def test_what_fails_at_the_same_time_counts_once(watch: Watch) -> None:
    breaker = Breaker(watch)
    for _ in range(4):
        breaker.trip(DOWN)
    assert pause_after(breaker, watch) == pytest.approx(PAUSES[0], abs=0.11)


@pytest.mark.parametrize(
    "error", [ProviderTimeout("late"), ModelMissing("gone"), ProviderRefused("401")]
)
def test_what_is_slow_or_will_not_pass_is_left_alone_at_once(
    watch: Watch, error: ProviderError
) -> None:
    breaker = Breaker(watch)
    breaker.trip(error)
    breaker.trip(DOWN)
    assert pause_after(breaker, watch) == pytest.approx(PAUSES[-1], abs=0.11)


def test_an_answer_forgets_every_failure(watch: Watch) -> None:
    breaker = Breaker(watch)
    for _ in PAUSES:
        breaker.trip(DOWN)
        pause_after(breaker, watch)
    breaker.trip(DOWN)
    breaker.reset()
    breaker.check()
    breaker.trip(DOWN)
    assert pause_after(breaker, watch) == pytest.approx(PAUSES[0], abs=0.11)
