"""Blocks of private keys, whatever stands before or between their lines.

What belongs here: from the header of a block to its footer, or as far as lines of a key go where
one of the two is missing. Keys that have a format of their own are `secret_formats`' matter.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from typing import Final

from concordance.text.secret_formats import is_filler

_PIECE: Final = r"[A-Za-z0-9+/=]"
# What parts the lines of a key: line ends of any notation, and signs of quoting.
_GAP: Final = r"(?:\\+[nrt]|[\s\"',;#*|>+\\]|%0[AaDd]|`[nr]|&#(?:1[03]|[xX]0?[aAdD]);|<br ?/?>)"
_KEY_HEADER: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|PuTTY-User-Key-File-[23]:|Private-Lines: \d{1,4}"
)
_KEY_LINES: Final = re.compile(
    rf"(?:{_GAP}{{0,80}}+(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Encryption):"
    r"[^\r\n\\]{0,200})*+"
    rf"(?P<body>(?:{_GAP}{{0,80}}+{_PIECE}{{16,}}+)++)"
    rf"(?:{_GAP}{{0,80}}+{_PIECE}{{1,15}}+"
    rf"(?:(?<=[0-9+/=])(?=[\r\n\"'\\]|$)|(?={_GAP}{{0,80}}+-----END )))?"
)
_KEY_END: Final = re.compile(
    rf"{_GAP}{{0,80}}+-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
)
# The end of a block whose beginning is not there: whole lines of what a key is written in.
_KEY_TAIL: Final = re.compile(
    r"(?:(?:^|(?<=\\n))[ \t>#*|\"']{0,20}[A-Za-z0-9+/]{20,100}={0,2}[ \t\"',\\]{0,4}"
    r"(?:\r\n?|\n|\\r|\\n|(?=n))n?){1,400}+"
    r"[ \t>#*|\"']{0,20}(?:[A-Za-z0-9+/]{1,76}={0,2}(?:\r\n?|\n|\\n))?"
    r"[ \t>#*|\"']{0,20}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
    re.MULTILINE,
)
_EDGE: Final = re.compile(
    r"-----(?:(?P<begin>BEGIN)|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
)
_MOST_BETWEEN: Final = 65_536
_RUN: Final = re.compile(r"[A-Za-z0-9+/]{10,}+={0,2}")
_LEAST_KEY: Final = 30
_LEAST_LINE: Final = 10
_MOST_LINES: Final = 1_000
_LONGEST_LINE: Final = 1_000
_BASE64: Final = string.ascii_letters + string.digits + "+/"
_AFTER: Final = " \t\r\"',;\\|*"
_COUNT: Final = re.compile(r"[0-9]+")
_NO_SHAPE: Final = re.compile(r"[\s:-]+")


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Spans of whole and cut blocks, on lines or in one string with escaped line ends."""
    covered = 0
    if "PRIVATE KEY" in text or "Private-Lines" in text or "PuTTY-User-Key" in text:
        for header in _KEY_HEADER.finditer(text):
            lines = _KEY_LINES.match(text, header.end())
            if lines is not None and not is_filler(lines["body"].strip("\"'\\ \r\n")):
                end = _KEY_END.match(text, lines.end())
                covered = lines.end() if end is None else end.end()
                yield header.start(), covered
    if "-----END " in text:
        for tail in _KEY_TAIL.finditer(text, covered):
            yield tail.span()
    yield from _between_edges(text)


def _between_edges(text: str) -> Iterator[tuple[int, int]]:
    """Blocks told by header and footer; where one is missing, by what its line begins with."""
    if "PRIVATE KEY" not in text:
        return
    begun: re.Match[str] | None = None
    for edge in _EDGE.finditer(text):
        if edge["begin"]:
            if begun is not None:
                yield from _lines_after(text, begun, edge.start())
            begun = edge
        elif begun is None:
            yield from _lines_before(text, edge)
        elif edge.start() - begun.end() <= _MOST_BETWEEN and _is_key(
            text[begun.end() : edge.start()]
        ):
            yield begun.start(), edge.end()
            begun = None
        else:
            yield from _lines_after(text, begun, edge.start())
            yield from _lines_before(text, edge)
            begun = None
    if begun is not None:
        yield from _lines_after(text, begun, len(text))


def _is_key(body: str) -> bool:
    """Whether what stands between two edges is for the most part base64 of a key."""
    runs = [run for run in _RUN.findall(body) if _is_mixed(run)]
    told = sum(map(len, runs))
    words = sum(c.isalnum() for c in body)
    return told >= _LEAST_KEY and told * 4 >= words and not all(map(is_filler, runs))


def _is_mixed(run: str) -> bool:
    """Whether letters of both cases and digits are mixed, as no word mixes them."""
    return (
        any(c.isupper() for c in run)
        and any(c.islower() for c in run)
        and any(c.isdigit() or c in "+/=" for c in run)
    )


def _lines_after(text: str, header: re.Match[str], limit: int) -> Iterator[tuple[int, int]]:
    """The lines of a key below a header without a footer, behind what the header stands behind."""
    prefix = _prefix(text, header.start())
    start = text.find("\n", header.end(), header.end() + _LONGEST_LINE) + 1
    body: list[str] = []
    last = header.end()
    while start and start < limit and len(body) < _MOST_LINES:
        stop = text.find("\n", start, start + _LONGEST_LINE)
        stop = min(len(text), start + _LONGEST_LINE) if stop < 0 else stop
        run = _run_of(text[start:stop], prefix)
        if run is None or not (_goes_on(run, body) or _is_end(run)):
            break
        last = start + text[start:stop].rindex(run) + len(run)
        if not _goes_on(run, body):
            break
        body.append(run)
        start = stop + 1
    if _is_key("\n".join(body)):
        yield header.start(), last


def _lines_before(text: str, footer: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The lines of a key above a footer without a header."""
    prefix = _prefix(text, footer.start())
    stop = text.rfind("\n", max(0, footer.start() - _LONGEST_LINE), footer.start())
    body: list[str] = []
    first = footer.start()
    while stop > 0 and len(body) < _MOST_LINES:
        start = text.rfind("\n", max(0, stop - _LONGEST_LINE), stop) + 1
        start = start or max(0, stop - _LONGEST_LINE)
        run = _run_of(text[start:stop], prefix)
        if run is None or not (_goes_on(run, body[1:]) or not body):
            break
        body.append(run)
        first = start + text[start:stop].rindex(run)
        stop = start - 1
    if _is_key("\n".join(body)):
        yield first, footer.end()


def _goes_on(run: str, body: list[str]) -> bool:
    """Whether a run is a line of a key, and no word: it is mixed, or as long as the one beside."""
    same = bool(body) and len(run) == len(body[-1])
    return len(run) >= _LEAST_LINE and (same or _is_mixed(run))


def _is_end(run: str) -> bool:
    """Whether a short run is a key's last line, and no word."""
    return any(c.isdigit() or c in "+/=" for c in run)


def _prefix(text: str, position: int) -> str:
    """What stands on a line before an edge of a block."""
    start = text.rfind("\n", max(0, position - _LONGEST_LINE), position) + 1
    return text[max(start, position - _LONGEST_LINE) : position]


def _run_of(line: str, prefix: str) -> str | None:
    """The base64 at a line's end, if what stands before it is the prefix but for its numbers."""
    line = line.rstrip(_AFTER)
    if prefix and line.startswith(prefix):
        head = line[: len(prefix)]
    else:
        head = line.rstrip("=").rstrip(_BASE64)
        if _shape(head) != _shape(prefix):
            return None
    run = line[len(head) :].lstrip()
    return run if run and not run.rstrip("=").strip(_BASE64) else None


def _shape(prefix: str) -> str:
    """A prefix without its numbers, its spaces, and signs that tools put for one another."""
    return _NO_SHAPE.sub(":", _COUNT.sub("0", prefix)).strip(":")
