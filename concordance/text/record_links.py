"""References from one decision record to others: by link, by number, by file name or by title.

What belongs here: what a record says it supersedes, or is superseded by, as it was written. Which
record is meant can be told only beside all the others: `concordance.indexing.succession`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from concordance.text.record_status import COMMENT, plain

MOST_REFERENCES: Final = 50
_MOST_TITLE: Final = 200
_MOST_CHARACTERS: Final = 20_000

_BY: Final = (
    r"super(?:s|c)ee?ded|replaced|obsoleted|supplanted|ersetzt|abgelöst|remplacée?|reemplazad[oa]"
    r"|sustituid[oa]|substituíd[oa]|sostituit[oa]|vervangen"
)
_WITH: Final = r"by|with|durch|von|par|por|da|door"
_OF: Final = (
    r"super(?:s|c)ee?des?|replaces?|obsoletes|supplants|ersetzt|löst ab|remplace|reemplaza"
    r"|sustituye|substitui|sostituisce|vervangt"
)
_PARTLY: Final = r"partially|partly|in part|teilweise|partiellement"
_SUPERSEDED_BY: Final = re.compile(
    rf"(?<!\w)(?P<before>(?:{_PARTLY})\s+)?(?:{_BY})(?P<after>\s+(?:{_PARTLY}))?"
    rf"(?:\s+(?:on|in|since|am)\s+[\w./-]+)?\s+(?:{_WITH})\b(?::(?!\w))?\s*",
    re.IGNORECASE,
)
_SUPERSEDES: Final = re.compile(
    rf"(?<!\w)(?P<before>(?:{_PARTLY})\s+)?(?:{_OF})\b(?!\s+(?:{_WITH})\b)(?::(?!\w))?\s*",
    re.IGNORECASE,
)
_MARKDOWN: Final = re.compile(
    r"\[(?P<label>(?:[^\[\]\\]|\\.)*)\]"
    r"\((?P<target>(?:[^()\s]|\([^()]*\))*)(?:\s+[\"'(][^()]*)?\)"
)
_RST: Final = re.compile(r"`(?P<label>[^`<>]+?)\s*<(?P<target>[^<>`]+)>`_{0,2}")
_ROLE: Final = re.compile(
    r":(?:[a-z]+:)?(?:doc|ref|download):"
    r"`(?:(?P<label>[^`<>]+?)\s*<(?P<target>[^<>`]+)>|(?P<bare>[^`<>]+))`"
)
_ASCIIDOC: Final = re.compile(
    r"(?:link|xref):(?P<target>[^\s\[\]]+)\[(?P<label>[^\]]*)\]"
    r"|<<(?P<inner>[^<>,]+)(?:,(?P<name>[^<>]*))?>>"
)
_WIKI: Final = re.compile(r"\[\[(?P<target>[^\[\]|]+)(?:\|(?P<label>[^\[\]]*))?\]\]")
_FILE: Final = re.compile(
    r"(?P<target>(?:[\w.-]+/)*[\w.-]+\.(?:mdx?|markdown|rst|adoc|asciidoc))\b", re.IGNORECASE
)
_NUMBER: Final = re.compile(
    r"(?:(?:adrs?|madrs?|decisions?|records?|rfc|dr)\s*[-_#:]?\s*|#|№|nr\.?\s*|no\.?\s*)?"
    r"(?P<number>\d{1,5})(?![\d/:]|-\d|\.\d)(?P<slug>-\w[\w-]*)?",
    re.IGNORECASE,
)
_SIGNS: Final = r"[\s*+•_`~({\"'“‘:>-]*"
_LEAD: Final = re.compile(
    rf"{_SIGNS}(?:(?:the\s+)?(?:adrs?|records?|decisions?)[\s:]+(?=\[|`|:))?", re.IGNORECASE
)
_NOTHING: Final = re.compile(
    r"\W*(?:none|nothing|n/?a|tbd|no|nil|null|keine?|this|it)?\W*", re.IGNORECASE
)
_BETWEEN: Final = re.compile(
    r"[\s*_`~)}\"'”’]*(?:,\s*and\b|[,&+;]|\b(?:and|und|et|y)\b|\n\s*(?:[-*+•]|\d+[.)])\s)",
    re.IGNORECASE,
)
_TITLE_END: Final = re.compile(r"[\n;]|\.(?:\s|$)|\s\(|\s[—–]\s|,\s*\d{4}-")
_DATE: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?![\w-])|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True, slots=True)
class Reference:
    """Another record as it was named: the words, and the target where it was a link."""

    text: str
    target: str | None = None


def superseded_by(text: str) -> tuple[Reference, ...]:
    """What a value says stands in the record's place; what replaces it in part is not meant."""
    return _after(text, _SUPERSEDED_BY)


def supersedes(text: str) -> tuple[Reference, ...]:
    """What a value says the record replaces, as a whole."""
    return _after(text, _SUPERSEDES)


def references(text: str) -> tuple[Reference, ...]:
    """All records that a value lists, such as that of the field `Supersedes`."""
    return tuple(_listed(COMMENT.sub("", text[:_MOST_CHARACTERS]).strip(), 0))[:MOST_REFERENCES]


def _after(text: str, verb: re.Pattern[str]) -> tuple[Reference, ...]:
    text = COMMENT.sub("", text[:_MOST_CHARACTERS])
    found: dict[Reference, None] = {}
    for match in verb.finditer(text):
        groups = match.groupdict()
        if groups.get("before") or groups.get("after"):
            continue
        for reference in _listed(text, match.end()):
            found.setdefault(reference)
    return tuple(found)[:MOST_REFERENCES]


def _listed(text: str, start: int) -> list[Reference]:
    """The references that follow one another from `start`; a title is taken alone."""
    found: list[Reference] = []
    position = before = start
    while len(found) < MOST_REFERENCES:
        reference, end = _one(text, position)
        lead = _LEAD.match(text, position)
        if reference is None and lead is not None:
            position = lead.end()
            reference, end = _one(text, position)
        if reference is None:
            if not found:
                title = _title(text[before:])
                return [] if title is None else [Reference(title)]
            break
        found.append(reference)
        between = _BETWEEN.match(text, end)
        if between is None:
            break
        position = between.end()
    return found


def _one(text: str, position: int) -> tuple[Reference | None, int]:
    for pattern in (_WIKI, _MARKDOWN, _RST, _ROLE, _ASCIIDOC):
        match = pattern.match(text, position)
        if match is not None:
            return _linked(match), match.end()
    match = _FILE.match(text, position)
    if match is not None:
        return Reference(match["target"], match["target"]), match.end()
    match = _NUMBER.match(text, position)
    if match is not None and not _DATE.match(text, position):
        named = _numbered_title(text, match)
        return (Reference(match[0].strip()), match.end()) if named is None else named
    return None, position


def _linked(match: re.Match[str]) -> Reference:
    parts = match.groupdict()
    target = parts.get("target") or parts.get("bare") or parts.get("inner") or ""
    label = parts.get("label") or parts.get("name") or target
    return Reference(_short(label) or target[:_MOST_TITLE], target.strip("<>")[:1_000] or None)


def _numbered_title(text: str, match: re.Match[str]) -> tuple[Reference, int] | None:
    """`9. Use a queue` as adr-tools names a record, up to the end of the title."""
    dot = re.compile(r"\.\s+(?=\w)").match(text, match.end())
    if dot is None or match["slug"]:
        return None
    rest = text[dot.end() :]
    ended = _TITLE_END.search(rest)
    title = rest if ended is None else rest[: ended.start()]
    return Reference(_short(f"{match[0].strip()}. {title}")), dot.end() + len(title)


def _title(rest: str) -> str | None:
    """A title in words, which ends with its line or sentence; prose is too long to be one."""
    rest = rest.lstrip(" \t\r\n-*+•>")
    quoted = re.match(r"[\"“'‘_`]+([^\"”'’`\n]{2,200})[\"”'’_`]", rest)
    value = quoted[1] if quoted is not None else _TITLE_END.split(rest, maxsplit=1)[0]
    title = _short(value)
    named = len(title) < _MOST_TITLE and not _NOTHING.fullmatch(title)
    return title if named else None


def _short(text: str) -> str:
    return " ".join(plain(text).split())[:_MOST_TITLE].strip(" .,:-")
