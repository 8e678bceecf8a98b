"""A heading's Markdown source to the words that a reader sees.

What belongs here: enough of inline Markdown for titles. A title repeats in every chunk below it,
so it has a bound, and what looks like code keeps its characters.
"""

from __future__ import annotations

import html
import re
from typing import Final

MAX_TITLE: Final = 250
"""Titles are cut to so many characters; a line of a megabyte above `---` is a heading too."""

_MAX_SOURCE: Final = 1000
_MAX_DEPTH: Final = 4
_TRAILING_ATTRIBUTES: Final = re.compile(r"[ \t]*\{:?[ \t]*[#.][^{}]*\}[ \t]*$")
_MARKUP: Final = re.compile(r"[\\`*_\[<&~]|\{\{")
_SPACES: Final = re.compile(r"\s+")
_TAGS: Final = (
    "a|abbr|b|big|br|center|code|del|div|em|font|h[1-6]|i|img|ins|kbd|mark|p|picture|q|s|samp"
    "|small|source|span|strong|sub|sup|tt|u|var"
)
_INLINE: Final = re.compile(
    rf"""
      \\(?P<escaped>[!-/:-@\[-`{{-~])
    | (?<!`)(?P<ticks>`++)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)
    | !?\[(?P<label>(?:[^\[\]\\]|\\.|!?\[[^\[\]]*\](?:\([^()]*\))?)*)\]
      (?:\((?:[^()\\]|\\.|\([^()]*\))*\)|\[[^\[\]]*\])
    | <(?P<address>[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]*)>
    | (?P<tag></?(?:{_TAGS})(?:\s[^<>]*)?/?>|<!--.*?-->|\{{\{{[<%].*?[>%]\}}\}})
    | (?P<stars>\*{{1,3}}|~~)(?=[^\s*~])(?P<starred>.+?)(?<=[^\s])(?P=stars)
    | (?<!\w)(?P<lines>_{{1,3}})(?=[^\s_])(?P<lined>.+?)(?<=[^\s])(?P=lines)(?!\w)
    """,
    re.VERBOSE | re.IGNORECASE,
)


def plain_title(source: str) -> str:
    """Return a heading's text without its inline markup, on one line, at most `MAX_TITLE` long.

    Emphasis marks, code ticks, link targets, images' addresses, common HTML tags, entities and a
    trailing `{#id}` go; where nothing would be left, the source stays as it is written.
    """
    source = _SPACES.sub(" ", source[:_MAX_SOURCE]).strip()
    title = _TRAILING_ATTRIBUTES.sub("", source)
    if _MARKUP.search(title):
        title = _SPACES.sub(" ", html.unescape(_without_markup(title, _MAX_DEPTH))).strip()
    title = title or source
    return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1].rstrip() + "…"


def _without_markup(source: str, depth: int) -> str:
    if depth == 0:
        return source

    def replaced(match: re.Match[str]) -> str:
        if match["escaped"] or match["code"]:
            return match["escaped"] or match["code"].strip()
        inner = match["label"] or match["starred"] or match["lined"]
        if inner is not None:
            return _without_markup(inner, depth - 1)
        return match["address"] or ""

    return _INLINE.sub(replaced, source)
