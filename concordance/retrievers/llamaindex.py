"""A retriever for LlamaIndex; it needs the extra `llamaindex`.

Nothing is traced by itself: LlamaIndex tells the handlers that a program has set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from concordance.index import Index
from concordance.retrievers.passages import find, identity, metadata, request_for

# What a model is shown of a node besides its text.
_SHOWN = "citation"


class ConcordanceRetriever(BaseRetriever):
    """Passages as nodes, in the order of the search, each with its citation as metadata.

    Args:
        top_k: How many passages, 1 to 100.
        filters: Other fields of a `SearchRequest`, such as `projects`.
        quoted: Whether the text is `Hit.quotation`, marked as quoted source.
        index: Which to ask; the process's own where none is given.
        callback_manager: LlamaIndex's own.

    Raises:
        ValidationError: A field has a value that it can't have. Other errors are those of
            `concordance.search`.
    """

    def __init__(
        self,
        top_k: int = 10,
        filters: Mapping[str, Any] | None = None,
        *,
        quoted: bool = False,
        index: Index | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._top_k = top_k
        self._filters = dict(filters or {})
        self._quoted = quoted
        self._index = index
        request_for("a question", self._top_k, self._filters)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        request = request_for(query_bundle.query_str, self._top_k, self._filters)
        answer = find(self._index, request)
        nodes = []
        for hit in answer.hits:
            told = metadata(answer, hit)
            hidden = [name for name in told if name != _SHOWN]
            node = TextNode(
                id_=identity(hit),
                text=hit.quotation if self._quoted else hit.content,
                metadata=told,
                excluded_llm_metadata_keys=hidden,
                excluded_embed_metadata_keys=list(told),
            )
            nodes.append(NodeWithScore(node=node, score=hit.score))
        return nodes

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
