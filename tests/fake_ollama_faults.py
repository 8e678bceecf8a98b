"""The ways in which the Ollama server of the tests can fail.

What belongs here: a fault's name and what it consists of. How it is done to a request is the
server's matter.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Vectors = list[list[float]]


@dataclass(frozen=True)
class Fault:
    """One way to answer wrongly; the class methods name those that are seen in the wild."""

    code: int = 200
    error: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    seconds: float = 0.0
    trickle: bool = False
    reset: bool = False
    cut: bool = False
    endless: bool = False
    dripping_head: bool = False
    model: str | None = None
    change: Callable[[Vectors], Vectors] | None = None

    @classmethod
    def status(cls, code: int, error: str = "it went wrong", **headers: str) -> Fault:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(code=code, error=error, headers=named)

    @classmethod
    def busy(cls, retry_after: str | None = None) -> Fault:
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return cls(code=429, error="too many requests", headers=headers)

    @classmethod
    def nan_error(cls) -> Fault:
        return cls.status(500, "failed to encode response: json: unsupported value: NaN")

    @classmethod
    def fewer(cls) -> Fault:
        return cls(change=lambda vectors: vectors[:-1])

    @classmethod
    def more(cls) -> Fault:
        return cls(change=lambda vectors: [*vectors, vectors[0]])

    @classmethod
    def of_another_model(cls, name: str) -> Fault:
        """Say that another model gave the vectors."""
        return cls(model=name)

    @classmethod
    def without_end(cls) -> Fault:
        """Answer with ever more numbers, until the other side hangs up."""
        return cls(endless=True)

    @classmethod
    def compressed(cls, megabytes: int) -> Fault:
        """Answer with few bytes that stand for many."""
        coder = zlib.compressobj(wbits=31)
        body = b"".join(coder.compress(b" " * (1 << 20)) for _ in range(megabytes)) + coder.flush()
        return cls(body=body, headers={"Content-Encoding": "gzip"})

    @classmethod
    def head_without_end(cls) -> Fault:
        """Send a head byte by byte, each soon after the last one."""
        return cls(dripping_head=True)

    @classmethod
    def narrower(cls) -> Fault:
        return cls(change=lambda vectors: [vector[:-1] for vector in vectors])

    @classmethod
    def zeros(cls) -> Fault:
        return cls(change=lambda vectors: [[0.0] * len(vector) for vector in vectors])

    @classmethod
    def nans(cls) -> Fault:
        return cls(change=lambda vectors: [[float("nan")] * len(vector) for vector in vectors])

    @classmethod
    def slow(cls, seconds: float) -> Fault:
        """Wait, then answer rightly."""
        return cls(seconds=seconds)

    @classmethod
    def hanging(cls) -> Fault:
        """Say nothing until the server stops: far longer than any test may take."""
        return cls(seconds=3_600.0)

    @classmethod
    def trickling(cls, seconds: float) -> Fault:
        """Answer rightly, byte by byte over that time, so that no single read is long."""
        return cls(seconds=seconds, trickle=True)

    @classmethod
    def connection_reset(cls) -> Fault:
        return cls(reset=True)

    @classmethod
    def cut_off(cls) -> Fault:
        """Send half an answer and close."""
        return cls(cut=True)

    @classmethod
    def garbage(cls, body: bytes = b"<html>Welcome to the guest network</html>") -> Fault:
        return cls(body=body)
