"""Dealing out the passages of one call to several Ollama servers.

What belongs here: one server among several, which batch it has, and what is given to another one.
Each server works on one batch of a call at a time and takes the next when it is free, so a fast one
does more.
"""

from __future__ import annotations

import queue
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from concordance.adapters.breaker import Breaker
from concordance.adapters.embedding import TextFailure, Vector, within_deadline
from concordance.adapters.ollama import BATCH_CHARACTERS, BATCH_TEXTS, OllamaEmbedder
from concordance.errors import (
    ModelsDiffer,
    ProviderError,
    ProviderTimeout,
    Retryable,
    TextRefused,
)
from concordance.indexing.batches import batch_ranges
from concordance.indexing.vector_space import VectorSpace, encodable

T = TypeVar("T")

LOOK_SECONDS = 0.25
# A batch that takes longer than this, and than so many times the slowest one before it, is given to
# a server that is idle as well: whichever answers first counts.
LATE_SECONDS = 10.0
LATE_TIMES = 4.0
NAMED_DIGITS = 12

Results = list[Vector | TextFailure]


@dataclass(slots=True, eq=False)
class Host:
    """One server, and what is remembered of its failures."""

    embedder: OllamaEmbedder
    passages: Breaker = field(default_factory=Breaker)
    # Apart: a server that is late for a question may well be at work on passages.
    questions: Breaker = field(default_factory=Breaker)
    # Requests that their callers gave up waiting for.
    overdue: int = 0
    # Questions at work, and which one was the last.
    asked: int = 0
    turn: int = 0

    @property
    def name(self) -> str:
        """The server, as messages name it."""
        return f"Ollama at {self.embedder.url}"

    def check_space(self, agreed: VectorSpace) -> None:
        """Make sure that this server's model is that of all the others.

        Raises:
            ModelsDiffer: It is another one.
            ProviderError: The server can't be asked.
        """
        mine = self.embedder.space()
        if mine != agreed:
            raise differing({self.name: mine, "the others": agreed})

    def embed(self, texts: Sequence[str], agreed: VectorSpace) -> list[Vector | TextFailure]:
        """Vectors of passages in a space, or an error that counts against this server.

        Raises:
            ProviderError: See `OllamaEmbedder.embed_documents`.
        """
        return self._counted(self.passages, lambda: self._embedded(texts, agreed))

    def question(self, text: str, agreed: VectorSpace, seconds: float) -> Vector:
        """The vector of a question, likewise.

        Raises:
            TextRefused: The model can't take this text, on whatever server.
            ProviderError: See `OllamaEmbedder.embed_query`.
        """

        def ask() -> Vector:
            self.check_space(agreed)
            return self.embedder.embed_query(text, deadline_seconds=seconds)

        return self._counted(self.questions, lambda: within_deadline(seconds, ask))

    def _embedded(self, texts: Sequence[str], agreed: VectorSpace) -> list[Vector | TextFailure]:
        self.check_space(agreed)
        return self.embedder.embed_in(agreed, texts)

    @staticmethod
    def _counted(breaker: Breaker, call: Callable[[], T]) -> T:
        try:
            answer = call()
        except TextRefused:
            breaker.reset()
            raise
        except ProviderError as error:
            breaker.trip(error)
            raise
        breaker.reset()
        return answer


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch that a server works on."""

    batch: range
    began: float


class Spread:
    """The passages of one call, in batches that servers take as they come free.

    Args:
        hosts: The servers.
        lock: That of what is counted of them.
        space: The space that all vectors have to be in.
        texts: The passages.
    """

    def __init__(
        self, hosts: Sequence[Host], lock: threading.Lock, space: VectorSpace, texts: Sequence[str]
    ) -> None:
        self._hosts = begun_at(hosts, texts[0] if texts else "")
        self._lock = lock
        self._space = space
        self._texts = texts
        lengths = [len(space.document_prefix) + len(text) for text in texts]
        self._waiting = deque(
            batch_ranges(lengths, max_texts=BATCH_TEXTS, max_characters=BATCH_CHARACTERS)
        )
        self._open = set(self._waiting)
        self._sent: dict[Host, _Sent] = {}
        self._answers: queue.Queue[tuple[Host, Results | BaseException]] = queue.Queue()
        self._results: dict[range, Results] = {}
        self._errors: dict[Host, ProviderError] = {}
        self._finished: set[Host] = set()
        self._slowest = 0.0
        self._over = False

    def run(self) -> Results:
        """The vectors, or reasons, of all passages in their order.

        Raises:
            ProviderError: Every server fails; with the words of each.
        """
        try:
            while self._open:
                self._send()
                if not self._sent:
                    raise joined(list(self._errors.values()) or [self._all_late()])
                try:
                    self._take(*self._answers.get(timeout=LOOK_SECONDS))
                except queue.Empty:
                    continue
        finally:
            with self._lock:
                self._over = True
                for host in self._sent.keys() - self._finished:
                    host.overdue += 1
        return [
            result
            for batch in sorted(self._results, key=lambda batch: batch.start)
            for result in self._results[batch]
        ]

    def _send(self) -> None:
        """Give each server that is free a batch, while there are some."""
        for host in self._hosts:
            batch = self._next()
            if batch is None:
                return
            if host in self._sent or host.overdue:
                continue
            try:
                host.passages.check()
            except ProviderError as error:
                self._errors[host] = error
                continue
            if self._waiting and batch == self._waiting[0]:
                self._waiting.popleft()
            self._sent[host] = _Sent(batch, time.monotonic())
            self._finished.discard(host)
            threading.Thread(
                target=self._work, args=(host, batch), name="ollama-host", daemon=True
            ).start()

    def _all_late(self) -> ProviderError:
        names = ", ".join(host.name for host in self._hosts)
        return ProviderTimeout(f"still late with what was asked of them before: {names}")

    def _next(self) -> range | None:
        """The next batch that nobody has, or one that is late and that one server alone has."""
        if self._waiting:
            return self._waiting[0]
        late = time.monotonic() - max(LATE_SECONDS, LATE_TIMES * self._slowest)
        batches = [sent.batch for sent in self._sent.values()]
        return next(
            (
                sent.batch
                for sent in self._sent.values()
                if sent.began < late and batches.count(sent.batch) == 1
            ),
            None,
        )

    def _work(self, host: Host, batch: range) -> None:
        answer: Results | BaseException
        try:
            answer = host.embed(self._texts[batch.start : batch.stop], self._space)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            answer = error
        with self._lock:
            self._finished.add(host)
            if self._over:
                host.overdue -= 1
        self._answers.put((host, answer))

    def _take(self, host: Host, answer: Results | BaseException) -> None:
        sent = self._sent.pop(host)
        if isinstance(answer, ProviderError):
            self._errors[host] = answer
            others = any(other.batch == sent.batch for other in self._sent.values())
            if sent.batch in self._open and not others:
                self._waiting.appendleft(sent.batch)
        elif isinstance(answer, BaseException):
            raise answer
        elif sent.batch in self._open:
            self._slowest = max(self._slowest, time.monotonic() - sent.began)
            self._open.discard(sent.batch)
            self._results[sent.batch] = answer


def begun_at(hosts: Sequence[Host], text: str) -> list[Host]:
    """The servers, beginning with one that depends on the text.

    Many a call has one batch alone, and many a process makes one call: all of them would go to the
    first server else.
    """
    first = zlib.crc32(encodable(text).encode()) % len(hosts)
    return [*hosts[first:], *hosts[:first]]


def differing(spaces: Mapping[str, VectorSpace]) -> ModelsDiffer:
    """The error for servers with other models under one name."""
    model = next(iter(spaces.values())).model
    told = "; ".join(
        f"{name} has {space.digest[:NAMED_DIGITS]}, {space.dimensions} wide"
        for name, space in spaces.items()
    )
    return ModelsDiffer(
        f"the servers have other models under the name {model!r}: {told}",
        hint=f"Pull the same one on each: ollama pull {model}, or take one out of ollama_url",
    )


def joined(errors: Sequence[ProviderError]) -> ProviderError:
    """One error for all servers: of a kind that may pass, if one of them is; with all words."""
    chosen = next((error for error in errors if isinstance(error, Retryable)), errors[0])
    words = list(dict.fromkeys(error.message for error in errors))
    if len(words) == 1:
        return chosen
    return type(chosen)("; ".join(words), hint=chosen.hint)
