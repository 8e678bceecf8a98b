"""The retrievers: by the frameworks' own tests where there are some, and beside the plain call."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from llama_index.core.schema import MetadataMode
from pydantic import ValidationError

from concordance.errors import UnknownProject
from concordance.index import Index
from concordance.models import FileOrigin, SearchRequest, SessionOrigin
from concordance.retrievers import langchain, llamaindex
from tests.postgres.library import make_library, shared_index

FILTERS: dict[str, Any] = {"threshold": 0, "projects": ["shop"]}
TEA = "tea water kettle"


@pytest.fixture(scope="module")
def index(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("retrievers")
    with shared_index(server_url, "retrievers", folder / "home") as make:
        yield make_library(make, folder)


@pytest.mark.anyio
class TestLangChain(RetrieversIntegrationTests):
    """What LangChain asks of every retriever."""

    index: Index

    @pytest.fixture(autouse=True)
    def _opened(self, index: Index) -> None:
        self.index = index

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return langchain.ConcordanceRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"index": self.index, "filters": FILTERS}

    @property
    def retriever_query_example(self) -> str:
        return TEA


def test_langchain_gets_the_hits_of_the_plain_call_in_their_order(index: Index) -> None:
    retriever = langchain.ConcordanceRetriever(k=6, filters=FILTERS, index=index)
    hits = index.search(SearchRequest(text=TEA, top_k=6, **FILTERS)).hits
    found = retriever.invoke(TEA)
    assert [(d.page_content, d.metadata["citation"]) for d in found] == [
        (hit.content, hit.citation) for hit in hits
    ]
    assert [d.metadata["score"] for d in found] == [hit.score for hit in hits]
    assert len({d.id for d in found}) == len(hits) == 6
    assert [d.id for d in asyncio.run(retriever.ainvoke(TEA, k=2))] == [d.id for d in found[:2]]
    for document, hit in zip(found, hits, strict=True):
        match hit.origin:
            case FileOrigin() as at:
                assert document.metadata["start_line"] == at.start_line
                assert document.metadata["commit"] == at.commit
            case SessionOrigin() as at:
                assert document.metadata["session_id"] == at.session_id
        assert None not in document.metadata.values()
    quoted = langchain.ConcordanceRetriever(k=1, filters=FILTERS, index=index, quoted=True)
    assert quoted.invoke(TEA)[0].page_content == hits[0].quotation


def test_llamaindex_gets_the_hits_of_the_plain_call_in_their_order(index: Index) -> None:
    retriever = llamaindex.ConcordanceRetriever(6, FILTERS, index=index)
    hits = index.search(SearchRequest(text=TEA, top_k=6, **FILTERS)).hits
    found = retriever.retrieve(TEA)
    assert [(n.text, n.metadata["citation"], n.score) for n in found] == [
        (hit.content, hit.citation, hit.score) for hit in hits
    ]
    assert len({n.node_id for n in found}) == len(hits) == 6
    later = asyncio.run(retriever.aretrieve(TEA))
    assert [n.node_id for n in later] == [n.node_id for n in found]
    # A model is shown the citation and the text; what is embedded is the text alone.
    shown = found[0].node.get_content(MetadataMode.LLM)
    assert shown == f"citation: {hits[0].citation}\n\n{hits[0].content}"
    assert found[0].node.get_content(MetadataMode.EMBED) == hits[0].content
    quoted = llamaindex.ConcordanceRetriever(1, FILTERS, index=index, quoted=True)
    assert quoted.retrieve(TEA)[0].text == hits[0].quotation


@pytest.mark.parametrize(
    "wrong", [{"top_k": 0}, {"filters": {"threshold": 2}}, {"filters": {"nothing": 1}}]
)
def test_what_can_t_be_asked_is_refused_when_it_is_set(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        llamaindex.ConcordanceRetriever(**wrong)
    with pytest.raises(ValidationError):
        langchain.ConcordanceRetriever(**{{"top_k": "k"}.get(n, n): v for n, v in wrong.items()})


def test_errors_are_those_of_the_plain_call(index: Index) -> None:
    filters = {"projects": ["nobody"]}
    with pytest.raises(UnknownProject):
        langchain.ConcordanceRetriever(filters=filters, index=index).invoke(TEA)
    with pytest.raises(UnknownProject):
        llamaindex.ConcordanceRetriever(filters=filters, index=index).retrieve(TEA)


_reached: list[Any] = []


def test_nothing_is_sent_elsewhere(index: Index) -> None:
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event in ("socket.connect", "socket.getaddrinfo"):
            _reached.append(arguments)

    sys.addaudithook(watch)  # for good, so it is told when to look
    langchain.ConcordanceRetriever(filters=FILTERS, index=index).invoke("who boils it?")
    llamaindex.ConcordanceRetriever(filters=FILTERS, index=index).retrieve("who waits for it?")
    with socket.socket() as other:
        other.connect_ex(("127.0.0.1", 9))
    watching = False
    assert _reached, "else it would see nothing"
    assert [told for told in _reached if "127.0.0.1" not in repr(told)] == []
