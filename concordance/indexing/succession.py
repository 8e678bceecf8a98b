"""Which decision record replaced which, from what all records of a project say of each other.

What belongs here: finding the record that a reference means, and telling what is certain from what
is not. A number is never a key: it finds a record only where exactly one has it.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final
from urllib.parse import unquote, urlsplit

from concordance.models import AdrStatus
from concordance.settings import TEXT_SUFFIXES
from concordance.text.record_dates import read_date
from concordance.text.record_forms import is_front_page
from concordance.text.record_links import Reference

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_DATED: Final = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})(?=\D|$)[-_ ]*")
_NUMBERED: Final = re.compile(
    r"(?:(?:adr|madr|decision|dr|rfc)[-_ ]?)?(\d{1,5})(?=[-_. ]|$)", re.IGNORECASE
)
_TITLED: Final = re.compile(
    r"\W*(?:(?:adr|madr|decision|record)\s*[-_#:]?\s*)?0*(\d{1,5})(?:\s*[-.:)—–]+\s*|\s+|$)",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    r"\W*(?:(?:adrs?|madr|decisions?|records?|rfc|dr|number|no|nr|№)\W*){0,3}0*(?P<number>\d{1,5})"
    r"(?:\W+(?P<title>.*))?$",
    re.IGNORECASE | re.DOTALL,
)
_ENDING: Final = re.compile(
    rf"(?:{'|'.join(map(re.escape, (*TEXT_SUFFIXES, '.html', '.htm')))})$", re.IGNORECASE
)


class Fault(StrEnum):
    """What can be wrong with what records say of each other."""

    BROKEN = "broken"
    AMBIGUOUS = "ambiguous"
    CONTESTED = "contested"
    CIRCULAR = "circular"
    UNMARKED = "unmarked"
    NAMELESS = "nameless"


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of a project, by its path, with what it says of others."""

    name: str
    title: str | None
    status: AdrStatus
    supersedes: tuple[Reference, ...] = ()
    superseded_by: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that a record says and that is not followed, with the reason in words."""

    fault: Fault
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Traced:
    """Pairs of an older and a newer record that are certain, and what is in doubt; both sorted."""

    pairs: tuple[tuple[str, str], ...]
    doubts: tuple[Doubt, ...]


def number_of(name: str, title: str | None) -> int | None:
    """The number that a record carries, in its name or else in its title; a date is none."""
    stem = _own_name(name)
    found = _NUMBERED.match(_DATED.sub("", stem, count=1) if _DATED.match(stem) else stem)
    if found is None and title is not None:
        found = _TITLED.match(title)
    return None if found is None else int(found[1])


def date_in_name(name: str) -> date | None:
    """The date that a record's name begins with, or None."""
    found = _DATED.match(_own_name(name))
    return None if found is None else read_date(f"{found[1]}-{found[2]}-{found[3]}")


def trace(entries: Sequence[Entry]) -> Traced:
    """What replaced what, as far as it is certain.

    A record's own word about what replaced it is taken. Where it names nothing, one other record's
    claim is taken; two claims are a doubt, and so is a claim beside the record's own word.
    """
    shelf = _Shelf(entries)
    doubts: list[Doubt] = []
    own: dict[str, set[str]] = defaultdict(set)
    claimed: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        for newer in shelf.meant(entry, entry.superseded_by, doubts):
            own[entry.name].add(newer)
        for older in shelf.meant(entry, entry.supersedes, doubts):
            claimed[older].add(entry.name)
    pairs = {(older, newer) for older, several in own.items() for newer in several}
    for older, claims in claimed.items():
        further = claims - own.get(older, set())
        if not own.get(older) and len(claims) == 1:
            pairs |= {(older, newer) for newer in claims}
        elif further:
            doubts.append(_contested(older, own.get(older, set()), claims))
    circular = _circular(pairs)
    doubts += [
        Doubt(Fault.CIRCULAR, older, f"it and {newer} replace each other, directly or by others")
        for older, newer in sorted(circular)
    ]
    pairs -= circular
    doubts += _unsaid(entries, pairs)
    return Traced(
        tuple(sorted(pairs)), tuple(sorted(doubts, key=lambda d: (d.name, d.fault, d.reason)))
    )


def _contested(older: str, own: set[str], claims: set[str]) -> Doubt:
    said = f", and it says itself: {', '.join(sorted(own))}" if own else ""
    return Doubt(
        Fault.CONTESTED,
        older,
        f"{' and '.join(sorted(claims))} claim to replace it{said}"
        if len(claims) > 1
        else f"{min(claims)} claims to replace it{said}",
    )


def _unsaid(entries: Iterable[Entry], pairs: set[tuple[str, str]]) -> list[Doubt]:
    """Records that were replaced and do not say so, and those that say so and name nothing."""
    newer_of: dict[str, list[str]] = defaultdict(list)
    for older, newer in sorted(pairs):
        newer_of[older].append(newer)
    doubts = []
    for entry in entries:
        if entry.status is AdrStatus.SUPERSEDED and not entry.superseded_by:
            if entry.name not in newer_of:
                reason = "it is superseded, and no record is named that replaced it"
                doubts.append(Doubt(Fault.NAMELESS, entry.name, reason))
        elif entry.status is not AdrStatus.SUPERSEDED and entry.name in newer_of:
            newer = ", ".join(newer_of[entry.name])
            reason = f"{newer} replaces it, and its own status is still {entry.status.value}"
            doubts.append(Doubt(Fault.UNMARKED, entry.name, reason))
    return doubts


def _circular(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The pairs that lie on a circle: the newer one leads back to the older."""
    newer_of: dict[str, list[str]] = defaultdict(list)
    for older, newer in pairs:
        newer_of[older].append(newer)
    # What is left of the graph when ends and beginnings are taken off, again and again.
    left = set(pairs)
    while True:
        olders, newers = {older for older, _ in left}, {newer for _, newer in left}
        kept = {(older, newer) for older, newer in left if older in newers and newer in olders}
        if kept == left:
            break
        left = kept
    return {(older, newer) for older, newer in left if older in _reached(newer, newer_of)}


def _reached(start: str, newer_of: dict[str, list[str]]) -> set[str]:
    seen = {start}
    waiting = [start]
    while waiting:
        for newer in newer_of.get(waiting.pop(), ()):
            if newer not in seen:
                seen.add(newer)
                waiting.append(newer)
    return seen


class _Shelf:
    """The records of a project, by all that they can be called."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._names = {entry.name for entry in entries}
        self._by: dict[str, dict[str, set[str]]] = {
            key: defaultdict(set) for key in ("place", "own", "number", "title")
        }
        self._titles = {entry.name: _plain_title(entry.title) for entry in entries}
        for entry in entries:
            self._by["place"][_place(entry.name)].add(entry.name)
            self._by["own"][_own_name(entry.name).casefold()].add(entry.name)
            self._by["title"][self._titles[entry.name]].add(entry.name)
            number = number_of(entry.name, entry.title)
            if number is not None:
                self._by["number"][str(number)].add(entry.name)

    def meant(
        self, entry: Entry, references: Iterable[Reference], doubts: list[Doubt]
    ) -> list[str]:
        """The records that references of one record mean; what can't be told is put down."""
        found: list[str] = []
        for reference in references:
            several = self._candidates(entry.name, reference)
            if several is None:
                continue  # it lies outside the repository
            said = f"'{reference.target or reference.text}'"
            if len(several) > 1:
                reason = f"{said} could be {', '.join(sorted(several))}"
                doubts.append(Doubt(Fault.AMBIGUOUS, entry.name, reason))
            elif several == {entry.name}:
                doubts.append(Doubt(Fault.CIRCULAR, entry.name, f"{said} is the record itself"))
            elif not several:
                doubts.append(Doubt(Fault.BROKEN, entry.name, f"{said} is no record"))
            else:
                found += several
        return found

    def _candidates(self, name: str, reference: Reference) -> set[str] | None:
        target = unquote(re.split(r"[#?]", reference.target or "", maxsplit=1)[0]).strip()
        if not target:
            return self._by_words(name, reference.text)
        if _URL.match(target):
            path = unquote(urlsplit(target).path).split("/")
            ends = ("/".join(path[start:]) for start in range(len(path)))
            return next(({end} for end in ends if end in self._names), None)
        return self._by_path(name, target)

    def _by_path(self, name: str, target: str) -> set[str]:
        folder = posixpath.dirname(name)
        path = posixpath.normpath(posixpath.join(folder, target.replace("\\", "/")))
        path = path.lstrip("/")
        if path in self._names:
            return {path}
        there = self._by["place"].get(_place(path))
        if there is not None:
            return there
        if target.startswith("/"):  # from the root of a site, which is not that of the repository
            place = _place(path)
            called = self._by["own"].get(place.rpartition("/")[2], set())
            return {one for one in called if f"/{_place(one)}".endswith(f"/{place}")}
        # A name without folder and ending, as wikis and generators of pages have it.
        bare = "/" not in target and not _ENDING.search(target)
        return self._by["own"].get(target.casefold(), set()) if bare else set()

    def _by_words(self, name: str, text: str) -> set[str]:
        own = self._by["own"].get(text.strip().casefold())
        if own is not None:
            return own
        titled = self._by["title"].get(_plain_title(text), set()) if _plain_title(text) else set()
        numbered = _NAMED.match(text)
        if numbered is None:
            return titled
        several = self._by["number"].get(numbered["number"].lstrip("0") or "0", set())
        if len(several) > 1:
            beside = {one for one in several if _folder(one) == _folder(name)}
            several = beside or several
        if len(several) > 1 and numbered["title"]:
            wanted = _plain_title(numbered["title"])
            several = {one for one in several if self._titles[one] == wanted} or several
        return several or titled


def _own_name(name: str) -> str:
    """A record's name without folder and ending; that of its folder, where it has one to itself."""
    parts = name.split("/")
    if is_front_page(name) and len(parts) > 1:
        return parts[-2]
    return _ENDING.sub("", parts[-1])


def _folder(name: str) -> str:
    above = posixpath.dirname(name)
    return posixpath.dirname(above) if is_front_page(name) else above


def _place(path: str) -> str:
    """Where a record is, whatever its ending; one that has a folder to itself is that folder."""
    bare = _ENDING.sub("", path.rstrip("/"))
    return (posixpath.dirname(bare) if is_front_page(f"{bare}.md") else bare).casefold()


def _plain_title(title: str | None) -> str:
    words = _TITLED.sub("", title or "", count=1) if _TITLED.match(title or "") else title or ""
    return " ".join(re.findall(r"[^\W_]+", words.casefold()))
