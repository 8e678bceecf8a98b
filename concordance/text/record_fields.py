"""Where a decision record keeps its metadata: front matter, lines under the title, sections.

What belongs here: finding the values, in every form that records have, as raw text. What a value
means is read in `record_status` and `record_links`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from concordance.text.lines import LINE_END
from concordance.text.markdown import MarkdownDocument, Section
from concordance.text.record_words import FIELDS, LINK_SECTIONS, META_SECTIONS

_KEYS: Final = {name: key for key, names in FIELDS.items() for name in names}
_SKIPPED: Final = frozenset({"fence", "code", "front_matter"})
MOST_HEADER_LINES: Final = 80
MOST_VALUE: Final = 4_000

_MARK: Final = r"(?:\*\*|__|\*|_|`)?"
_BULLET: Final = r"(?:>\s*)*(?:(?:[-*+•‣–]|\d+[.)])\s+)?(?:>\s*)*"
_FIELD: Final = re.compile(
    rf"\s*{_BULLET}{_MARK}(?P<key>[^\W\d_][\w \-/]{{0,30}}?)\s*{_MARK}\s*[:：]{_MARK}"
    r"(?:\s+(?P<value>.*)|\s*)$"
)
_RST_FIELD: Final = re.compile(r"\s*:(?P<key>[^\W\d_][\w \-]{0,30}):(?:\s+(?P<value>.*))?$")
_INNER: Final = re.compile(
    r"(?:\s*[|·•;]\s*|\s+(?=\*\*|__)|<br\s*/?>)"
    r"(?=[*_]{0,2}(?P<key>[^\W\d_][\w \-]{0,30}?)[*_]{0,2}\s*:)"
)
_TAG: Final = re.compile(
    r"</?(?:b|strong|em|i|p|span|div|td|tr|th|dt|dd|font)\b[^<>]*>", re.IGNORECASE
)
_ROW: Final = re.compile(r"\s*\|(?P<cells>.*)$")
_RULED: Final = re.compile(r"\s*[|+]?[\s:|+=-]*-[\s:|+=-]*$")
_ITEM: Final = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s+")
_VERB: Final = re.compile(
    rf"\s*{_BULLET}{_MARK}(?:\[!?\w+\]\s*)?(?:(?:this|the) (?:decision|adr|record)\s+)?"
    r"(?:is|was|has been)?\s*"
    rf"{_MARK}(?:super(?:s|c)ee?de[sd]|replace[sd]|obsolete[sd]|ersetzt|abgelöst)\b",
    re.IGNORECASE,
)
_TITLE_NUMBER: Final = re.compile(r"^[\d.]+\s+|[\s:：]+$|^[\W_]+")
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

    def of(self, key: str) -> Sequence[str]:
        """The values of a key that say anything."""
        return [value for value in self.values.get(key, ()) if value.strip()]

    def add(self, key: str | None, value: str) -> None:
        """Keep a value of a known key."""
        if key is not None:
            self.values[key].append(value[:MOST_VALUE])


def find_fields(text: str, document: MarkdownDocument) -> Fields:
    """Every value that a document states about itself, raw; nothing is raised for any text."""
    found = Fields()
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
    stated = _FIELD.match(section.heading_path[-1])
    if stated is not None and stated["value"]:
        found.add(_KEYS.get(key_of(stated["key"])), stated["value"])
    key = _KEYS.get(section_name(section))
    if key is not None:
        body = _head(text, section)
        below = "" if any(body) else _first_title_below(document, number)
        found.add(key, "\n".join(body).strip() or below)
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
    return list(islice(_lines(text, section), MOST_HEADER_LINES))


def _lines(text: str, section: Section) -> Iterator[str]:
    """The lines of a section without its heading and without code; one blank line for several."""
    end = section.start
    for block in section.blocks:
        if block.start > end or block.kind in _SKIPPED:
            yield ""
        end = block.end
        if block.kind in _SKIPPED or (block.kind == "heading" and block.start == section.start):
            continue
        lines = LINE_END.split(text[block.start : block.end])
        yield from lines if lines[-1] else lines[:-1]


def _read_lines(
    found: Fields, lines: Sequence[str], *, sentences: bool, fields: bool = True
) -> None:
    """Fields that stand in lines of their own or in tables, with the lines that continue them."""
    key: str | None = None
    value: list[str] = []
    for number, whole in enumerate(lines):
        line = whole[:MOST_VALUE]
        name, rest = _field(line) if fields else (None, "")
        speaks = sentences and bool(_VERB.match(line))
        if name is not None and (name in _KEYS or not speaks):
            found.add(key, "\n".join(value))
            key, value = None, []
            for part_key, part in _parts(name, rest):
                found.add(key, "\n".join(value))
                key, value = part_key, [part]
        elif fields and _ROW.match(line):
            _read_row(found, lines, number)
        elif not line.strip():
            if any(part.strip() for part in value):
                found.add(key, "\n".join(value))
                key, value = None, []
        elif speaks:
            found.said.append(" ".join(lines[number : number + 2]))
        elif key is not None and (not _ITEM.match(line) or not "".join(value[:1]).strip()):
            value.append(line)
    found.add(key, "\n".join(value))


def _field(line: str) -> tuple[str | None, str]:
    """The name and the value of a line that is a field, of whatever name."""
    bare = _TAG.sub("", line)
    match = _RST_FIELD.match(bare) or _FIELD.match(bare)
    if match is None:
        return None, ""
    return key_of(match["key"]), match["value"] or ""


def _parts(name: str, rest: str) -> Iterator[tuple[str | None, str]]:
    """A field, and those that follow it in the same line."""
    further: str | None = name
    while further is not None:
        inner = next((m for m in _INNER.finditer(rest) if key_of(m["key"]) in _KEYS), None)
        yield _KEYS.get(further), rest if inner is None else rest[: inner.start()]
        further, rest = (None, "") if inner is None else _field(rest[inner.end() :])


def _read_row(found: Fields, lines: Sequence[str], number: int) -> None:
    """A row `| Status | accepted |`, or a head of names above the row of values."""
    cells = _cells(lines[number])
    names = [_KEYS.get(key_of(re.sub(r"[*_:`]", "", cell))) for cell in cells]
    ruled = number + 2 < len(lines) and _RULED.match(lines[number + 1])
    a_pair = len(cells) == 2 and not all(names)  # noqa: PLR2004 - a name and its value
    if ruled and names[0] is not None and not a_pair:
        for name, value in zip(names, _cells(lines[number + 2]), strict=False):
            found.add(name, value)
    elif len(cells) > 1 and names[0] is not None:
        found.add(names[0], cells[1])


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


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
    flow = re.fullmatch(r"\[(?!.*\]\()(.*)\]", value, re.DOTALL)
    if flow is not None:
        value = "\n".join(f"- {_scalar(item)}" for item in flow[1].split(","))
    return value


def _scalar(value: str) -> str:
    value = value.strip()
    quoted = re.fullmatch(r"(\"|')(.*)\1[ \t]*(?:#.*)?", value, re.DOTALL)
    if quoted is not None:
        return quoted[2].replace('\\"', '"').replace("''", "'")
    return "" if value in ("|", ">", "|-", ">-") else _YAML_COMMENT.sub("", value).strip()
