"""Values that only stand for a secret: `<your-token>`, `${TOKEN}`, `xxxx`, `changeme`.

What belongs here: what documentation writes in place of a secret. Which values are secrets is
judged in `secret_values`.
"""

from __future__ import annotations

import re
from typing import Final

_VARIABLE: Final = re.compile(
    r"\$\{?[A-Za-z_][\w.:-]*\}?|\$\(.*\)|<[^<>]*>|\{\{?[^{}]*\}?\}|%\(?\w+\)?[sd%]?|\[.*\]|\(.*\)|[&*!]\w+"
)
_STANDS_FOR: Final = frozenset(
    [
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
    ]
)
_PLAIN: Final = frozenset(
    [
        "pass",
        "password",
        "passwd",
        "pwd",
        "pw",
        "secret",
        "token",
        "credentials",
        "apikey",
        "api-key",
        "api_key",
        "changeme",
        "example",
        "mypass",
        "userpass",
    ]
)
_OWNED: Final = re.compile(
    r"(?i)(?:your|my|the|some|any|example|sample)[-_.][a-z]+(?:[-_.][a-z]+)*"
)
_NUMBERED: Final = re.compile(r"(?i)(?:example|sample|placeholder|dummy)[-_]?[0-9]{1,3}")
_WORDS: Final = re.compile(r"[A-Za-z]+")
_FILLER: Final = re.compile(r"(?i)x{4}|\*{3}|\.\.\.|…|_{4}|0{8}|\$\{|\{\{|<[a-z]")


def is_placeholder(value: str, *, words: frozenset[str] = frozenset()) -> bool:
    """Whether a value only stands for one: `<your-token>`, `${TOKEN}`, `xxxx`, `changeme`."""
    if value.lower() in words or _VARIABLE.fullmatch(value) or _FILLER.search(value):
        return True
    if len(set(value)) == 1 or _NUMBERED.fullmatch(value):
        return True
    if any(c.isdigit() for c in value) or not value.isascii():
        return False
    found = [word.lower() for word in _WORDS.findall(value)]
    if "".join(found) in ("changeme", "changeit", "yourpassword", "mypassword", "notasecret"):
        return True
    plain = all(c.isalpha() or c in "-_. " for c in value)
    return not words and plain and any(word in _STANDS_FOR for word in found)


def is_plain(password: str) -> bool:
    """Whether a password stands for one where its place alone tells what it is."""
    return is_placeholder(password, words=_PLAIN) or _OWNED.fullmatch(password) is not None
