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

# What a value is judged by; what is longer is taken whole once it is judged.
LONGEST: Final = 128
_KEYWORD: Final = re.compile(
    r"(?i)pass(?:wor[dt]|wd|phrase|code)|p(?:s)?wd|[_-]pass|identified|secret|token|key|credential"
)
_PASSWORDS: Final = r"pass(?:wor[dt]|wd|phrase|code)|p(?:s)?wd|(?<=[_-])pass|identified[ ]by"
_SECRETS: Final = (
    r"(?:client|app|shared|consumer|webhook|signing|jwt)?[ _.-]?secret"
    r"(?:[ _.-]?(?:access|api))?(?:[ _.-]?key)?"
    r"|(?:api|access|private|encryption|signing|master|account|auth|service|shared|storage|session|admin"
    r"|deploy|license|app|subscription|function)[ _.-]?key"
    r"(?:[_.-]?id(?=[\\\"']{0,4}[ \t]{0,4}:[ \t]{0,4}[\\\"']{1,4}[0-9a-f]{40}))?"
    r"|token|credentials?"
)
_NAMED: Final = re.compile(
    rf"""(?ix)
    (?:(?P<password>{_PASSWORDS})|(?P<secret>{_SECRETS}))
    (?:[_.-]?(?:[0-9]{{1,3}}|prod|dev|test|stag(?:e|ing)|live|base64|b64|value|new|old|primary|secondary))?
    (?![A-Za-z0-9_-])[\\"'`\]*_]{{0,4}}
    (?P<sign>
        [ \t]{{0,40}}(?::=|=>|=(?!=)|:(?!:)|<-)[ \t]{{0,8}}
      | [ \t]{{0,4}}:[ \t]?[A-Za-z][A-Za-z.\[\]|?\x20]{{0,30}}[ \t]?=(?!=)[ \t]{{0,8}}
      | [ \t]+(?:is|was|to|as|by)[ \t]{{1,4}}(?::[ \t]{{0,4}})?
      | [ \t]{{0,4}},?[ \t]{{0,4}}(?:\r\n?|\n)?[ \t]{{0,40}}
        ["']?value["']?[ \t]{{0,4}}[:=][ \t]{{0,4}}
      | [ \t]{{0,40}}\|[ \t]{{0,40}}
      | >
      | [ \t]{{1,4}}
    )
    (?:[*_]{{1,2}}[ \t]{{0,4}})?
    (?:"(?P<double>(?:[^"\\\r\n]|\\[^\r\n]){{1,{LONGEST}}})
      |\\{{1,3}}"(?P<escaped>[^"\\\r\n]{{1,{LONGEST}}})
      |'(?P<single>[^'\r\n]{{1,{LONGEST}}})
      |`(?P<ticked>[^`\r\n]{{1,{LONGEST}}})
      |(?P<bare>[^\s"'`<>(){{}}\[\]|,;\\]{{1,{LONGEST}}}))
    """
)
_REST: Final = {
    "double": re.compile(r'(?:[^"\\\r\n]|\\[^\r\n])*+'),
    "escaped": re.compile(r'[^"\\\r\n]*+'),
    "single": re.compile(r"[^'\r\n]*+"),
    "ticked": re.compile(r"[^`\r\n]*+"),
    "bare": re.compile(r"[^\s\"'`<>(){}\[\]|,;\\]*+"),
}
_ENVIRONMENT: Final = re.compile(
    r"[ \t>#-]*(?:(?:export|set|ENV|ARG|declare -x|-e|--env)[ \t]+)*[\"']?[A-Z][A-Z0-9_]*"
)
_OPTION: Final = re.compile(r"(?:^|\s)-{1,2}[\w-]{0,40}$|(?:^|\s)login[ \t]+\S{1,60}[ \t]+$")
_BEFORE: Final = 120
_QUERY: Final = re.compile(r"[?&][\w.-]*$")  # of an address: the next `&` ends a value
_VARIABLE: Final = re.compile(
    r"\$\{?[A-Za-z_][\w.:-]*\}?|\$\(.*\)|<[^<>]*>|\{\{?[^{}]*\}?\}|%\(?\w+\)?[sd%]?|\[.*\]|\(.*\)|[&*!]\w+"
)
_PATH: Final = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@ -]{0,40}){2,}|\.{0,2}/[\w.-]{1,40}"
)
_DOTTED: Final = re.compile(r"[A-Za-z_]\w{0,40}(?:(?:\.|->|::|\?\.)[A-Za-z_]\w{0,40})+")
_NUMBER: Final = re.compile(r"[+-]?[\d.,:_/-]+[A-Za-z]{0,3}")
_METHOD: Final = re.compile(r"(?i)(?:sha|utf|md|base|aes|rsa|iso|ed|hs|rs|es|hmac|x|v)[_-]?\d{1,4}")
_SYMBOLS: Final = frozenset("!@#$%^&*+?~=")
_STANDS_FOR: Final = frozenset(
    {
        "abc",
        "any",
        "bar",
        "blank",
        "bool",
        "boolean",
        "change",
        "changeme",
        "default",
        "dummy",
        "empty",
        "enter",
        "example",
        "fake",
        "false",
        "file",
        "foo",
        "foobar",
        "get",
        "here",
        "hidden",
        "http",
        "https",
        "input",
        "insert",
        "int",
        "integer",
        "key",
        "keyring",
        "lorem",
        "missing",
        "mock",
        "my",
        "name",
        "nil",
        "no",
        "none",
        "null",
        "number",
        "object",
        "optional",
        "pass",
        "passwd",
        "password",
        "placeholder",
        "post",
        "pwd",
        "redacted",
        "removed",
        "replace",
        "required",
        "sample",
        "secret",
        "some",
        "stdin",
        "str",
        "string",
        "test",
        "text",
        "the",
        "this",
        "todo",
        "token",
        "true",
        "type",
        "undefined",
        "unknown",
        "unset",
        "user",
        "username",
        "value",
        "varchar",
        "xxx",
        "yes",
        "your",
        "yourpassword",
    }
)
_WORDS: Final = re.compile(r"[A-Za-z]+")
_FILLER: Final = re.compile(r"(?i)x{4}|\*{3}|\.\.\.|…|_{4}|0{8}|\$\{|\{\{|<[a-z]")
_SHORTEST: Final = 4
_DIGIT: Final = re.compile("[0-9]")
_LEAST_BITS: Final = 3.5  # a character, of what has letters alone
_ENTROPY_OF: Final = 64
_JUDGED: Final = 96


def is_placeholder(value: str, *, words: tuple[str, ...] = ()) -> bool:
    """Whether a value only stands for one: `<your-token>`, `${TOKEN}`, `xxxx`, `changeme`."""
    if value.lower() in words or _VARIABLE.fullmatch(value) or _FILLER.search(value):
        return True
    if len(set(value)) == 1:
        return True
    if any(c.isdigit() for c in value) or not value.isascii():
        return False
    found = [word.lower() for word in _WORDS.findall(value)]
    if "".join(found) in ("changeme", "changeit", "yourpassword", "mypassword", "notasecret"):
        return True
    plain = all(c.isalpha() or c in "-_. " for c in value)
    return not words and plain and any(word in _STANDS_FOR for word in found)


def assigned_values(text: str) -> Iterator[tuple[int, int, str]]:
    """Spans of the values that are secrets, with the kind: `password`, or `secret value`.

    A value that is none is looked into: it may begin with the name of another.
    """
    if _KEYWORD.search(text) is None:
        return
    position = 0
    while (match := _NAMED.search(text, position)) is not None:
        kind = match.lastgroup or ""
        start, end = match.span(kind)
        value = match[kind]
        bare = kind == "bare"
        if bare:
            if _QUERY.search(_line_before(text, match.start())):
                value = value.partition("&")[0]
                end = start + len(value)
            end -= len(value) - len(value.rstrip(".:!?*_" if value[-1:] != "=" else "."))
            value = text[start:end]
        if value and _is_secret(text, match, value[:_JUDGED], bare=bare):
            if len(match[kind]) >= LONGEST:
                rest = _REST[kind].match(text, match.end(kind))
                end = rest.end() if rest is not None else end
            yield start, end, "password" if match["password"] else "secret value"
            position = end
        else:
            position = max(match.start(kind), match.start() + 1)


def _is_secret(text: str, match: re.Match[str], value: str, *, bare: bool) -> bool:
    if match["secret"] and _DIGIT.search(value) is None and entropy(value) < _LEAST_BITS:
        return False
    sign = match["sign"].strip()
    environment = sign == "=" and _is_environment(text, match.start())
    if environment and match["password"]:
        value = "".join(value.split())  # words in quotes are one there
    if not _could_be(value) or not _is_assigned(text, match, bare=bare):
        return False
    if environment:
        return _fits_environment(value, password=bool(match["password"]))
    if match["password"]:
        return _fits_password(text, match, value, bare=bare, sign=sign)
    return _fits_secret(value, bare=bare)


def _could_be(value: str) -> bool:
    """Whether a value is no placeholder, sentence, path, address, name or method."""
    if len(value) < _SHORTEST or any(c.isspace() for c in value) or is_placeholder(value):
        return False
    return "://" not in value and not any(p.fullmatch(value) for p in (_PATH, _DOTTED, _METHOD))


def _is_assigned(text: str, match: re.Match[str], *, bare: bool) -> bool:
    """Whether the sign gives the name a value: a space does only after an option's name."""
    sign = match["sign"].strip()
    if bare and text[match.end() : match.end() + 1] in tuple("([{"):
        return False  # a call
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
    """Whether a space may part the name from its value: after an option, and in `.netrc`."""
    return _OPTION.search(_line_before(text, position)) is not None


def _fits_environment(value: str, *, password: bool) -> bool:
    if password:
        return True
    if _NUMBER.fullmatch(value):
        return False
    return _is_random(value, 8) or entropy(value) >= _LEAST_BITS


def _fits_password(text: str, match: re.Match[str], value: str, *, bare: bool, sign: str) -> bool:
    digit = any(c.isdigit() for c in value)
    letter = any(c.isalpha() for c in value)
    symbol = any(c in _SYMBOLS for c in value)
    if _NUMBER.fullmatch(value):
        return not bare and len(value) >= 6  # noqa: PLR2004 - a shorter one is a length, a port
    if letter and (digit or symbol):
        return len(value) >= 5 or not bare  # noqa: PLR2004 - `utf8` is shorter
    if bare:  # a word: only where the line has nothing else
        whole = not _line_before(text, match.start()).strip(" \t>#-*\"'`_")
        ended = text[match.end() : match.end() + 1] in ("", "\r", "\n")
        return sign == "=" and whole and ended and "= " not in match["sign"]
    if "=" in sign:
        return True
    return len(value) >= 8 and value.isascii() and not value.istitle()  # noqa: PLR2004 - a label


def _fits_secret(value: str, *, bare: bool) -> bool:
    if _NUMBER.fullmatch(value):
        return False
    return _is_random(value, 12 if bare else 8)


def _is_random(value: str, shortest: int) -> bool:
    """Whether letters and digits are mixed as no word mixes them."""
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
