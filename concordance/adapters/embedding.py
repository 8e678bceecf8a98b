"""What every embedding provider offers, and which providers there are.

What belongs here: the protocol, the values that it passes, the choice of a provider by name and the
deadline that all of them keep. What one provider needs lives in its own module.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from concordance.adapters.environment import silence_onnxruntime
from concordance.errors import ProviderTimeout, SettingsError
from concordance.indexing.vector_space import VectorSpace
from concordance.settings import Settings

Vector = npt.NDArray[np.float32]
"""One vector of unit length, of shape (width,)."""

MAX_DIMENSIONS = 4_000
"""The widest vector that the index can hold, as `halfvec`."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TextFailure:
    """One text can't be embedded, its neighbours can; `reason` is in the provider's own words."""

    reason: str


class Embedder(Protocol):
    """A model that turns texts into vectors; safe to use from several threads at once."""

    name: str
    model: str
    """Provider and model, as a space is stored: under one name, however settings write it."""
    parallel: int
    """Requests for passages that one call has under way at the most."""

    def space(self, *, anew: bool = False) -> VectorSpace:
        """Ask the provider once which space its vectors are in, and remember the answer.

        Args:
            anew: Look whether the answer still holds: a name may mean another model by now.

        Raises:
            ModelMissing: The provider is there, the model is not.
            ProviderUnavailable: The provider is not there.
            DimensionsUnsupported: The vectors are wider than `MAX_DIMENSIONS`.
        """

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | TextFailure]:
        """Embed any number of passages, in their order; each gets a vector or a reason.

        Args:
            texts: Passages without the model's prefix.

        Raises:
            ProviderUnavailable: The provider is down; the same call may be made again.
            ProviderRefused: The provider refuses everything, even a harmless text.
            ModelMissing: The model was removed.
            ModelChanged: Another model has the name now; no vector of either is given.
            BadEmbedding: No text gets a usable vector.
        """

    def embed_query(self, text: str, *, deadline_seconds: float) -> Vector:
        """Embed one question within a deadline.

        Args:
            text: The question without the model's prefix.
            deadline_seconds: When to give up, counted from now.

        Raises:
            ProviderTimeout: The deadline passed.
            ProviderUnavailable: The provider is down.
            ModelChanged: Another model has the name now.
            TextRefused: The model can't take this text.
            BadEmbedding: The answer was no usable vector.
        """

    def troubles(self) -> tuple[str, ...]:
        """What fails of the provider while the rest of it works, in its own words."""

    def close(self) -> None:
        """Give back connections and memory; the embedder can't be used any more."""


def open_embedder(name: str, settings: Settings) -> Embedder:
    """Choose an embedder by name; nothing is asked, connected or loaded before its first use.

    Args:
        name: Provider and model, such as `ollama/nomic-embed-text`.
        settings: Where the provider is, and how long to wait for it.

    Raises:
        SettingsError: There is no such provider, or it has no such model.
    """
    provider, _, model = name.partition("/")
    opener = _OPENERS.get(provider)
    if opener is None or not model:
        known = ", ".join(f"{provider}/…" for provider in _OPENERS)
        raise SettingsError(f"no embedding provider for {name!r}", hint=f"Known are {known}")
    return opener(model, settings)


def within_deadline(seconds: float, work: Callable[[], T]) -> T:
    """Run work in a thread of its own and stop waiting for it after a number of seconds.

    The thread itself can't be stopped, so work should keep a deadline of its own.

    Raises:
        ProviderTimeout: The work was not finished in time.
    """
    done: queue.Queue[T | BaseException] = queue.Queue(1)

    def run() -> None:
        try:
            done.put(work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            done.put(error)

    # A daemon: a process that has its answer must not wait for a provider that hangs.
    threading.Thread(target=run, name="deadline", daemon=True).start()
    try:
        result = done.get(timeout=seconds)
    except queue.Empty:
        raise ProviderTimeout(f"the provider did not answer within {seconds:g} s") from None
    if isinstance(result, BaseException):
        raise result
    return result


# Each opener imports its provider when it is chosen: an installation that uses Ollama need not be
# able to load onnxruntime, and these modules import this one.


def _open_local(model: str, settings: Settings) -> Embedder:  # noqa: ARG001 - same shape for all
    silence_onnxruntime()
    from concordance.adapters.local_model import MODEL, LocalEmbedder  # noqa: PLC0415

    if model != MODEL:
        raise SettingsError(f"no local model {model!r}", hint=f"Known is local/{MODEL}")
    return LocalEmbedder()


def _open_ollama(model: str, settings: Settings) -> Embedder:
    from concordance.adapters.ollama import OllamaEmbedder  # noqa: PLC0415
    from concordance.adapters.ollama_hosts import OllamaHosts  # noqa: PLC0415

    seconds = settings.embedding_timeout_seconds
    hosts = [
        OllamaEmbedder(model, url=url, timeout_seconds=seconds) for url in settings.ollama_urls
    ]
    return hosts[0] if len(hosts) == 1 else OllamaHosts(hosts)


_OPENERS: dict[str, Callable[[str, Settings], Embedder]] = {
    "local": _open_local,
    "ollama": _open_ollama,
}
