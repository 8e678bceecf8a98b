"""A retriever for LangChain; it needs the extra `langchain`.

Nothing is traced by itself: LangChain sends runs to LangSmith where its own variables say so.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, model_validator

from concordance.index import Index
from concordance.models import MAX_TOP_K
from concordance.retrievers.passages import find, identity, metadata, request_for


class ConcordanceRetriever(BaseRetriever):
    """Passages as documents, in the order of the search, each with its citation as metadata.

    Errors are those of `concordance.search`.
    """

    k: int = Field(default=10, ge=1, le=MAX_TOP_K, description="How many passages.")
    filters: dict[str, Any] = Field(
        default_factory=dict, description="Other fields of a SearchRequest, such as `projects`."
    )
    quoted: bool = Field(
        default=False, description="Give `Hit.quotation`, marked as quoted source, as the text."
    )
    index: Index | None = Field(
        default=None, exclude=True, description="Which to ask; the process's own by default."
    )

    @model_validator(mode="after")
    def _usable(self) -> Self:
        request_for("a question", self.k, self.filters)
        return self

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the framework's signature
        k: int | None = None,
    ) -> list[Document]:
        return self._find(query, k)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - likewise
        k: int | None = None,
    ) -> list[Document]:
        return await asyncio.to_thread(self._find, query, k)

    def _find(self, query: str, k: int | None) -> list[Document]:
        request = request_for(query, self.k if k is None else k, self.filters)
        answer = find(self.index, request)
        return [
            Document(
                id=identity(hit),
                page_content=hit.quotation if self.quoted else hit.content,
                metadata=metadata(answer, hit),
            )
            for hit in answer.hits
        ]
