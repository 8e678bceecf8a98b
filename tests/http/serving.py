"""The HTTP interface on a real socket, for tests."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from concordance.adapters.http_keys import digest_of
from concordance.http.app import StartReindex, make_app
from concordance.http.bodies import StartedRun
from concordance.http.callers import Caller, Callers
from concordance.http.serving import listen, server
from concordance.index import Index
from concordance.models import Scope
from concordance.settings import Settings

VERSION = "0.0.1"
PROBLEM = "application/problem+json"


@dataclass
class Runs:
    """Stands where Prefect does: keeps what was to be started."""

    asked: list[tuple[Sequence[str] | None, Sequence[Scope] | None, bool]] = field(
        default_factory=list
    )

    def __call__(
        self, projects: Sequence[str] | None, scopes: Sequence[Scope] | None, full: bool
    ) -> StartedRun:
        self.asked.append((projects, scopes, full))
        run = uuid.UUID(int=len(self.asked))
        return StartedRun(flow_run_id=run, name="made-up", address=f"http://127.0.0.1/runs/{run}")


@dataclass
class Shared(Callers):
    """Callers whose indexes are somebody else's to close."""

    def __init__(self, keyed: dict[str, Caller], anybody: Caller | None = None) -> None:
        super().__init__(keyed, anybody)

    def close(self) -> None:
        pass


def keyed(key: str, index: Index, *, may_reindex: bool = False) -> dict[str, Caller]:
    name = key.removeprefix("key-of-")
    return {digest_of(key): Caller(name, index, may_reindex, bound=True)}


@contextmanager
def serving(callers: Callers, settings: Settings, start_reindex: StartReindex) -> Iterator[str]:
    """Serve in a thread; gives the address without a slash at its end."""
    running = server(make_app(callers, settings, start_reindex, version=VERSION))
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def client(address: str, key: str | None = None, **more: Any) -> httpx.Client:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=address, headers=headers, timeout=30, trust_env=False, **more)


def problem_of(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == PROBLEM, response.text
    body = response.json()
    assert body["status"] == response.status_code
    assert "Traceback" not in response.text
    return response.status_code, str(body["type"]).removeprefix("urn:concordance:problem:")
