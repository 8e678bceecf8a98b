"""What a decision record's words say of its state: the status, since when, the names of deciders.

What belongs here: reading one value, as its author wrote it. Where in a document the values stand
is `record_fields`' matter. A word that is not known here makes the status unknown, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from concordance.models import AdrStatus
from concordance.text.record_absent import names_nothing
from concordance.text.record_dates import find_dates
from concordance.text.record_markup import COMMENT, plain, without_links
from concordance.text.record_words import STATUSES

_STATUS: Final = {word: status for status, words in STATUSES.items() for word in words}
_RANK: Final = {status: rank for rank, status in enumerate(STATUSES)}
_TWO_WORDS: Final = re.compile(
    r"(?:not yet|to be) (?:accepted|approved|decided|agreed|adopted|ratified)"
    r"|in (?:progress|review|discussion)|under (?:review|discussion|consideration)"
    r"|work in progress|(?:ready|open) for (?:review|discussion|comments?)|needs? review"
    r"|awaiting (?:review|approval|decision)|request for comments?"
    r"|in (?:force|effect)\b"
    r"|no longer (?:valid|in (?:force|use|effect)|accepted|approved|active|applicable|relevant)"
    r"|not (?:accepted|approved)(?: yet)?"
)
_AS_ONE: Final = {
    "not accepted": AdrStatus.REJECTED,
    "not approved": AdrStatus.REJECTED,
    "in force": AdrStatus.ACCEPTED,
    "in effect": AdrStatus.ACCEPTED,
}
_PARTLY: Final = re.compile(r"(?:partially|partly|in part|teilweise|partiellement)\b")
_LEADING: Final = re.compile(
    r"(?:(?:this|the) (?:decision|adr|record|document)|status|state|it|is|was|has been|now"
    r"|currently|fully|formally|provisionally|conditionally|tentatively|since|on|as of|am|seit|le"
    r"|el|em|changed to|then|later|but|and|状态|ステータス|상태)(?!\w)[:：\s]*"
)
_SPLIT: Final = r"[\n;,|；、，。]|\.(?=\s|$)|→|=>|->|—|–|\s-\s|\s/\s|(?<=\w)/(?=\w)|\s>\s"
_STATEMENT: Final = re.compile(rf"(?:(?!{_SPLIT}).)+")
_SIGNS: Final = re.compile(r"^(?::[a-z0-9+-]{1,30}_[a-z0-9_+-]{1,30}:|[\W_])+")
_ALTERNATIVES: Final = re.compile(r"[|/…]")
_STEPS: Final = re.compile(r"→|=>|->|\bthen\b|\d|\ue001")
_MOST_STATES_AT_ONCE: Final = 2
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BETWEEN_NAMES: Final = re.compile(r"\s*(?:[,;\n、，；]|\s(?:and|und|et|y|&)\s)\s*")
_BETWEEN_LAST_FIRST: Final = re.compile(r"\s*[;；\n]\s*")
_IN_BRACKETS: Final = re.compile(r"\([^()\n]{0,200}\)")
_NAME: Final = re.compile(
    r"(?:\{(?:[^{}]*,)?)?\s*[\"']?name[\"']?\s*:\s+([^,{}\n]+)", re.IGNORECASE
)
_NOBODY: Final = frozenset({"tbd", "tba", "n/a", "none", "nobody", "unknown", "todo"})
_BEFORE_A_DAY: Final = re.compile(r"[\s,(]*(?:\b(?:on|at|am|le|el|em|since|dated?)\b)?[\s:]*$")
_BULLET: Final = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
MOST_DECIDERS: Final = 50
_MOST_CHARACTERS: Final = 4_000
# In place of a date, whose own signs would end statements.
_DATE: Final = "\ue001"
_DATE_ALONE: Final = re.compile(
    rf"(?:on|date|dated|since|am|seit|le|el|em|as of|at|[\W\d_])*{_DATE}(?:[\W\d_])*"
)
# A date that comes after these is that of another record, or of what a link leads to.
_OF_ANOTHER: Final = re.compile(
    r"\b(?:see|cf|siehe|vgl|voir|véase|ver|amend(?:s|ed)|refine[sd]|extends?|relate[sd]|based"
    r"|super(?:s|c)edes|replaces|obsoletes|ersetzt|remplace|reemplaza)\b|取代|见|参照"
)
_BY_ANOTHER: Final = re.compile(
    r"\b(?:super(?:s|c)ee?ded|replaced|obsoleted|ersetzt|remplacée?|reemplazad[oa])\b.{0,40}"
    r"\b(?:by|with|durch|par|por|of)\b|\bin favou?r of\b"
    r"|\b(?:deprecated|obsolete|retired|overridden|overruled|succeeded|invalidated)\b.{0,40}"
    r"\bby\W+(?:the )?(?:(?:adrs?|madrs?|decisions?|records?|rfc)\b|\d)"
)
# What is under way beside a decision takes nothing from it, until the decision is opened again.
_UNDER_WAY: Final = re.compile(
    r"(?:work )?in[ -](?:progress|review|discussion)|under[ -](?:review|discussion|consideration)"
    r"|not yet\b|to be\b|(?:wip|rfc|pending|reviews?)\b"
)
_OPENED: Final = r"(?:since|started|begun|opened|seit)\b"
_REVIEW_OF: Final = re.compile(rf"reviews?\b(?!\W*{_OPENED})[^(]{{0,60}}{_DATE}")
_REOPENED: Final = re.compile(
    r"\b(?:re-?(?:open(?:ed)?|consider(?:ed)?|proposed|submitted|visited)|again|back (?:to|in)"
    r"|wieder|erneut|de nouveau|de nuevo)\b",
    re.IGNORECASE,
)
# A date behind these is that of what is to come, or of a release.
_TO_COME: Final = re.compile(
    rf"\b(?:(?<!in[ -])(?<!under[ -])review(?:ed|s)?(?!\W+{_OPENED})"
    r"|revisit(?:ed|s)?|until|(?<!no longer )valid|due(?! to\b)|deadline"
    r"|expir(?:es?|ed|y|ing|ation)|removed|removal|eol|eos|sunset"
    r"|end[ -]of[ -](?:life|support)|next|planned|scheduled|target(?:ed)?|eta|to be"
    r"|will (?:be|become|end|take|run|go|have)|bis|gültig|fällig|überprüf\w*|jusqu\W?\w*"
    r"|hasta|até)\b|\bby\W*(?:(?:the )?end of\W*)?$"
    # Also the name of a person.
    r"|(?<!by )(?<!and )\btill\s*(?:(?:the )?end of\s*)?$"
)
_OF_A_RELEASE: Final = re.compile(r"\b(?:releases?|versions?)\b[^,]*$")
_SINCE_THEN: Final = re.compile(r"\b(?:on|since|am|le|el|em)\W*$")
_HARD_END: Final = re.compile(r"[;|；。]|\.\s")

# A step that was left open beside others that have their day: `Superseded:`.
_LEFT_OPEN: Final = re.compile(
    r"(?:^|(?<=[;,|]))[ \t*+-]*[^\W\d_][\w-]*[ \t]*[:：][ \t]*(?=[;,|]|$(?!\n+\W*\d))", re.MULTILINE
)
# A field that was left open, as templates have it: `Superseded by: (none)`.
_BY_NOTHING: Final = re.compile(
    r"^[\W_]*(?:superseded|replaced)\W+by(?!\w)(?P<what>[^\n]*)$", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Step:
    """A status that a value states, and the day that stands beside it."""

    status: AdrStatus
    day: date | None = None


@dataclass(slots=True)
class _Line:
    """One line of a value: what it states, by place, and the days that are its own."""

    stated: list[tuple[int, AdrStatus]]
    days: list[tuple[int, date | None]]
    dates_alone: bool
    end: int
    under_way: frozenset[int]

    def steps(self) -> Iterator[Step]:
        """Each status with its day, which stands before it where the line begins with one."""
        for number, (_, status) in enumerate(self.stated):
            at = self._day_of(number)
            yield Step(status, None if at is None else self.days[at][1])

    def settle(self) -> None:
        """Leave out what is under way, with its days."""
        of_these = {
            self._day_of(number)
            for number, (place, _) in enumerate(self.stated)
            if place in self.under_way
        }
        if self.stated and self.under_way.issuperset(place for place, _ in self.stated):
            self.days = []
        self.days = [day for number, day in enumerate(self.days) if number not in of_these]
        self.stated = [one for one in self.stated if one[0] not in self.under_way]

    def _day_of(self, number: int) -> int | None:
        """Which of the days is that of a status."""
        first = bool(self.days) and self.days[0][0] < self.stated[0][0]
        ends = [-1, *(place for place, _ in self.stated), self.end]
        before = self._first_day(ends[number], ends[number + 1]) if first else None
        if before is not None and self.days[before][1] is not None:
            return before
        return self._first_day(ends[number + 1], ends[number + 2])

    def _first_day(self, start: int, end: int) -> int | None:
        return next((n for n, (at, _) in enumerate(self.days) if start < at < end), None)


def read_status(text: str) -> AdrStatus:
    """The status that a value states; unknown where none is known.

    Of several steps it is that of the latest day, if each has its day, else the furthest. Each
    statement counts by its first word, so `we rejected the other option` says nothing.
    """
    step = _last_step(text)
    return AdrStatus.UNKNOWN if step is None else step.status


def date_of_status(text: str) -> date | None:
    """The day on which the status that a value states was reached, else the first day beside it."""
    step = _last_step(text)
    if step is not None and step.day is not None:
        return step.day
    paragraph = re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0]
    days = [day for line in _lines(paragraph) for _, day in line.days]
    further = [one.day for one in _steps(text)]
    return next((day for day in (*days, *further) if day is not None), None)


def lists_alternatives(text: str) -> bool:
    """Whether a value is a template's list of what could stand there."""
    first_line, days = _prepared(plain(text).split("\n", 1)[0])
    known = [status for _, status in _stated_in(first_line)]
    several = len(set(known))
    if len(days) >= len(known):
        return False
    named = several > _MOST_STATES_AT_ONCE and not _STEPS.search(first_line)
    return several > 1 and (named or bool(_ALTERNATIVES.search(first_line)))


def _last_step(text: str) -> Step | None:
    if lists_alternatives(text):
        return None
    steps = _steps(text)
    dated = [(step.day, -_RANK[step.status]) for step in steps if step.day is not None]
    if dated and len(dated) == len(steps):
        latest = max(dated)
        return next(step for step in steps if (step.day, -_RANK[step.status]) == latest)
    return min(steps, key=lambda step: _RANK[step.status], default=None)


def _steps(text: str) -> list[Step]:
    """The statuses of a value in order; a line of dates alone belongs to the one above or below."""
    steps: list[Step] = []
    waiting: date | None = None
    for line in _lines(text):
        if line.stated:
            found = list(line.steps())
            if waiting is not None and found[0].day is None:
                found[0] = Step(found[0].status, waiting)
            steps += found
            waiting = None
        elif line.dates_alone:
            day = line.days[0][1]
            if steps and steps[-1].day is None:
                steps[-1] = Step(steps[-1].status, day)
            else:
                waiting = day
    return steps


def _lines(text: str) -> list[_Line]:
    lines = list(_read_lines(text))
    decided = any(status is not AdrStatus.PROPOSED for line in lines for _, status in line.stated)
    if decided and not _REOPENED.search(text[:_MOST_CHARACTERS]):
        for line in lines:
            line.settle()
    return lines


def _read_lines(text: str) -> Iterator[_Line]:
    value = _BY_NOTHING.sub(_without_nothing, plain(without_links(text[:_MOST_CHARACTERS])))
    if find_dates(value):
        value = _LEFT_OPEN.sub("", value)
    label = ""
    for whole in value.split("\n"):
        line, days = _prepared(whole)
        places = [match.start() for match in re.finditer(_DATE, line)]
        stated = list(_stated_in(line))
        own = [
            (at, day)
            for at, day in zip(places, days, strict=True)
            if not _of_another(line[:at])
            and not _to_come(label, line[_last_before(at, stated) : at])
        ]
        alone = bool(own) and _DATE_ALONE.fullmatch(line.strip()) is not None
        label = line if line.rstrip().endswith((":", "：")) else label if not line.strip() else ""
        yield _Line(stated, own, alone, len(line), frozenset(_under_way(line, stated)))


def _without_nothing(line: re.Match[str]) -> str:
    return "" if names_nothing(line["what"]) else line[0]


def _under_way(line: str, stated: list[tuple[int, AdrStatus]]) -> Iterator[int]:
    """Where a line says what goes on beside a decision, such as that it is in review."""
    decided = False
    for place, status in stated:
        if status is not AdrStatus.PROPOSED:
            decided = True
        elif decided or _UNDER_WAY.match(line, place):
            yield place


def _prepared(line: str) -> tuple[str, list[date | None]]:
    """A line in lower case with one sign for each date, and the days that these are."""
    line = line.casefold().replace(_DATE, " ")
    parts: list[str] = []
    days: list[date | None] = []
    end = 0
    for written in find_dates(line):
        parts += [line[end : written.start], _DATE]
        days.append(written.day)
        end = written.end
    return "".join(parts) + line[end:], days


def _of_another(before: str) -> bool:
    clause = _HARD_END.split(before)[-1]
    if _OF_ANOTHER.search(clause):
        return True
    return bool(_BY_ANOTHER.search(clause)) and not _SINCE_THEN.search(clause)


def _to_come(label: str, before: str) -> bool:
    """Whether the day behind some words is that of what is to come; a label may stand above."""
    clause = label + _HARD_END.split(before)[-1]
    if _TO_COME.search(clause):
        return True
    return bool(_OF_A_RELEASE.search(clause)) and not _SINCE_THEN.search(clause)


def _last_before(at: int, stated: list[tuple[int, AdrStatus]]) -> int:
    return max((place for place, _ in stated if place < at), default=0)


def _stated_in(line: str) -> Iterator[tuple[int, AdrStatus]]:
    """The statuses of a line's statements, with where these begin."""
    for match in _STATEMENT.finditer(line):
        statement = _without_lead(match[0])
        status = _stated(statement)
        if status is not None:
            yield match.end() - len(statement), status


def _without_lead(statement: str) -> str:
    statement = _SIGNS.sub("", statement)
    while leading := _LEADING.match(statement):
        statement = _SIGNS.sub("", statement[leading.end() :])
    return statement


def _stated(statement: str) -> AdrStatus | None:
    partly = _PARTLY.match(statement)
    if partly is not None:
        status = _stated(_without_lead(statement[partly.end() :]))
        # What is replaced in part holds in the rest.
        return AdrStatus.ACCEPTED if status is AdrStatus.SUPERSEDED else status
    if _REVIEW_OF.match(statement):
        return None  # the day of a review to come, or of one that changed nothing
    several = _TWO_WORDS.match(statement)
    if several is not None:
        if several[0].startswith("no longer"):
            return AdrStatus.DEPRECATED
        return _AS_ONE.get(several[0], AdrStatus.PROPOSED)
    word = _WORD.match(statement)
    status = _STATUS.get(word[0]) if word is not None else None
    if status is AdrStatus.SUPERSEDED and re.match(
        r"\w+\W+(?:partially|partly|in part)\b", statement
    ):
        return AdrStatus.ACCEPTED
    return status


def read_names(text: str) -> tuple[str, ...]:
    """The people of a value, as written: links without their address, each once."""
    lines = [_BULLET.sub("", line) for line in COMMENT.sub("", text).splitlines()]
    # Of a list of people with fields each, as in front matter.
    lines = [found[1] for line in lines if (found := _NAME.match(line))] or lines
    value = plain("\n".join(lines)).strip("[] \t\n")
    if _IN_BRACKETS.fullmatch(value):
        value = value[1:-1]
    names: dict[str, None] = {}
    for name in _apart(value):
        cleaned = " ".join(_undated(name).strip(" .:\t-").split())
        if cleaned.casefold() in _NOBODY:
            continue
        if cleaned and re.search(r"[^\W_]", cleaned) and not cleaned.startswith("list everyone"):
            names.setdefault(cleaned[:200])
    return tuple(names)[:MOST_DECIDERS]


def _apart(value: str) -> Iterator[str]:
    """Names apart: at semicolons alone where there are any, as in `Smith, John; Doe, Jane`."""
    # As long as it was, so that places are the same.
    bare = _IN_BRACKETS.sub(lambda match: "x" * len(match[0]), value)
    between = _BETWEEN_LAST_FIRST if re.search("[;；]", bare) else _BETWEEN_NAMES
    end = 0
    for match in between.finditer(bare):
        yield value[end : match.start()]
        end = match.end()
    yield value[end:]


def _undated(name: str) -> str:
    """A name without the day that stands behind it."""
    written = find_dates(name)
    if not written or name[written[-1].end :].strip(" ).]"):
        return name
    return _BEFORE_A_DAY.sub("", name[: written[-1].start])
