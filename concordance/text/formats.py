"""The formats that are read, by the ending of a name.

What belongs here: which parser reads which file. Every parser gives the same kind of document.
"""

from __future__ import annotations

from concordance.settings import ASCIIDOC_SUFFIXES, RST_SUFFIXES
from concordance.text.asciidoc import parse_asciidoc
from concordance.text.markdown import MarkdownDocument, parse_markdown
from concordance.text.rst import parse_rst


def parse(name: str, text: str) -> MarkdownDocument:
    """Parse a file's text as the ending of its name says; every other one is read as Markdown."""
    low = name.lower()
    if low.endswith(RST_SUFFIXES):
        return parse_rst(text)
    if low.endswith(ASCIIDOC_SUFFIXES):
        return parse_asciidoc(text)
    return parse_markdown(text)
