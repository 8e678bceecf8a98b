"""Embedding with an Ollama server.

What belongs here: the requests, the sorting of its failures by type, and the search for the text
that spoils a batch. Trying a whole call again later is the caller's work.

A failure is one of two kinds. Either it says something about the server (refused, reset, timed out,
429, no such model, credentials wanted), and then the call ends at once. Or it may be the fault of
one text (400, 500, vectors that can't be used), and then it is a `Doubt`: the batch is halved to
find that text, after one harmless text has shown that the server still works.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from concordance.adapters.answers import DEADLINE, provider_words
from concordance.adapters.embedding import MAX_DIMENSIONS, TextFailure, Vector, within_deadline
from concordance.adapters.ollama_client import open_client
from concordance.adapters.ollama_failures import FAILURES, Doubt, sort_failure
from concordance.errors import (
    BadEmbedding,
    DimensionsUnsupported,
    ModelChanged,
    ModelMissing,
    ProviderError,
    ProviderRefused,
    TextRefused,
)
from concordance.indexing.batches import batch_ranges, halves
from concordance.indexing.model_families import known_prefixes
from concordance.indexing.vector_space import (
    CHUNK_TEXT_VERSION,
    Matrix,
    VectorSpace,
    check_vectors,
    encodable,
    pooled,
    unit_rows,
)

T = TypeVar("T")

BATCH_TEXTS = 32
BATCH_CHARACTERS = 48_000
KEEP_ALIVE = "10m"

PROBE = "A short and harmless sentence."
PROBE_AFTER = 8
"""Failures in a row after which a server that has answered is asked whether it still does."""

SMALLEST_PIECE = 128
"""Characters below which a refused text is not cut further: every model reads that many."""

EMPTY = "the text is empty"

LISTING_SECONDS = 10.0
"""How long a server may take to list its models, which it does without loading one."""

GRACE_SECONDS = 0.5
"""How much longer than its deadline a request is waited for: it ends itself, but for its head."""


class OllamaEmbedder:
    """A model on an Ollama server.

    Args:
        model: The model's name, with or without its tag.
        url: The server's address.
        timeout_seconds: How long one request for passages may take.

    Raises:
        SettingsError: The address is none that can be asked.
    """

    def __init__(self, model: str, *, url: str, timeout_seconds: float) -> None:
        self.name = f"ollama/{model}"
        self._model = canonical_name(model)
        self.model = f"ollama/{self._model}"
        self.parallel = 1
        self.url = url
        self._seconds = timeout_seconds
        self._client = open_client(url, timeout_seconds)
        self._lock = threading.Lock()
        self._space: VectorSpace | None = None

    def space(self, *, anew: bool = False) -> VectorSpace:
        """Ask the server once for the model's digest and width; two requests, then none.

        With `anew`, one request more looks whether the name still means that model.

        Raises:
            ModelMissing: The server is there, the model is not.
            ProviderUnavailable: The server is not there.
            DimensionsUnsupported: The vectors are wider than the index can hold.
        """
        with self._lock:
            known = self._space
            if known is None or (anew and self._listed() != known.digest):
                # Should it fail now, the old one counts no more.
                self._space = None
                self._space = known = self._ask_for_space()
            return known

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | TextFailure]:
        """Embed passages in batches, in their order; each gets a vector or a reason.

        Raises:
            ProviderUnavailable: The server is down; the same call may be made again.
            ProviderRefused: The server refuses even a harmless text.
            ModelMissing: The model was removed.
            ModelChanged: Another model has the name now; no vector of either is given.
            BadEmbedding: Even a harmless text gets no usable vector.
        """
        return self.embed_in(self.space(), texts)

    def embed_in(self, space: VectorSpace, texts: Sequence[str]) -> list[Vector | TextFailure]:
        """The same, in a space that is known: what the server gives of another one is dropped.

        Raises:
            ProviderError: See `embed_documents`.
        """
        places = [place for place, text in enumerate(texts) if text.strip()]
        readable = [encodable(texts[place]) for place in places]
        found: list[Vector | TextFailure] = []
        if readable:
            try:
                found = self._embed(readable, space)
            except BadEmbedding:
                self._in_time(lambda: self._check_model(space), LISTING_SECONDS)
                raise
            self._in_time(lambda: self._check_model(space), LISTING_SECONDS)
        results: list[Vector | TextFailure] = [TextFailure(EMPTY)] * len(texts)
        for place, result in zip(places, found, strict=True):
            results[place] = result
        return results

    def embed_query(self, text: str, *, deadline_seconds: float) -> Vector:
        """Embed one question within a deadline; one request, and one that asks of which model.

        Raises:
            ProviderTimeout: The deadline passed.
            ProviderUnavailable: The server is down.
            ModelMissing: The server is there, the model is not.
            ModelChanged: Another model has the name now.
            TextRefused: The model can't take this text.
            BadEmbedding: The answer was no usable vector.
        """
        if not text.strip():
            raise TextRefused(EMPTY)
        deadline = time.monotonic() + deadline_seconds
        _, prefix = known_prefixes(self._model)

        def ask() -> Vector:
            # Set in this thread only: every request made in it is given the time that is left.
            DEADLINE.set(deadline)
            space = self._space
            width = None if space is None else space.dimensions
            try:
                rows = self._request([prefix + encodable(text)], width)
            except Doubt as doubt:
                if isinstance(doubt.error, BadEmbedding):
                    self._check_model(space)
                raise
            self._check_model(space)
            row: Vector = unit_rows(rows)[0]
            return row

        try:
            return within_deadline(deadline_seconds, ask)
        except Doubt as doubt:
            if isinstance(doubt.error, ProviderRefused):
                raise TextRefused(doubt.reason) from doubt
            raise doubt.error from doubt

    def troubles(self) -> tuple[str, ...]:
        """None: where its one server fails, nothing works."""
        return ()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def _embed(self, texts: Sequence[str], space: VectorSpace) -> list[Vector | TextFailure]:
        """Texts that hold something, in batches."""
        lengths = [len(space.document_prefix) + len(text) for text in texts]
        search = _CulpritSearch(self._request_in_time, space)
        found: list[Vector | TextFailure] = []
        for batch in batch_ranges(lengths, max_texts=BATCH_TEXTS, max_characters=BATCH_CHARACTERS):
            found += search.embed(texts[batch.start : batch.stop])
        return found

    def _ask_for_space(self) -> VectorSpace:
        digest = self._listed()
        try:
            dimensions = self._request_in_time([PROBE], None).shape[1]
        except Doubt as doubt:
            raise doubt.error from doubt
        if dimensions > MAX_DIMENSIONS:
            raise DimensionsUnsupported(
                f"{self.name} gives vectors of {dimensions} numbers",
                hint=f"The index holds up to {MAX_DIMENSIONS}; choose another model",
            )
        document_prefix, query_prefix = known_prefixes(self._model)
        return VectorSpace(
            provider="ollama",
            model=self._model,
            digest=digest,
            dimensions=dimensions,
            document_prefix=document_prefix,
            query_prefix=query_prefix,
            chunk_text_version=CHUNK_TEXT_VERSION,
        )

    def _check_model(self, space: VectorSpace | None) -> None:
        """Make sure that the name still means the model of a space, now that it has answered.

        Raises:
            ModelChanged: It does not; the next question for the space is asked anew.
        """
        if space is None or self._digest() == space.digest:
            return
        # Not under its lock, which another thread may hold for as long as the server takes.
        if self._space == space:
            self._space = None
        raise ModelChanged(f"{self.name} means another model than a moment ago")

    def _listed(self) -> str:
        return self._in_time(self._digest, LISTING_SECONDS)

    def _digest(self) -> str:
        try:
            models = self._client.list().models
        except FAILURES as failure:
            error = self._sorted(failure)
            if isinstance(error, ModelMissing):
                raise ProviderRefused(
                    f"there is no Ollama server at {self.url}", hint="Check ollama_url"
                ) from failure
            raise (error.error if isinstance(error, Doubt) else error) from failure
        for model in models:
            if model.model and model.digest and canonical_name(model.model) == self._model:
                return model.digest
        raise self._missing()

    def _request(self, inputs: Sequence[str], dimensions: int | None) -> Matrix:
        """Send one request; the checked answer, of shape (inputs, width), or a sorted failure."""
        try:
            # Without truncate=False the server cuts a long text and does not say so.
            answer = self._client.embed(
                model=self._model, input=inputs, truncate=False, keep_alive=KEEP_ALIVE
            )
        except FAILURES as failure:
            raise self._sorted(failure) from failure
        # A server in between may choose another model; its vectors mean something else.
        if answer.model and _folded(answer.model) != _folded(self._model):
            reason = f"the answer is of the model {provider_words(answer.model)!r}"
            raise Doubt(BadEmbedding(f"Ollama at {self.url}: {reason}"), reason)
        try:
            return check_vectors(answer.embeddings, expected=len(inputs), dimensions=dimensions)
        except BadEmbedding as error:
            raise Doubt(error, error.message) from error

    def _request_in_time(self, inputs: Sequence[str], dimensions: int | None) -> Matrix:
        return self._in_time(lambda: self._request(inputs, dimensions))

    def _in_time(self, ask: Callable[[], T], most: float | None = None) -> T:
        """Ask something of the server, within the time that a request for passages may take.

        With `most` it may take no longer than so many seconds, either.

        Raises:
            ProviderTimeout: It took longer, though each part of it came in time.
        """
        seconds = self._seconds if most is None else min(self._seconds, most)
        deadline = time.monotonic() + seconds

        def asked() -> T:
            DEADLINE.set(deadline)
            return ask()

        return within_deadline(seconds + GRACE_SECONDS, asked)

    def _sorted(self, failure: Exception) -> ProviderError | Doubt:
        return sort_failure(failure, f"Ollama at {self.url}", self._missing)

    def _missing(self, words: str | None = None) -> ModelMissing:
        model = self.name.removeprefix("ollama/")
        said = f": {words}" if words else ""
        return ModelMissing(
            f"Ollama at {self.url} has no model {model!r}{said}",
            hint=f"Get it: ollama pull {model}",
        )


class _CulpritSearch:
    """One call's search for the texts that can't be embedded, with a bound on its requests.

    A text that spoils its batch of n costs about 2 log2(n) requests, and the call one probe. A
    server that fails on everything costs two requests, or `PROBE_AFTER` more than it had answered.
    """

    def __init__(
        self, request: Callable[[Sequence[str], int | None], Matrix], space: VectorSpace
    ) -> None:
        self._request = request
        self._space = space
        self._probed = False
        self._failures_in_a_row = 0

    def embed(self, texts: Sequence[str]) -> list[Vector | TextFailure]:
        """Embed texts together, and in ever smaller groups where that fails."""
        try:
            return list(unit_rows(self._ask(texts)))
        except Doubt as doubt:
            if len(texts) == 1:
                return [self._embed_in_pieces(texts[0], doubt)]
        middle = len(texts) // 2
        return self.embed(texts[:middle]) + self.embed(texts[middle:])

    def _embed_in_pieces(self, text: str, doubt: Doubt) -> Vector | TextFailure:
        """Cut a refused text into 2, 4, 8 … pieces, one request for each try, and pool them."""
        pieces = [text]
        while isinstance(doubt.error, ProviderRefused):
            pieces = [half for piece in pieces for half in halves(piece) if half.strip()]
            if min(map(len, pieces)) < SMALLEST_PIECE:
                break
            try:
                rows = self._ask(pieces)
            except Doubt as next_doubt:
                doubt = next_doubt
            else:
                return _pooled(rows, pieces)
        return TextFailure(doubt.reason)

    def _ask(self, texts: Sequence[str]) -> Matrix:
        prefix = self._space.document_prefix
        try:
            rows = self._request([prefix + text for text in texts], self._space.dimensions)
        except Doubt:
            self._failures_in_a_row += 1
            if not self._probed or self._failures_in_a_row >= PROBE_AFTER:
                self._probe()
            raise
        self._failures_in_a_row = 0
        return rows

    def _probe(self) -> None:
        """End the call if not even a harmless text can be embedded."""
        try:
            self._request([PROBE], self._space.dimensions)
        except Doubt as doubt:
            raise doubt.error from doubt
        self._probed = True
        self._failures_in_a_row = 0


def canonical_name(model: str) -> str:
    """Write a model's name with its tag; one without a tag means `latest`."""
    return model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"


def _folded(model: str) -> str:
    return canonical_name(model).casefold()


def _pooled(rows: Matrix, pieces: Sequence[str]) -> Vector | TextFailure:
    try:
        return pooled(unit_rows(rows), [len(piece) for piece in pieces])
    except BadEmbedding as error:
        return TextFailure(error.message)
