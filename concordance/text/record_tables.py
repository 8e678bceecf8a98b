"""Tables and lists of terms in every format, as lines that read alike: rows `| a | b |`, `a: b`.

What belongs here: where the cells of a table are. What a name or a value means is not known here.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Final

from concordance.text.record_markup import COMMENT

_RULE: Final = "|---|"
_DIRECTIVE: Final = re.compile(r"\s*\.\. +(?P<name>list-table|csv-table|table) ?::")
_OPTION: Final = re.compile(r"\s*:(?P<name>[\w-]+):\s*(?P<value>.*)$")
_ROW: Final = re.compile(r"\s*[*-] +[*-](?:\s+(?P<cell>.*))?$")
_CELL: Final = re.compile(r"\s*[*-](?:\s+(?P<cell>.*))?$")
_BORDER: Final = re.compile(r"\s*=+(?:\s+=+)+\s*$")
_ASCIIDOC: Final = re.compile(r"(?:[|!]={3,}|[,:]={3,})\s*$")
_ASCIIDOC_CELL: Final = re.compile(
    r"(?:(?:^|(?<=\s))(?:(?P<times>\d{1,2})\*|\d*(?:\.\d+)?\+)?[<^>.]{0,4}[aehlmsdv]?)?(?<!\\)\|"
)
_COLUMNS: Final = re.compile(r"\bcols\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^,\]]*))")
_HEADER: Final = re.compile(r"%header|options\s*=\s*\"[^\"]*header")
_MOST_COLUMNS: Final = 50
_MOST_HTML: Final = 100_000
_STRUCTURE: Final = re.compile(r"<(?:tr|td|th|dt|dd|h[1-6]|li|p|div)\b", re.IGNORECASE)
_TAG: Final = re.compile(
    r"<(?P<end>/?)(?P<name>table|thead|tbody|tfoot|tr|td|th|dl|dt|dd|h[1-6]|p|div|li|br)\b[^<>]*>",
    re.IGNORECASE,
)


def as_rows(lines: Sequence[str], before: str = "") -> list[str]:
    """The lines of a block, with the tables of reStructuredText and AsciiDoc as rows.

    `before` is the line above it, where AsciiDoc has the columns.
    """
    first = lines[0] if lines else ""
    directive = _DIRECTIVE.match(first)
    if directive is not None:
        return list(_directive(directive["name"], lines[1:]))
    if _ASCIIDOC.match(first):
        return list(_asciidoc(lines, before))
    if _BORDER.match(first):
        return list(_simple(lines))
    return list(lines)


def is_table(text: str) -> bool:
    """Whether a block that begins so is a directive which holds a table."""
    return _DIRECTIVE.match(text) is not None


def _row(cells: Sequence[str]) -> str:
    flat = (re.sub(r"\\*\|", r"\\|", " ".join(cell.split())) for cell in cells)
    return f"| {' | '.join(flat)} |"


def _directive(name: str, lines: Sequence[str]) -> Iterator[str]:
    options = {}
    start = 0
    for start, line in enumerate(lines):  # noqa: B007 - where the options end
        option = _OPTION.match(line)
        if option is None:
            break
        options[option["name"]] = option["value"]
    body = [line for line in lines[start:] if line.strip()]
    if name == "table":
        dedent = min((len(line) - len(line.lstrip()) for line in body), default=0)
        yield from as_rows([line[dedent:] for line in body])
        return
    rows = list(_list_rows(body)) if name == "list-table" else list(_csv_rows(body))
    if "header" in options:
        yield from (_row(cells) for cells in _csv_rows([options["header"]]))
        yield _RULE
    for number, cells in enumerate(rows):
        yield _row(cells)
        if number == 0 and options.get("header-rows", "0").strip() not in ("", "0"):
            yield _RULE


def _list_rows(lines: Sequence[str]) -> Iterator[list[str]]:
    cells: list[str] = []
    for line in lines:
        row, cell = _ROW.match(line), _CELL.match(line)
        if row is not None:
            if cells:
                yield cells
            cells = [row["cell"] or ""]
        elif cell is not None and cells:
            cells.append(cell["cell"] or "")
        elif cells:
            cells[-1] += " " + line.strip()
    if cells:
        yield cells


def _csv_rows(lines: Sequence[str]) -> Iterator[list[str]]:
    stripped = [line.strip() for line in lines]
    try:
        yield from csv.reader(stripped, skipinitialspace=True)
    except csv.Error:
        return  # such as a field beyond the limit: what was read before it stays


def _simple(lines: Sequence[str]) -> Iterator[str]:
    """A table whose columns are those of its border; a text may run past the last one."""
    spans = [match.span() for match in re.finditer(r"=+", lines[0])]
    starts = [start for start, _ in spans]
    ends: list[int | None] = [*starts[1:], None]
    for number, line in enumerate(lines[1:], 1):
        if _BORDER.match(line):
            if number < len(lines) - 1:
                yield _RULE
        elif line.strip():
            yield _row([line[start:end] for start, end in zip(starts, ends, strict=True)])


def _asciidoc(lines: Sequence[str], before: str) -> Iterator[str]:
    body = lines[1:-1]
    if lines[0][:1] in ",:":
        separator = lines[0][0]
        yield from (_row(line.split(separator)) for line in body if line.strip())
        return
    sign = lines[0][0]
    groups: list[list[str]] = [[]]
    firsts: list[int] = []
    for line in body:
        if not line.strip():
            groups.append([])
            continue
        firsts.append(_take(groups[-1], line if sign == "|" else line.replace("!", "|")))
    width = _width(before) or (firsts[0] if firsts else 0)
    if width > 1:
        whole = [cell for group in groups for cell in group]
        rows = [whole[at : at + width] for at in range(0, len(whole), width)]
    else:
        # Without columns every cell is a row; people put a blank line between the rows they mean.
        rows = [group for group in groups if group]
    headed = _HEADER.search(before) or (len(groups) > 1 and len(groups[0]) == width > 1)
    for number, cells in enumerate(rows):
        yield _row(cells)
        if number == 0 and headed:
            yield _RULE


def _take(cells: list[str], line: str) -> int:
    """Add the cells that begin in a line, and say how many; what stands before them continues."""
    starts = list(_ASCIIDOC_CELL.finditer(line))
    rest = line[: starts[0].start()] if starts else line
    if cells and rest.strip():
        cells[-1] += " " + rest.strip()
    for number, match in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(line)
        cells += [line[match.end() : end].strip()] * min(int(match["times"] or 1), _MOST_COLUMNS)
    return len(starts)


def _width(attributes: str) -> int:
    found = _COLUMNS.search(attributes)
    if found is None:
        return 0
    columns = next(filter(None, found.groups()), "")
    total = 0
    for column in re.split(r"[,;]", columns):
        times = re.match(r"\s*(\d{1,2})\*", column)
        total += int(times[1]) if times is not None else 1
    return min(total, _MOST_COLUMNS)


def without_html(lines: Sequence[str]) -> list[str]:
    """Lines with the tables, terms and headings of HTML as rows and as `name: value`."""
    text = "\n".join(lines)
    if _STRUCTURE.search(text) is None:
        return list(lines)
    reader = _Html()
    end = 0
    text = COMMENT.sub("", text[:_MOST_HTML])
    for match in _TAG.finditer(text):
        reader.words(text[end : match.start()])
        reader.tag(match["name"].lower(), closes=bool(match["end"]))
        end = match.end()
    reader.words(text[end:])
    reader.tag("table", closes=True)
    read: list[str] = []
    for line in "\n".join(reader.parts).split("\n"):
        # A head and its rows stand next to each other.
        if line.strip() or not (read and read[-1].startswith("|")):
            read.append(line)
    return read


class _Html:
    """Takes words and tags in their order; what is not closed ends where the next thing begins."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._cells: list[str] = []
        self._heads = 0
        self._open: str | None = None
        self._held = ""
        self._term: str | None = None
        self._values: list[str] = []

    def words(self, text: str) -> None:
        if self._open is None:
            self.parts.append(text)
        else:
            self._held += text

    def tag(self, name: str, *, closes: bool) -> None:
        if name in ("p", "div", "li", "br"):
            self.words("\n" if self._open is None else "<br>")
            return
        self._end_open()
        if name in ("tr", "table", "thead", "tbody", "tfoot", "dl") or name[0] == "h":
            self._end_row()
        if name in ("dl", "table") or name[0] == "h" or (name == "dt" and not closes):
            self._end_term()
        if not closes and name in ("td", "th", "dt", "dd", *(f"h{n}" for n in range(1, 7))):
            self._open = name

    def _end_open(self) -> None:
        parts = (" ".join(part.split()) for part in self._held.split("<br>"))
        name, held = self._open, " <br> ".join(part for part in parts if part)
        self._open, self._held = None, ""
        if name in ("td", "th"):
            self._cells.append(held)
            self._heads += name == "th"
        elif name == "dt" or (name is not None and name[0] == "h"):
            self._term = held.rstrip(" :：")
            if name != "dt":
                self.parts.append(f"\n{self._term}:\n")
                self._term = None
        elif name == "dd" and self._term is not None:
            self._values.append(held)

    def _end_row(self) -> None:
        if self._cells:
            rule = len(self._cells) > 1 and self._heads == len(self._cells)
            self.parts += [f"\n{_row(self._cells)}\n", f"{_RULE}\n" if rule else ""]
        self._cells, self._heads = [], 0

    def _end_term(self) -> None:
        if self._term is not None and self._values:
            several = len(self._values) > 1
            value = "".join(f"\n- {one}" for one in self._values) if several else self._values[0]
            self.parts.append(f"\n{self._term}: {value}\n")
        self._term, self._values = None, []
