"""What a provider may answer: how much, for how long, and which of its words are kept.

What belongs here: limits of an answer while it is read, and the words of a refusal made fit to be
stored and shown. What an answer means is the matter of the provider's own module.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

import httpx

from concordance.text.scrubbing import Scrubber

MOST_BYTES: Final = 64 << 20
"""The longest answer that is read: 32 vectors of 4,000 numbers take 4 MB as text."""

PLAIN: Final = {"Accept-Encoding": "identity"}
"""Asked for in every request, as a few compressed bytes can stand for gigabytes."""

DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)
"""When the request that is being made has to end, by the monotonic clock; None without one."""

MOST_WORDS: Final = 500
_LOOKED_AT: Final = 4_000
_CUT: Final = " …"


class AnswerRefused(Exception):
    """An answer that is not read to its end; the message says why."""


def limit_answer(response: httpx.Response) -> None:
    """Let no more of an answer be read, and no longer, than is allowed: a hook of a client.

    Args:
        response: The answer, of which the head has come.

    Raises:
        AnswerRefused: It is compressed, though that was not asked for.
    """
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise AnswerRefused("the answer is compressed, which was not asked for")
    if isinstance(response.stream, httpx.SyncByteStream):
        response.stream = _Limited(response.stream, DEADLINE.get())


def words_of_answer(response: httpx.Response, said: str) -> str:
    """The words of a refusal, without what the request was signed with.

    Args:
        response: The answer that they came with.
        said: The words as they came.
    """
    _, _, credential = response.request.headers.get("authorization", "").partition(" ")
    if credential:
        said = said[:_LOOKED_AT].replace(credential, "***")
    return provider_words(said)


def provider_words(said: str) -> str:
    """Words from outside on one line, with no secret and no control character, and not too long."""
    # A surrogate can't be stored, a NUL neither, and a terminal would obey the others.
    shown = "".join(c if c.isprintable() else " " for c in said[:_LOOKED_AT])
    words = " ".join(Scrubber().text(" ".join(shown.split())).split())
    if len(words) <= MOST_WORDS:
        return words
    # A part of a word may be a part of a secret, which is not known as one.
    kept, _, _ = words[: MOST_WORDS - len(_CUT)].rpartition(" ")
    return f"{kept}{_CUT}"


class _Limited(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, ends: float | None) -> None:
        self._stream = stream
        self._ends = ends

    def __iter__(self) -> Iterator[bytes]:
        read = 0
        for part in self._stream:
            read += len(part)
            if read > MOST_BYTES:
                raise AnswerRefused(f"the answer is longer than {MOST_BYTES:,} bytes")
            # Each part may come in time, and there may be no last one.
            if self._ends is not None and time.monotonic() > self._ends:
                raise httpx.ReadTimeout("the answer did not come to its end in time")
            yield part

    def close(self) -> None:
        self._stream.close()
