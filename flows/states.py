"""How an outcome becomes the state of a flow run: from coverage, never from a return value."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from concordance.errors import ConcordanceError
from concordance.indexing.outcome import Outcome, Verdict


def state_of(verdict: Verdict) -> State[Any]:
    """The final state of a run, named after what is true of its projects."""
    match verdict.outcome:
        case Outcome.FAILED:
            return Failed(message=verdict.message)
        case Outcome.LEXICAL_ONLY:
            return Completed(name="LexicalOnly", message=verdict.message)
        case Outcome.FLAWED:
            return Completed(name="Partial", message=verdict.message)
        case Outcome.COMPLETE:
            return Completed(message=verdict.message)


def words_of(state: State[Any]) -> str:
    """Why a run ended as it did; where that was an error of ours, its words alone."""
    error = None if state.is_completed() else state.result(raise_on_failure=False)
    if isinstance(error, ConcordanceError):
        return str(error)
    return state.message or f"it ended as {state.name}"
