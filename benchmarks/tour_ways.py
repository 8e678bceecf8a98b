"""Every way in to an index, as a caller of each would write it, and what two of them add.

What belongs here: asking. What is asked, and of whom, stands in `benchmarks.tour`.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.http import QUESTIONS
from concordance.models import Answer, SearchRequest

TOP_K = 5
ROUNDS = 15
TASK = """
import sys
from prefect import flow
from concordance.models import SearchRequest
from tasks.search import hybrid_search_task

@flow
def asking() -> str:
    request = SearchRequest(text=sys.argv[1], top_k=int(sys.argv[2]))
    return hybrid_search_task(request).model_dump_json()

print(asking())
"""
DEPLOYMENT = """
import json, sys
from prefect.deployments import run_deployment

run = run_deployment(
    "search/search", parameters={"request": {"text": sys.argv[1], "top_k": int(sys.argv[2])}}
)
print(json.dumps(run.state.result()))
"""


@dataclass(frozen=True)
class Place:
    """Where everything is.

    Attributes:
        http: Address of the HTTP server.
        prefect: That of Prefect's API.
        variables: The environment of a job that knows both.
    """

    command: str
    http: str
    prefect: str
    variables: Mapping[str, str]


Way = Callable[[Place, str], list[str]]


def by_call(_: Place, text: str) -> list[str]:
    """As a Python program."""
    from concordance import search  # noqa: PLC0415 - reads the environment that was set

    return _citations(search(_request(text)))


def by_task(place: Place, text: str) -> list[str]:
    """As a flow that uses the task."""
    return _of_json(_program(place, sys.executable, "-c", TASK, text, str(TOP_K)))


def by_deployment(place: Place, text: str) -> list[str]:
    """As a job that knows Prefect alone."""
    return _of_json(_program(place, sys.executable, "-c", DEPLOYMENT, text, str(TOP_K)))


def by_command(place: Place, text: str) -> list[str]:
    """As a person or a script with a shell."""
    asked = (place.command, "search", text, "--top-k", str(TOP_K), "--json")
    return _of_json(_program(place, *asked))


def by_http(place: Place, text: str) -> list[str]:
    """As a program in any language."""
    body = {"text": text, "top_k": TOP_K}
    answer = httpx.post(f"{place.http}/v1/search", json=body, timeout=60, trust_env=False)
    return _of_json(answer.text)


def by_mcp(place: Place, text: str) -> list[str]:
    """As a language model whose client asks the HTTP server."""

    async def asked() -> list[str]:
        async with (
            httpx2.AsyncClient(trust_env=False) as http,
            Client(streamable_http_client(f"{place.http}/mcp", http_client=http)) as client,
        ):
            return await _by_tool(client, text)

    return asyncio.run(asked())


def by_stdio(place: Place, text: str) -> list[str]:
    """As one whose client starts the server itself."""

    async def asked() -> list[str]:
        server = StdioServerParameters(
            command=place.command, args=["mcp"], env=dict(place.variables)
        )
        async with Client(stdio_client(server)) as client:
            return await _by_tool(client, text)

    return asyncio.run(asked())


WAYS: dict[str, Way] = {
    "Python call": by_call,
    "Prefect task": by_task,
    "deployment": by_deployment,
    "command line": by_command,
    "HTTP": by_http,
    "MCP, HTTP": by_mcp,
    "MCP, stdio": by_stdio,
}


async def overhead(place: Place, rounds: int) -> None:
    """Each question by the plain call, over HTTP and by MCP in turn; p50 and what is added."""
    from concordance import search  # noqa: PLC0415 - reads the environment that was set

    spent: dict[str, list[float]] = {"Python call": [], "HTTP": [], "MCP": []}
    async with (
        httpx.AsyncClient(base_url=place.http, trust_env=False, timeout=60) as http,
        httpx2.AsyncClient(trust_env=False) as other,
        Client(streamable_http_client(f"{place.http}/mcp", http_client=other)) as client,
    ):
        for turn in range(rounds + 1):
            for text in QUESTIONS:
                moments = [time.perf_counter()]
                answer = search(_request(text))
                moments.append(time.perf_counter())
                posted = await http.post("/v1/search", json={"text": text, "top_k": TOP_K})
                moments.append(time.perf_counter())
                told = await _by_tool(client, text)
                moments.append(time.perf_counter())
                assert _of_json(posted.text) == told == _citations(answer), text
                if turn:  # the first one warms
                    for number, name in enumerate(spent):
                        spent[name].append((moments[number + 1] - moments[number]) * 1_000)
    call = statistics.median(spent["Python call"])
    for name, each in spent.items():
        middle = statistics.median(each)
        print(f"{name:<12} p50 {middle:6.2f} ms, {middle - call:+6.2f} ms; {len(each)} questions")


def _request(text: str) -> SearchRequest:
    return SearchRequest(text=text, top_k=TOP_K)


def _citations(answer: Answer) -> list[str]:
    return [hit.citation for hit in answer.hits]


def _of_json(answer: str) -> list[str]:
    return _citations(Answer.model_validate(json.loads(answer)))


async def _by_tool(client: Client, text: str) -> list[str]:
    result = await client.call_tool("search", {"text": text, "top_k": TOP_K})
    content = result.structured_content
    assert content is not None, result
    return [hit["citation"] for hit in content["hits"]]


def _program(place: Place, *command: str) -> str:
    done = subprocess.run(
        command, env=dict(place.variables), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr[-2_000:]}")
    return done.stdout.strip().splitlines()[-1] if "-c" in command else done.stdout
