"""A cross-encoder from a local directory: `model.onnx` and `tokenizer.json`, run by onnxruntime.

What belongs here: loading and running. The directory is the user's own, such as an export of
`cross-encoder/ms-marco-MiniLM-L-6-v2`; nothing is fetched.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from onnxruntime.capi.onnxruntime_pybind11_state import (  # type: ignore[import-untyped]
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,  # noqa: A004 - the library's own name
    RuntimeException,
)
from tokenizers import Encoding, Tokenizer

from concordance.errors import ModelMissing, ProviderRefused, ProviderTimeout
from concordance.indexing.counting import counted

# What the model was trained on; a longer pair loses the end of its longer part first, so that
# something of question and passage is always read.
MOST_TOKENS = 512
MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
# What a tokenizer can give, and the whole numbers that exports ask for.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
Whole = type[np.signedinteger[Any]]
WHOLE: dict[str, Whole] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
REAL = ("tensor(float16)", "tensor(float)", "tensor(double)")
# One logit of relevance, or one each for "not" and "relevant".
MOST_CLASSES = 2
# The runtime's errors have no parent of their own.
RUNTIME_ERRORS = (
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    RuntimeException,
)


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: onnxruntime.InferenceSession
    tokenizer: Tokenizer
    inputs: dict[str, Whole]


@dataclass(frozen=True, slots=True)
class _Bare:
    """Raises another error in place of one that is an `Exception` and nothing narrower.

    It is all that the tokenizers raise where they fail. Errors with a type of their own pass.
    """

    instead: ProviderRefused

    def __enter__(self) -> None:
        """Nothing is to be made ready."""

    def __exit__(self, kind: object, error: BaseException | None, _trace: object) -> None:
        if kind is Exception:
            raise self.instead from error


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
            ProviderRefused: They can't be read, run or used together, or give no score a pair.
            ProviderTimeout: The deadline passed.
        """
        deadline = time.monotonic() + deadline_seconds
        loaded = self._load()
        found = []
        for passage in passages:
            if time.monotonic() >= deadline:
                raise ProviderTimeout(f"{self.name} was not done within {deadline_seconds:g} s")
            found.append(self._score(loaded, self._pair(loaded.tokenizer, question, passage)))
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
            if not self._holds(name):
                raise ModelMissing(
                    f"there is no {name} in {self._directory}",
                    hint="CONCORDANCE_RERANKER=local/DIRECTORY wants an ONNX cross-encoder there",
                )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        tokenizer = self._read_tokenizer()
        try:
            session = onnxruntime.InferenceSession(str(self._directory / MODEL), options)
        except RUNTIME_ERRORS as error:
            raise self._unusable(MODEL) from error
        return _Loaded(session, tokenizer, self._inputs(session))

    def _holds(self, name: str) -> bool:
        try:
            return (self._directory / name).is_file()
        except OSError as error:
            raise self._unusable(name, error.strerror) from error

    def _inputs(self, session: onnxruntime.InferenceSession) -> dict[str, Whole]:
        """The type of each input; refused where nothing can feed it, or no score comes out."""
        inputs = {given.name: given.type for given in session.get_inputs()}
        if foreign := sorted(set(inputs) - set(INPUTS)):
            raise self._unusable(MODEL, f"it asks for '{foreign[0]}', which no tokenizer gives")
        if "input_ids" not in inputs:
            raise self._unusable(MODEL, "it does not ask for 'input_ids'")
        for name, kind in inputs.items():
            if kind not in WHOLE:
                raise self._unusable(MODEL, f"its '{name}' is a {kind}, not whole numbers")
        kind = session.get_outputs()[0].type
        if kind not in REAL:
            raise self._unusable(MODEL, f"it gives a {kind}, not scores")
        return {name: WHOLE[kind] for name, kind in inputs.items()}

    def _read_tokenizer(self) -> Tokenizer:
        path = self._directory / TOKENIZER
        try:
            data = path.read_bytes()
        except OSError as error:
            raise self._unusable(TOKENIZER, error.strerror) from error
        try:
            tokenizer = Tokenizer.from_buffer(data)
        except ValueError as error:
            raise self._unusable(TOKENIZER) from error
        # As these models are trained. What a file sets of its own would cut, or fill up, otherwise.
        tokenizer.enable_truncation(MOST_TOKENS, strategy="longest_first")
        tokenizer.no_padding()
        return tokenizer

    def _unusable(self, name: str, why: str | None = None) -> ProviderRefused:
        return ProviderRefused(
            f"{self._directory / name} can't be used" + (f": {why}" if why else ""),
            hint="Export the cross-encoder to ONNX, with its tokenizer.json beside it",
        )

    def _pair(self, tokenizer: Tokenizer, question: str, passage: str) -> Encoding:
        with _Bare(self._unusable(TOKENIZER, "it can't cut a text into tokens")):
            return tokenizer.encode(question, passage)

    def _score(self, loaded: _Loaded, pair: Encoding) -> float:
        fed = dict(zip(INPUTS, (pair.ids, pair.attention_mask, pair.type_ids), strict=True))
        arrays = {name: np.array([fed[name]], kind) for name, kind in loaded.inputs.items()}
        try:
            first = loaded.session.run(None, arrays)[0]
        except RUNTIME_ERRORS as error:
            raise self._unusable(MODEL, "it can't be run on a question and a passage") from error
        logits = np.asarray(first, dtype=np.float64).reshape(-1)
        if not 1 <= logits.size <= MOST_CLASSES:
            raise self._unusable(
                MODEL, f"it gives {counted(logits.size, 'number')} for a pair, not a score"
            )
        # Two classes: how much more likely "relevant" is than "not".
        score = float(logits[-1] - logits[0]) if logits.size > 1 else float(logits[0])
        if not np.isfinite(score):
            raise ProviderRefused(f"{self.name} gave a score that is no number")
        return score
