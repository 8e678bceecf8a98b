"""The transports: HTTP without sessions, by key, and a process of its own over stdio."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult

from concordance.http.callers import Caller
from concordance.http.working import Work
from concordance.index import Index
from concordance.mcp.server import make_server
from concordance.models import SearchRequest
from tests.http.conftest import READS, Site
from tests.http.serving import Shared, serving
from tests.http.serving import client as plain_client
from tests.mcp.asking import TEA, ask_over_http, failed, in_process, over_http
from tests.postgres.house import READER

# --- the transports --------------------------------------------------------------------------


def test_clients_of_the_handshake_and_of_today_are_answered(site: Site) -> None:
    async def both() -> list[int]:
        counts = []
        for mode in ("legacy", "2026-07-28"):
            async with over_http(site, READS, mode) as asking:
                found = await asking.call_tool("search", TEA)
                counts.append(len(found.structured_content["hits"]))
        return counts

    assert asyncio.run(both()) == [8, 8]


def test_there_is_no_stream_to_hold_open(site: Site) -> None:
    with plain_client(site.address, READS) as asking:
        for method in ("GET", "DELETE"):
            refused = asking.request(method, "/mcp", headers={"Accept": "text/event-stream"})
            assert refused.status_code == 405
            assert refused.headers["allow"] == "POST"
        too_large = asking.post("/mcp", content=b" " * (3 << 20))
        assert too_large.status_code == 413


def test_without_keys_no_page_of_elsewhere_may_ask(site: Site) -> None:
    settings = site.house.owner.configuration.settings
    anybody = Shared({}, Caller("anybody", site.reader, may_reindex=False, bound=False))
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    with serving(anybody, settings, site.runs) as address, plain_client(address) as asking:

        def status(**headers: str) -> int:
            return asking.post("/mcp", json=ping, headers=accept | headers).status_code

        assert status() == status(Origin="http://localhost:8000") == 200
        assert status(Origin="https://pages.example.org") == 403
        assert status(Host="pages.example.org") == 421


def test_the_log_has_the_request_and_neither_key_nor_question(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        ask_over_http(site, READS, ("search", TEA))
    lines = [r.getMessage() for r in caplog.records if r.name == "concordance.http"]
    assert lines
    assert all(re.fullmatch(r"POST /mcp 20\d [\d.]+ ms reports", line) for line in lines)
    assert not [told for told in (READS, TEA["text"]) if told in caplog.text]


def test_nothing_is_reported_to_whatever_collects_traces(site: Site) -> None:
    work = Work(most=1, seconds=1)
    assert make_server(lambda _: site.reader, work, str, version="1").middleware == []


def waits_for(entered: threading.Semaphore, let: threading.Event, index: Index) -> Any:
    """An index whose searches wait until they are let on."""

    class Slow:
        def search(self, request: SearchRequest) -> Any:
            entered.release()
            assert let.wait(20)
            return index.search(request)

        def coverage(self, slugs: Any) -> Any:
            return index.coverage(slugs)

    return Slow()


@pytest.mark.timeout(60)
def test_a_slow_question_holds_up_nobody_and_can_be_given_up(site: Site) -> None:
    entered, let = threading.Semaphore(0), threading.Event()
    slow = waits_for(entered, let, site.reader)

    async def asked() -> tuple[str, str]:
        async with in_process(slow, most=1 + 1) as asking:
            first = asyncio.create_task(asking.call_tool("search", TEA))
            await asyncio.to_thread(entered.acquire)
            others = await asking.call_tool("coverage", {})
            assert not others.is_error
            second = asyncio.create_task(asking.call_tool("search", TEA))
            await asyncio.to_thread(entered.acquire)
            full = await asking.call_tool("coverage", {})
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            # The thread has its place until its question is over.
            still_full = await asking.call_tool("coverage", {})
            let.set()
            assert len((await first).structured_content["hits"]) == 8
            return failed(full), failed(still_full)

    for told in asyncio.run(asked()):
        assert "2 requests are answered at once" in told


@pytest.mark.timeout(60)
def test_a_question_that_takes_too_long_is_told_of(site: Site) -> None:
    entered, let = threading.Semaphore(0), threading.Event()
    slow = waits_for(entered, let, site.reader)

    async def asked() -> str:
        async with in_process(slow, seconds=0.1) as asking:
            told = failed(await asking.call_tool("search", TEA))
            let.set()
            return told

    assert "not done within 0.1 seconds" in asyncio.run(asked())


# --- stdio -----------------------------------------------------------------------------------

RUN = "from concordance.cli import main; main(['mcp'])"


def variables(site: Site) -> dict[str, str]:
    return {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "CONCORDANCE_HOME": str(site.house.home),
        "CONCORDANCE_DATABASE_URL": site.house.url_of(READER),
        "CONCORDANCE_EMBEDDING_MODEL": "ollama/nomic-embed-text",
        "CONCORDANCE_OLLAMA_URL": site.house.provider.url,
        "CONCORDANCE_PROJECTS_FILE": str(site.house.home / "nowhere.toml"),
    }


@pytest.mark.timeout(120)
def test_a_process_of_its_own_answers_over_stdio(site: Site) -> None:
    async def asked() -> CallToolResult:
        started = StdioServerParameters(
            command=sys.executable, args=["-c", RUN], env=variables(site)
        )
        async with Client(started) as asking:
            return await asking.call_tool("search", TEA)

    said = asyncio.run(asked()).structured_content
    plain = site.reader.search(SearchRequest(**TEA))
    assert [hit["citation"] for hit in said["hits"]] == [hit.citation for hit in plain.hits]


def line(number: int | None, method: str, **params: Any) -> str:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message | ({} if number is None else {"id": number})) + "\n"


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@contextmanager
def started(site: Site) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", RUN],
        env=variables(site),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(line(1, "initialize", **HELLO))
        process.stdin.flush()
        yield process


@pytest.mark.timeout(120)
def test_a_signal_ends_it_though_its_input_stays_open(site: Site) -> None:
    with started(site) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM


@pytest.mark.timeout(120)
def test_it_prints_the_protocol_alone_and_ends_with_its_input(site: Site) -> None:
    with started(site) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(line(None, "notifications/initialized"))
        process.stdin.write(line(2, "tools/call", name="coverage", arguments={}))
        process.stdin.write("this is no JSON\n")
        process.stdin.write(line(3, "tools/call", name="search", arguments={"text": "tea"}))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.stdin.close()
        rest, told = process.stdout.read(), process.stderr.read()
        assert process.wait(30) == 0, told
    assert sorted(answer["id"] for answer in answers if "id" in answer) == [1, 2, 3]
    assert all("result" in answer for answer in answers if "id" in answer), answers
    for more in rest.splitlines():
        assert json.loads(more)["jsonrpc"] == "2.0"
    assert "Traceback" not in told
