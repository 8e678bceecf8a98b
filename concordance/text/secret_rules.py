"""What a secret looks like: the formats of issuers, and the places where secrets are written.

What belongs here: blocks of keys, addresses and headers, and all rules together, as spans of a
text. What becomes of a span is `scrubbing`'s matter; formats are in `secret_formats`, commands and
files in `secret_places`, values that follow a name such as `password` in `secret_values`.

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

from concordance.text.secret_formats import formatted, is_filler
from concordance.text.secret_placeholders import is_plain
from concordance.text.secret_places import placed_secrets
from concordance.text.secret_values import assigned_values


@dataclass(frozen=True, slots=True)
class Found:
    """A secret at `text[start:end]`; `kind` says in words what it is."""

    start: int
    end: int
    kind: str


_PIECE: Final = r"[A-Za-z0-9+/=]"
_GAP: Final = r"(?:\\+[nrt]|[\s\"',;#*|>+\\])"
_KEY_HEADER: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|PuTTY-User-Key-File-[23]:|Private-Lines: \d{1,4}"
)
_KEY_LINES: Final = re.compile(
    rf"(?:{_GAP}{{0,80}}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Encryption):"
    r"[^\r\n\\]{0,200})*+"
    rf"(?P<body>(?:{_GAP}{{0,80}}+{_PIECE}{{16,}}+)++)"
    rf"(?:{_GAP}{{0,80}}+{_PIECE}{{1,15}}+"
    rf"(?:(?<=[0-9+/=])(?=[\r\n\"'\\]|$)|(?={_GAP}{{0,80}}-----END )))?"
)
_KEY_END: Final = re.compile(
    rf"{_GAP}{{0,80}}-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
)
# The end of a block whose beginning is not there: whole lines of what a key is written in.
_KEY_TAIL: Final = re.compile(
    r"(?:(?:^|(?<=\\n))[ \t>#*|\"']{0,20}[A-Za-z0-9+/]{20,100}={0,2}[ \t\"',\\]{0,4}"
    r"(?:\r\n?|\n|\\r|\\n|(?=n))n?){1,400}+"
    r"[ \t>#*|\"']{0,20}(?:[A-Za-z0-9+/]{1,76}={0,2}(?:\r\n?|\n|\\n))?"
    r"[ \t>#*|\"']{0,20}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
    re.MULTILINE,
)
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
    yield from _private_keys(text)
    yield from starmap(Found, formatted(text))
    yield from _url_passwords(text)
    yield from _headers(text)
    yield from starmap(Found, placed_secrets(text))
    yield from starmap(Found, assigned_values(text))


def _private_keys(text: str) -> Iterator[Found]:
    """Whole and cut blocks, on lines or in one string with escaped line ends."""
    covered = 0
    if "PRIVATE KEY" in text or "Private-Lines" in text or "PuTTY-User-Key" in text:
        for header in _KEY_HEADER.finditer(text):
            lines = _KEY_LINES.match(text, header.end())
            if lines is not None and not is_filler(lines["body"].strip("\"'\\ \r\n")):
                end = _KEY_END.match(text, lines.end())
                covered = lines.end() if end is None else end.end()
                yield Found(header.start(), covered, "private key")
    if "-----END " in text:
        for tail in _KEY_TAIL.finditer(text, covered):
            yield Found(tail.start(), tail.end(), "private key")


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
