"""Embedding with an Ollama server.

What belongs here: the requests, the sorting of its failures by type, and the search for the text
that spoils a batch. Trying a whole call again later is the caller's work.

A failure is one of two kinds. Either it says something about the server (refused, reset, timed out,
429, no such model, credentials wanted), and then the call ends at once. Or it may be the fault of
one text (400, 500, vectors that can't be used), and then it is a `_Doubt`: the batch is halved to
find that text, after one harmless text has shown that the server still works.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime

import httpx
import ollama

from concordance.adapters.clock import utc_now
from concordance.adapters.embedding import MAX_DIMENSIONS, TextFailure, Vector, within_deadline
from concordance.adapters.ollama_client import DEADLINE, open_client
from concordance.errors import (
    BadEmbedding,
    DimensionsUnsupported,
    ModelMissing,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
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
from concordance.text.scrubbing import Scrubber

BATCH_TEXTS = 32
BATCH_CHARACTERS = 48_000
KEEP_ALIVE = "10m"

PROBE = "A short and harmless sentence."
PROBE_AFTER = 8
"""Failures in a row after which a server that has answered is asked whether it still does."""

SMALLEST_PIECE = 128
"""Characters below which a refused text is not cut further: every model reads that many."""

MAX_REASON = 500
EMPTY = "the text is empty"

_ABOUT_THE_SERVER = frozenset({408, 425, 499, 502, 503, 504})
_CREDENTIALS_WANTED = frozenset({401, 403, 407})

# What ollama.Client lets out: its own error for a status, ConnectionError where no connection came
# about, httpx's own errors for all that breaks later, ValueError and TypeError for a body that is
# no JSON or not of the documented shape, AttributeError for an error body that is no JSON object.
_FAILURES = (
    ollama.ResponseError,
    ConnectionError,
    httpx.HTTPError,
    ValueError,
    TypeError,
    AttributeError,
)


class _Doubt(Exception):
    """A failure that may be one text's fault; `error` is what it is if all texts share it."""

    def __init__(self, error: ProviderError, reason: str) -> None:
        super().__init__(error)
        self.error = error
        self.reason = reason


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
        self._url = url
        self._client = open_client(url, timeout_seconds)
        self._lock = threading.Lock()
        self._space: VectorSpace | None = None

    def space(self) -> VectorSpace:
        """Ask the server once for the model's digest and width; two requests, then none.

        Raises:
            ModelMissing: The server is there, the model is not.
            ProviderUnavailable: The server is not there.
            DimensionsUnsupported: The vectors are wider than the index can hold.
        """
        with self._lock:
            if self._space is None:
                self._space = self._ask_for_space()
            return self._space

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | TextFailure]:
        """Embed passages in batches, in their order; each gets a vector or a reason.

        Raises:
            ProviderUnavailable: The server is down; the same call may be made again.
            ProviderRefused: The server refuses even a harmless text.
            ModelMissing: The model was removed.
            BadEmbedding: Even a harmless text gets no usable vector.
        """
        space = self.space()
        places = [place for place, text in enumerate(texts) if text.strip()]
        readable = [encodable(texts[place]) for place in places]
        lengths = [len(space.document_prefix) + len(text) for text in readable]
        search = _CulpritSearch(self._request, space)
        found: list[Vector | TextFailure] = []
        for batch in batch_ranges(lengths, max_texts=BATCH_TEXTS, max_characters=BATCH_CHARACTERS):
            found += search.embed(readable[batch.start : batch.stop])
        results: list[Vector | TextFailure] = [TextFailure(EMPTY)] * len(texts)
        for place, result in zip(places, found, strict=True):
            results[place] = result
        return results

    def embed_query(self, text: str, *, deadline_seconds: float) -> Vector:
        """Embed one question within a deadline; one request.

        Raises:
            ProviderTimeout: The deadline passed.
            ProviderUnavailable: The server is down.
            ModelMissing: The server is there, the model is not.
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
            width = None if self._space is None else self._space.dimensions
            row: Vector = unit_rows(self._request([prefix + encodable(text)], width))[0]
            return row

        try:
            return within_deadline(deadline_seconds, ask)
        except _Doubt as doubt:
            if isinstance(doubt.error, ProviderRefused):
                raise TextRefused(doubt.reason) from doubt
            raise doubt.error from doubt

    def close(self) -> None:
        """Close the connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def _ask_for_space(self) -> VectorSpace:
        digest = self._digest()
        try:
            dimensions = self._request([PROBE], None).shape[1]
        except _Doubt as doubt:
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

    def _digest(self) -> str:
        try:
            models = self._client.list().models
        except _FAILURES as failure:
            error = self._sorted(failure)
            if isinstance(error, ModelMissing):
                raise ProviderRefused(
                    f"there is no Ollama server at {self._url}", hint="Check ollama_url"
                ) from failure
            raise (error.error if isinstance(error, _Doubt) else error) from failure
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
        except _FAILURES as failure:
            raise self._sorted(failure) from failure
        try:
            return check_vectors(answer.embeddings, expected=len(inputs), dimensions=dimensions)
        except BadEmbedding as error:
            raise _Doubt(error, error.message) from error

    def _sorted(self, failure: Exception) -> ProviderError | _Doubt:
        """Sort a failure of the client by its type and status."""
        where = f"Ollama at {self._url}"
        if isinstance(failure, httpx.TimeoutException):
            return ProviderTimeout(f"{where} did not answer in time")
        if isinstance(failure, ConnectionError | httpx.HTTPError):
            return ProviderUnavailable(f"{where} can't be reached", hint="Start it: ollama serve")
        response = _response_behind(failure)
        if response is None:
            reason = "the answer is not one that Ollama gives"
            return _Doubt(ProviderUnavailable(f"{where}: {reason}"), reason)
        words = _words_of(failure, response)
        return self._by_status(response, f"{where} answered {response.status_code}: {words}", words)

    def _by_status(
        self, response: httpx.Response, message: str, words: str
    ) -> ProviderError | _Doubt:
        status = response.status_code
        if status == httpx.codes.NOT_FOUND:
            return self._missing()
        if status == httpx.codes.TOO_MANY_REQUESTS:
            return ProviderBusy(message, retry_after=_retry_after(response))
        if status in _ABOUT_THE_SERVER:
            return ProviderUnavailable(message)
        if status in _CREDENTIALS_WANTED or status < httpx.codes.BAD_REQUEST:
            return ProviderRefused(message, hint="Check ollama_url; redirects are not followed")
        if status >= httpx.codes.INTERNAL_SERVER_ERROR:
            return _Doubt(ProviderUnavailable(message), words)
        return _Doubt(ProviderRefused(message), words)

    def _missing(self) -> ModelMissing:
        model = self.name.removeprefix("ollama/")
        return ModelMissing(
            f"Ollama at {self._url} has no model {model!r}", hint=f"Get it: ollama pull {model}"
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
        except _Doubt as doubt:
            if len(texts) == 1:
                return [self._embed_in_pieces(texts[0], doubt)]
        middle = len(texts) // 2
        return self.embed(texts[:middle]) + self.embed(texts[middle:])

    def _embed_in_pieces(self, text: str, doubt: _Doubt) -> Vector | TextFailure:
        """Cut a refused text into 2, 4, 8 … pieces, one request for each try, and pool them."""
        pieces = [text]
        while isinstance(doubt.error, ProviderRefused):
            pieces = [half for piece in pieces for half in halves(piece) if half.strip()]
            if min(map(len, pieces)) < SMALLEST_PIECE:
                break
            try:
                rows = self._ask(pieces)
            except _Doubt as next_doubt:
                doubt = next_doubt
            else:
                return _pooled(rows, pieces)
        return TextFailure(doubt.reason)

    def _ask(self, texts: Sequence[str]) -> Matrix:
        prefix = self._space.document_prefix
        try:
            rows = self._request([prefix + text for text in texts], self._space.dimensions)
        except _Doubt:
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
        except _Doubt as doubt:
            raise doubt.error from doubt
        self._probed = True
        self._failures_in_a_row = 0


def canonical_name(model: str) -> str:
    """Write a model's name with its tag; one without a tag means `latest`."""
    return model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"


def _response_behind(failure: Exception) -> httpx.Response | None:
    # The client raises its error while it handles httpx's, which Python keeps as the context; only
    # there are the headers, and the status where the error's own body could not be read.
    context = failure.__context__
    return context.response if isinstance(context, httpx.HTTPStatusError) else None


def _words_of(failure: Exception, response: httpx.Response) -> str:
    raw = str(failure.error if isinstance(failure, ollama.ResponseError) else response.text).strip()
    return Scrubber().text(raw or f"status {response.status_code} without a reason")[:MAX_REASON]


def _retry_after(response: httpx.Response) -> float | None:
    """Read Retry-After, which holds either seconds or a date; seconds from now, or None."""
    value = response.headers.get("retry-after", "")
    if value.isdecimal():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (date - utc_now()).total_seconds()) if date.tzinfo else None


def _pooled(rows: Matrix, pieces: Sequence[str]) -> Vector | TextFailure:
    try:
        return pooled(unit_rows(rows), [len(piece) for piece in pieces])
    except BadEmbedding as error:
        return TextFailure(error.message)
