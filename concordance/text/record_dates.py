"""Dates in a decision record's words, in the forms that people write them.

What belongs here: finding them, and telling which day they are. Whose date it is, is decided where
it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Final, NamedTuple

from concordance.text.record_markup import TEXT_ENDING, plain
from concordance.text.record_words import MONTHS

_MONTHS: Final = {name: number for number, names in enumerate(MONTHS, 1) for name in names}
# A number in a path, a version or a name with dashes is none. Some scripts put no spaces around.
_LETTER: Final = r"[^\W\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"
_BEFORE: Final = rf"(?<!{_LETTER})(?<!/)(?<!{_LETTER}[-.])"
_AFTER: Final = rf"(?![-_/]?{_LETTER}|\.{_LETTER})"
_TIME: Final = (
    r"(?:(?:T|\s+)\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?)?"
)
_NUMBERS_FIRST: Final = re.compile(
    rf"{_BEFORE}(?P<year>\d{{4}})(?:[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}})"
    rf"|\.\s(?P<m2>\d{{1,2}})\.\s(?P<d2>\d{{1,2}})\.?){_TIME}{_AFTER}",
    re.IGNORECASE,
)
_CHARACTERS: Final = re.compile(
    r"(?<!\d)(?P<year>\d{4})\s?[年년]\s?(?P<month>\d{1,2})\s?[月월]\s?(?P<day>\d{1,2})\s?[日일]"
)
_GERMAN: Final = re.compile(rf"{_BEFORE}(\d{{1,2}})\.\s?(\d{{1,2}})\.\s?(\d{{4}}){_AFTER}")
_SLASHES: Final = re.compile(rf"{_BEFORE}(\d{{1,2}})/(\d{{1,2}})/(\d{{4}}){_AFTER}")
_DAY_FIRST: Final = re.compile(
    r"(?<![\w/])(\d{1,2})(?:st|nd|rd|th|\.|er|º)?(?:\s+|-)(?:de\s+|of\s+)?([^\W\d_]{3,10})\.?,?"
    rf"(?:\s+|-)(?:del?\s+)?(\d{{4}}){_AFTER}",
    re.IGNORECASE,
)
_MONTH_FIRST: Final = re.compile(
    rf"\b([^\W\d_]{{3,10}})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}}){_AFTER}", re.IGNORECASE
)
_IN_PART: Final = re.compile(
    rf"{_BEFORE}(?:(?:19|20)\d{{2}}(?:[-/](?:0?[1-9]|1[0-2]))?|(?:0?[1-9]|1[0-2])/(?:19|20)\d{{2}}"
    rf"|q[1-4][ /-]?(?:19|20)\d{{2}}|(?:19|20)\d{{2}}[ /-]?q[1-4]"
    rf"|(?P<name>[^\W\d_]{{3,10}})\.?,?\s+(?:19|20)\d{{2}}){_AFTER}"
    r"|(?<!\d)\d{4}\s?[年년](?:\s?\d{1,2}\s?[月월])?(?!\s?\d)",
    re.IGNORECASE,
)
_IN_NAME: Final = r"[^\s()\[\]<>,;|：，。]"
_ADDRESS: Final = re.compile(
    rf"(?<!{_IN_NAME})(?:[a-z][a-z0-9+.-]{{1,20}}://\S+|{_IN_NAME}+{TEXT_ENDING}\b)", re.IGNORECASE
)
_MOST_CHARACTERS: Final = 4_000
_FIRST_CHARACTERS: Final = 1_000


class Written(NamedTuple):
    """A date as it stands in a text; `day` is None where it is not one certain day."""

    start: int
    end: int
    day: date | None


def read_date(text: str) -> date | None:
    """The first whole date in a value; None for none, and for one that could be two."""
    value = plain(text)[:_FIRST_CHARACTERS]
    return next((one.day for one in find_dates(value) if one.day is not None), None)


def find_dates(text: str) -> list[Written]:
    """The dates in plain words, in order, none over another; those in file names are none."""
    hidden = _ADDRESS.sub(lambda match: "x" * len(match[0]), text[:_MOST_CHARACTERS])
    found: list[Written] = []
    end = 0
    for one in sorted(_all(hidden), key=lambda one: (one.start, -one.end)):
        if one.start >= end:
            found.append(one)
            end = one.end
    return found


def _all(text: str) -> Iterator[Written]:
    for match in _NUMBERS_FIRST.finditer(text):
        month, day = match["month"] or match["m2"], match["day"] or match["d2"]
        yield _written(match, match["year"], month, day)
    for match in _CHARACTERS.finditer(text):
        yield _written(match, match["year"], match["month"], match["day"])
    for match in _GERMAN.finditer(text):
        yield _written(match, match[3], match[2], match[1])
    yield from map(_with_slashes, _SLASHES.finditer(text))
    for pattern, named, day_at in ((_DAY_FIRST, 2, 1), (_MONTH_FIRST, 1, 2)):
        for match in pattern.finditer(text):
            number = _month(match[named])
            if number is not None:
                yield _written(match, match[3], number, match[day_at])
    for match in _IN_PART.finditer(text):
        if match["name"] is None or _month(match["name"]) is not None:
            yield Written(match.start(), match.end(), None)


def _with_slashes(match: re.Match[str]) -> Written:
    """`15/01/2026` is one day whichever part comes first, `05/01/2026` is one of two."""
    one, two = int(match[1]), int(match[2])
    if one > 12 or one == two:  # noqa: PLR2004 - months of a year
        return _written(match, match[3], match[2], match[1])
    if two > 12:  # noqa: PLR2004 - likewise
        return _written(match, match[3], match[1], match[2])
    return Written(match.start(), match.end(), None)


def _written(match: re.Match[str], year: str, month: str | int, day: str) -> Written:
    try:
        known = date(int(year), int(month), int(day))
    except ValueError:
        known = None  # the 31st of February is no date
    return Written(match.start(), match.end(), known)


def _month(name: str) -> int | None:
    return _MONTHS.get(name.casefold())
