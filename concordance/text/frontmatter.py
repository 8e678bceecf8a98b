"""The metadata block at the top of a Markdown file.

What belongs here: where it ends, and its flat scalars. Lists, maps and multi-line values are left
to the text, where they can be searched; no YAML library reads a file that anyone may have written.
"""

from __future__ import annotations

import re
from typing import Final

from concordance.text.lines import LINE_END

_OPENING: Final = re.compile(r"(---|\+\+\+)[ \t]*(?:\r\n?|\n)")
_CLOSING: Final = {
    "---": re.compile(r"[\r\n](?:---|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)"),
    "+++": re.compile(r"[\r\n]\+\+\+[ \t]*(?:\r\n?|\n|\Z)"),
}
_KEY: Final = r"\"[^\"]{1,80}\"|'[^']{1,80}'|[\w.$/][^:=\r\n]{0,79}?"
_YAML_PAIR: Final = re.compile(rf"({_KEY})[ \t]*:(?:[ \t]+(.*))?$")
_TOML_PAIR: Final = re.compile(rf"({_KEY})[ \t]*=[ \t]*(.*)$")
_YAML_OTHER: Final = re.compile(r"[ \t#}\]]|-(?:[ \t]|$)|$")
_TOML_TABLE: Final = re.compile(r"\[")
_QUOTED: Final = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)')[ \t]*(?:#.*)?$""")
_COMMENT: Final = re.compile(r"(?:^|[ \t]+)#.*$")


def find_front_matter(text: str) -> tuple[int, dict[str, str]]:
    """Return the offset after the front matter, and its top-level scalars by lower-case key.

    YAML between `---` and `---` or `...`, or TOML between two `+++`, from the first character on.
    0 and no pairs where there is none: `---` is also how a rule is written, so the block counts
    only if its first line is not blank and it reads like metadata, not like prose.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return 0, {}
    marker = opening[1]
    closing = _CLOSING[marker].search(text, opening.end() - 1)
    if closing is None:
        return 0, {}
    lines = LINE_END.split(text[opening.end() : closing.start()])
    read = _read_toml if marker == "+++" else _read_yaml
    pairs = read(lines)
    return (0, {}) if pairs is None else (closing.end(), pairs)


def _read_yaml(lines: list[str]) -> dict[str, str] | None:
    if not lines[0].strip():
        return None
    pairs: dict[str, str] = {}
    begun = odd = blank = False
    for line in lines:
        pair = _YAML_PAIR.match(line)
        if pair is not None:
            begun = True
            _keep(pairs, pair)
        elif not line.strip():
            blank = True
        else:
            odd = odd or not (_YAML_OTHER.match(line) and (begun or line.startswith("#")))
        # A paragraph holds no blank line, so without one the block can only be metadata or a
        # heading of several lines; with one, every line has to look like YAML.
        if odd and (blank or not begun):
            return None
    return pairs if begun else None


def _read_toml(lines: list[str]) -> dict[str, str] | None:
    pairs: dict[str, str] = {}
    begun = False
    for line in lines:
        if _TOML_TABLE.match(line):
            return pairs
        pair = _TOML_PAIR.match(line)
        if pair is not None:
            begun = True
            _keep(pairs, pair)
        elif not begun and line.strip() and not line.startswith("#"):
            return None
    return pairs if begun else None


def _keep(pairs: dict[str, str], pair: re.Match[str]) -> None:
    value = _scalar((pair[2] or "").strip())
    if value:
        pairs[pair[1].strip("\"' \t").lower()] = value


def _scalar(value: str) -> str:
    quoted = _QUOTED.match(value)
    if quoted is not None:
        if quoted[1] is not None:
            return re.sub(r"\\(.)", r"\1", quoted[1])
        return quoted[2].replace("''", "'")
    if value[:1] in ("|", ">"):
        return ""  # a block scalar: its text is on the following lines
    return _COMMENT.sub("", value).strip()
