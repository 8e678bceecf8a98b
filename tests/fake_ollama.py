"""An Ollama server for tests: the documented API over real sockets, with faults on demand.

What belongs here: /api/version, /api/tags, /api/show and /api/embed as Ollama documents them, and
how a fault is done. Which faults there are stands in `fake_ollama_faults`; what a test expects of a
client belongs in the test.

    with FakeOllama() as fake:
        fake.queue.append(Fault.status(503))          # the next embed request
        fake.rule = lambda asked: Fault.nan_error() if "bad" in asked.inputs else None
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.fake_ollama_faults import Fault

HEX_RUN = re.compile(r"[0-9a-fA-F]{16,}")
PLACES_PER_WORD = 8
DROP_SECONDS = 0.02


def token_count(text: str) -> int:
    """Count as a tokenizer roughly does: one for 4 ASCII characters, one for each other or hex."""
    runs = sum(len(run) for run in HEX_RUN.findall(text))
    rest = HEX_RUN.sub("", text)
    wide = sum(not character.isascii() for character in rest)
    return runs + wide + -(-(len(rest) - wide) // 4)


@dataclass(frozen=True)
class FakeModel:
    """A model's width and digest; two models of one width but other digests give other vectors.

    One that is a copy of another one by name has that one's digest, and gives its vectors.
    """

    dimensions: int = 64
    version: str = "1"
    context_tokens: int = 2_048
    copy_of: str | None = None

    def digest(self, name: str) -> str:
        return hashlib.sha256(f"{self.copy_of or name}@{self.version}".encode()).hexdigest()

    def vector(self, text: str, salt: str) -> list[float]:
        """Hash each word to a few signed places, so that texts with words in common are near."""
        values = [0.0] * self.dimensions
        for word in re.findall(r"\w+", text.lower()) or [text]:
            seed = hashlib.sha256(f"{salt}:{word}".encode()).digest()
            for place in range(PLACES_PER_WORD):
                (number,) = struct.unpack_from(">I", seed, place * 4)
                values[number % self.dimensions] += 1.0 if number & 0x8000_0000 else -1.0
        norm = sum(value * value for value in values) ** 0.5
        return [value / norm for value in values] if norm else [1.0, *values[1:]]


@dataclass(frozen=True)
class Asked:
    """One request to /api/embed."""

    model: str
    inputs: tuple[str, ...]
    body: Mapping[str, Any]
    headers: Mapping[str, str]


class FakeOllama:
    """A server on a free port of 127.0.0.1, from its construction to `stop`.

    Attributes:
        models: The models that are pulled, by name with tag; may be changed at any time.
        queue: Faults for the next embed requests, one each; None answers rightly.
        rule: Decides on a fault for each embed request that finds the queue empty.
        dies_after: After that many further embed requests every connection is reset.
        embeds: Every embed request so far, also those that a fault met.
        paths: Method and path of every request so far.
    """

    def __init__(self, models: Mapping[str, FakeModel] | None = None) -> None:
        self.models = dict(models or {"nomic-embed-text:latest": FakeModel()})
        self.queue: deque[Fault | None] = deque()
        self.rule: Callable[[Asked], Fault | None] | None = None
        self.dies_after: int | None = None
        self.embeds: list[Asked] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = self._start(0)
        self.port = int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def inputs(self) -> list[str]:
        """Every text that was sent, in order."""
        return [text for asked in self.embeds for text in asked.inputs]

    @property
    def calls(self) -> int:
        """How many embed requests were made."""
        return len(self.embeds)

    def forget(self) -> None:
        """Clear the record of requests."""
        with self._lock:
            self.embeds.clear()
            self.paths.clear()

    def stop(self) -> None:
        """Close the port and every connection; connecting is refused from now on."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._server.shutdown()
            self._server.server_close()
            self._server.drop_connections()

    def restart(self) -> None:
        """Listen on the same port again."""
        self.stop()
        self._server = self._start(self.port)

    @property
    def stopped(self) -> bool:
        """Whether the port is closed."""
        return self._stopped.is_set()

    def pause(self, seconds: float) -> None:
        """Wait that long, or until the server stops."""
        self._stopped.wait(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def record(self, path: str) -> None:
        with self._lock:
            self.paths.append(path)

    def fault_for(self, asked: Asked) -> Fault | None:
        with self._lock:
            self.embeds.append(asked)
            if self.dies_after is not None:
                self.dies_after -= 1
                if self.dies_after < 0:
                    return Fault.connection_reset()
            if self.queue:
                return self.queue.popleft()
        return self.rule(asked) if self.rule else None

    def _start(self, port: int) -> _Server:
        self._stopped.clear()
        server = _Server(self, port)
        # A short poll, as each stop waits for the next one.
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, fake: FakeOllama, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.fake = fake
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that hangs up is what many tests are about."""

    def drop_connections(self) -> None:
        # A kept-alive connection would go on being answered by its thread.
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the other side was quicker


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        fake = self.server.fake
        fake.record(f"GET {self.path}")
        if self.path == "/api/version":
            self._send(200, {"version": "0.12.3"})
        elif self.path == "/api/tags":
            self._send(200, {"models": [_listed(*pair) for pair in fake.models.items()]})
        elif self.path == "/":
            self._send_bytes(200, b"Ollama is running", {})
        else:
            self._send_bytes(404, b"404 page not found", {})

    def do_POST(self) -> None:
        fake = self.server.fake
        fake.record(f"POST {self.path}")
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.path == "/api/embed":
            self._embed(body)
        elif self.path == "/api/show":
            self._show(body)
        else:
            self._send_bytes(404, b"404 page not found", {})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        pass

    def _show(self, body: Mapping[str, Any]) -> None:
        name = _tagged(str(body.get("model", "")))
        model = self.server.fake.models.get(name)
        if model is None:
            self._send(404, {"error": f"model '{name}' not found"})
            return
        info = {
            "general.architecture": "fake",
            "fake.embedding_length": model.dimensions,
            "fake.context_length": model.context_tokens,
        }
        self._send(200, {"details": _DETAILS, "model_info": info, "capabilities": ["embedding"]})

    def _embed(self, body: Mapping[str, Any]) -> None:
        given = body.get("input", [])
        inputs = (given,) if isinstance(given, str) else tuple(given)
        asked = Asked(str(body.get("model", "")), inputs, body, dict(self.headers.items()))
        fault = self.server.fake.fault_for(asked) or Fault()
        if fault.reset:
            self._reset()
            return
        if fault.endless or fault.dripping_head:
            self._never_end(fault)
            return
        if not fault.trickle:
            self.server.fake.pause(fault.seconds)
        if fault.error is not None:
            self._send(fault.code, {"error": fault.error}, fault.headers)
            return
        status, answer = self._answer(asked)
        if fault.model is not None:
            answer = {**answer, "model": fault.model}
        if fault.change and status == 200:
            answer = {**answer, "embeddings": fault.change(answer["embeddings"])}
        content = fault.body if fault.body is not None else json.dumps(answer).encode()
        if fault.cut:
            self._send_half(content)
        elif fault.trickle:
            self._trickle(content, fault)
        else:
            code = status if fault.code == 200 else fault.code
            self._send_bytes(code, content, {"Content-Type": "application/json", **fault.headers})

    def _answer(self, asked: Asked) -> tuple[int, dict[str, Any]]:
        name = _tagged(asked.model)
        model = self.server.fake.models.get(name)
        if model is None:
            return 404, {"error": f'model "{asked.model}" not found, try pulling it first'}
        limit = model.context_tokens
        if asked.body.get("truncate", True):
            # As the server does: what is beyond the limit is not looked at, and nobody is told.
            texts = [text if token_count(text) <= limit else text[:limit] for text in asked.inputs]
        else:
            texts = list(asked.inputs)
        counts = [token_count(text) for text in texts]
        if max(counts, default=0) > limit:
            return 400, {"error": "the input length exceeds the context length"}
        return 200, {
            "model": asked.model,
            "embeddings": [model.vector(text, model.digest(name)) for text in texts],
            "total_duration": 14_143_917,
            "load_duration": 1_019_500,
            "prompt_eval_count": sum(counts),
        }

    def _send(
        self, code: int, answer: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        content = json.dumps(answer).encode()
        self._send_bytes(code, content, {"Content-Type": "application/json", **(headers or {})})

    def _send_bytes(self, code: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_half(self, content: bytes) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])

    def _trickle(self, content: bytes, fault: Fault) -> None:
        """Spaces before the content, which mean nothing, and then it."""
        drops = max(1, round(fault.seconds / DROP_SECONDS))
        self.send_response(200)
        self.send_header("Content-Length", str(drops + len(content)))
        self.end_headers()
        for _ in range(drops):
            self.wfile.write(b" ")
            self.server.fake.pause(DROP_SECONDS)
        self.wfile.write(content)

    def _never_end(self, fault: Fault) -> None:
        self.close_connection = True
        start = b"HTTP/1.1 200 OK\r\n"
        parts = (b"X", 0.01) if fault.dripping_head else (b"0.1, " * 200_000, 0.0)
        self.wfile.write(start if fault.dripping_head else start + b'\r\n{"embeddings": [[')
        while not self.server.fake.stopped:
            self.wfile.write(parts[0])
            self.server.fake.pause(parts[1])

    def _reset(self) -> None:
        """Close with RST: unsent data is dropped, and the peer's next read fails."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The socket is closed only when the file made from it is.
        self.rfile.close()
        self.connection.close()


_DETAILS = {"format": "gguf", "family": "fake", "families": ["fake"], "parameter_size": "137M"}


def _tagged(name: str) -> str:
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"


def _listed(name: str, model: FakeModel) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": "2025-01-01T00:00:00Z",
        "size": 274_302_450,
        "digest": model.digest(name),
        "details": _DETAILS,
    }
