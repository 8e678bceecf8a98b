"""Kingfisher's rules for the keys of some hundred issuers, as a detector of secrets.

What belongs here: the native scanner, opened once a process. It asks no network and writes one
file, its compiled rules, into a folder of the state directory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
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
_lock = threading.Lock()
_opened: dict[str, Scanner] = {}


def kingfisher(cache: Path) -> Callable[[str], list[Found]]:
    """A detector that opens the scanner when it is first asked; `cache` keeps its compiled rules.

    Compiling takes seconds, loading what was compiled a third of one; all threads share it.
    """

    def find(text: str) -> list[Found]:
        return _found(text, _scanner(cache))

    return find


def _scanner(cache: Path) -> Scanner:
    with _lock:
        if not _opened:
            from kingfisher_sdk import Rules, Scanner  # noqa: PLC0415 - 35 MB that few commands need

            # A folder that can't be written costs the time alone.
            _opened["scanner"] = Scanner(Rules(cache_dir=cache), base64=False)
        return _opened["scanner"]


def _found(text: str, scanner: Scanner) -> list[Found]:
    data = text.encode("utf-8", "replace")
    found = [
        (finding.location, finding.rule_id.rpartition(".")[2])
        for finding in scanner.scan(data)
        if finding.visible
    ]
    spans = [
        (where["start_offset"], where["end_offset"], rule)
        for where, rule in found
        if not rule.startswith(_OURS)
    ]
    places = _characters(data, {at for start, end, _ in spans for at in (start, end)})
    return [Found(places[start], places[end], _kind(rule)) for start, end, rule in spans]


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
