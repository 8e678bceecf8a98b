"""Asking the tools by the client of the protocol's own library, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from concordance.http.working import Work
from concordance.index import Index
from concordance.mcp.server import make_server
from tests.http.conftest import Site

TEA: dict[str, Any] = {"text": "tea water kettle", "top_k": 8, "threshold": 0}


@asynccontextmanager
async def over_http(site: Site, key: str | None, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http,
        Client(
            streamable_http_client(f"{site.address}/mcp", http_client=http), mode=mode
        ) as asking,
    ):
        yield asking


@asynccontextmanager
async def in_process(index: Index, **limits: Any) -> AsyncIterator[Client]:
    work = Work(**{"most": 8, "seconds": 20.0} | limits)
    async with Client(make_server(lambda _: index, work, str, version="1")) as asking:
        await asking.list_tools()  # so that the client holds each result against its schema
        yield asking
    await work.close()


def ask_over_http(site: Site, key: str, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
    async def ask() -> list[CallToolResult]:
        async with over_http(site, key) as asking:
            return [await asking.call_tool(name, given) for name, given in calls]

    return asyncio.run(ask())


def ask(index: Index, *calls: tuple[str, dict[str, Any]], **limits: Any) -> list[CallToolResult]:
    async def asked() -> list[CallToolResult]:
        async with in_process(index, **limits) as asking:
            return [await asking.call_tool(name, given) for name, given in calls]

    return asyncio.run(asked())


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert block.type == "text"
    return block.text


def failed(result: CallToolResult) -> str:
    assert result.is_error, result
    assert result.structured_content is None
    assert "Traceback" not in text_of(result)
    return text_of(result)
