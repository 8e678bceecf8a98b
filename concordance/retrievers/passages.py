"""What the retrievers share: how they ask, and what they say of a passage besides its text."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from concordance.index import Index
from concordance.models import Answer, Hit, SearchRequest
from concordance.sharing import shared_index


def request_for(text: str, top_k: int, filters: Mapping[str, Any]) -> SearchRequest:
    """A request; `filters` are its other fields.

    Raises:
        ValidationError: A field has a value that it can't have, or there is no such field.
    """
    return SearchRequest.model_validate({**filters, "text": text, "top_k": top_k})


def find(index: Index | None, request: SearchRequest) -> Answer:
    """The answer of an index, or of this process's own where none is given.

    Raises:
        UsageError: The question, a setting or the projects file can't be used.
        DatabaseError: Postgres can't be reached, or refuses.
    """
    return (shared_index() if index is None else index).search(request)


def metadata(answer: Answer, hit: Hit) -> dict[str, Any]:
    """Place and scores of a hit, flat and ready for JSON; what is not known is left out."""
    said = hit.model_dump(mode="json", exclude={"content", "origin"}, exclude_none=True)
    at = hit.origin.model_dump(mode="json", exclude_none=True)
    more = {} if answer.degraded_reason is None else {"degraded": answer.degraded_reason}
    return {"citation": hit.citation} | at | said | more


def identity(hit: Hit) -> str:
    """The same for the same passage at the same place, and no other."""
    return sha256(f"{hit.citation}\n{hit.content}".encode()).hexdigest()[:32]
