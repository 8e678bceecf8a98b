"""A decision record's metadata, from whatever form its authors gave it.

What belongs here: what a document says about itself as a decision, whether or not it stands in a
folder of decisions. Whether it is a record is decided in `record_forms`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Final

from concordance.models import AdrStatus
from concordance.text.markdown import MarkdownDocument
from concordance.text.record_dates import read_date
from concordance.text.record_fields import Fields, find_fields
from concordance.text.record_links import (
    MOST_REFERENCES,
    Reference,
    references,
    superseded_by,
    supersedes,
)
from concordance.text.record_markup import plain
from concordance.text.record_status import (
    date_of_status,
    lists_alternatives,
    read_names,
    read_status,
)

RECORDS_VERSION: Final = 5
"""Raised by hand when the same text would give another record, so that rows are made anew."""

_MOST_STATUS: Final = 200
_OF_ITSELF: Final = re.compile(r"\b(?:this|the) (?:decision|adr|record)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Record:
    """What a document says of itself as a decision; `status_text` is the status as written."""

    status: AdrStatus = AdrStatus.UNKNOWN
    status_text: str | None = None
    date: date | None = None
    deciders: tuple[str, ...] = ()
    supersedes: tuple[Reference, ...] = ()
    superseded_by: tuple[Reference, ...] = ()

    @property
    def silent(self) -> bool:
        """Whether the document says nothing of the kind."""
        return self == Record()


def read_record(text: str, document: MarkdownDocument) -> Record:
    """What a parsed document says of itself; nothing is raised for any text."""
    found = find_fields(text, document)
    stated = [value for value in found.of("status") if not lists_alternatives(value)]
    replaced = _merged(
        *(superseded_by(value) for value in stated),
        *(references(value) for value in found.of("superseded_by")),
        *(superseded_by(f"superseded: {value}") for value in found.of("superseded")),
        *(_named(superseded_by(sentence), sentence) for sentence in found.said),
    )
    status, status_text = _status(stated)
    if replaced:
        status = AdrStatus.SUPERSEDED
        status_text = status_text or next(map(_shown, found.said), None)
    return Record(
        status=status,
        status_text=status_text,
        date=_date(found, stated),
        deciders=next((n for n in map(read_names, found.of("deciders")) if n), ()),
        supersedes=_merged(
            *(supersedes(value) for value in stated),
            *(references(value) for value in found.of("supersedes")),
            *(_named(supersedes(sentence), sentence) for sentence in found.said),
        ),
        superseded_by=replaced,
    )


def _status(stated: Iterable[str]) -> tuple[AdrStatus, str | None]:
    """The first value whose word is known, else the first value as it stands."""
    first: str | None = None
    for value in stated:
        shown = _shown(value)
        first = first or shown or None
        status = read_status(value)
        if status is not AdrStatus.UNKNOWN:
            return status, shown
    return AdrStatus.UNKNOWN, first


def _named(found: tuple[Reference, ...], sentence: str) -> tuple[Reference, ...]:
    """The records that a sentence names; words alone are a title where it speaks of this record."""
    if _OF_ITSELF.search(sentence):
        return found
    return tuple(one for one in found if one.target or re.search(r"\d", one.text))


def _shown(value: str) -> str:
    paragraphs = re.split(r"\n\s*\n", plain(value), maxsplit=1)
    named = re.search(r"[^\W\d_]", paragraphs[0])  # a day above the word is not all of it
    flat = " ".join((paragraphs[0] if named else " ".join(paragraphs)).split()).strip(" >")
    return flat if len(flat) <= _MOST_STATUS else flat[: _MOST_STATUS - 1] + "…"


def _date(found: Fields, stated: Iterable[str]) -> date | None:
    days = (
        *map(read_date, found.of("date")),
        *map(date_of_status, stated),
        *map(read_date, found.of("updated")),
    )
    return next((day for day in days if day is not None), None)


def _merged(*lists: tuple[Reference, ...]) -> tuple[Reference, ...]:
    """References in order, each once: the same target is the same record however it is called."""
    kept: dict[str, Reference] = {}
    for reference in (one for several in lists for one in several):
        kept.setdefault(reference.target or reference.text.casefold(), reference)
    return tuple(kept.values())[:MOST_REFERENCES]
