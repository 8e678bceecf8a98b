"""Whether a file in a folder of decisions is a decision record: by its form, never by a number.

What belongs here: what a name says, and what a text says. Beside records stand a README, an index
and a template, and notes of other kinds; a record may be as short as a title and a sentence.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from concordance.text.markdown import MarkdownDocument
from concordance.text.record_fields import section_name
from concordance.text.record_words import (
    ABOUT_LISTS,
    ABOUT_TEMPLATES,
    EMPTY,
    FRONT_PAGES,
    LISTS,
    OTHER_PAGES,
    TEMPLATES,
)
from concordance.text.records import Record


class Form(StrEnum):
    """What a text in a folder of decisions looks like; `PLAIN` speaks neither for nor against."""

    RECORD = "record"
    PLAIN = "plain"
    INDEX = "index"
    TEMPLATE = "template"
    OTHER = "other"


_DATED: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}(?!\d)")
_SECTIONS: Final = re.compile(
    r"status\b|context\b|decisions?\b|consequences?\b|considered |decision drivers|alternatives?\b"
    r"|options?\b|problem\b|proposal\b|proposed\b|rationale\b|motivation\b|background\b|outcome\b"
    r"|implications?\b|trade-?offs?\b|pros and cons|drivers?\b|solution\b|resolution\b|summary of"
    r"|kontext|entscheidung|konsequenzen|alternativen|problemstellung|hintergrund|begründung"
    r"|contexte|décision|conséquences|contexto|decisión|consecuencias|decisão|consequências"
    r"|contesto|decisione|conseguenze|beslissing|gevolgen|контекст|решение|последствия"
    r"|背景|决策|決定|决定|后果|結果|影响|影響|コンテキスト|문맥|결정|결과",
    re.IGNORECASE,
)
_A_TITLE: Final = r"(?:(?:short|brief|descriptive|decision|adr|the|your)\s+)*title\b.*"
# Whatever status stands below it.
_NO_TITLE: Final = re.compile(
    rf"(?:(?:adrs?|decision|record)\b)?\W*(?:number|n{{1,4}}|x{{1,4}}|0{{2,4}})\W+{_A_TITLE}"
    rf"|(?:(?:adrs?|decision|record)\b\W*)?[{{<\[]{_A_TITLE}[}}>\]]",
    re.IGNORECASE,
)
_PLACEHOLDER_TITLE: Final = re.compile(
    r"[{<\[].*[}>\]]|(?:number|n{2,4}|x{2,4}|0{2,4})\W+.*title|.*\btitle of .*|(?:short )?title\W*"
    r"|adr[- ]?(?:n+|x+|0+)\b.*|.*<[^<>]*title[^<>]*>.*",
    re.IGNORECASE,
)
# In capitals: a heading `Status` is no placeholder.
_PLACEHOLDER_VALUE: Final = re.compile(
    r"^\W*(?i:status|date|stand|datum)\W*:\W*"
    r"(?i:date|status|y{4}-m{1,2}-d{1,2}.*|[{<\[][^\]}>]*y{2,4}.*"
    r"|[{<\[].*\|.*|proposed\s*[|/].*\|.*)\s*$"
    r"|^[^\w#=\n]*(?:STATUS|DATE|(?i:YYYY-MM-DD))\W*$(?!\n[-=~^*#]{3})",
    re.MULTILINE,
)
# To files beside it: a list of options may link to the pages of each.
_LINK_LINE: Final = re.compile(
    r"\s*(?:[-*+|]|\d+[.)])\s*.*(?:[(<\[`]|\s)(?!\w+:|//)[\w./% -]+\.(?:mdx?|markdown|rst|adoc)\b",
    re.IGNORECASE,
)
_TOCTREE: Final = re.compile(r"^(?:\.\. toctree::|[`~:]{3,}\{toctree\})", re.MULTILINE)
_HEAD: Final = 4_000
_OTHER_SECTIONS: Final = 3
_LISTED: Final = 3


def is_front_page(path: str) -> bool:
    """Whether a file is the README or the index of its folder, by its name."""
    return _stem(path) in FRONT_PAGES


def is_named_otherwise(path: str) -> bool:
    """Whether a name in a folder of decisions, from that folder on, is that of no record.

    The front page of a folder below may be a record that has the folder to itself.
    """
    *folders, _ = path.split("/")
    stem = _stem(path)
    if is_front_page(path):
        return not folders
    within = {_words(folder) <= ABOUT_TEMPLATES and _speaks(folder) for folder in folders}
    return stem in OTHER_PAGES or _is_template(stem) or _is_list(stem) or True in within


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].rsplit(".", 1)[0].lower()


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d_]+", name.lower()))


def _speaks(name: str) -> bool:
    return bool(_words(name) & TEMPLATES)


def _is_template(stem: str) -> bool:
    words = _words(stem)
    speaks = words & TEMPLATES or (words & EMPTY and words & {"adr", "decision"})
    return bool(speaks) and words <= ABOUT_TEMPLATES and not _DATED.match(stem)


def _is_list(stem: str) -> bool:
    """Whether a name is that of a list of records: a number or a day says that it is none."""
    words = _words(stem)
    return (
        len(words) > 1
        and bool(words & LISTS)
        and words <= ABOUT_LISTS
        and not re.search(r"\d", stem)
    )


def form_of(text: str, document: MarkdownDocument, record: Record) -> Form:
    """What a text looks like; `record` is what it says of itself."""
    if _is_unfilled(text, document, record):
        return Form.TEMPLATE
    if record.status_text or record.deciders or record.supersedes or record.superseded_by:
        return Form.RECORD
    if _is_list_of_links(text):
        return Form.INDEX
    headed = [section for section in document.sections if section.level]
    below = headed[1:] if headed and headed[0].level == 1 else headed
    if any(_SECTIONS.match(section_name(section)) for section in below):
        return Form.RECORD
    return Form.OTHER if len(below) >= _OTHER_SECTIONS else Form.PLAIN


def _is_list_of_links(text: str) -> bool:
    if _TOCTREE.search(text):
        return True
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    links = sum(bool(_LINK_LINE.match(line)) for line in lines)
    return links >= _LISTED and 2 * links > len(lines)


def _is_unfilled(text: str, document: MarkdownDocument, record: Record) -> bool:
    """Whether title and metadata still are what a template has in their place."""
    title = document.title or ""
    words = _words(title)
    titled = bool(words) and words <= ABOUT_TEMPLATES and _speaks(title)
    unnamed = bool(_PLACEHOLDER_TITLE.fullmatch(title.strip()))
    empty = bool(_PLACEHOLDER_VALUE.search(text[:_HEAD])) and record.date is None
    untitled = bool(_NO_TITLE.fullmatch(title.strip())) and record.date is None
    return titled or untitled or (unnamed and (empty or not record.status_text))
