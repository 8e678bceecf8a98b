"""The formats that are read, by the ending of a name.

What belongs here: which parser reads which file. Every parser gives the same kind of document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from concordance.settings import ASCIIDOC_SUFFIXES, RST_SUFFIXES
from concordance.text.asciidoc import parse_asciidoc
from concordance.text.markdown import MarkdownDocument, parse_markdown
from concordance.text.rst import parse_rst

Format = Literal["markdown", "rst", "asciidoc"]

_PARSERS: Final[dict[Format, Callable[[str], MarkdownDocument]]] = {
    "markdown": parse_markdown,
    "rst": parse_rst,
    "asciidoc": parse_asciidoc,
}


def format_of(name: str) -> Format:
    """The format that the ending of a name says; every other one is read as Markdown."""
    low = name.lower()
    if low.endswith(RST_SUFFIXES):
        return "rst"
    return "asciidoc" if low.endswith(ASCIIDOC_SUFFIXES) else "markdown"


def parse(name: str, text: str) -> MarkdownDocument:
    """Parse a file's text by the format of its name."""
    return _PARSERS[format_of(name)](text)
