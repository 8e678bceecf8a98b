"""A cross-encoder from a local directory: `model.onnx` and `tokenizer.json`, run by onnxruntime.

What belongs here: loading and running. The directory is the user's own, such as an export of
`cross-encoder/ms-marco-MiniLM-L-6-v2`; nothing is fetched.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from onnxruntime.capi.onnxruntime_pybind11_state import (  # type: ignore[import-untyped]
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NotImplemented,  # noqa: A004 - the library's own name
)
from tokenizers import Encoding, Tokenizer

from concordance.errors import ModelMissing, ProviderRefused, ProviderTimeout

# What the model was trained on; longer pairs lose the end of the passage.
MOST_TOKENS = 512
MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: onnxruntime.InferenceSession
    tokenizer: Tokenizer
    inputs: frozenset[str]


class CrossEncoder:
    """A reranker on this machine; loaded on first use, once."""

    def __init__(self, directory: Path) -> None:
        self.name = f"local/{directory}"
        self._directory = directory
        self._loaded: _Loaded | None = None
        self._lock = threading.Lock()

    def scores(
        self, question: str, passages: Sequence[str], *, deadline_seconds: float
    ) -> list[float]:
        """One logit a passage; the deadline is looked at before each.

        Raises:
            ModelMissing: The directory lacks the model or its tokenizer.
            ProviderRefused: They can't be used together, or give no score a pair.
            ProviderTimeout: The deadline passed.
        """
        deadline = time.monotonic() + deadline_seconds
        loaded = self._load()
        found = []
        for passage in passages:
            if time.monotonic() >= deadline:
                raise ProviderTimeout(f"{self.name} was not done within {deadline_seconds:g} s")
            found.append(_score(loaded, loaded.tokenizer.encode(question, passage), self.name))
        return found

    def close(self) -> None:
        """Give back the model's memory."""
        self._loaded = None

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._read()
            return self._loaded

    def _read(self) -> _Loaded:
        for name in (MODEL, TOKENIZER):
            if not (self._directory / name).is_file():
                raise ModelMissing(
                    f"there is no {name} in {self._directory}",
                    hint="CONCORDANCE_RERANKER=local/DIRECTORY wants an ONNX cross-encoder there",
                )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        tokenizer = self._read_tokenizer()
        try:
            session = onnxruntime.InferenceSession(str(self._directory / MODEL), options)
        except (Fail, InvalidGraph, InvalidProtobuf, InvalidArgument, NotImplemented) as error:
            raise self._unusable(MODEL) from error
        tokenizer.enable_truncation(MOST_TOKENS, strategy="only_second")
        tokenizer.no_padding()
        return _Loaded(session, tokenizer, frozenset(i.name for i in session.get_inputs()))

    def _read_tokenizer(self) -> Tokenizer:
        path = self._directory / TOKENIZER
        try:
            # The library raises bare exceptions for what is no JSON, so that is looked at first.
            json.loads(path.read_text(encoding="utf-8"))["model"]["type"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._unusable(TOKENIZER) from error
        return Tokenizer.from_file(str(path))

    def _unusable(self, name: str) -> ProviderRefused:
        return ProviderRefused(
            f"{self._directory / name} can't be used",
            hint="Export the cross-encoder to ONNX, with its tokenizer.json beside it",
        )


def _score(loaded: _Loaded, pair: Encoding, name: str) -> float:
    fed = {
        "input_ids": pair.ids,
        "attention_mask": pair.attention_mask,
        "token_type_ids": pair.type_ids,
    }
    arrays = {
        key: np.array([value], dtype=np.int64) for key, value in fed.items() if key in loaded.inputs
    }
    logits = np.asarray(loaded.session.run(None, arrays)[0], dtype=np.float64).reshape(-1)
    # Two classes: how much more likely "relevant" is than "not".
    score = float(logits[-1] - logits[0]) if logits.size > 1 else float(logits[0])
    if not np.isfinite(score):
        raise ProviderRefused(f"{name} gave a score that is no number")
    return score
