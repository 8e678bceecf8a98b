"""Questions, coverage and runs over HTTP: the same answers, within limits."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from concordance.adapters.http_keys import read_keys
from concordance.http.bodies import CoverageReport, ReindexBody, SearchBody, StartedRun
from concordance.http.problems import _KINDS
from concordance.http.serving import listen
from concordance.models import Answer, SearchRequest
from concordance.settings import Settings
from tests.examples import DOCS, example, examples
from tests.http.conftest import OTHER, READS, Site
from tests.http.serving import PROBLEM, Runs, Shared, client, keyed, problem_of, serving
from tests.postgres.house import told

# --- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        {"text": "tea water kettle"},
        {"text": "tea", "projects": ["shop"], "scopes": ["docs", "session"], "top_k": 3},
        {"text": "queue", "adr_status": ["unknown"], "threshold": 0},
        {"text": "tea", "since": "2026-03-01T10:01:00Z", "fusion": "rrf"},
        {"text": "no such word as qwertz", "fusion": "lexical"},
    ],
)
def test_an_answer_is_that_of_the_plain_call(
    site: Site, reader: httpx.Client, asked: dict[str, Any]
) -> None:
    response = reader.post("/v1/search", json=asked)
    assert response.status_code == 200, response.text
    answer = Answer.model_validate_json(response.content)
    assert told(answer) == told(site.reader.search(SearchRequest.model_validate(asked)))
    assert response.headers["cache-control"] == "no-store"


def test_coverage_is_that_of_the_plain_call(site: Site, reader: httpx.Client) -> None:
    for slugs in ([], ["shop"], ["shop", "laden"]):
        response = reader.get("/v1/coverage", params={"project": slugs})
        report = CoverageReport.model_validate_json(response.content)
        assert list(report.coverage) == site.reader.coverage(slugs or None) != []
        assert report.as_of == site.reader.now()


def test_a_run_is_started_for_the_projects_of_the_key_s_login(site: Site) -> None:
    with client(site.address, OTHER) as other:
        response = other.post("/v1/reindex", json={"scopes": ["docs"]})
        assert response.status_code == 202
        run = StartedRun.model_validate_json(response.content)
        assert str(run.flow_run_id) in str(run.address)
        assert site.runs.asked[-1] == (["vault"], ("docs",), False)


def test_the_process_says_that_it_answers(site: Site) -> None:
    with client(site.address) as nobody:
        assert nobody.get("/healthz").json() == {"status": "ok", "version": "0.0.1"}


def test_every_response_forbids_what_the_page_needs_not(site: Site, reader: httpx.Client) -> None:
    for path in ("/healthz", "/v1/coverage", "/nowhere"):
        headers = reader.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


# --- what can't be used ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/text"),
        ({"text": " \n\x00\x1c"}, None),
        ({"text": "x", "top_k": 101}, "/top_k"),
        ({"text": "x", "top_k": "5"}, "/top_k"),
        ({"text": "x", "rerank": 1}, "/rerank"),
        ({"text": "x", "since": 0}, "/since"),
        ({"text": "x", "since": "2026-01-01"}, "/since"),
        ({"text": "x", "projects": []}, None),
        ({"text": "x", "a/b~c": 1}, "/a~1b~0c"),
        ([], "/"),
    ],
)
def test_a_value_that_can_t_be_used_is_named(
    reader: httpx.Client, body: Any, pointer: str | None
) -> None:
    response = reader.post("/v1/search", json=body)
    assert problem_of(response) == (422, "bad-request")
    if pointer is not None:
        assert [fault["pointer"] for fault in response.json()["errors"]] == [pointer]


@pytest.mark.parametrize("body", [b"{", b"", b"\xff", b"[" * 100_000, b'{"text": ' + b"9" * 5_000])
def test_a_body_that_is_no_json_is_refused(reader: httpx.Client, body: bytes) -> None:
    sent = reader.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert problem_of(sent)[0] in (400, 422)


def test_half_a_character_is_read_as_elsewhere(reader: httpx.Client) -> None:
    body = b'{"text": "tea \\ud83c", "path_prefix": "docs/\\udcff", "projects": ["\\ud800"]}'
    sent = reader.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert problem_of(sent)[0] in (404, 422)
    body = b'{"text": "tea \\ud83c", "path_prefix": "docs/\\udcff"}'
    sent = reader.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert sent.json()["request"]["text"] == "tea ?"


def test_unknown_paths_and_methods_are_problems_too(reader: httpx.Client) -> None:
    assert problem_of(reader.get("/v1/nowhere")) == (404, "not-found")
    refused = reader.put("/v1/search", json={})
    assert problem_of(refused) == (405, "method-not-allowed")
    assert refused.headers["allow"] == "POST"


# --- limits ----------------------------------------------------------------------------------


def small(settings: Settings, **more: object) -> Settings:
    return settings.model_copy(update={"http_max_body_bytes": 2_000, **more})


def test_a_body_that_is_too_large_is_not_read(site: Site) -> None:
    settings = small(site.house.owner.configuration.settings)
    body = json.dumps({"text": "x" * 3_000}).encode()
    with (
        serving(Shared(keyed(READS, site.reader)), settings, Runs()) as address,
        client(address, READS) as sender,
    ):
        kind = {"Content-Type": "application/json"}
        stated = sender.post("/v1/search", content=body, headers=kind)
        assert problem_of(stated) == (413, "too-large")
        streamed = sender.post(
            "/v1/search", content=iter([body[:1_500], body[1_500:]]), headers=kind
        )
        assert problem_of(streamed) == (413, "too-large")
        assert sender.post("/v1/search", json={"text": "x" * 1_500}).status_code == 200
        # What needs no key takes no body at all.
        for path in ("/healthz", "/", "/nowhere"):
            assert problem_of(sender.post(path, content=b"x")) == (413, "too-large")


def test_a_body_that_never_comes_is_not_waited_for(site: Site) -> None:
    settings = small(site.house.owner.configuration.settings, http_request_seconds=0.3)
    with serving(Shared(keyed(READS, site.reader)), settings, Runs()) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            slow.sendall(
                f"POST /v1/search HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {READS}\r\n"
                "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{".encode()
            )
            assert slow.recv(4_096).startswith(b"HTTP/1.1 408 ")


def test_no_more_than_so_many_are_answered_at_once_and_none_for_ever(site: Site) -> None:
    settings = small(
        site.house.owner.configuration.settings, http_max_requests=1, http_request_seconds=0.3
    )
    begun, over = threading.Event(), threading.Event()

    def slow(*asked: Any) -> StartedRun:
        begun.set()
        over.wait(20)
        return Runs()(*asked)

    callers = Shared(keyed(OTHER, site.other, may_reindex=True))
    with serving(callers, settings, slow) as address, client(address, OTHER) as sender:
        late = sender.post("/v1/reindex", json={})
        assert begun.is_set()
        assert problem_of(late) == (504, "too-slow")
        assert int(late.headers["retry-after"]) > 0
        # Nobody waits for it any more, and it is still at work.
        busy = sender.post("/v1/search", json={"text": "tea"})
        assert problem_of(busy) == (503, "busy")
        assert int(busy.headers["retry-after"]) > 0
        assert sender.get("/healthz").status_code == 200
        over.set()
        deadline = threading.Event()
        while (again := sender.get("/v1/coverage")).status_code == 503:
            assert not deadline.wait(0.01)
        assert again.status_code == 200


def test_a_deadline_is_no_longer_than_a_request_may_take(site: Site, reader: httpx.Client) -> None:
    answer = reader.post("/v1/search", json={"text": "tea", "deadline_seconds": 120}).json()
    assert answer["request"]["deadline_seconds"] == 30


def test_what_is_sent_waits_for_nothing() -> None:
    async def connection() -> int:
        found: list[int] = []

        async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            at = writer.get_extra_info("socket")
            found.append(at.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = listen("127.0.0.1", 0)
        async with await asyncio.start_server(note, sock=listening):
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            await reader.read()
            writer.close()
        return found[0]

    assert asyncio.run(connection()) != 0
    with listen("127.0.0.1", 0) as taken, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", taken.getsockname()[1])


# --- what is kept ----------------------------------------------------------------------------


def test_the_log_holds_no_key_and_no_question(
    site: Site, reader: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="concordance.http"):
        reader.post("/v1/search", json={"text": "tell-nobody"})
        reader.get("/v1/coverage", params={"project": "tell-nobody"})
        reader.get("/v1/x%0A%1b[31m forged")
        with client(site.address, "tell-nobody") as nobody:
            nobody.get("/v1/coverage")
        # A line is written when its response is out.
        until = time.monotonic() + 20
        while len(caplog.records) < 4 and time.monotonic() < until:
            time.sleep(0.01)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split()[:3] for line in lines] == [
        ["POST", "/v1/search", "200"],
        ["GET", "/v1/coverage", "404"],
        ["GET", "/v1/x%0A%1B%5B31m%20forged", "404"],
        ["GET", "/v1/coverage", "401"],
    ]
    assert [line.split()[-1] for line in lines] == ["reports", "reports", "reports", "-"]
    assert READS not in caplog.text
    assert "tell-nobody" not in caplog.text


def test_every_operation_has_an_example_that_it_takes(site: Site) -> None:
    with client(site.address) as nobody:
        document = nobody.get("/openapi.json").json()
    taken: list[tuple[str, Callable[[Any], object]]] = [
        ("SearchBody", SearchBody.model_validate),
        ("ReindexBody", ReindexBody.model_validate),
        ("StartedRun", StartedRun.model_validate),
    ]
    for name, take in taken:
        assert [take(one) for one in document["components"]["schemas"][name]["examples"]]
    given: list[tuple[str, str, Callable[[Any], object]]] = [
        ("/v1/search", "post", Answer.model_validate),
        ("/v1/coverage", "get", CoverageReport.model_validate),
    ]
    for path, method, read in given:
        content = document["paths"][path][method]["responses"]["200"]["content"]
        assert read(content["application/json"]["example"])
    assert set(document["paths"]) == {"/v1/search", "/v1/coverage", "/v1/reindex", "/healthz"}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            failed = [code for code in operation["responses"] if int(code) >= 400]
            for code in failed:
                assert list(operation["responses"][code]["content"]) == [PROBLEM], (path, code)
            assert bool(operation.get("security")) == path.startswith("/v1/")


# --- the documentation -----------------------------------------------------------------------


def test_the_documented_requests_and_entries_are_taken(
    reader: httpx.Client, tmp_path: Path
) -> None:
    bodies = [
        json.loads(body)
        for block in examples("http.md", "sh", "curl")
        for body in re.findall(r"-d '(.+?)'", block)
    ]
    assert reader.post("/v1/search", json=bodies[0]).status_code == 200
    assert ReindexBody.model_validate(bodies[1]).projects == ("beacon",)
    file = tmp_path / "keys.toml"
    file.write_text(example("http.md", "toml"))
    assert [key.reindex for key in read_keys(file)] == [True]


def test_every_kind_of_problem_is_documented() -> None:
    room = Path(__file__).parents[2] / "concordance" / "http"
    kinds = {kind.name for kind in _KINDS.values()}
    kinds |= set(re.findall(r'HTTPStatus\.\w+,\s+"([a-z-]+)"', (room / "gate.py").read_text()))
    kinds |= set(re.findall(r'HTTPStatus\.\w+,\s+"([a-z-]+)"', (room / "problems.py").read_text()))
    assert {"no-key", "too-large", "not-json"} <= kinds
    page = (DOCS / "http.md").read_text("utf-8")
    assert [kind for kind in kinds if f"`{kind}`" not in page] == []
