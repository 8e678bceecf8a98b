"""The markup of a decision record's values: links in one form, and what a reader sees of them.

What belongs here: links of every kind to `[label](<target>)`, and values to plain words. Which
record a link means is not decided here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Final

from concordance.text.outline import label_key

_MOST_CHARACTERS: Final = 20_000
COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
FORMATTING: Final = re.compile(
    r"</?(?:b|strong|em|i|u|p|span|div|td|tr|th|dt|dd|dl|table|tbody|thead|font|li|ul|ol|small|mark"
    r"|sub|sup|section|summary|details|center)\b[^<>]*>",
    re.IGNORECASE,
)
TEXT_ENDING: Final = r"\.(?:mdx?|markdown|rst|adoc|asciidoc|html?|txt|pdf)"

_BOXES: Final = (
    r"(?:attention|caution|danger|deprecated|error|hint|important|note|seealso|tip|warning"
    r"|admonition|versionchanged)"
)
_RST_BOX: Final = re.compile(rf"\.\. {_BOXES}::[ \t]*", re.IGNORECASE)
_MYST_BOX: Final = re.compile(rf"[ ]{{0,3}}(?:`{{3,}}|~{{3,}}){{{_BOXES}}}[^\n]*\n", re.IGNORECASE)
_OPEN_BOX: Final = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]+[\w-]+[^\n]*\n?", re.IGNORECASE)

_DEFINITION: Final = re.compile(
    r"^[ ]{0,3}\[[^\[\]\n]{1,999}\]:[ \t]*\S.*$|^\.\. +_[^\n]*$|^\.\. +__:.*$", re.MULTILINE
)
_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LINE_BREAK: Final = re.compile(r"(?:[ \t]\+|\\)[ \t]*$", re.MULTILINE)
# One pass from left to right: code, and what rst and AsciiDoc write with `<`, stay as they are.
_LINKS: Final = re.compile(
    r"(?P<kept><<[^<>]*>>|(?:link|xref):[^\s\[\]]+\[[^\[\]]*\]|\[\[[^\[\]]*\]\]|`[^`<>]*<[^<>`]*>`_{0,2})"
    r"|`(?P<phrase>[^`<>]{1,200})`(?P<named>_(?!\w))?"
    r"|<a\b(?P<attributes>[^<>]*)>(?P<inside>(?:(?!</?a\b)[^\n]){0,400}?)</a\s*>"
    r"|<(?P<address>[^\s<>`\"'=][^<>`\"'=\n]{0,400}?)>"
    r"|(?P<image>!?)\[(?P<label>(?:[^\[\]\\]|\\.){1,999})\]"
    r"(?P<target>\((?:<[^<>\n]*>|(?:[^()\s\\]|\\.|\([^()\s]*\))*)(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)"
    r"|\[(?P<key>[^\[\]]{0,999})\])?"
    r"|(?<![\w`])(?P<word>[^\W_][\w.-]{0,80}?)_(?![\w_`])",
    re.IGNORECASE | re.DOTALL,
)
_HREF: Final = re.compile(r"\bhref\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_ADDRESS: Final = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.-]{{1,31}}:\S*|.*{TEXT_ENDING}(?:[#?].*)?", re.IGNORECASE
)
_NUMBERED: Final = re.compile(
    r"(?:adrs?|madrs?|decisions?|records?|rfc|dr)?[\s_#:-]*\d{1,5}(?:[-_.: ].*)?", re.IGNORECASE
)
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_INLINE: Final = re.compile(
    r"\((?:<(?P<angled>[^<>\n]*)>|(?P<bare>\S*?))(?:\s+(?:\".*|'.*|\(.*))?\s*\)", re.DOTALL
)

# Within one paragraph; and a box that is not ticked.
_STRUCK: Final = re.compile(
    r"(?<![~/(])~~(?!~)(?:[^~\n]|~(?!~)|\n(?![ \t]*\n)){1,1000}~~(?!~)"
    r"|<(?P<tag>del|s|strike)(?:\s[^<>]*)?>[^<]{0,1000}(?:<(?!/?(?:del|s|strike)\b)[^<]{0,1000}){0,20}"
    r"</(?P=tag)\s*>|^[ \t]*[-*+][ \t]*\[ \][^\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
_TICKED: Final = re.compile(r"\[x\](?!\()", re.IGNORECASE)
_LINK: Final = re.compile(
    r"!?\[([^\[\]]*)\](?:\((?:<[^<>]*>[^()]*|(?:[^()]|\([^()]*\))*)\)|\[[^\[\]]*\])"
    r"|(?::[a-z:]{1,60}:)?`([^`<>]+?)\s*<[^<>`]*>`_{0,2}|(?:link|xref):[^\s\[\]]+\[([^\[\]]*)\]"
)
_ROLE: Final = re.compile(r":[a-z:]{1,60}:`([^`]*)`")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>")
_MARKS: Final = re.compile(r"[*`{}\"“”]|(?<!\w)[_'‘’]+|[_'‘’]+(?!\w)")


def in_box(written: str, above: str) -> list[str] | None:
    """The lines of a box that a generator of pages draws, such as a warning; None where it is none.

    Args:
        written: A block, as it stands.
        above: The block before it: MkDocs' boxes are code below a line of their own.
    """
    opened = _RST_BOX.match(written) or _MYST_BOX.match(written)
    if opened is None and _OPEN_BOX.fullmatch(above) is None:
        return None
    inside = written if opened is None else written[opened.end() :]
    return [line.strip() for line in inside.splitlines()]


def linked(text: str, definitions: Mapping[str, str]) -> str:
    """A value whose links stand in it as `[label](<target>)`, bare of comments and formatting tags.

    What is struck out is gone, too. `definitions` are the targets that the document gives to
    labels. A label that has none, in brackets, is the words that it is.
    """
    text = _DEFINITION.sub("", COMMENT.sub("", text[:_MOST_CHARACTERS]))
    text = without_struck(text)
    text = FORMATTING.sub("", _LINE_BREAK.sub("", _BREAK.sub("\n", text)))

    def rewritten(match: re.Match[str]) -> str:
        return _rewritten(match, definitions)

    return _LINKS.sub(rewritten, text)


def _rewritten(match: re.Match[str], definitions: Mapping[str, str]) -> str:
    if match["phrase"] is not None or match["word"] is not None:
        name = match["phrase"] or match["word"]
        target = definitions.get(label_key(name)) if match["word"] or match["named"] else None
        return match[0] if target is None else _link(name, target)
    if match["attributes"] is not None:
        href = _HREF.search(match["attributes"])
        target = html.unescape(next(filter(None, href.groups()), "")) if href else ""
        return _link(match["inside"] or target, target) if target else match["inside"]
    if match["address"] is not None:
        address = match["address"].strip()
        if _ADDRESS.fullmatch(address):
            return _link(address, address)
        return address if _NUMBERED.fullmatch(address) else match[0]
    return match[0] if match["label"] is None else _bracketed(match, definitions)


def _bracketed(match: re.Match[str], definitions: Mapping[str, str]) -> str:
    label, target, key = match["label"], match["target"], match["key"]
    if match["image"]:
        return match[0]
    if target is not None and key is None:
        inline = _INLINE.fullmatch(target)
        if inline is None:
            return match[0]
        return _link(label, _unescaped(inline["angled"] or inline["bare"] or ""))
    defined = definitions.get(label_key(key or label))
    if defined is not None:
        return _link(label, defined)
    return label if target is None and _NUMBERED.fullmatch(label) else match[0]


def _link(label: str, target: str) -> str:
    """A link whose target can hold anything but `<`, `>` and line ends."""
    address = re.sub(r"[<>\s]+", " ", target).strip()
    shown = " ".join(_TAG.sub("", label).replace("[", "(").replace("]", ")").split())
    return f"[{shown}](<{address}>)" if address else shown


def _unescaped(target: str) -> str:
    return html.unescape(_ESCAPED.sub(r"\1", target))


def plain(text: str) -> str:
    """A value without its markup: links are their labels; comments and struck words are gone."""
    text = _TICKED.sub("", without_struck(COMMENT.sub("", text[:_MOST_CHARACTERS])))
    text = _LINK.sub(lambda m: m[1] or m[2] or m[3] or "", text)
    return _MARKS.sub("", _TAG.sub("", _ROLE.sub(r"\1", text))).strip()


def without_struck(text: str) -> str:
    """A text without what is struck out in it, by tildes, by a tag or by a box left open."""
    return _STRUCK.sub("", text)


def without_links(text: str) -> str:
    """A value in which a link's words stay, and the numbers of a label that has words go."""

    def numberless(match: re.Match[str]) -> str:
        label = match[1] or match[2] or match[3] or ""
        named = re.search(r"[^\W\d_]{2,}", label)
        return match[0].replace(label, re.sub(r"\d", "", label)) if named else match[0]

    return _LINK.sub(numberless, text)
