"""A question over HTTP beside the plain Python call: what the interface adds.

    python -m benchmarks.http [rounds]

One process and one run: the server in a thread on a loopback socket, the questions in turn by the
plain call and by a client that keeps its connection, each after the other. The server shares the
interpreter with the client. The difference in processor time is of both, and does not depend on
what else the machine does.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import httpx

from benchmarks.setup import configuration, opened, scratch
from concordance.http.app import make_app
from concordance.http.bodies import StartedRun
from concordance.http.callers import Caller, Callers
from concordance.http.serving import listen, server
from concordance.index import Index
from concordance.models import Answer, Fusion, SearchRequest
from tests.postgres.driver import reindex
from tests.sources import GitSource

ROOT = Path(__file__).parents[1]
ROUNDS = 30
QUESTIONS = (
    "how is a backup restored?",
    "who may read which tenant",
    "CONCORDANCE_DATABASE_POOL",
    "what happens when the embedding provider is down",
    "why threshold queries",
    "session logs of Codex",
    "superseded decision records",
    "run two machines on one database",
)


class _Open(Callers):
    """The benchmark closes its index itself."""

    def close(self) -> None:
        """Nothing is to be closed."""


def main() -> None:
    """Index this project's own documentation, then measure."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with (
        own_documentation() as index,
        served(index) as address,
        httpx.Client(base_url=address, trust_env=False) as client,
    ):
        for fusion in (Fusion.CONVEX, Fusion.LEXICAL):
            measure(index, client, fusion, rounds)
        print(f"healthz  p50 {p50(lambda: client.get('/healthz'), 200):.2f} ms")


@contextmanager
def own_documentation() -> Iterator[Index]:
    """An index over this project's own documentation."""
    with scratch() as folder:
        texts = {
            str(path.relative_to(ROOT)): path.read_bytes() for path in (ROOT / "docs").rglob("*.md")
        }
        own = GitSource.make(folder / "own", dict(texts))
        with opened(configuration(folder, [own.path])) as index:
            reindex(index, "own")
            yield index


def measure(index: Index, client: httpx.Client, fusion: Fusion, rounds: int) -> None:
    """Each question by each way in turn."""
    plain: list[float] = []
    over: list[float] = []
    worked: list[float] = []
    size = 0
    for turn in range(rounds + 1):
        for text in QUESTIONS:
            request = SearchRequest(text=text, fusion=fusion)
            at_work = [time.process_time()]
            began = time.perf_counter()
            answer = index.search(request)
            between = time.perf_counter()
            at_work.append(time.process_time())
            response = client.post("/v1/search", json={"text": text, "fusion": fusion.value})
            ended = time.perf_counter()
            at_work.append(time.process_time())
            assert Answer.model_validate_json(response.content).hits == answer.hits
            size = max(size, len(response.content))
            if turn:  # the first one warms
                plain.append((between - began) * 1_000)
                over.append((ended - between) * 1_000)
                worked.append((at_work[2] - 2 * at_work[1] + at_work[0]) * 1_000)
    call, asked = statistics.median(plain), statistics.median(over)
    print(
        f"{fusion.value:<8} p50 plain call {call:.2f} ms, HTTP {asked:.2f} ms: "
        f"{asked - call:+.2f} ms, ratio {asked / call:.2f}; {len(plain)} questions each, "
        f"answers up to {size / 1024:.0f} KiB; "
        f"{statistics.median(worked):+.2f} ms of processor time"
    )


def p50(call: Callable[[], object], times: int) -> float:
    """The median of some calls, in milliseconds."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        spent.append((time.perf_counter() - began) * 1_000)
    return statistics.median(spent)


@contextmanager
def served(index: Index) -> Iterator[str]:
    """The application on a socket, without keys, in a thread."""
    callers = _Open({}, Caller("anybody", index, may_reindex=False, bound=False))
    started = StartedRun(flow_run_id=UUID(int=0), name="none", address=None)
    app = make_app(callers, index.configuration.settings, lambda *_: started, version="0")
    running = server(app)
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join()


if __name__ == "__main__":
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    main()
