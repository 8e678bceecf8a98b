"""How long a provider that failed is left alone."""

from __future__ import annotations

import pytest

from concordance.adapters.breaker import LONGEST_PAUSE, PAUSES, Breaker
from concordance.errors import (
    ModelMissing,
    ProviderBusy,
    ProviderError,
    ProviderPaused,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
    Retryable,
)
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


def lasting(watch: Watch) -> Breaker:
    """A breaker of a provider that has failed for good."""
    breaker = Breaker(watch)
    for _ in PAUSES:
        breaker.trip(DOWN)
        pause_after(breaker, watch)
    breaker.trip(DOWN)
    return breaker


@pytest.mark.parametrize(
    ("asked", "pause"),
    [(None, 1.0), (0.0, 1.0), (7.0, 7.0), (90.0, 90.0), (float("inf"), LONGEST_PAUSE)],
)
def test_a_provider_that_says_when_to_come_back_is_left_alone_until_then(
    watch: Watch, asked: float | None, pause: float
) -> None:
    breaker = Breaker(watch)
    breaker.trip(ProviderBusy("429", retry_after=asked))
    watch.now += pause - 0.1
    with pytest.raises(ProviderError, match="429"):
        breaker.check()
    watch.now += 0.2
    breaker.check()


def test_a_pause_that_no_further_try_outlasts_is_not_waited_for(watch: Watch) -> None:
    breaker = lasting(watch)
    with pytest.raises(ProviderPaused, match="503") as paused:
        breaker.check()
    assert not isinstance(paused.value, Retryable), "a task that tries again would only wait"
    busy = Breaker(watch)
    busy.trip(ProviderBusy("429", retry_after=PAUSES[-1]))
    with pytest.raises(ProviderPaused, match="429"):
        busy.check()


def test_a_provider_that_is_back_after_an_hour_is_asked_and_forgiven(watch: Watch) -> None:
    breaker = lasting(watch)
    watch.now += 3_600
    breaker.check()
    breaker.reset()
    breaker.check()
    breaker.trip(DOWN)
    assert pause_after(breaker, watch) == pytest.approx(PAUSES[0], abs=0.11)


def test_after_a_pause_one_is_let_through_and_the_others_wait_for_it(watch: Watch) -> None:
    breaker = lasting(watch)
    watch.now += PAUSES[-1]
    breaker.check()
    for _ in range(3):
        with pytest.raises(ProviderPaused):
            breaker.check()
    watch.now += PAUSES[-1]
    breaker.check()  # whoever was let through is not heard of any more
    breaker.answered()
    breaker.check()


def test_what_was_paused_is_no_further_failure(watch: Watch) -> None:
    breaker = Breaker(watch)
    breaker.trip(DOWN)
    breaker.trip(ProviderPaused("503"))
    assert pause_after(breaker, watch) == pytest.approx(PAUSES[0], abs=0.11)


def test_an_answer_that_is_no_vector_forgets_no_failure(watch: Watch) -> None:
    breaker = Breaker(watch)
    for pause in PAUSES:
        breaker.trip(DOWN)
        assert pause_after(breaker, watch) == pytest.approx(pause, abs=0.11)
        breaker.answered()
