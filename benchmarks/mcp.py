"""A question by MCP beside the plain Python call: what the protocol adds.

    python -m benchmarks.mcp [rounds]

One process and one run: the server in a thread on a loopback socket, the questions in turn by the
plain call and by the client of the protocol's SDK, each after the other. The client shares the
interpreter with the server.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.http import QUESTIONS, ROUNDS, own_documentation, served
from concordance.http.working import Work
from concordance.index import Index
from concordance.mcp.server import make_server
from concordance.models import SearchRequest

TOP_K = 5


def main() -> None:
    """Index this project's own documentation, then measure."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with own_documentation() as index:
        with served(index) as address:
            asyncio.run(over_http(index, address, rounds))
        asyncio.run(in_process(index, rounds))


async def over_http(index: Index, address: str, rounds: int) -> None:
    """By a client that keeps its connection."""
    async with (
        httpx2.AsyncClient(trust_env=False) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
    ):
        await measure("HTTP", index, client, rounds)


async def in_process(index: Index, rounds: int) -> None:
    """Without a transport: what the tools themselves cost."""
    work = Work(most=2, seconds=30)
    async with Client(make_server(lambda _: index, work, str, version="0")) as client:
        await measure("in process", index, client, rounds)
    await work.close()


async def measure(name: str, index: Index, client: Client, rounds: int) -> None:
    """Each question by each way in turn."""
    plain: list[float] = []
    asked: list[float] = []
    size = 0
    for turn in range(rounds + 1):
        for text in QUESTIONS:
            request = SearchRequest(text=text, top_k=TOP_K)
            began = time.perf_counter()
            answer = index.search(request)
            between = time.perf_counter()
            result = await client.call_tool("search", {"text": text})
            ended = time.perf_counter()
            found = [hit["citation"] for hit in result.structured_content["hits"]]
            assert found == [hit.citation for hit in answer.hits]
            size = max(size, len(result.model_dump_json(by_alias=True, exclude_none=True)))
            if turn:  # the first one warms
                plain.append((between - began) * 1_000)
                asked.append((ended - between) * 1_000)
    call, over = statistics.median(plain), statistics.median(asked)
    print(
        f"{name:<10} p50 plain call {call:.2f} ms, MCP {over:.2f} ms: {over - call:+.2f} ms; "
        f"{len(plain)} questions each, results up to {size / 1024:.0f} KiB"
    )


if __name__ == "__main__":
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    main()
