"""The query: as a plain function, and as a task."""

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


@task(name="hybrid search", cache_policy=NO_CACHE)
def hybrid_search_task(request: SearchRequest | str) -> Answer:
    """The passages that answer a question, from this process's own index.

    An index that is already open is no argument of a task: Prefect walks through its arguments.
    """
    return hybrid_search(request)
