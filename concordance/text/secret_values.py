"""Values that follow a name such as `password`: which of them are secrets, and which stand for one.

What belongs here: assignments, in `.env` lines, configuration, code, JSON and prose. The line is
drawn by the name, the sign between, the quotes and what the value is made of: documentation
is full of `password: string` and `token = response.token`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from concordance.text.secret_names import BARE, LONGEST, SHORT_NAMES, SINGLE, named_values
from concordance.text.secret_placeholders import is_placeholder

_REST: Final = {
    "double": re.compile(r'(?:[^"\\\r\n]|\\[^\r\n])*+'),
    "escaped": re.compile(r'[^"\\\r\n]*+'),
    "single": re.compile(rf"{SINGLE}*+"),
    "ticked": re.compile(r"[^`\r\n]*+"),
    "bare": re.compile(rf"{BARE}*+"),
}
_ENVIRONMENT: Final = re.compile(
    r"[ \t>#-]*(?:(?:export|set|ENV|ARG|declare -x|-e|--env)[ \t]+)*[\"']?[A-Z][A-Z0-9_]*"
)
# What a space may part from its value: an option, a word of `.netrc`, a variable that is set.
_OPTION: Final = re.compile(
    r"(?:^|\s)(?:-{1,2}[\w-]{0,40}|login[ \t]+\S{1,60}[ \t]+"
    r"|(?:ENV|ARG|setx?)[ \t]+[\w.:/-]{0,60})$"
)
_SETTER: Final = re.compile(r"(?:\b|_)(?:set|with)_?$|(?:set|with|[a-z]Set)[A-Z_]\w{0,40}$|\.$")
_ARGUMENT: Final = re.compile(r"\w\([ \t]{0,4}[\"'][\w.-]{0,60}$")
_DEFINED: Final = re.compile(r"\bdefine\([ \t]{0,4}[\"'][\w.-]{0,60}$")
_BEFORE: Final = 120
_QUERY: Final = re.compile(r"[?&][\w.-]*$")  # of an address: the next `&` ends a value
_PATH: Final = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@ -]{0,40}){2,}|\.{0,2}/[\w.-]{1,40}"
)
_DOTTED: Final = re.compile(r"[A-Za-z_]\w{0,40}(?:(?:\.|->|::|\?\.)[A-Za-z_]\w{0,40})+")
_NUMBER: Final = re.compile(r"[+-]?[\d.,:_/-]+[A-Za-z]{0,3}")
_METHOD: Final = re.compile(
    r"(?i)(?:sha|utf|md|base|aes|rsa|iso|ed|hs|rs|es|hmac)[_-]?\d{1,4}(?:[_-][^\W\d_]{1,20}){0,3}"
    r"|(?:x|v)[_-]?\d{1,4}"
)
_SYMBOLS: Final = frozenset("!@#$%^&*+?~=")
_SHORTEST: Final = 4
_DIGIT: Final = re.compile("[0-9]")
_LEAST_BITS: Final = 3.5  # a character, of what has letters alone
_ENTROPY_OF: Final = 64
_JUDGED: Final = 96


def assigned_values(text: str) -> Iterator[tuple[int, int, str]]:
    """Spans of the values that are secrets, with the kind: `password`, or `secret value`.

    A value that is none is looked into: it may begin with the name of another.
    """
    named = named_values(text)
    if named is None:
        return
    position = 0
    while (match := named.search(text, position)) is not None:
        kind = match.lastgroup or ""
        start, end = match.span(kind)
        if kind == "bare":
            start, end = _trimmed(text, match, start, end)
        value = text[start : min(end, start + _JUDGED)]
        if value and _is_secret(text, match, value, bare=kind == "bare"):
            if len(match[kind]) >= LONGEST:
                rest = _REST[kind].match(text, match.end(kind))
                end = rest.end() if rest is not None else end
            yield start, end, "password" if match["password"] else "secret value"
            position = end
        else:
            position = max(match.start(kind), match.start() + 1)


def _trimmed(text: str, match: re.Match[str], start: int, end: int) -> tuple[int, int]:
    """A value without quotes, without what is of the address or the prose around it."""
    value = text[start:end]
    if _QUERY.search(_line_before(text, match.start())):
        value = value.partition("&")[0]
    if value.startswith("pass:"):  # of openssl
        start, value = start + 5, value[5:]
    value = value.rstrip(".:!?*_" if value[-1:] != "=" else ".")
    return start, start + len(value)


def fits_quoted(value: str, name: str) -> bool:
    """Whether a value in quotes is a secret, under a name that tells of one."""
    if not could_be(value):
        return False
    if re.search(r"(?i)pass|pwd", name) is None:
        return _fits_secret(value, bare=False)
    mixed = any(c.isalpha() for c in value) and not value.isalpha()
    return not is_number(value) and mixed


def is_number(value: str) -> bool:
    """Whether a value is a number, a time, a range or a port."""
    return _NUMBER.fullmatch(value) is not None


def _is_secret(text: str, match: re.Match[str], value: str, *, bare: bool) -> bool:
    if match["secret"] and _DIGIT.search(value) is None and entropy(value) < _LEAST_BITS:
        return False
    sign = match["sign"].strip()
    environment = sign == "=" and _is_environment(text, match.start())
    if environment and match["password"]:
        value = "".join(value.split())  # words in quotes are one there
    if not could_be(value) or not _is_assigned(text, match, bare=bare):
        return False
    if environment:
        return fits_environment(value, password=bool(match["password"]))
    return _fits_place(text, match, value, bare=bare)


def _fits_place(text: str, match: re.Match[str], value: str, *, bare: bool) -> bool:
    """Whether a value is made as its name and the sign before it let one expect."""
    if match["wrap"] or (match["password"] or "").lower() in SHORT_NAMES or match["level"]:
        return _fits_alone(text, match, value, bare=bare)
    if match["comma"] and not _DEFINED.search(_line_before(text, match.start())):
        return fits_quoted(value, match["password"] or "secret")
    if match["password"]:
        return _fits_password(text, match, value, bare=bare, sign=match["sign"].strip())
    return _fits_secret(value, bare=bare)


def _fits_alone(text: str, match: re.Match[str], value: str, *, bare: bool) -> bool:
    """Whether a value tells enough by itself, where its name or its place tells little."""
    if match["sign"].strip() == "=" or (not bare and not match["wrap"]):
        return fits_quoted(value, "password")
    raw = match[match.lastgroup or 0]
    if any(c in raw for c in "=/:"):
        return False  # the next key of a list, a path
    alone = bool(match["wrap"] or match["level"]) or _is_whole_line(text, match)
    return alone and is_random(value, 8)


def _is_whole_line(text: str, match: re.Match[str]) -> bool:
    """Whether a line has a name and its value alone."""
    before = _line_before(text, match.start()).strip(" \t>#-*\"'`_")
    return not before and text[match.end() : match.end() + 1] in ("", "\r", "\n")


def could_be(value: str) -> bool:
    """Whether a value is no placeholder, sentence, path, address, name or method."""
    if len(value) < _SHORTEST or any(c.isspace() for c in value) or is_placeholder(value):
        return False
    return "://" not in value and not any(p.fullmatch(value) for p in (_PATH, _DOTTED, _METHOD))


def _is_assigned(text: str, match: re.Match[str], *, bare: bool) -> bool:
    """Whether the sign gives the name a value: a space does only after an option's name."""
    sign = match["sign"].strip()
    if bare and text[match.end() : match.end() + 1] in tuple("([{"):
        return False  # a call
    if match["call"] or match["comma"]:
        before = _SETTER if match["call"] else _ARGUMENT
        return not bare and before.search(_line_before(text, match.start())) is not None
    if sign == ">":
        return bare and text.startswith("</", match.end())
    if sign:
        return True
    quoted = not bare and any(c.isdigit() for c in match[match.lastgroup or 0])
    return quoted or _is_option(text, match.start())


def _line_before(text: str, position: int) -> str:
    """What stands before a keyword on its line, as far as it matters."""
    before = text[max(0, position - _BEFORE) : position]
    return re.split(r"[\r\n]|\\n", before)[-1]


def _is_environment(text: str, position: int) -> bool:
    """Whether the name is written in capitals, as variables of an environment are."""
    line = _line_before(text, position)
    name = line + text[position : position + 3]
    return _ENVIRONMENT.fullmatch(name) is not None


def _is_option(text: str, position: int) -> bool:
    """Whether a space may part the name from its value."""
    return _OPTION.search(_line_before(text, position)) is not None


def fits_environment(value: str, *, password: bool) -> bool:
    """Whether a value that could be a secret is one, as that of a variable in capitals."""
    if password:
        return True
    if _NUMBER.fullmatch(value):
        return False
    return is_random(value, 8) or entropy(value) >= _LEAST_BITS


def _fits_password(text: str, match: re.Match[str], value: str, *, bare: bool, sign: str) -> bool:
    digit = any(c.isdigit() for c in value)
    letter = any(c.isalpha() for c in value)
    symbol = any(c in _SYMBOLS for c in value)
    if _NUMBER.fullmatch(value):
        return not bare and len(value) >= 6  # noqa: PLR2004 - a shorter one is a length, a port
    if letter and (digit or symbol):
        return len(value) >= 5 or not bare  # noqa: PLR2004 - `utf8` is shorter
    if bare:  # a word: only where the line has nothing else
        return sign == "=" and _is_whole_line(text, match) and "= " not in match["sign"]
    if "=" in sign:
        return True
    return len(value) >= 8 and value.isascii() and not value.istitle()  # noqa: PLR2004 - a label


def _fits_secret(value: str, *, bare: bool) -> bool:
    if _NUMBER.fullmatch(value):
        return False
    return is_random(value, 12 if bare else 8)


def is_random(value: str, shortest: int) -> bool:
    """Whether letters and digits of so many characters are mixed as no word mixes them."""
    if len(value) < shortest:
        return False
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if not digits or not letters:
        mixed = any(c.isupper() for c in value[1:]) and any(c.islower() for c in value)
        return len(value) >= 20 and mixed and entropy(value) >= 4.2  # noqa: PLR2004 - bits
    longest = max(map(len, re.split(r"[-_./:]", value)))
    return entropy(value) >= 2.7 and (longest >= 8 or digits >= 6)  # noqa: PLR2004 - bits, a word


def entropy(value: str) -> float:
    """Bits of a character, from how often each stands in the first characters of a value."""
    value = value[:_ENTROPY_OF]
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
