"""reStructuredText to sections and blocks, by docutils' own states.

What belongs here: how docutils is run so that any file can be read. Its states decide what a title,
a paragraph or a table is; here they note its lines and skip what is inside. So no directive and no
role runs (they read files and the clock, and change what later documents mean), nothing nests (a
deep list ends in a recursion error, a long one takes quadratic time), and every block has its
lines, which docutils' tree does not tell.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, states
from docutils.statemachine import TransitionCorrection, UnexpectedIndentationError
from docutils.utils import new_document

from concordance.text.lines import LINE_END
from concordance.text.markdown import MarkdownDocument, placed
from concordance.text.outline import BlockKind, Leaf, label_key

_NEVER: Final = 5
_TAB: Final = 8
_LITERAL_FOLLOWS: Final = re.compile(r"(?<!\\)(?:\\\\)*::$")
_DIRECTIVE: Final = re.compile(r"\.\. +(?:\|[^|]+\| +)?([\w+.:-]+?) ?::(?: |$)")
_TARGET: Final = re.compile(
    r"\.\. +_(?:`(?P<phrase>[^`]+)`|(?P<name>[^`_\s:][^:]*)): +(?P<target>\S+)$"
)
_FOOTNOTE: Final = re.compile(r"\.\. +\[")
_DECORATION: Final = frozenset({"contents", "figure", "image", "include", "meta", "raw", "toctree"})
_TABLE_BORDER: Final = re.compile(r"=+(?: +=+)+ *$")
# A simple table may hold blank lines; without a bottom border it would take the rest of the file.
_MOST_TABLE_LINES: Final = 2_000

Transition = tuple[list[str], str | None, list[str]]


def parse_rst(text: str) -> MarkdownDocument:
    """Parse any text; offsets are those of `text` as it was given, whatever its line endings.

    A title opens a section at the level that its adornment has in this document. One in a
    directive, a list, a quote or a literal block opens none.
    """
    machine = _run(text)
    return placed(text, machine.leaves, definitions=machine.definitions)


def rst_outline(text: str) -> list[Leaf]:
    """Return the blocks of `text` in order; blank lines, and lines in error, are in none."""
    return _run(text).leaves


def _run(text: str) -> _Machine:
    lines = [line.expandtabs(_TAB).rstrip() for line in LINE_END.split(text)]
    machine = _Machine(state_classes=[Body, Text, Line], initial_state="Body")
    machine.run(lines, new_document("", _settings()), inliner=_Words())
    return machine


@cache
def _settings() -> Any:
    settings = get_default_settings(Parser)
    settings.report_level = settings.halt_level = _NEVER  # what is wrong in a file raises nothing
    settings.file_insertion_enabled = settings.raw_enabled = False
    return settings


class _Machine(states.RSTStateMachine):
    """docutils' state machine, with the blocks and the targets that its states have noted."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.leaves: list[Leaf] = []
        self.definitions: dict[str, str] = {}


class _Words(states.Inliner):
    """Takes every text as it is: inline markup opens no section."""

    def init_customizations(self, settings: Any) -> None:
        """Nothing to prepare."""

    def parse(self, text: str, lineno: int, memo: Any, parent: Any) -> Any:
        return [nodes.Text(text)], []


class _Noting(states.RSTState):
    """What all states share: noting a block's lines, from 0, the last one excluded."""

    state_machine: _Machine

    @property
    def here(self) -> int:
        """The current line, from 1."""
        return int(self.state_machine.abs_line_number())

    def note(self, kind: BlockKind, first: int) -> None:
        """Keep the block from line `first`, from 0, to the current line, or the last with text."""
        lines: Any = self.state_machine.input_lines
        last = min(self.here, len(lines))
        while last > first + 1 and not lines[last - 1]:
            last -= 1
        self.state_machine.leaves.append(Leaf(kind, first, last))

    def section(self, title: str, source: str, style: Any, lineno: int, messages: Any) -> None:
        """A title; `lineno` is its own line, from 1, and the underline comes next."""
        if not self.check_subsection(source, style, lineno):
            return
        opened = nodes.section()
        self.parent += opened
        self.parent = opened
        first = lineno - 2 if isinstance(style, tuple) else lineno - 1
        level = len(opened.section_hierarchy())
        self.state_machine.leaves.append(Leaf("heading", first, lineno + 1, level, title))


class Body(_Noting, states.Body):
    """The start of a block; the machine knows its states by their names."""

    def indent(self, match: Any, context: Any, next_state: Any) -> Any:
        first = self.here - 1
        self.state_machine.get_indented()
        self.note("quote", first)
        return context, next_state, []

    def bullet(self, match: re.Match[str], context: Any, next_state: Any) -> Any:
        return self._item(match, next_state)

    def enumerator(self, match: re.Match[str], context: Any, next_state: Any) -> Any:
        states_of: Any = self  # what follows has no types
        form, sequence, _, ordinal = states_of.parse_enumerator(match)
        if not states_of.is_enumerated_list_item(ordinal, sequence, form):
            raise TransitionCorrection("text")
        return self._item(match, next_state)

    def _item(self, match: re.Match[str], next_state: Any) -> Any:
        first = self.here - 1
        if match.string[match.end() :]:
            self.state_machine.get_known_indented(match.end())
        else:
            self.state_machine.get_first_known_indented(match.end())
        self.note("list", first)
        return [], next_state, []

    def _indented(self, kind: BlockKind, match: re.Match[str], next_state: Any) -> Any:
        first = self.here - 1
        self.state_machine.get_first_known_indented(match.end())
        self.note(kind, first)
        return [], next_state, []

    def field_marker(self, match: re.Match[str], context: Any, next_state: Any) -> Any:
        return self._indented("list", match, next_state)

    def option_marker(self, match: re.Match[str], context: Any, next_state: Any) -> Any:
        return self._indented("list", match, next_state)

    def line_block(self, match: re.Match[str], context: Any, next_state: Any) -> Any:
        first = self.here - 1
        self.state_machine.get_first_known_indented(match.end(), until_blank=True)
        self.note("paragraph", first)
        return [], next_state, []

    def doctest(self, match: Any, context: Any, next_state: Any) -> Any:
        return self._lines("fence", next_state)

    def grid_table_top(self, match: Any, context: Any, next_state: Any) -> Any:
        return self._lines("table", next_state)

    def _lines(self, kind: BlockKind, next_state: Any) -> Any:
        first = self.here - 1
        self.state_machine.get_text_block()
        self.note(kind, first)
        return [], next_state, []

    def simple_table_top(self, match: Any, context: Any, next_state: Any) -> Any:
        """Up to the second border, or to one that a blank line follows."""
        lines: Any = self.state_machine.input_lines
        start = self.state_machine.line_offset
        limit = min(len(lines), start + _MOST_TABLE_LINES)
        borders = 0
        for number in range(start + 1, limit):
            if _TABLE_BORDER.match(lines[number]):
                borders += 1
                if borders > 1 or number + 1 == len(lines) or not lines[number + 1].strip():
                    first = self.here - 1
                    self.state_machine.next_line(number - start)
                    self.note("table", first)
                    return [], next_state, []
        return self._lines("table", next_state)

    def explicit_markup(self, match: re.Match[str], context: Any, next_state: Any) -> Any:
        line = match.string
        if line.strip() == ".." and self.state_machine.is_next_line_blank():
            self.note("other", self.here - 1)  # an empty comment, which takes nothing with it
            return [], next_state, []
        target = _TARGET.match(line)
        if target is not None:
            name = label_key(target["phrase"] or target["name"])
            self.state_machine.definitions.setdefault(name, target["target"])
        directive = _DIRECTIVE.match(line)
        kind: BlockKind = "other"
        if directive is not None:
            kind = "html" if directive[1].lower() in _DECORATION else "fence"
        elif _FOOTNOTE.match(line):
            kind = "paragraph"
        return self._indented(kind, match, next_state)

    def anonymous(self, match: re.Match[str], context: Any, next_state: Any) -> Any:
        return self._indented("other", match, next_state)


class Text(_Noting, states.Text):
    """The second line of a paragraph, a title or a definition."""

    def blank(self, match: Any, context: list[str], next_state: Any) -> Any:
        before = self.here - 1
        self.state_machine.leaves.append(Leaf("paragraph", before - 1, before))
        if _LITERAL_FOLLOWS.search(context[0]):
            self._literal()
        return [], "Body", []

    def indent(self, match: Any, context: Any, next_state: Any) -> Any:
        first = self.here - 2
        self.state_machine.get_indented()
        self.note("list", first)
        return [], "Body", []

    def text(self, match: Any, context: list[str], next_state: Any) -> Any:
        first = self.here - 2
        try:
            block = list(self.state_machine.get_text_block(flush_left=True))
        except UnexpectedIndentationError as error:
            block = list(error.args[0])
        self.note("paragraph", first)
        if _LITERAL_FOLLOWS.search((context + block)[-1]):
            try:
                self.state_machine.next_line()
            except EOFError:
                return [], next_state, []
            self._literal()
        return [], next_state, []

    def _literal(self) -> None:
        indented, _, offset, _ = self.state_machine.get_indented()
        if any(line.strip() for line in indented):
            self.note("fence", offset)


class Line(_Noting, states.Line):
    """The line after an overline, or after a rule."""

    def blank(self, match: Any = None, context: Any = None, next_state: Any = None) -> Any:
        return self._rule(context, self.here - 2)

    def eof(self, context: list[str]) -> Any:
        self._rule(context, self.here - 2)
        return []

    def _rule(self, context: list[str], first: int) -> Any:
        if len(context[0].strip()) < len("----"):
            self.state_correction(context)
        self.state_machine.leaves.append(Leaf("rule", first, first + 1))
        return [], "Body", []
