"""JSON documents: the whole value, or as much of it as is whole.

What belongs here: what the formats with one JSON value a file have in common. A list may have an
entry that can't be read, and a file may break off; the entries that are whole count all the same.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from concordance.sessions.lines import BOM, LineError

_DECODER: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\n\r]*+")
# Bytes that are no UTF-8, as they are decoded here; JSON writes such characters as escapes.
_FOREIGN: Final = re.compile("[\udc80-\udcff]")
# A whole string, or a sign that opens, ends or parts values; a quote alone opens a string without
# an end. Possessive, so hostile text takes no more than its length.
_SIGN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Broken:
    """Stands in a list for an entry that can't be read; `reason` says why and where."""

    reason: str


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value, with `Broken` entries in its list; with `cut`, what came after is lost."""

    value: Any
    cut: bool = False


def read_document(data: bytes) -> Document:
    """One JSON value; of a list, or an object that holds lists, as much as is whole.

    Raises:
        LineError: Nothing of it can be read; the message says where it breaks.
    """
    try:
        text, sound = data.removeprefix(BOM).decode("utf-8"), True
    except UnicodeDecodeError:
        text, sound = data.removeprefix(BOM).decode("utf-8", "surrogateescape"), False
    places = _Places(text)
    start = _blank(text, 0)
    try:
        value, end = _value(text, start, places)
    except LineError as error:
        failure = str(error)
    else:
        end = _blank(text, end)
        if sound and end == len(text):
            return Document(value)
        more = f"not JSON: more stands after the value at {places.at(end)}"
        failure = more if sound else _not_utf8(text, 0, len(text), places) or more
    found = _Partial(text, places, sound=sound).read(start)
    if found is None:
        raise LineError(failure)
    return found


class _Places:
    """Places of a text as an editor counts them, from 1; asked in order, as each costs its way."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = 0
        self._start = 0
        self._counted = 0

    def at(self, place: int) -> str:
        """The line and the character in it."""
        if place < self._counted:
            self._lines = self._start = self._counted = 0
        self._lines += self._text.count("\n", self._counted, place)
        self._start = self._text.rfind("\n", self._counted, place) + 1 or self._start
        self._counted = place
        return f"line {self._lines + 1:,}, character {place - self._start + 1:,}"


class _Partial:
    """Reads a document of which not everything is JSON, or UTF-8."""

    def __init__(self, text: str, places: _Places, *, sound: bool) -> None:
        self._text = text
        self._places = places
        self._sound = sound
        self._whole = 0
        self._cut = False

    def read(self, at: int) -> Document | None:
        """What can be read; None where that is no entry at all."""
        first = self._text[at : at + 1]
        value: Any = None
        if first == "[":
            value, end = self._list(at)
            rest = len(self._text) if end is None else _blank(self._text, end)
            if rest < len(self._text):
                value.append(Broken(f"more stands after the list at {self._places.at(rest)}"))
        elif first == "{":
            value = self._object(at)
        return None if value is None or not self._whole else Document(value, self._cut)

    def _object(self, at: int) -> dict[str, Any] | None:
        """The members up to the first that can't be read; None where these are lines of JSON."""
        text, members, end = self._text, dict[str, Any](), at
        lists: list[list[Any]] = []
        while text[end : end + 1] in ("{", ","):
            try:
                key, end = _value(text, _blank(text, end + 1), self._places)
                end = _blank(text, end)
                if not isinstance(key, str) or text[end : end + 1] != ":":
                    break
                end = _blank(text, end + 1)
                if text[end : end + 1] == "[":
                    members[key], after = self._list(end)
                    lists.append(members[key])
                    if after is None:
                        return members
                else:
                    members[key], after = self._member(end)
            except LineError:
                break
            end = _blank(text, after)
        if text[end : end + 1] == "}":
            return members if _blank(text, end + 1) == len(text) else None
        self._cut = True
        if lists:
            lists[-1].append(Broken(self._breaks_off(end)))
        return members

    def _member(self, at: int) -> tuple[Any, int]:
        """A value that is no list; in a text alone, such as a title, a byte may be foreign."""
        value, end = _value(self._text, at, self._places)
        wrong = None if self._sound else _not_utf8(self._text, at, end, self._places)
        if wrong is not None and not isinstance(value, str):
            raise LineError(wrong)
        return value, end

    def _list(self, at: int) -> tuple[list[Any], int | None]:
        """The entries of a list, and where it ends; None where it breaks off."""
        values: list[Any] = []
        start = _blank(self._text, at + 1)
        if self._text[start : start + 1] == "]":
            return values, start + 1
        while True:
            value, end = self._entry(start)
            values.append(value)
            self._whole += not isinstance(value, Broken)
            if end is None:
                break
            if self._text[end : end + 1] == "]":
                return values, end + 1
            start = _blank(self._text, end + 1)
            if start >= len(self._text):
                if end < len(self._text) or not isinstance(value, Broken):
                    values.append(Broken(self._breaks_off(len(self._text))))
                break
        self._cut = True
        return values, None

    def _entry(self, at: int) -> tuple[Any, int | None]:
        """An entry, and where the sign after it stands: a comma, the list's end, or the text's."""
        end = _extent(self._text, at)
        if end is None:
            return Broken(f"{self._breaks_off(at)}, or can't be read from there"), None
        wrong = None if self._sound else _not_utf8(self._text, at, end, self._places)
        if wrong is not None:
            return Broken(wrong), end
        # Apart from the rest: an error counts the lines before it.
        part = self._text[at:end]
        try:
            value, after = _value(part, 0, self._places, at)
        except LineError as error:
            return Broken(str(error)), end
        after = _blank(part, after)
        if after < len(part):
            return Broken(f"not JSON: no comma at {self._places.at(at + after)}"), end
        return value, end

    def _breaks_off(self, at: int) -> str:
        return f"the document breaks off at {self._places.at(at)}"


def _value(text: str, at: int, places: _Places, before: int = 0) -> tuple[Any, int]:
    """A value, and where it ends; `before` it stands what is counted for its place.

    Raises:
        LineError: It is none.
    """
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        said = f"not JSON: {error.msg} at {places.at(before + error.pos)}"
        raise LineError(said) from None
    except RecursionError:
        raise LineError(f"nested too deeply, from {places.at(before + at)}") from None
    except ValueError as error:
        # A number of thousands of digits is JSON, and more than Python reads.
        raise LineError(str(error).split(";")[0]) from None


def _extent(text: str, at: int) -> int | None:
    """Where the sign after an entry stands, or the text's end, told by brackets and quotes.

    None where the entry has no end.
    """
    depth = 0
    for found in _SIGN.finditer(text, at):
        sign = found[0]
        if sign == '"':
            return None
        if sign in ("[", "{"):
            depth += 1
        elif depth == 0 and sign in (",", "]"):
            return found.start()
        elif sign in ("]", "}"):
            depth -= 1
            if depth < 0:
                return None
    return len(text) if depth == 0 and at < len(text) else None


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _not_utf8(text: str, start: int, end: int, places: _Places) -> str | None:
    found = _FOREIGN.search(text, start, end)
    return None if found is None else f"not UTF-8 at {places.at(found.start())}"
