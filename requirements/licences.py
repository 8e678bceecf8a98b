"""Lists the licence of every pinned package: `make licences` writes docs/licences.md.

What belongs here: what packages say of themselves, in one table, and a word about each licence that
asks for more than to be named. A licence that nobody has said a word about is an error.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import cast

from packaging.markers import Marker

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "licences.md"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; (.+?))? \\$", re.MULTILINE)

HEAD = """\
# Licences

Concordance is under the Apache License 2.0. What it needs is installed beside it and is no part of
it: each package keeps its own licence. `make licences` writes this page from what the packages say
of themselves, and a test compares it.

Permissive licences (MIT, BSD, ISC, Apache, PSF, Zlib, CC0 and their like) ask that they be named,
which this page does. About every other one there is a word below.
"""
OTHERS = "## Needed on other systems alone"
# What the licences of these families ask: to be named.
PERMISSIVE = frozenset(
    {
        *("0BSD", "Apache-2.0", "Artistic-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0"),
        *("CNRI-Python", "ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Public-Domain", "Zlib"),
    }
)
# As packages wrote them before there was one way to.
SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "CC0 1.0 Universal (CC0 1.0) Public Domain Dedication": "CC0-1.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "PSFL": "PSF-2.0",
    "Public Domain": "Public-Domain",
}
# What is known of a package where its own words are wrong or say too little, and why.
CORRECTIONS = {
    "docutils": "Public-Domain AND BSD-2-Clause AND GPL-3.0-or-later",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
    "requests-oauthlib": "ISC",
    "sniffio": "MIT OR Apache-2.0",
    "text-unidecode": "Artistic-1.0-Perl OR GPL-2.0-or-later",
}
WORDS = {
    "LGPL-3.0-only": (
        "The driver for Postgres. It is used as it is, through its public functions, and anybody "
        "can put another version in its place; a change to it would have to be published."
    ),
    "MPL-2.0": (
        "Asks that changed files of the package be published. None is changed; what uses them "
        "may have any licence."
    ),
    "GPL-3.0-or-later": (
        "Of docutils, one file for Emacs, which is not among those that are installed."
    ),
    "GPL-2.0-or-later": "Of text-unidecode, which may be used under the Artistic License instead.",
    "Artistic-1.0-Perl": "The one of its two licences that text-unidecode is used under.",
}


@dataclass(frozen=True)
class Row:
    """A package with its licence."""

    name: str
    licence: str
    use: str

    def __str__(self) -> str:
        return f"| {self.name} | {self.licence} | {self.use} |"


@dataclass(frozen=True)
class Pin:
    """A pinned package, and on which systems it is installed."""

    name: str
    version: str
    marker: str | None

    @property
    def applies(self) -> bool:
        """Whether it is needed on this system."""
        return self.marker is None or Marker(self.marker).evaluate()


def pins(name: str) -> list[Pin]:
    """The packages of one of the two lists."""
    return [Pin(*found) for found in _found(FOLDER / name)]


def _found(path: Path) -> list[tuple[str, str, str | None]]:
    text = path.read_text(encoding="utf-8")
    return [(name, version, marker or None) for name, version, marker in PIN.findall(text)]


def licence_of(name: str) -> str | None:
    """What an installed package says of its licence, as an SPDX expression; None: not installed.

    Raises:
        ValueError: It says nothing that is understood.
    """
    try:
        said = cast("Message", metadata(name))
    except PackageNotFoundError:
        return None
    if name in CORRECTIONS:
        return CORRECTIONS[name]
    classified = [
        SPELLINGS.get(kind, kind)
        for kind in (c.rpartition(" :: ")[2] for c in said.get_all("Classifier", ()))
        if kind in SPELLINGS
    ]
    written = str(said.get("License", "")).strip().partition("\n")[0]
    given = str(said.get("License-Expression", "")).strip() or SPELLINGS.get(written, written)
    for expression in (given, " AND ".join(dict.fromkeys(classified))):
        if expression and not set(_licences(expression)) - PERMISSIVE - set(WORDS):
            return expression
    raise ValueError(f"{name}: no licence that is known in {given!r} or {classified}")


def _licences(expression: str) -> list[str]:
    return [word for word in re.findall(r"[\w.-]+", expression) if word not in ("AND", "OR")]


def rows() -> list[Row]:
    """Every pinned package that is installed here."""
    needed = {pin.name for pin in pins("runtime.txt")}
    found = []
    # A package may be pinned twice, for two versions of Python.
    for name in sorted({pin.name for pin in pins("dev.txt") if pin.applies}):
        licence = licence_of(name)
        if licence is not None:
            found.append(Row(name, licence, "running" if name in needed else "tests and checks"))
    return found


def page() -> str:
    """The page as it should stand.

    Raises:
        ValueError: A licence is not understood, or nothing was said about it.
    """
    listed = rows()
    used = {word for row in listed for word in _licences(row.licence)} - PERMISSIVE
    words = [f"- **{name}**: {WORDS[name]}" for name in sorted(used)]
    here = {pin.name for pin in pins("dev.txt") if pin.applies}
    others = sorted({pin.name for pin in pins("dev.txt")} - here)
    return "\n".join(
        [
            HEAD,
            *words,
            "",
            "| package | licence | for |",
            "|---|---|---|",
            *map(str, listed),
            "",
            OTHERS,
            "",
            "Their licences are not read here:",
            "",
            *(f"- {name}" for name in others),
            "",
        ]
    )


def main() -> int:
    """Write the page."""
    missing = [p.name for p in pins("dev.txt") if p.applies and licence_of(p.name) is None]
    if missing:
        print(f"not installed: {', '.join(missing)}", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
