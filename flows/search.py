"""A search as a flow, for people in the Prefect UI and for jobs that know Prefect only."""

from __future__ import annotations

from typing import Any

from prefect import flow

from concordance.errors import BadRequest, UnknownProject
from flows.parameters import Question, naming
from tasks.presenting import run_name, show_answer
from tasks.search import hybrid_search_task


@flow(name="search", flow_run_name=run_name, log_prints=False, persist_result=True)
def search(request: Question) -> dict[str, Any]:
    """Answer one question; the result is the answer as JSON.

    Args:
        request: The question, what to search, and how.
    """
    with naming("request.projects", UnknownProject), naming("request", BadRequest):
        answer = hybrid_search_task(request)
    show_answer(answer)
    found: dict[str, Any] = answer.model_dump(mode="json")
    return found
