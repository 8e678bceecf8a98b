"""Cohere's rerank API, or another server that speaks it.

What belongs here: one request, and its answer checked. The key reaches the server in a header and
stands in no message.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import httpx
from pydantic import SecretStr

from concordance.adapters.answers import (
    DEADLINE,
    PLAIN,
    AnswerRefused,
    limit_answer,
    words_of_answer,
)
from concordance.adapters.embedding import within_deadline
from concordance.errors import (
    BadEmbedding,
    ModelMissing,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
)

PATH = "/v2/rerank"


class CohereReranker:
    """A reranker behind Cohere's API."""

    def __init__(self, model: str, *, url: str, key: SecretStr | None) -> None:
        self.name = f"cohere/{model}"
        self._model = model
        self._key = key
        self._client = httpx.Client(
            base_url=url.rstrip("/"),
            follow_redirects=False,
            headers=PLAIN,
            event_hooks={"response": [limit_answer]},
        )

    def scores(
        self, question: str, passages: Sequence[str], *, deadline_seconds: float
    ) -> list[float]:
        """Relevance of each passage, 0 to 1.

        Raises:
            ProviderRefused: No key is set, or the server does not accept it or the request.
            ProviderUnavailable: The server can't be reached, or is busy.
            ProviderTimeout: The deadline passed.
        """
        if self._key is None:
            raise ProviderRefused(
                f"{self.name} needs a key",
                hint="Set CONCORDANCE_RERANKER_KEY, or name a Secret block",
            )
        if not passages:
            return []
        key = self._key.get_secret_value()
        body = {"model": self._model, "query": question, "documents": list(passages)}

        ends = time.monotonic() + deadline_seconds

        def ask() -> httpx.Response:
            DEADLINE.set(ends)
            return self._client.post(
                PATH,
                json=body,
                headers={"Authorization": f"Bearer {key}"},
                timeout=deadline_seconds,
            )

        try:
            # httpx limits each read, not the whole answer: the deadline is kept from outside.
            answer = within_deadline(deadline_seconds, ask)
        except httpx.TimeoutException as error:
            raise ProviderTimeout(f"{self.name} did not answer in time") from error
        except httpx.HTTPError as error:
            raise ProviderUnavailable(
                f"{self.name} can't be reached: {type(error).__name__}"
            ) from error
        except AnswerRefused as error:
            raise ProviderUnavailable(f"{self.name}: {error}") from error
        if answer.status_code != HTTPStatus.OK:
            raise _refusal(self.name, answer)
        return _scores(self.name, answer, len(passages))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _refusal(name: str, answer: httpx.Response) -> ProviderError:
    said = f"{name} answered {answer.status_code}: {_words(answer)}"
    match answer.status_code:
        case HTTPStatus.TOO_MANY_REQUESTS:
            return ProviderBusy(said)
        case HTTPStatus.NOT_FOUND:
            return ModelMissing(said)
        case code if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return ProviderUnavailable(said)
        case _:
            return ProviderRefused(said)


def _words(answer: httpx.Response) -> str:
    try:
        body: Any = answer.json()
    except (ValueError, RecursionError):
        return "no reason"
    message = body.get("message") if isinstance(body, dict) else None
    # It may quote a passage, or the key.
    return words_of_answer(answer, str(message)) if message else "no reason"


def _scores(name: str, answer: httpx.Response, expected: int) -> list[float]:
    """The scores in the order of the passages: each once, each a number."""
    found: dict[int, float] = {}
    try:
        for result in answer.json()["results"]:
            found[int(result["index"])] = float(result["relevance_score"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise BadEmbedding(f"{name} answered with no list of scores") from error
    if sorted(found) != list(range(expected)) or not all(map(math.isfinite, found.values())):
        raise BadEmbedding(f"{name} did not score every passage once")
    return [found[place] for place in range(expected)]
