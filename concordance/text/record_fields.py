"""Where a decision record keeps its metadata: front matter, lines under the title, sections.

What belongs here: finding the values, in every form that records have, as raw text. What a value
means is read in `record_status` and `record_links`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from concordance.models import AdrStatus
from concordance.text.lines import LINE_END
from concordance.text.markdown import MarkdownDocument, Section
from concordance.text.record_dates import read_date
from concordance.text.record_markup import COMMENT, FORMATTING, in_box, linked, without_struck
from concordance.text.record_status import read_status
from concordance.text.record_tables import as_rows, is_table, without_html
from concordance.text.record_words import FIELDS, INDEX_HEADS, LINK_SECTIONS, META_SECTIONS

_KEYS: Final = {name: key for key, names in FIELDS.items() for name in names}
_SKIPPED: Final = frozenset({"fence", "code", "front_matter"})
MOST_HEADER_LINES: Final = 80
MOST_VALUE: Final = 4_000
_MOST_DATE: Final = 60
_MOST_SENTENCE: Final = 1_000
_MOST_SENTENCES: Final = 20
_MOST_VALUES: Final = 20
_UNKNOWN: Final = AdrStatus.UNKNOWN

_MARK: Final = r"(?:\*\*|__|\*|_|`)?"
# Possessive, as quotes in quotes could be told apart in too many ways.
_BULLET: Final = r"(?:>\s*)*+(?:(?:[-*+•‣–]|\d+[.)])\s+)?(?:>\s*)*+"
_KEY: Final = r"(?P<key>[^\W\d_][\w \-/]{0,30}?)"
_FIELD: Final = re.compile(
    rf"\s*{_BULLET}{_MARK}{_KEY}\s*{_MARK}\s*(?::{{1,4}}{_MARK}(?:\s+(?P<value>.*)|\s*)$"
    rf"|：\s*{_MARK}\s*(?P<wide>.*)$)"
)
# These count for names that are known, as prose may look like them.
_TIGHT: Final = re.compile(
    rf"\s*{_BULLET}{_MARK}{_KEY}\s*{_MARK}\s*:{_MARK}"
    # No role of reStructuredText: a value such as doc:`0009-x`.
    r"(?P<value>(?!(?:[a-z]{2,20}:){1,2}`)[^\s:/].*)$"
)
_BOLD: Final = re.compile(
    rf"\s*{_BULLET}(?P<mark>\*\*|__|\*|_){_KEY}\s*(?P=mark)(?:\s*[-–—=→]+\s+|\s+)(?P<value>\S.*)$"
)
_DASH: Final = re.compile(rf"\s*{_BULLET}{_KEY}\s+(?:[-–—=→]|->|=>)\s+(?P<value>\S.*)$")
_ALONE: Final = re.compile(
    rf"\s*{_BULLET}(?:(?P<mark>\*\*|__|\*|_){_KEY}\s*(?P=mark)\s*$|\.(?P<title>\w[\w -]{{0,30}})$)"
)
_TERM: Final = re.compile(rf"{_MARK}(?P<key>[^\W\d_][\w \-]{{0,30}}?){_MARK}\s*$")
_DEFINED: Final = re.compile(r"(?::\s+|[ \t]+(?=\S))(?![-*+]\s|\d+[.)]\s)")
_RST_FIELD: Final = re.compile(
    r"\s*(?:[-*]\s+)?:(?P<key>[^\W\d_][\w \-]{0,30}):(?:\s+(?P<value>.*))?$"
)
_INNER: Final = re.compile(
    r"(?:(?<!\s)\s*[|·•;；｜，]\s*|(?<!\s)\s+(?=\*\*|__|[^\W\d_]{1,10}：)|<br\s*/?>)"
    r"(?=[*_]{0,2}(?P<key>[^\W\d_][\w \-]{0,30}?)[*_]{0,2}\s*[:：])"
)
_STRONG: Final = re.compile(r"</?(?:b|strong)\b[^<>]*>", re.IGNORECASE)
# Of reStructuredText; and of AsciiDoc.
_LINE_BLOCK: Final = re.compile(r"^\|[ ](?=[^|]*$)")
_LINE_COMMENT: Final = re.compile(r"//(?!/)")
_ROW: Final = re.compile(r"\s*\|(?P<cells>.*)$")
_CELL_END: Final = re.compile(r"(?<!\\)\|")
_RULED: Final = re.compile(r"\s*[|+]?[\s:|+=-]*-[\s:|+=-]*$")
_ITEM: Final = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s+")
# Marks, signs and emoji before a word, also as `:warning:`.
_SIGNS: Final = r"(?::[a-z0-9_+-]{2,30}:|[^\w\[\](){}<>|#~`\n]){0,12}+"
_BANNER: Final = (
    r"(?:note|nota bene|important|warning|caution|tip|attention|notice|update|edit|hinweis|achtung"
    r"|wichtig|nota|remarque|importante|aviso)\b"
    r"(?:[ \t]*\([^()\n]{1,30}\)|[ \t]+\d[\d./-]{4,9})?[*_]{0,3}(?:\s*[:：–—-]|\s+that\b)"
)
_VERB: Final = re.compile(
    rf"\s*{_BULLET}{_MARK}(?P<callout>\[!?\w{{1,20}}\]|[^\W\d_]{{2,12}}!)?"
    rf"{_SIGNS}(?:{_BANNER})?{_SIGNS}"
    r"(?:(?:this|the) (?:decision|adr|record)\s+)?(?:is|was|has been)?"
    rf"(?:\s+(?:now|since|later))?\s*{_MARK}(?:"
    r"(?:super(?:s|c)ee?de[sd]|replace[sd]|obsolete[sd]|ersetzt|abgelöst)\b"
    r"|(?:deprecated|retired|obsolete|overridden|overruled|succeeded|invalidated)\b[*_]{0,3}"
    r"[,.]?\s+(?:by|in favou?r|see)\b)",
    re.IGNORECASE,
)
_TITLE_NUMBER: Final = re.compile(r"^[\d.]+\s+|(?<![\s:：])[\s:：]+$|^[\W_]+")
_WIDEST: Final = 200
_WIDE: Final = re.compile(rf"[^\S\r\n]{{{_WIDEST + 1},}}")
_YAML: Final = re.compile(
    r"(?P<key>\"[^\"]{1,80}\"|'[^']{1,80}'|[\w.$/][^:=\r\n]{0,79}?)"
    r"[ \t]*[:=](?:[ \t]+(?P<value>.*)|[ \t]*)$"
)
_YAML_COMMENT: Final = re.compile(r"(?:^|[ \t]+)#(?:\s.*|$)")


@dataclass(slots=True)
class Fields:
    """Raw values by key, in the order in which they count; `said` are sentences on succession."""

    values: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    said: list[str] = field(default_factory=list)
    definitions: Mapping[str, str] = field(default_factory=dict)

    def of(self, key: str) -> Sequence[str]:
        """The values of a key that say anything."""
        return [value for value in self.values.get(key, ()) if value.strip()]

    def add(self, key: str | None, value: str) -> None:
        """Keep a value of a known key."""
        if key is not None and len(self.values[key]) < _MOST_VALUES:
            self.values[key].append(linked(value[:MOST_VALUE], self.definitions))

    def say(self, sentence: str) -> None:
        """Keep a sentence on succession."""
        if len(self.said) < _MOST_SENTENCES:
            self.said.append(linked(sentence[:_MOST_SENTENCE], self.definitions))


def find_fields(text: str, document: MarkdownDocument) -> Fields:
    """Every value that a document states about itself, raw; nothing is raised for any text."""
    found = Fields(definitions=document.definitions)
    for key, value in _front_matter(text, document):
        found.add(key, value)
    headed = [number for number, section in enumerate(document.sections) if section.level]
    first = headed[0] if headed else len(document.sections)
    for number, section in enumerate(document.sections):
        title = section_name(section)
        if number <= first or title in META_SECTIONS:
            _read_lines(found, _head(text, section), sentences=True)
        elif title in LINK_SECTIONS:
            _read_lines(found, _head(text, section), sentences=True, fields=False)
        if section.level:
            _read_titled(found, text, document, number)
    return found


def _read_titled(found: Fields, text: str, document: MarkdownDocument, number: int) -> None:
    """A section whose title is a field: the value is its text, or stands in the title itself."""
    section = document.sections[number]
    name, stated = _field(section.heading_path[-1])
    if name is not None and stated:
        found.add(_KEYS.get(name), stated)
    key = _KEYS.get(section_name(section))
    if key is not None:
        body = _head(text, section)
        below = "" if any(body) else _first_title_below(document, number)
        tabled = any(_ROW.match(line) for line in body)
        if tabled:  # what a table says is clearer than its source
            _read_lines(found, body, sentences=False)
        found.add(key, "\n".join(body).strip() or below)
        if not tabled:
            _read_lines(found, body, sentences=False)


def section_name(section: Section) -> str:
    """A section's own title in lower case, without number and signs."""
    return (
        _TITLE_NUMBER.sub("", section.heading_path[-1]).strip().casefold() if section.level else ""
    )


def key_of(name: str) -> str:
    """A field's name as it is looked up: lower case, words apart."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip("\"' \t"))
    return " ".join(re.split(r"[\s_-]+", spaced.casefold())).strip()


def _first_title_below(document: MarkdownDocument, number: int) -> str:
    """The title of a section that a heading alone opens: `## Status` above `### Accepted`."""
    after = document.sections[number + 1 : number + 2]
    below = [s.heading_path[-1] for s in after if s.level > document.sections[number].level]
    return below[0] if below else ""


def _head(text: str, section: Section) -> list[str]:
    lines = islice(_lines(text, section), MOST_HEADER_LINES)
    written = without_struck("\n".join(line[:MOST_VALUE] for line in lines))
    return without_html(written.split("\n"))


def _lines(text: str, section: Section) -> Iterator[str]:
    """The lines of a section without its heading and without code; one blank line for several."""
    end = section.start
    above = before = ""
    for block in section.blocks:
        written = text[block.start : block.end]
        skipped = block.kind in _SKIPPED and not is_table(written)
        boxed = in_box(written, before) if skipped else None
        before = written
        if block.start > end or skipped:
            yield ""
        end = block.end
        if boxed is not None and any(map(_VERB.match, boxed)):
            yield from boxed
        if skipped or (block.kind == "heading" and block.start == section.start):
            continue
        if block.kind == "html":
            written = COMMENT.sub("", written)
        elif block.kind == "other" and written.startswith(".."):
            continue  # a comment, or the target of a link
        # No column is that far off, and patterns would walk such a run from each of its places.
        lines = LINE_END.split(_WIDE.sub(" " * _WIDEST, written))
        lines = lines if lines[-1] else lines[:-1]
        lines = [_LINE_BLOCK.sub("", line) for line in lines if not _LINE_COMMENT.match(line)]
        yield from as_rows(lines[:MOST_HEADER_LINES], above)
        above = lines[-1] if lines else ""


def _read_lines(
    found: Fields, lines: Sequence[str], *, sentences: bool, fields: bool = True
) -> None:
    """Fields that stand in lines of their own or in tables, with the lines that continue them."""
    key: str | None = None
    value: list[str] = []
    below = 0
    for number, whole in enumerate(lines):
        line = whole[:MOST_VALUE]
        name, rest = _named(lines, number) if fields else (None, "")
        opened = key is not None and not any(part.strip() for part in value)
        verb = _VERB.match(line) if sentences and not opened else None
        speaks = verb is not None
        if name is not None and (name in _KEYS or not (speaks or _is_step(key, line))):
            found.add(key, "\n".join(value))
            key, value = None, []
            for part_key, part in _parts(name, rest):
                found.add(key, "\n".join(value))
                key, value = part_key, [part]
        elif fields and _ROW.match(line):
            below = below if number < below else _read_row(found, lines, number)
        elif not fields and _ROW.match(line):
            _read_link(found, _cells(line))
        elif not line.strip():
            if not opened:
                found.add(key, "\n".join(value))
                key, value = None, []
        elif verb is not None:
            alone = number + 1 < len(lines) and _named(lines, number + 1)[0] is not None
            said = line[max(0, verb.end("callout")) :]
            found.say(" ".join([said, *lines[number + 1 : number + 2 - alone]]))
        elif key is not None and (not _ITEM.match(line) or not "".join(value[:1]).strip()):
            value.append(line if any(value) else line.removeprefix(":"))
    found.add(key, "\n".join(value))


def _is_step(key: str | None, line: str) -> bool:
    """Whether a line below an open status is a step of it: `- Proposed: 2026-01-05`."""
    return key == "status" and bool(_ITEM.match(line)) and read_status(line) is not _UNKNOWN


def _named(lines: Sequence[str], number: int) -> tuple[str | None, str]:
    """The name and the value of a field that begins in a line, of whatever name."""
    line = lines[number][:MOST_VALUE]
    name, value = _field(line)
    if name is not None:
        return name, value
    alone = _ALONE.match(_STRONG.sub("**", line))
    if alone is not None:
        title = key_of(alone["key"] or alone["title"])
        return (title, "") if read_status(title) is _UNKNOWN else (None, "")
    term = _TERM.match(line)
    below = lines[number + 1] if number + 1 < len(lines) else ""
    title = key_of(term["key"]) if term is not None and _DEFINED.match(below) else ""
    known = title in _KEYS and read_status(title) is _UNKNOWN
    return (title, "") if known else (None, "")


def _field(line: str) -> tuple[str | None, str]:
    """The name and the value of a field that stands in one line."""
    bare = FORMATTING.sub("", line)
    match = _RST_FIELD.match(bare) or _FIELD.match(bare)
    if match is not None:
        groups = match.groupdict()
        return key_of(match["key"]), groups.get("value") or groups.get("wide") or ""
    tight = _TIGHT.match(bare)
    if tight is not None and key_of(tight["key"]) in _KEYS:
        return key_of(tight["key"]), tight["value"]
    loose = _BOLD.match(_STRONG.sub("**", line)) or _DASH.match(bare)
    if loose is not None and _fits(_KEYS.get(key_of(loose["key"])), loose["value"]):
        return key_of(loose["key"]), loose["value"]
    return None, ""


def _fits(key: str | None, value: str) -> bool:
    """Whether a value is of the kind that a field holds, so that a line without a colon is one."""
    if key == "status":
        return read_status(value) is not _UNKNOWN
    return key in ("date", "updated") and read_date(value[:_MOST_DATE]) is not None


def _parts(name: str, rest: str) -> Iterator[tuple[str | None, str]]:
    """A field, and those that follow it in the same line."""
    further: str | None = name
    while further is not None:
        inner = next((m for m in _INNER.finditer(rest) if key_of(m["key"]) in _KEYS), None)
        yield _KEYS.get(further), rest if inner is None else rest[: inner.start()]
        further, rest = (None, "") if inner is None else _field(rest[inner.end() :])


def _read_row(found: Fields, lines: Sequence[str], number: int) -> int:
    """A row `| Status | accepted |`, or a head of names above rows of values.

    Returns the line up to which rows were read.
    """
    cells = _cells(lines[number])
    names = [_KEYS.get(_label(cell)) for cell in cells]
    ruled = number + 2 < len(lines) and _RULED.match(lines[number + 1])
    a_pair = len(cells) == 2 and not all(names)  # noqa: PLR2004 - a name and its value
    pairs = names[0] == "status" and _fits("status", cells[1] if len(cells) > 1 else "")
    if ruled and any(names) and not a_pair and not pairs:
        end = number + 2
        while end < len(lines) and _ROW.match(lines[end]):
            end += 1
        rows = [_cells(row) for row in lines[number + 2 : end] if not _RULED.match(row)]
        of_one = len(rows) == 1 and _label(cells[0]) not in INDEX_HEADS
        if names[0] is not None or of_one:
            _read_rows(found, names, rows)
            return end
    if len(cells) > 1 and names[0] is not None:
        found.add(names[0], cells[1])
    return number + 1


def _read_link(found: Fields, cells: Sequence[str]) -> None:
    """A row of a table of links: `| Superseded by | ADR 9 |`."""
    key = _KEYS.get(_label(cells[0]))
    if key in ("supersedes", "superseded_by") and len(cells) > 1:
        found.add(key, cells[1])


def _read_rows(found: Fields, names: Sequence[str | None], rows: Sequence[Sequence[str]]) -> None:
    """Values below a head; of several rows with a day and a status each is a step."""
    columns = {name: at for at, name in reversed(list(enumerate(names))) if name is not None}
    if len(rows) > 1 and {"status", "date"} <= columns.keys():
        steps = [
            f"{row[columns['date']]}: {row[columns['status']]}"
            for row in rows
            if len(row) > max(columns["date"], columns["status"])
        ]
        found.add("status", "\n".join(steps))
    elif rows:
        for name, value in zip(names, rows[0], strict=False):
            found.add(name, value)


def _label(cell: str) -> str:
    return key_of(FORMATTING.sub("", cell).strip("*_`:： "))


def _cells(row: str) -> list[str]:
    cells = _CELL_END.split(row.strip().removeprefix("|").removesuffix("|"))
    return [cell.replace("\\|", "|").strip() for cell in cells]


def _front_matter(text: str, document: MarkdownDocument) -> Iterator[tuple[str | None, str]]:
    """Values of the front matter, with the lists and indented lines that belong to them."""
    blocks = document.sections[0].blocks[:1] if document.sections else ()
    if not blocks or blocks[0].kind != "front_matter":
        return
    key: str | None = None
    value: list[str] = []
    for line in LINE_END.split(text[blocks[0].start : blocks[0].end]):
        match = _YAML.match(line)
        if match is not None:
            yield key, _joined(value)
            key, value = _KEYS.get(key_of(match["key"])), [match["value"] or ""]
        elif line[:1] in (" ", "\t", "-") and not line.startswith("---"):
            value.append(line)
    yield key, _joined(value)


def _joined(lines: Sequence[str]) -> str:
    """One value: quotes and comments go, and every list is one of bullets."""
    parts: list[str] = []
    for line in lines:
        item = _ITEM.match(line) if parts or not line.strip() else None
        bare = _scalar(line if item is None else line[item.end() :])
        parts.append(bare if item is None or not bare else f"- {bare}")
    value = "\n".join(part for part in parts if part)
    flow = re.fullmatch(r"\[(?!.*\]\s?[(\[])(.*)\]", value, re.DOTALL)
    if flow is not None:
        value = "\n".join(f"- {_scalar(item)}" for item in flow[1].split(","))
    return value


def _scalar(value: str) -> str:
    value = value.strip()
    quoted = re.fullmatch(r"(\"|')(.*)\1[ \t]*(?:#.*)?", value, re.DOTALL)
    if quoted is not None:
        return quoted[2].replace('\\"', '"').replace("''", "'")
    return "" if value in ("|", ">", "|-", ">-") else _YAML_COMMENT.sub("", value).strip()
