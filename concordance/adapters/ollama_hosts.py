"""One model on several Ollama servers: passages are spread over them, and a dead one is left out.

What belongs here: which servers there are, and that all of them serve the same model. What is asked
of one, and how its failures are sorted, is `concordance.adapters.ollama`'s work; how the passages
of one call are dealt out, `concordance.adapters.ollama_spread`'s.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence

from concordance.adapters.embedding import TextFailure, Vector, within_deadline
from concordance.adapters.ollama import EMPTY, OllamaEmbedder
from concordance.adapters.ollama_spread import Host, Spread, begun_at, differing, joined
from concordance.errors import (
    ModelChanged,
    ModelMissing,
    ModelsDiffer,
    ProviderError,
    ProviderTimeout,
    TextRefused,
)
from concordance.indexing.vector_space import VectorSpace

# Seconds for which the others are waited for once one server has told its model: at the beginning
# of a run all of them should be compared; a question has no time for it.
PATIENCE_OF_RUNS = 10.0
PATIENCE_OF_QUESTIONS = 1.0
OF_MODELS = (ModelChanged, ModelMissing, ModelsDiffer)


class OllamaHosts:
    """A model on several Ollama servers, which have to serve the same digest.

    Args:
        hosts: The model on each of them.
    """

    def __init__(self, hosts: Sequence[OllamaEmbedder]) -> None:
        self.name, self.model = hosts[0].name, hosts[0].model
        self.parallel = len(hosts)
        self._hosts = [Host(embedder) for embedder in hosts]
        self._lock = threading.Lock()
        self._space: VectorSpace | None = None
        self._turn = 0

    def space(self, *, anew: bool = False) -> VectorSpace:
        """Ask all servers which space their vectors are in; those that are down are left out.

        Raises:
            ModelsDiffer: Two of them serve other models under the name.
            ProviderError: None of them can be asked.
        """
        with self._lock:
            known = self._space
        if known is not None and not anew:
            return known
        with self._lock:
            self._space = None
        found, failed = self._spaces(anew=anew)
        if not found:
            raise joined(list(failed.values()))
        if len(set(found.values())) > 1:
            raise differing({host.name: space for host, space in found.items()})
        agreed = next(iter(found.values()))
        for host in found:
            if isinstance(host.passages.failing, OF_MODELS):
                host.passages.reset()
        with self._lock:
            self._space = agreed
        return agreed

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | TextFailure]:
        """Embed passages on all servers side by side, in their order; one that fails is left out.

        Raises:
            ModelsDiffer: Two servers serve other models under the name.
            ProviderError: Every server fails; with the words of each.
        """
        return Spread(self._hosts, self._lock, self.space(), texts).run()

    def embed_query(self, text: str, *, deadline_seconds: float) -> Vector:
        """Embed one question on the server with the least to do, or on the next one.

        Raises:
            TextRefused: The model can't take this text.
            ProviderError: No server gave a vector within the deadline; with the words of each.
        """
        if not text.strip():
            raise TextRefused(EMPTY)
        until = time.monotonic() + deadline_seconds
        agreed = within_deadline(deadline_seconds, self.space)
        errors: list[ProviderError] = []
        order = self._order(text)
        for number, host in enumerate(order, start=1):
            left = until - time.monotonic()
            # A server that hangs must leave time for the next one.
            share = left if number == len(order) else left / 2
            try:
                host.questions.check()
                if left <= 0:
                    break
                return self._asked(host, text, agreed, share)
            except TextRefused:
                raise
            except ProviderError as error:
                errors.append(error)
        raise joined(errors or [ProviderTimeout("no Ollama server was asked in time")])

    def troubles(self) -> tuple[str, ...]:
        """The failures of servers that are left out for now."""
        failures = (host.passages.failing or host.questions.failing for host in self._hosts)
        return tuple(str(failure) for failure in failures if failure is not None)

    def close(self) -> None:
        """Close the connections."""
        for host in self._hosts:
            host.embedder.close()

    def _asked(self, host: Host, text: str, agreed: VectorSpace, seconds: float) -> Vector:
        with self._lock:
            host.asked += 1
            self._turn += 1
            host.turn = self._turn
        try:
            return host.question(text, agreed, seconds)
        finally:
            with self._lock:
                host.asked -= 1

    def _order(self, text: str) -> list[Host]:
        """Servers that answer first, the idle ones before the others, and each in its turn."""
        with self._lock:
            return sorted(
                begun_at(self._hosts, text),
                key=lambda host: (host.questions.failing is not None, host.asked, host.turn),
            )

    def _spaces(self, *, anew: bool) -> tuple[dict[Host, VectorSpace], dict[Host, ProviderError]]:
        """What each server says of its model, and what fails of the others."""
        answers: queue.Queue[tuple[Host, VectorSpace | BaseException]] = queue.Queue()
        for host in self._hosts:
            _in_thread(lambda host=host: _told(host, anew, answers))  # type: ignore[misc]
        found: dict[Host, VectorSpace] = {}
        failed: dict[Host, ProviderError] = {}
        until: float | None = None
        while len(found) + len(failed) < len(self._hosts):
            try:
                left = None if until is None else max(0.0, until - time.monotonic())
                host, answer = answers.get(timeout=left)
            except queue.Empty:
                break
            if isinstance(answer, VectorSpace):
                found[host] = answer
                patience = PATIENCE_OF_RUNS if anew else PATIENCE_OF_QUESTIONS
                until = until or time.monotonic() + patience
            elif isinstance(answer, ProviderError):
                failed[host] = answer
            else:
                raise answer
        # In the order of the addresses, not of the answers.
        return {host: found[host] for host in self._hosts if host in found}, failed


def _told(
    host: Host, anew: bool, answers: queue.Queue[tuple[Host, VectorSpace | BaseException]]
) -> None:
    """Put a server's space, or its failure, into a queue."""
    answer: VectorSpace | BaseException
    try:
        # One that fails for its model answers at once, and is compared anew.
        if not isinstance(host.passages.failing, OF_MODELS):
            host.passages.check()
        answer = host.embedder.space(anew=anew)
        # Whether it embeds as well is not known: what failed before still counts.
        host.passages.answered()
    except ProviderError as error:
        host.passages.trip(error)
        answer = error
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        answer = error
    answers.put((host, answer))


def _in_thread(work: Callable[[], None]) -> None:
    # A daemon: a process that has its answer must not wait for a server that hangs.
    threading.Thread(target=work, name="ollama-host", daemon=True).start()
