"""What every reranker offers, and which there are.

What belongs here: the protocol, and the choice by name. A reranker reads question and passage
together, which ranks better than comparing two vectors and costs a model call a passage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from concordance.adapters.environment import silence_onnxruntime
from concordance.errors import SettingsError
from concordance.settings import Settings


class Reranker(Protocol):
    """A model that scores passages against a question; safe to use from several threads."""

    name: str

    def scores(
        self, question: str, passages: Sequence[str], *, deadline_seconds: float
    ) -> list[float]:
        """One score a passage, in their order; higher is better, the scale is the model's own.

        Raises:
            ProviderTimeout: The deadline passed.
            ProviderError: The model is not there, or its answer is no usable list of scores.
        """

    def close(self) -> None:
        """Give back connections and memory."""


def open_reranker(name: str, settings: Settings) -> Reranker:
    """Choose a reranker by name; nothing is loaded or connected before its first use.

    Args:
        name: `local/DIRECTORY` (a cross-encoder as ONNX) or `cohere/MODEL`.
        settings: Where the API is, and its key.

    Raises:
        SettingsError: There is no such reranker.
    """
    provider, _, model = name.partition("/")
    opener = _OPENERS.get(provider)
    if opener is None or not model:
        known = ", ".join(f"{known}/…" for known in _OPENERS)
        raise SettingsError(f"no reranker for {name!r}", hint=f"Known are {known}")
    return opener(model, settings)


def _open_local(directory: str, _settings: Settings) -> Reranker:
    silence_onnxruntime()
    from concordance.adapters.cross_encoder import CrossEncoder  # noqa: PLC0415 - loads onnxruntime

    return CrossEncoder(Path(directory).expanduser())


def _open_cohere(model: str, settings: Settings) -> Reranker:
    from concordance.adapters.cohere import CohereReranker  # noqa: PLC0415 - loads httpx

    return CohereReranker(model, url=settings.reranker_url, key=settings.reranker_key)


_OPENERS: dict[str, Callable[[str, Settings], Reranker]] = {
    "local": _open_local,
    "cohere": _open_cohere,
}
