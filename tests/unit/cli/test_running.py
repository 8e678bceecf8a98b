"""What a command says of a run that broke off."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from concordance.cli.running import _verdict
from concordance.errors import DatabaseReadOnly
from concordance.indexing.outcome import Outcome, Verdict

GOOD = Verdict(Outcome.COMPLETE, "1 project, 3 chunks, all with a vector")
BAD = Verdict(Outcome.FAILED, "1 of 2 projects failed: a (docs: timed out)")


def test_a_run_that_broke_off_is_told_in_the_words_of_its_error_and_hides_no_other_failure() -> (
    None
):
    error = DatabaseReadOnly("Postgres at db takes no writes", hint="Ask the primary")
    state: State[Any] = Failed(message="Flow run encountered an exception: …", data=error)
    said = "Postgres at db takes no writes. Ask the primary"
    assert _verdict(state, GOOD) == Verdict(Outcome.FAILED, said)
    assert _verdict(state, BAD) == Verdict(Outcome.FAILED, f"{said}; {BAD.message}")


def test_a_run_that_ended_says_what_it_came_to() -> None:
    assert _verdict(Completed(), BAD) == BAD
    assert _verdict(Failed(message="b was skipped"), BAD).message == "b was skipped"
    assert _verdict(Failed(message="b was skipped"), GOOD).outcome is Outcome.FAILED
