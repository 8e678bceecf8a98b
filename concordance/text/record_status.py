"""What a decision record's words say of its state: the status, a date, the names of deciders.

What belongs here: reading one value, as its author wrote it. Where in a document the values stand
is `record_fields`' matter. A word that is not known here makes the status unknown, never a guess.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from concordance.models import AdrStatus
from concordance.text.record_words import MONTHS, STATUSES

_STATUS: Final = {word: status for status, words in STATUSES.items() for word in words}
_RANK: Final = {status: rank for rank, status in enumerate(STATUSES)}
_TWO_WORDS: Final = re.compile(
    r"(?:not yet|to be) (?:accepted|approved|decided)|in (?:progress|review|discussion)"
    r"|under (?:review|discussion)|work in progress|no longer (?:valid|in (?:force|use)|accepted"
    r"|applicable|relevant)|not (?:accepted|approved)"
)
_AS_ONE: Final = {
    "not accepted": AdrStatus.REJECTED,
    "not approved": AdrStatus.REJECTED,
}
_PARTLY: Final = re.compile(r"(?:partially|partly|in part|teilweise|partiellement)\b")
_LEADING: Final = re.compile(
    r"(?:(?:this|the) (?:decision|adr|record|document)|status|state|it|is|was|has been|now"
    r"|currently|fully|formally|provisionally|conditionally|tentatively|since)\b[:\s]*"
)
_STATEMENT_END: Final = re.compile(
    r"[\n;,|]|\.(?=\s|$)|→|=>|->|—|–|\s-\s|\s/\s|(?<=\w)/(?=\w)|。|，"
)
_ALTERNATIVES: Final = re.compile(r"[|/…]")
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_STRUCK: Final = re.compile(r"~~.+?~~|^[ \t]*[-*+][ \t]*\[ \].*$|\[[xX]\](?!\()", re.MULTILINE)
_IMAGE: Final = re.compile(r"!\[([^\[\]]*)\]\([^()]*\)")
_LINK: Final = re.compile(
    r"\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])|`([^`<>]+?)\s*<[^<>`]*>`_{0,2}"
)
_ROLE: Final = re.compile(r":[a-z:]+:`([^`]*)`")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>")
_MARKS: Final = re.compile(r"[*`{}\"“”]|(?<!\w)[_'‘’]+|[_'‘’]+(?!\w)")
_MONTHS: Final = {name: number for number, names in enumerate(MONTHS, 1) for name in names}
_NUMBERS_FIRST: Final = re.compile(
    r"(?<!\d)(?P<year>\d{4})(?:[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d|-\d)"
    r"|年(?P<m>\d{1,2})月(?P<d>\d{1,2})日)"
)
_GERMAN: Final = re.compile(r"(?<!\d)(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?!\d)")
_SLASHES: Final = re.compile(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)")
_DAY_FIRST: Final = re.compile(
    r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|\.|er)?\s+(?:de\s+|of\s+)?([^\W\d_]{3,10})\.?,?\s+"
    r"(?:de\s+)?(\d{4})(?!\d)"
)
_MONTH_FIRST: Final = re.compile(
    r"\b([^\W\d_]{3,10})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(?!\d)"
)
_BETWEEN_NAMES: Final = re.compile(r"\s*(?:[,;\n]|\s(?:and|und|et|y|&)\s)\s*")
_BULLET: Final = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
MOST_DECIDERS: Final = 50
_MOST_CHARACTERS: Final = 20_000


def plain(text: str) -> str:
    """A value without its markup: links are their labels; comments and struck words are gone."""
    text = _STRUCK.sub("", COMMENT.sub("", text[:_MOST_CHARACTERS]))
    text = _LINK.sub(lambda m: m[1] or m[2] or "", _IMAGE.sub(r"\1", text))
    return _MARKS.sub("", _TAG.sub("", _ROLE.sub(r"\1", text))).strip()


# A field that was left open, as templates have it: `Superseded by: (none)`.
_BY_NOTHING: Final = re.compile(
    r"^[\W_]*(?:superseded|replaced)\W+by\W*(?:none|nothing|n/?a|tbd|-|\u2014)?\W*$", re.MULTILINE
)


def read_status(text: str) -> AdrStatus:
    """The status that a value states; of several steps the furthest, unknown where none is known.

    Each statement counts by its first word, so `we rejected the other option` says nothing.
    """
    known = _known(text)
    if lists_alternatives(text):
        return AdrStatus.UNKNOWN
    return min(known, key=_RANK.__getitem__, default=AdrStatus.UNKNOWN)


def lists_alternatives(text: str) -> bool:
    """Whether a value is a template's list of what could stand there."""
    first_line = plain(text).split("\n", 1)[0]
    return bool(_ALTERNATIVES.search(first_line)) and len(set(_known(first_line))) > 1


def _known(text: str) -> list[AdrStatus]:
    value = _BY_NOTHING.sub("", plain(text).casefold())
    stated = [_stated(part) for part in _STATEMENT_END.split(value)]
    return [status for status in stated if status is not None]


def _stated(statement: str) -> AdrStatus | None:
    statement = re.sub(r"^[\W_]+", "", statement)
    while leading := _LEADING.match(statement):
        statement = statement[leading.end() :]
    partly = _PARTLY.match(statement)
    if partly is not None:
        status = _stated(statement[partly.end() :])
        # What is replaced in part holds in the rest.
        return AdrStatus.ACCEPTED if status is AdrStatus.SUPERSEDED else status
    several = _TWO_WORDS.match(statement)
    if several is not None:
        if several[0].startswith("no longer"):
            return AdrStatus.DEPRECATED
        return _AS_ONE.get(several[0], AdrStatus.PROPOSED)
    word = _WORD.match(statement)
    status = _STATUS.get(word[0]) if word is not None else None
    if status is AdrStatus.SUPERSEDED and re.match(
        r"\w+ (?:partially|partly|in part)\b", statement
    ):
        return AdrStatus.ACCEPTED
    return status


def read_date(text: str) -> date | None:
    """The first whole date in a value; None for none, and for one that could be two."""
    value = plain(text)[:1_000]
    found: list[tuple[int, date]] = []
    for match in _NUMBERS_FIRST.finditer(value):
        _keep(found, match, match["year"], match["month"] or match["m"], match["day"] or match["d"])
    for match in _GERMAN.finditer(value):
        _keep(found, match, match[3], match[2], match[1])
    for match in _SLASHES.finditer(value):
        one, two = int(match[1]), int(match[2])
        if one > 12 or one == two:  # noqa: PLR2004 - months of a year
            _keep(found, match, match[3], match[2], match[1])
        elif two > 12:  # noqa: PLR2004 - likewise
            _keep(found, match, match[3], match[1], match[2])
    for match in _DAY_FIRST.finditer(value):
        _keep(found, match, match[3], _month(match[2]), match[1])
    for match in _MONTH_FIRST.finditer(value):
        _keep(found, match, match[3], _month(match[1]), match[2])
    return min(found, default=(0, None))[1]


def _keep(
    found: list[tuple[int, date]],
    match: re.Match[str],
    year: str,
    month: str | int | None,
    day: str,
) -> None:
    if month is None:
        return
    try:
        found.append((match.start(), date(int(year), int(month), int(day))))
    except ValueError:
        return  # the 31st of February is no date


def _month(name: str) -> int | None:
    return _MONTHS.get(name.casefold())


def read_names(text: str) -> tuple[str, ...]:
    """The people of a value, as written: links without their address, each once."""
    lines = [_BULLET.sub("", line) for line in COMMENT.sub("", text).splitlines()]
    value = plain("\n".join(lines)).strip("[]() \t\n")
    names: dict[str, None] = {}
    for name in _BETWEEN_NAMES.split(value):
        cleaned = " ".join(name.strip(" .\t-").split())
        if cleaned and re.search(r"[^\W_]", cleaned) and not cleaned.startswith("list everyone"):
            names.setdefault(cleaned[:200])
    return tuple(names)[:MOST_DECIDERS]
