"""How a run looks in Prefect's pages: its name, its pages and tables, how far it has come.

What belongs here: Prefect's artifacts and names. What a page says is made in `concordance`. None of
it may fail a run or change its state: what can't be shown is logged, and the run goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from httpx import HTTPError
from prefect import get_run_logger
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run, task_run
from prefect.utilities.annotations import quote

from concordance.answer_page import answer_page
from concordance.coverage_page import coverage_page, table_key, table_rows
from concordance.errors import ConcordanceError
from concordance.escaping import one_line
from concordance.figures import Evaluation
from concordance.index import Index
from concordance.indexing.counting import counted
from concordance.indexing.outcome import Verdict
from concordance.models import Answer, Scope
from concordance.problems import take_account
from concordance.reporting import page, plain_name, rows
from concordance.writing import SourcePlan

# What Prefect's client raises where its server is gone, busy or refuses what it was given.
_NOT_SHOWN = (PrefectException, HTTPError, OSError, ValueError, RuntimeError, ConcordanceError)
UPDATE_SECONDS = 5.0
NAME_CHARACTERS = 120


def run_name() -> str:
    """A flow run's name: the flow, and what it was asked for."""
    given = flow_run.parameters
    request = given.get("request")
    if request is not None:
        asked = request["text"] if isinstance(request, dict) else request.text
        return one_line(f"search: {asked}", most=NAME_CHARACTERS)
    slugs = given.get("projects")
    of = "all projects" if not slugs else ", ".join(slugs[:3])
    more = f" and {len(slugs) - 3:,} more" if slugs and len(slugs) > len(slugs[:3]) else ""
    return f"{flow_run.flow_name} {of}{more}"


def step_name(form: str) -> Callable[..., str]:
    """A step's name, such as `write {project}`, with the commit that it is about where it has one.

    Args:
        form: The name, with the task's parameters in braces.
    """

    def name(parameters: dict[str, Any]) -> str:
        said = form.format(**parameters)
        source = parameters.get("source")
        source = source.unwrap() if isinstance(source, quote) else source
        commit = parameters.get("commit")
        if isinstance(source, SourcePlan):
            if Scope.SESSION in source.scopes:
                return said + " sessions"
            commit = source.marker
        return f"{said} at {commit[:12]}" if commit else said

    return name


def name_run(name: str) -> None:
    """Give this flow run another name, as soon as more is known of it."""
    with not_failing("the run's name"):
        if flow_run.id:
            with get_client(sync_client=True) as client:
                client.update_flow_run(UUID(flow_run.id), name=one_line(name, most=NAME_CHARACTERS))


def show_coverage(index: Index, verdict: Verdict) -> None:
    """Leave the page of coverage, and a table for each kind of source."""
    with not_failing("the page of coverage"):
        account = take_account(index)
        told = "What is up to date, what is not, and why"
        _create("markdown", "coverage", coverage_page(account, verdict), told)
        for scope in Scope:
            found, told = table_rows(account, scope)
            if found:
                _create("table", table_key(scope), json.dumps(found), told)


def show_answer(answer: Answer) -> None:
    """Leave the page of an answer."""
    with not_failing("the page of the answer"):
        told = f"{counted(len(answer.hits), 'hit')}, with citations"
        _create("markdown", "answer", answer_page(answer), told)


def show_evaluation(found: Evaluation) -> None:
    """Leave the table and the page of an evaluation."""
    # A key takes letters, digits and dashes only.
    key = "".join(c if c.isalnum() else "-" for c in found.project)
    with not_failing("the page of the evaluation"):
        told = f"Rankings on {plain_name(found.name)}"
        _create("table", key, json.dumps(rows(found)), told)
        _create("markdown", f"{key}-page", page(found), told)


class EmbeddingProgress:
    """An artifact that says how many texts are embedded, how fast, and how long the rest takes.

    It is made with the first texts, so a run with nothing to embed leaves none, and written anew
    every few seconds at most. Once it can't be written it is left alone.
    """

    def __init__(self, subject: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._subject = subject
        self._clock = clock
        self._began = clock()
        self._written = self._began
        self._artifact: UUID | None = None
        self._lost = False

    def __call__(self, done: int, total: int) -> None:
        """Tell that `done` of `total` texts are over."""
        now = self._clock()
        due = self._artifact is None or now - self._written >= UPDATE_SECONDS or done >= total
        if self._lost or not due:
            return
        self._written = now
        self._lost = True
        with not_failing("the progress of the embedding"):
            self._write(100.0 * done / max(1, total), self._told(done, total, now - self._began))
            self._lost = False

    def _write(self, percent: float, told: str) -> None:
        if self._artifact is None:
            self._artifact = _create("progress", "embedding", percent, told)
            return
        with get_client(sync_client=True) as client:
            client.update_artifact(self._artifact, ArtifactUpdate(data=percent, description=told))

    def _told(self, done: int, total: int, seconds: float) -> str:
        rate = done / max(seconds, 0.001)
        left = max(0, total - done)
        ended = "nothing left" if not left else f"about {_duration(left / rate)} left"
        return (
            f"{done:,} of {counted(total, 'text')} ({self._subject}), {rate:,.1f} a second, {ended}"
        )


def _create(kind: str, key: str, data: str | float, description: str) -> UUID:
    """Make an artifact of this run, by a client that is closed again.

    Prefect's own functions leave theirs to the garbage collector.
    """
    made = ArtifactCreate(
        type=kind,
        key=key,
        data=data,
        description=description,
        flow_run_id=UUID(flow_run.id) if flow_run.id else None,
        task_run_id=UUID(task_run.id) if task_run.id else None,
    )
    with get_client(sync_client=True) as client:
        return client.create_artifact(made).id


def _duration(seconds: float) -> str:
    whole = round(seconds)
    for unit, length in (("h", 3_600), ("min", 60)):
        if whole >= 2 * length:
            return f"{round(whole / length)} {unit}"
    return f"{whole} s"


@contextmanager
def not_failing(what: str) -> Iterator[None]:
    """Log what goes wrong with something that is shown or told, and go on."""
    try:
        yield
    except _NOT_SHOWN as error:
        get_run_logger().warning(
            "%s could not be written, the run goes on: %s: %s", what, type(error).__name__, error
        )
