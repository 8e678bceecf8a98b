"""What a secret looks like: the formats of issuers, and the places where secrets are written.

What belongs here: addresses and headers, and all rules together, as spans of a text. What becomes
of a span is `scrubbing`'s matter; blocks of keys are in `secret_blocks`, formats in
`secret_formats`, commands and files in `secret_places`, values that follow a name such as
`password` in `secret_values`.

Each rule begins with a word that must stand in the text, and has bounds or possessive repeats, so
that no text takes longer than its length allows.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap
from typing import Final

from concordance.text.secret_blocks import private_keys
from concordance.text.secret_formats import formatted, is_filler
from concordance.text.secret_lines import values_of_lines
from concordance.text.secret_placeholders import is_plain
from concordance.text.secret_places import placed_secrets
from concordance.text.secret_values import assigned_values


@dataclass(frozen=True, slots=True)
class Found:
    """A secret at `text[start:end]`; `kind` says in words what it is."""

    start: int
    end: int
    kind: str


_URL_PASSWORD: Final = re.compile(
    r"(?<=://)(?P<user>[^\s/?#:@\"'`<>|]{0,128})"
    r":(?P<password>[^\s/?#\"'`<>\[\]]{1,256}?)@(?=[^\s@/]{1,255}(?:[\s/?#:,;\"'`<>)]|$))"
)
_HEADER: Final = re.compile(
    r"(?i)\b(?P<scheme>basic|bearer|token|api-?key|authorization[\"']?:)[ \t]{1,4}[\"']?"
    r"(?P<value>[A-Za-z0-9+/._~=-]{8,4096}+)"
)
_SHORTEST_BEARER: Final = 16


def find_secrets(text: str) -> Iterator[Found]:
    """Every secret that the rules know; of overlapping ones the earlier says better what it is."""
    for start, end in private_keys(text):
        yield Found(start, end, "private key")
    yield from starmap(Found, formatted(text))
    yield from _url_passwords(text)
    yield from _headers(text)
    yield from starmap(Found, placed_secrets(text))
    yield from starmap(Found, values_of_lines(text))
    yield from starmap(Found, assigned_values(text))


def _url_passwords(text: str) -> Iterator[Found]:
    if "://" not in text or "@" not in text:
        return
    for match in _URL_PASSWORD.finditer(text):
        password = match["password"]
        if not is_plain(password):
            yield Found(match.start("password"), match.end("password"), "url password")


def _headers(text: str) -> Iterator[Found]:
    lowered = text.lower()
    if not any(word in lowered for word in ("basic", "bearer", "token", "key", "authorization")):
        return
    for match in _HEADER.finditer(text):
        value, scheme = match["value"].rstrip(".-"), match["scheme"].lower()
        end = match.start("value") + len(value)
        if scheme == "basic" and _is_basic(value):
            yield Found(match.start("value"), end, "basic auth")
        if scheme != "basic" and len(value) >= _SHORTEST_BEARER and _is_random(value):
            yield Found(match.start("value"), end, "bearer token")


def _is_basic(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_random(value: str) -> bool:
    longest = max(map(len, re.split(r"[._~-]", value)))
    return (
        any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and longest >= 10  # noqa: PLR2004 - a word with a number is shorter
        and not is_filler(value)
    )
