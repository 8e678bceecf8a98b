"""The query task: the same function, plain and as a task."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from concordance.index import Index
from concordance.models import Answer, SearchRequest
from tasks.shared import shared_index


def hybrid_search(request: SearchRequest | str, index: Index | None = None) -> Answer:
    """The passages that answer a question, from `index` or this process's own.

    Plain on purpose: a task called outside a flow asks the Prefect API first.
    """
    return (index or shared_index()).search(request)


hybrid_search_task = task(name="hybrid search", cache_policy=NO_CACHE)(hybrid_search)
