"""References from one decision record to others: by link, by number, by file name or by title.

What belongs here: what a record says it supersedes, or is superseded by, as it was written. Which
record is meant can be told only beside all the others: `concordance.indexing.succession`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from concordance.text.record_absent import names_nothing
from concordance.text.record_dates import find_dates
from concordance.text.record_markup import COMMENT, TEXT_ENDING, plain
from concordance.text.record_words import ABOUT_ITSELF

MOST_REFERENCES: Final = 50
_MOST_TITLE: Final = 200
_MOST_CHARACTERS: Final = 20_000
_WIDE: Final = re.compile(r"\s{20,}")

_BY: Final = (
    r"super(?:s|c)ee?ded|replaced|obsoleted|supplanted|ersetzt|abgelöst|remplacée?|reemplazad[oa]"
    r"|sustituid[oa]|substituíd[oa]|sostituit[oa]|vervangen|已?被取代|已取代"
)
# Of these only what is named as records are is meant: `deprecated by the vendor`.
_OUT_OF_USE: Final = r"deprecated|obsolete|retired|outdated|archived|veraltet|obsol[eè]t[eoa]"
_OVERRULED: Final = r"overridden|overruled|overriden|succeeded|invalidated"
_WITH: Final = r"by|with|durch|von|par|por|da|door"
_FAVOUR: Final = r"in favou?r of|zugunsten von|en faveur de|a favor de"
_SEE: Final = r"see|cf\.?|refer to|siehe|vgl\.?|voir|véase|ver|zie|见|参见"
_OF: Final = (
    r"super(?:s|c)ee?des?|replaces|obsoletes|supplants|ersetzt|löst ab|remplace|reemplaza"
    r"|sustituye|substitui|sostituisce|vervangt"
)
_PARTLY: Final = r"partially|partly|in part|teilweise|partiellement"
_MARKS: Final = r"[*_`~]{0,3}"
# Possessive: what is read as a date is not read as a number again.
_WHEN: Final = (
    r"(?:\s*[(,]?\s*(?:(?:on|in|since|am)\s+)?(?:\d[\w./-]{3,20}+|\d{1,2}\.?\s[^\W\d_]{3,9}\s\d{4}"
    r"|[^\W\d_]{3,9}\.?\s(?:\d{1,2},?\s)?\d{4})\)?)?+"
)
_BEFORE: Final = rf"(?<![^\W_])(?P<before>(?:{_PARTLY})\s+)?"
_AFTER: Final = rf"{_MARKS}(?P<after>\s+(?:{_PARTLY})\b)?{_WHEN}"
_DONE: Final = rf"{_BEFORE}(?:{_BY}){_AFTER}"
_BY_WHAT: Final = rf"(?:\s*[(,:–—-]\s*|\s+){_MARKS}(?:{_WITH}|{_FAVOUR})\b{_MARKS}(?::(?!\w))?\s*"
_SUPERSEDED_BY: Final = re.compile(rf"{_DONE}{_BY_WHAT}", re.IGNORECASE)
_RETIRED_BY: Final = re.compile(
    rf"{_BEFORE}(?:{_OUT_OF_USE}|{_OVERRULED}){_AFTER}(?:{_BY_WHAT}"
    rf"|\s*[,.;:(–—-]?[\s(]*(?:please\s+)?(?:{_SEE})(?:\s+also)?{_MARKS}[\s:：]+)",
    re.IGNORECASE,
)
# After these stands a record, or something else: it has to be named as records are.
_SUPERSEDED_SEE: Final = re.compile(
    rf"{_DONE}(?:\s*(?:[,.;:：(—–-]|-{{1,2}}>|=>|→)|\s+(?=(?:{_SEE})[\s:]))[\s(]*{_MARKS}"
    rf"(?:(?:please\s+)?(?:{_SEE})(?:\s+also)?{_MARKS}[\s:：]+)?",
    re.IGNORECASE,
)
# Where the verb comes last, what stands between has to be nothing but the records.
_VERB_LAST: Final = re.compile(r"(?<!\w)durch\s+|(?:已?被|(?<!\w)由)\s*", re.IGNORECASE)
_LAST_VERB: Final = re.compile(r"[\s*_`)]*(?:ersetzt|abgelöst|取代|替代|代替|替换)")
_SUPERSEDES: Final = re.compile(
    rf"(?<![^\W_])(?P<before>(?:{_PARTLY})\s+)?(?:{_OF})\b(?!{_MARKS}\s+(?:{_WITH})\b){_MARKS}"
    r"(?::(?!\w))?\s*",
    re.IGNORECASE,
)
_SUPERSEDING: Final = re.compile(
    rf"(?<![^\W_])(?P<before>(?:{_PARTLY})\s+)?(?:super(?:s|c)ee?ding|replacing|obsoleting){_MARKS}\s+",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"[\n.;,|()（）。；，:：—–>→]|\s-\s|\b(?:and|but|und|aber|et|mais|y|pero|e|mas)\b",
    re.IGNORECASE,
)
_CLAUSE_LENGTH: Final = 200
_NAMED: Final = re.compile(
    r"(?:adrs?|madrs?|decisions?|records?|rfc|dr)\s*[-_#:]?\s*\d|0\d+$|\d+-[^\W\d]", re.IGNORECASE
)
_FILE_OF_RECORD: Final = re.compile(
    rf"(?:.*/)?\d{{1,8}}[-_ %]\w[^/]*?(?:{TEXT_ENDING})?(?:#.*)?|[^/:#]+{TEXT_ENDING}(?:#.*)?",
    re.IGNORECASE,
)
# Numbers of a standard.
_STANDARD: Final = re.compile(r"rfc\W*\d{4}", re.IGNORECASE)
_MARKDOWN: Final = re.compile(
    r"\[(?P<label>(?:[^\[\]\\]|\\.)*)\]"
    r"\((?P<target><[^<>\n]*>|(?:[^()\s]|\([^()]*\))*)(?:\s+[\"'(][^()]*)?\)"
)
_RST: Final = re.compile(r"`(?P<label>[^`<>]+?)\s*<(?P<target>[^<>`]+)>`_{0,2}")
_ROLE: Final = re.compile(
    r":(?:[a-z]+:)?(?P<role>doc|ref|download):"
    r"`(?:(?P<label>[^`<>]+?)\s*<(?P<target>[^<>`]+)>|(?P<bare>[^`<>]+))`"
)
_ASCIIDOC: Final = re.compile(
    r"(?:link|xref):(?P<target>[^\s\[\]]+)\[(?P<label>[^\]]*)\]"
    r"|<<(?P<inner>[^<>,]+)(?:,(?P<name>[^<>]*))?>>"
)
_WIKI: Final = re.compile(r"\[\[(?P<target>[^\[\]|]+)(?:\|(?P<label>[^\[\]]*))?\]\]")
_FILE: Final = re.compile(
    r"(?P<target>/?(?:[\w.%-]+/)*[\w.%-]+\.(?:mdx?|markdown|rst|adoc|asciidoc))\b", re.IGNORECASE
)
_URL: Final = re.compile(
    r"(?P<target>https?://[^\s<>()\[\]|\"]{0,1000}[^\s<>()\[\]|\"'.,;:!?*_`~])", re.IGNORECASE
)
_NUMBER: Final = re.compile(
    r"(?:(?:adrs?|madrs?|decisions?|records?|rfc|dr)\s*[-_#:]?\s*)?"
    r"(?:#|№|(?<![^\W_])(?:nr|no|number)\b\.?\s*)?"
    r"(?P<number>\d{1,5})(?![\d/:]|-\d|\.\d)(?P<slug>-\w[\w-]*)?",
    re.IGNORECASE,
)
_SIGNS: Final = r"[\s*+•_`~({\"'“‘:>-]*"
_LEAD: Final = re.compile(
    rf"{_SIGNS}(?:(?:the\s+)?(?:adrs?|records?|decisions?)[\s:]+(?=\[|`|:))?", re.IGNORECASE
)
_INSIDE: Final = re.compile(
    r"[^\n.;,:!?()\[\]<>`]{1,80}(?P<behind> \(|)(?=\[|<<|:\w|`|xref:|link:)"
)
_BETWEEN: Final = re.compile(
    r"[\s*_`~)}\"'”’]*(?:,\s*and\b|[,&+;、，；和与]|\b(?:and|und|et|y)\b|\n\s*(?:[-*+•]|\d+[.)])\s)",
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
    text = _readable(text)
    found = _after(text, _SUPERSEDED_BY)
    for reference in (*_after(text, _SUPERSEDED_SEE), *_verb_last(text)):
        if reference.target or _NAMED.match(reference.text):
            found.setdefault(reference)
    for reference in _after(text, _RETIRED_BY):
        if _of_a_record(reference):
            found.setdefault(reference)
    return tuple(found)[:MOST_REFERENCES]


def supersedes(text: str) -> tuple[Reference, ...]:
    """What a value says the record replaces, as a whole."""
    text = _readable(text)
    found = _after(text, _SUPERSEDES)
    for reference in _after(text, _SUPERSEDING):
        if _of_a_record(reference):
            found.setdefault(reference)
    return tuple(found)[:MOST_REFERENCES]


def _of_a_record(reference: Reference) -> bool:
    """Whether something is named as records are: by number, or as a file that could be one."""
    if _STANDARD.match(reference.text):
        return False
    named = _NAMED.match(reference.text) is not None
    return named or _FILE_OF_RECORD.fullmatch(reference.target or "") is not None


def references(text: str) -> tuple[Reference, ...]:
    """All records that a value lists, such as that of the field `Supersedes`."""
    return tuple(_listed(_readable(text).strip(), 0))[:MOST_REFERENCES]


def _readable(text: str) -> str:
    """What is looked at of a value: no comment, and no run of white space that is walked again."""
    return _WIDE.sub(_narrowed, COMMENT.sub("", text[:_MOST_CHARACTERS]))


def _narrowed(run: re.Match[str]) -> str:
    return "\n\n" if "\n" in run[0] else " "


def _after(text: str, verb: re.Pattern[str]) -> dict[Reference, None]:
    found: dict[Reference, None] = {}
    for match in islice(verb.finditer(text), MOST_REFERENCES):
        groups = match.groupdict()
        if groups.get("before") or groups.get("after") or not _says_so(text, match.start()):
            continue
        for reference in _listed(text, match.end()):
            found.setdefault(reference)
    return found


def _says_so(text: str, verb: int) -> bool:
    """Whether the clause up to a verb is about the record: not denied, to come, or of another."""
    clause = _CLAUSE.split(text[max(0, verb - _CLAUSE_LENGTH) : verb])[-1]
    words = re.findall(r"[^\W\d_]+", clause.casefold())
    return all(word in ABOUT_ITSELF for word in words)


def _verb_last(text: str) -> Iterator[Reference]:
    for match in islice(_VERB_LAST.finditer(text), MOST_REFERENCES):
        if _says_so(text, match.start()):
            found, end = _in_a_row(text, match.end())
            if _LAST_VERB.match(text, end):
                yield from found


def _listed(text: str, start: int) -> list[Reference]:
    """The references that follow one another from `start`; a title is taken alone."""
    found, _ = _in_a_row(text, start)
    if found:
        return found
    words = _INSIDE.match(text, start)
    if words is not None and not names_nothing(words[0]):
        found, _ = _in_a_row(text, words.end())
        target = found[0].target if found else None
        # In brackets behind a title may be a page on it.
        if target is not None and not (words["behind"] and _URL.match(target)):
            return found
    title = _title(text[start : start + 2 * _MOST_TITLE])
    return [] if title is None else [Reference(title)]


def _in_a_row(text: str, start: int) -> tuple[list[Reference], int]:
    found: list[Reference] = []
    position = end = start
    while len(found) < MOST_REFERENCES:
        reference, after = _one(text, position)
        lead = _LEAD.match(text, position)
        if reference is None and lead is not None:
            reference, after = _one(text, lead.end())
        if reference is None:
            break
        found.append(reference)
        end = after
        between = _BETWEEN.match(text, end)
        if between is None:
            break
        position = between.end()
    return found, end


def _one(text: str, position: int) -> tuple[Reference | None, int]:
    for pattern in (_WIKI, _MARKDOWN, _RST, _ROLE, _ASCIIDOC):
        match = pattern.match(text, position)
        if match is not None:
            return _linked(match), match.end()
    match = _URL.match(text, position) or _FILE.match(text, position)
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
    if parts.get("role") == "ref":  # to a label of Sphinx, which is no file
        return Reference(
            _short(label if _NAMED.match(label) or not _NAMED.match(target) else target)
        )
    return Reference(_short(label) or target[:_MOST_TITLE], target.strip("<>")[:1_000] or None)


def _numbered_title(text: str, match: re.Match[str]) -> tuple[Reference, int] | None:
    """`9. Use a queue` as adr-tools names a record, up to the end of the title."""
    dot = re.compile(r"\.\s+(?=\w)").match(text, match.end())
    if dot is None or match["slug"]:
        return None
    rest = text[dot.end() : dot.end() + 2 * _MOST_TITLE]
    ended = _TITLE_END.search(rest)
    title = rest if ended is None else rest[: ended.start()]
    return Reference(_short(f"{match[0].strip()}. {title}")), dot.end() + len(title)


def _title(rest: str) -> str | None:
    """A title in words, which ends with its line or sentence; prose is too long to be one."""
    rest = rest.lstrip(" \t\r\n-*+•>")
    quoted = re.match(r"[\"“'‘_`]+([^\"”'’`\n]{2,200})[\"”'’_`]", rest)
    value = quoted[1] if quoted is not None else _TITLE_END.split(rest, maxsplit=1)[0]
    title = _short(value)
    named = len(title) < _MOST_TITLE and not names_nothing(title) and not _dated(title)
    return title if named else None


def _short(text: str) -> str:
    return " ".join(plain(text).split())[:_MOST_TITLE].strip(" .,:-")


def _dated(title: str) -> bool:
    """Whether a title is a date alone, as of the day on which a record was superseded."""
    written = find_dates(title)
    rest = title[: written[0].start] + title[written[0].end :] if written else title
    return len(written) == 1 and not re.search(r"[^\W\d_]", rest)
