"""All SQL of the project, as text files, and their loader.

`migrations/` holds `NNNN_what.sql`, frozen once applied. `queries/` holds the statements that
the adapters send: a line `-- name: verb_thing` opens one, and it reaches to the next such line.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, NamedTuple, cast

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Migration(NamedTuple):
    """One step of the schema: its number, its name and its text."""

    number: int
    name: str
    text: str


@cache
def queries(room: str) -> dict[str, LiteralString]:
    """The named statements of `queries/<room>.sql`, by name."""
    text = (files("sql") / "queries" / f"{room}.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    found = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
    # The files ship with the program, so their text is as good as a literal in its source.
    return cast("dict[str, LiteralString]", found)


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations, in the order in which they are applied."""
    found = sorted(
        (entry for entry in (files("sql") / "migrations").iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return tuple(
        Migration(int(entry.name[:4]), entry.name[5:-4], entry.read_text(encoding="utf-8"))
        for entry in found
    )
