"""What a failure of Ollama's client means: sorted by type and status, with the server's words.

What belongs here: from an exception to one of our errors, or to a doubt whether one text or the
server is to blame. Finding that out is `concordance.adapters.ollama`'s work.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import Final

import httpx
import ollama

from concordance.adapters.answers import AnswerRefused, provider_words, words_of_answer
from concordance.adapters.clock import utc_now
from concordance.errors import (
    ModelMissing,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
)

# What ollama.Client lets out: its own error for a status, ConnectionError where no connection came
# about, httpx's own errors for all that breaks later, ValueError and TypeError for a body that is
# no JSON or not of the documented shape, AttributeError for an error body that is no JSON object,
# RecursionError for one that is nested without end. AnswerRefused is ours.
FAILURES: Final = (
    ollama.ResponseError,
    ConnectionError,
    httpx.HTTPError,
    AnswerRefused,
    ValueError,
    TypeError,
    AttributeError,
    RecursionError,
)

_ABOUT_THE_SERVER: Final = frozenset({408, 425, 499, 502, 503, 504})
_CREDENTIALS_WANTED: Final = frozenset({401, 403, 407})


class Doubt(Exception):
    """A failure that may be one text's fault; `error` is what it is if all texts share it."""

    def __init__(self, error: ProviderError, reason: str) -> None:
        super().__init__(error)
        self.error = error
        self.reason = reason


def sort_failure(
    failure: Exception, where: str, missing: Callable[[str], ModelMissing]
) -> ProviderError | Doubt:
    """Sort a failure of the client by its type and status.

    Args:
        failure: One of `FAILURES`, as it was caught.
        where: The server, as messages name it.
        missing: Makes the error for a model that is not there, from the server's words.
    """
    if isinstance(failure, httpx.TimeoutException):
        return ProviderTimeout(f"{where} did not answer in time")
    if isinstance(failure, ConnectionError | httpx.HTTPError):
        return _broken(failure, where)
    if isinstance(failure, AnswerRefused):
        return ProviderUnavailable(f"{where}: {failure}")
    response = _response_behind(failure)
    if response is None:
        reason = "the answer is not one that Ollama gives"
        return Doubt(ProviderUnavailable(f"{where}: {reason}"), reason)
    return _by_status(failure, response, where, missing)


def _broken(failure: Exception, where: str) -> ProviderError:
    """No connection, or one that broke off; with the reason that the system gives."""
    for cause in _causes(failure):
        match cause:
            case ssl.SSLCertVerificationError():
                return ProviderRefused(
                    f"{where} has a certificate that is not trusted: "
                    f"{provider_words(cause.verify_message)}",
                    hint="If it is of your own authority, set SSL_CERT_FILE",
                )
            case ssl.SSLError():
                return ProviderRefused(
                    f"{where} does not speak TLS: {provider_words(cause.reason or str(cause))}",
                    hint="Check ollama_url: is it http:// there?",
                )
            case OSError(strerror=str(said)):
                return ProviderUnavailable(
                    f"{where} can't be reached: {provider_words(said)}",
                    hint="Start it: ollama serve",
                )
            case _:
                continue
    said = provider_words(str(failure))
    return ProviderUnavailable(
        f"{where} can't be reached: {said.rstrip('.') or type(failure).__name__}",
        hint="Start it: ollama serve",
    )


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    while failure is not None:
        yield failure
        failure = failure.__cause__ or failure.__context__


def _by_status(
    failure: Exception,
    response: httpx.Response,
    where: str,
    missing: Callable[[str], ModelMissing],
) -> ProviderError | Doubt:
    status = response.status_code
    said = failure.error if isinstance(failure, ollama.ResponseError) else response.text
    words = words_of_answer(response, str(said)) or f"status {status} without a reason"
    message = f"{where} answered {status}: {words}"
    if status == httpx.codes.NOT_FOUND:
        return missing(words)
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return ProviderBusy(message, retry_after=_retry_after(response))
    if status in _ABOUT_THE_SERVER:
        return ProviderUnavailable(message)
    if status in _CREDENTIALS_WANTED or status < httpx.codes.BAD_REQUEST:
        return ProviderRefused(message, hint="Check ollama_url; redirects are not followed")
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return Doubt(ProviderUnavailable(message), words)
    return Doubt(ProviderRefused(message), words)


def _response_behind(failure: Exception) -> httpx.Response | None:
    # The client raises its error while it handles httpx's, which Python keeps as the context; only
    # there are the headers, and the status where the error's own body could not be read.
    context = failure.__context__
    return context.response if isinstance(context, httpx.HTTPStatusError) else None


def _retry_after(response: httpx.Response) -> float | None:
    """Read Retry-After, which holds either seconds or a date; seconds from now, or None."""
    value = response.headers.get("retry-after", "")
    if value.isdecimal():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (date - utc_now()).total_seconds()) if date.tzinfo else None
