"""The block structure of a Markdown text, by markdown-it-py with its block rules only.

What belongs here: how the parser is run, and bounded. Measured with markdown-it-py 4.3 as it
comes: past its nesting limit a list swallows the rest of the document, headings and all; a quote
looks ahead to the next blank line, again and again, so `> #` and `x` by turns take quadratic time
(8,000 lines: 27 s); every table cell and paragraph costs three tokens, so that a megabyte of
short lines takes hundreds of megabytes. Hence: containers deeper than `MAX_LEVEL` are read as
text, look-ahead that comes to nothing has a budget per document, and only tokens that become
blocks are kept. What is left is linear in the text, for any text, and recursion has a fixed depth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote, list_block, table
from markdown_it.token import Token

from concordance.text.lines import LINE_END

BlockKind = Literal[
    "front_matter",
    "heading",
    "fence",
    "code",
    "table",
    "paragraph",
    "list",
    "quote",
    "html",
    "rule",
    "other",
]
"""What a block is; a paragraph or a heading inside a list or a quote has the kind of that."""

MAX_LEVEL: Final = 20
"""So deep may containers nest: a quote is one level, a list with its item two."""

_FREE_LOOKAHEAD: Final = 1000
_LEAST_LOOKAHEAD: Final = 4
_LEAVES: Final[dict[str, BlockKind]] = {
    "heading_open": "heading",
    "fence": "fence",
    "code_block": "code",
    "table_open": "table",
    "paragraph_open": "paragraph",
    "html_block": "html",
    "hr": "rule",
}
_CONTAINERS: Final[dict[str, BlockKind]] = {
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "blockquote_open": "quote",
}
# What starts a block can be told from its first character; asking that first halves the time.
_FIRST_CHARACTERS: Final = {
    "fence": "`~",
    "blockquote": ">",
    "hr": "*-_",
    "list": "-+*0123456789",
    "reference": "[",
    "html_block": "<",
    "heading": "#",
}

Rule = Callable[[StateBlock, int, int, bool], bool]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A block without blocks inside, as lines from 0, `last` exclusive.

    `level` is 1 to 6 for a heading outside lists and quotes, else 0; `source` is its Markdown.
    """

    kind: BlockKind
    first: int
    last: int
    level: int = 0
    source: str = ""


def outline(text: str) -> list[Leaf]:
    """Return the leaves of `text` in order; definitions of links and blank lines are in none."""
    return outline_with_definitions(text)[0]


def outline_with_definitions(text: str) -> tuple[list[Leaf], dict[str, str]]:
    """Return the leaves of `text`, and the targets that it defines for labels, by `label_key`."""
    source = LINE_END.sub("\n", text).replace("\0", "\ufffd")
    parser = _parser()
    state = _Outline(source, parser)
    parser.block.tokenize(state, 0, state.lineMax)
    defined = state.env.get("references", {})
    definitions = {label_key(label): one["href"] for label, one in defined.items()}
    return [_leaf(*kept) for kept in state.kept], definitions


def label_key(label: str) -> str:
    """A link's label as it is looked up: case and the width of spaces don't count."""
    return " ".join(label.split()).casefold()


def _leaf(kind: BlockKind, token: Token, heading: Token | None) -> Leaf:
    first, last = token.map or (0, 0)
    if heading is None:
        return Leaf(kind, first, last)
    return Leaf(kind, first, last, int(token.tag[1]), heading.content)


class _Outline(StateBlock):
    """A parser state that keeps the tokens of leaves, and lends one spare token for the rest."""

    def __init__(self, source: str, parser: MarkdownIt) -> None:
        super().__init__(source, parser, {}, [])
        self.kept: list[tuple[BlockKind, Token, Token | None]] = []
        self.lookahead = _FREE_LOOKAHEAD + self.lineMax
        self._spare = Token("", "", 0)
        self._container: BlockKind = "other"
        self._heading: Token | None = None

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        if nesting < 0:
            self.level -= 1
            return self._spare
        token = self._spare
        kind = _LEAVES.get(ttype)
        if kind is not None:
            token = self._keep(kind, Token(ttype, tag, nesting))
        elif ttype == "inline" and self._heading is not None:
            token, self._heading = self._heading, None
        elif self.level == 0:
            self._container = _CONTAINERS.get(ttype, "other")
        if nesting > 0:
            self.level += 1
        return token

    def _keep(self, kind: BlockKind, token: Token) -> Token:
        if self.level > 0:
            inside = self._container if kind in ("heading", "paragraph", "rule") else kind
            self.kept.append((inside, token, None))
            return token
        self._heading = Token("inline", "", 0) if kind == "heading" else None
        self.kept.append((kind, token, self._heading))
        return token


class _BlockParser(MarkdownIt):
    """markdown-it without the rewriting of link targets, which nothing here reads."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the name is the parser's
        return url


@cache
def _parser() -> MarkdownIt:
    parser = _BlockParser("commonmark", {"maxNesting": 2 * MAX_LEVEL})
    parser.enable("table")
    ruler = parser.block.ruler
    replacements: dict[str, Rule] = {
        "table": _table,
        "blockquote": _quote,
        "list": _list,
    }
    for rule in ruler.__rules__:
        bounded = replacements.get(rule.name, rule.fn)
        first = _FIRST_CHARACTERS.get(rule.name)
        fn = bounded if first is None else _starting_with(frozenset(first), bounded)
        ruler.at(rule.name, fn, {"alt": rule.alt})
    ruler.getRules("")  # compiled here: the ruler fills its cache in steps, and threads share it
    return parser


def _starting_with(characters: frozenset[str], rule: Rule) -> Rule:
    def guarded(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        offset = state.bMarks[start] + state.tShift[start]
        return state.src[offset : offset + 1] in characters and rule(state, start, end, silent)

    return guarded


def _list(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return state.level < MAX_LEVEL and list_block(state, start, end, silent)


def _quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if silent or state.level >= MAX_LEVEL or not isinstance(state, _Outline):
        return state.level < MAX_LEVEL and blockquote(state, start, end, silent)
    # The rule reads on to the next blank line and may then take less. Past the budget it sees
    # only the next lines, so a longer quote becomes several quotes.
    limit = min(end, start + max(_LEAST_LOOKAHEAD, state.lookahead))
    blank = start
    while blank < limit and not state.isEmpty(blank):
        blank += 1
    found = blockquote(state, start, limit, silent)
    state.lookahead -= max(0, blank - (state.line if found else start))
    return found


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Find a table's extent as the parser's own rule does, without its cells."""
    if not table(state, start, end, True):
        return False
    if silent:
        return True
    terminators = state.md.block.ruler.getRules("blockquote")
    parent, state.parentType = state.parentType, "table"
    line = start + 2
    while line < end and state.sCount[line] >= state.blkIndent and not state.isEmpty(line):
        if state.is_code_block(line) or any(ends(state, line, end, True) for ends in terminators):
            break
        line += 1
    state.parentType = parent
    state.push("table_open", "table", 0).map = [start, line]
    state.line = line
    return True
