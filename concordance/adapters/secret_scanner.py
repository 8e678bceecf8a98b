"""Kingfisher's rules for the keys of some hundred issuers, as a detector of secrets.

What belongs here: the native scanner, opened once a process, and the pieces that it is given. It
asks no network and writes one file, its compiled rules, into a folder of the state directory.

Some of its rules take a text the square of its length. So it is given pieces of bounded length.
They overlap, and no format of its catalogue is longer than the overlap; keys in blocks, which may
be longer, are found by our own rules in the whole text.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from concordance.text.secret_rules import Found

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

SCANNER_VERSION: Final = "1.5.0"
"""The release that `RULES_VERSION` speaks of: with another one, raise that as well."""

# Our own rules draw these spans more narrowly: theirs may reach over what stands between two keys.
_OURS: Final = ("private-key", "generic-", "curl-", "jwt", "pkcs12")
# Their time grows with the square of a text, and they would be left out: the word is not shown.
_SLOW: Final = (b"curl", b"c\0rl")
# The scanner wants a quote or a space after most keys, where prose and tables have these.
_SPACES: Final = bytes.maketrans(b"()[]{}<>,|*\\", b" " * 12)
_POINT: Final = re.compile(rb"\.(?=\s|$)")

PIECE: Final = 65_536
"""The most characters that the scanner is given at once, without the overlap."""
OVERLAP: Final = 8_192
"""How many characters of a piece stand in the next one again."""
_LINE: Final = 2_048  # a piece ends with a line, where one ends so near before its end

_lock = threading.Lock()
_opened: dict[str, Scanner] = {}


def kingfisher(cache: Path) -> Callable[[str], list[Found]]:
    """A detector that opens the scanner when it is first asked; `cache` keeps its compiled rules.

    Compiling takes seconds, loading what was compiled a third of one; all threads share it.
    """

    def find(text: str) -> list[Found]:
        return list(found_in_pieces(text, lambda piece: _found(piece, _scanner(cache))))

    return find


def found_in_pieces(text: str, find: Callable[[str], list[Found]]) -> Iterator[Found]:
    """What a detector finds in pieces of a text, each of at most `PIECE + OVERLAP` characters.

    A secret of up to `OVERLAP` characters stands whole in one of them. What a piece cuts is left to
    the piece that has it whole; of a longer one each part counts.
    """
    start = 0
    while True:
        end = min(len(text), start + PIECE + OVERLAP)
        if end < len(text):
            end = text.rfind("\n", end - _LINE, end) + 1 or end
        following = len(text) if end == len(text) else end - OVERLAP
        for span in find(text[start:end]):
            first, last = start + span.start, start + span.end
            begun = start > 0 and first == start and last < start + OVERLAP
            goes_on = last == end < len(text) and first > following
            if not begun and not goes_on:
                yield Found(first, last, span.kind)
        if end == len(text):
            return
        start = following


def _scanner(cache: Path) -> Scanner:
    with _lock:
        if not _opened:
            from kingfisher_sdk import Rules, Scanner  # noqa: PLC0415 - 35 MB that few commands need

            # A folder that can't be written costs the time alone.
            _opened["scanner"] = Scanner(Rules(cache_dir=cache), base64=False)
        return _opened["scanner"]


def _found(text: str, scanner: Scanner) -> list[Found]:
    data = text.encode("utf-8", "replace").replace(*_SLOW)
    spans = _spans(data, scanner)
    plain = _POINT.sub(b" ", data.translate(_SPACES))
    if plain != data:
        spans += _spans(plain, scanner)
    places = _characters(data, {at for start, end, _ in spans for at in (start, end)})
    return [Found(places[start], places[end], _kind(rule)) for start, end, rule in spans]


def _spans(data: bytes, scanner: Scanner) -> list[tuple[int, int, str]]:
    found = [
        (finding.location, finding.rule_id.rpartition(".")[2])
        for finding in scanner.scan(data)
        if finding.visible
    ]
    return [
        (where["start_offset"], where["end_offset"], rule)
        for where, rule in found
        if not rule.startswith(_OURS)
    ]


def _kind(rule: str) -> str:
    kept = "".join(c if c.isascii() and (c.islower() or c.isdigit()) else " " for c in rule.lower())
    return " ".join(kept.split())[:60] or "key"


def _characters(data: bytes, offsets: set[int]) -> dict[int, int]:
    """Offsets in bytes as offsets in characters."""
    places = {0: 0}
    ordered = [0, *sorted(offsets - {0})]
    for last, offset in pairwise(ordered):
        places[offset] = places[last] + len(data[last:offset].decode("utf-8", "ignore"))
    return places
