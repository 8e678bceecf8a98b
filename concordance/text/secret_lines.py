"""Lines that are a name and a value and nothing else, as files of settings have them.

What belongs here: `.env` files, properties and plain values of YAML. There a value goes on to the
line's end, whatever signs are in it; elsewhere prose and code end it, as `secret_values` knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from concordance.text.secret_names import FOREIGN_SIGNS, NAME_END
from concordance.text.secret_values import could_be, fits_environment, is_number, is_random

_LINE: Final = re.compile(
    r"(?m)^[ \t>+#-]{0,40}(?:[0-9]{1,6}[\t:|][ \t]?)?"
    r"(?:(?:export|set|ENV|ARG|declare[ ]-x|-e|--env)[ \t]{1,4}){0,3}"
    r"(?P<quote>[\"']?)(?P<name>[A-Za-z][\w.-]{0,100})(?P<closed>[\"']?)(?::[ \t]{1,8}|=)"
    rf"(?P<value>[^\s\"'`{FOREIGN_SIGNS}][^\s{FOREIGN_SIGNS}]{{3,511}})"
    rf"(?=[ \t]*+$|[ \t]*+\r|[ \t]++\#|[{FOREIGN_SIGNS}])"
)
# Where a line of a shell or a page goes on without a space.
_GOES_ON: Final = re.compile(
    r"(?:\|\|?|>>?|&&|;)[a-z./_-]{1,20}\Z|\\+[rn](?=[A-Za-z_\"']|\Z).*|</[a-z].*|&[\w.-]{1,60}=.*"
)
_CODE: Final = re.compile(r"[A-Za-z_$][\w.:$]*[(\[{<].*[)\]}>][;,]*|.*=>.*|.*\(\).*")
_SHELL: Final = re.compile(r"\$[({].*|[({\[<].*[)}\]>][;,]*")
_VARIABLE: Final = re.compile(r"\$(?:[a-z]+:)?[A-Za-z_]+[0-9]{0,2}")
_SIGNS: Final = frozenset("()[]{}<>|,;'\"\\!*?")
_CLOSING: Final = ")]},;\"'.>`"
_LEAST_RANDOM: Final = 12


def values_of_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Spans of the values that are secrets, with the kind: `password`, or `secret value`."""
    for match in _LINE.finditer(text):
        name = NAME_END.search(match["name"])
        if name is None:
            continue
        value = match["value"]
        if match["quote"] and not match["closed"]:  # around the whole line
            value = value.rpartition(match["quote"])[0] or value
        value = _GOES_ON.sub("", value).rstrip(".")
        start = match.start("value")
        assigned = text[start - 1] == "="
        capitals = assigned and match["name"].isupper()
        value = value.rstrip(",;") if not capitals else value
        if _is_secret(value, password=name["password"] is not None, capitals=capitals):
            yield start, start + len(value), "password" if name["password"] else "secret value"


def _is_secret(value: str, *, password: bool, capitals: bool) -> bool:
    if _CODE.fullmatch(value) or _SHELL.fullmatch(value) or _VARIABLE.fullmatch(value):
        return False
    # What the beginning of a variable or a tag would be is only a sign here.
    judged = value.lstrip("$") if is_random(value[1:], 8) else value
    judged = judged if ">" in judged else judged.replace("<", "_")
    if not could_be(judged):
        return False
    if capitals:
        return fits_environment(judged, password=password)
    inner = value.rstrip(_CLOSING)
    if not _SIGNS.intersection(inner) or is_number(value):
        return False
    if password:
        return any(c.isdigit() for c in inner) and any(c.isalpha() for c in inner)
    return is_random(inner, _LEAST_RANDOM)
