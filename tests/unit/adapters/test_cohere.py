"""Cohere's rerank API over a real socket, against a server that follows its documentation."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from concordance.adapters.cohere import CohereReranker
from concordance.errors import (
    BadEmbedding,
    ModelMissing,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
)

KEY = "FAKE-key-000"
Reply = tuple[int, Any]


def by_length(body: dict[str, Any]) -> Reply:
    """The longest document first, as the API sorts its results by score."""
    documents = body["documents"]
    order = sorted(range(len(documents)), key=lambda n: -len(documents[n]))
    scored = [{"index": n, "relevance_score": len(documents[n]) / 100} for n in order]
    return 200, {"id": "x", "results": scored, "meta": {"api_version": {"version": "2"}}}


@dataclass
class FakeCohere:
    reply: Callable[[dict[str, Any]], Reply] = by_length
    held: threading.Event | None = None
    seen: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def server() -> Iterator[FakeCohere]:
    fake = FakeCohere()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.seen.append((self.path, self.headers["Authorization"], body))
            if fake.held is not None:
                fake.held.wait()
            status, answer = fake.reply(body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with suppress(BrokenPipeError):  # a caller that did not wait
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    fake.url = f"http://127.0.0.1:{httpd.server_port}"
    yield fake
    if fake.held is not None:
        fake.held.set()
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def ask(server: FakeCohere, passages: list[str], *, deadline: float = 5.0) -> list[float]:
    reranker = CohereReranker("rerank-v3.5", url=server.url, key=SecretStr(KEY))
    try:
        return reranker.scores("how?", passages, deadline_seconds=deadline)
    finally:
        reranker.close()


def test_scores_come_back_in_the_order_of_the_passages(server: FakeCohere) -> None:
    assert ask(server, ["bb", "dddd", "a"]) == [0.02, 0.04, 0.01]
    path, authorization, body = server.seen[0]
    assert path == "/v2/rerank"
    assert authorization == f"Bearer {KEY}"
    assert body == {"model": "rerank-v3.5", "query": "how?", "documents": ["bb", "dddd", "a"]}


def test_no_passages_ask_nothing(server: FakeCohere) -> None:
    assert ask(server, []) == []
    assert server.seen == []


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, ProviderRefused),
        (400, ProviderRefused),
        (404, ModelMissing),
        (429, ProviderBusy),
        (500, ProviderUnavailable),
        (503, ProviderUnavailable),
    ],
)
def test_a_refusal_is_sorted_by_its_status_and_never_shows_the_key(
    server: FakeCohere, status: int, expected: type[ProviderError]
) -> None:
    server.reply = lambda _: (status, {"message": "no such thing"})
    with pytest.raises(expected, match="no such thing") as caught:
        ask(server, ["a"])
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        {},
        {"results": [{"index": 0}]},
        {"results": [{"index": 1, "relevance_score": 0.5}]},
        {"results": [{"index": 0, "relevance_score": "NaN"}]},
        {"results": []},
        b'{"results":[{"index":1e999,"relevance_score":1}]}',
        b'{"results":[{"index":0,"relevance_score":' + b"9" * 400 + b"}]}",
        b"[" * 200_000,
    ],
)
def test_an_answer_that_does_not_score_every_passage_once_is_refused(
    server: FakeCohere, answer: Any
) -> None:
    server.reply = lambda _: (200, answer)
    with pytest.raises(BadEmbedding):
        ask(server, ["a"])


@pytest.mark.timeout(20)
def test_a_late_answer_is_not_waited_for(server: FakeCohere) -> None:
    server.held = threading.Event()
    with pytest.raises(ProviderTimeout):
        ask(server, ["a"], deadline=0.2)
    assert len(server.seen) == 1


def test_without_a_key_nothing_is_sent(server: FakeCohere) -> None:
    with pytest.raises(ProviderRefused, match="needs a key"):
        CohereReranker("m", url=server.url, key=None).scores("q", ["a"], deadline_seconds=1)
    assert server.seen == []


def test_a_server_that_is_not_there_is_unavailable() -> None:
    reranker = CohereReranker("m", url="http://127.0.0.1:1", key=SecretStr(KEY))
    with pytest.raises(ProviderUnavailable, match="can't be reached"):
        reranker.scores("q", ["a"], deadline_seconds=1)
    reranker.close()
