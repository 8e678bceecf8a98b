"""Which files are documentation or decision records, by folder, name and ending.

What belongs here: the decision about one path, and the rule that made it. The longest matching
folder wins; folders are compared without regard to case, as `docs/ADR` and `docs/adr` both occur.
What a file in a folder of decisions says is looked at afterwards, by `concordance.reading`.
"""

from __future__ import annotations

from dataclasses import dataclass

from concordance.models import Scope
from concordance.settings import TEXT_SUFFIXES, ScopeRules
from concordance.text.record_forms import is_named_otherwise


@dataclass(frozen=True, slots=True)
class Placed:
    """A path with the scope it falls in, or None, and the rule that says so."""

    scope: Scope | None
    rule: str


def place(path: str, rules: ScopeRules, adr_dir: str | None) -> Placed:
    """Decide about one path, named from the repository's root with '/' between its parts."""
    low = path.lower()
    if not low.endswith(TEXT_SUFFIXES):
        return Placed(None, f"not a text that is read ({', '.join(TEXT_SUFFIXES)})")
    matches = [
        (len(folder), order, scope, folder)
        for order, scope, folder in _folders(rules, adr_dir)
        if low.startswith(folder.lower())
    ]
    if matches:
        # Of two rules for the same folder the one that leaves it out wins, then decision records.
        _, _, scope, folder = max(matches, key=lambda m: (m[0], m[1]))
        if scope is Scope.ADR and is_named_otherwise(low[len(folder.lower()) :]):
            return Placed(Scope.DOCS, f"README, index or template in adr folder '{folder or '/'}'")
        kind = "excluded folder" if scope is None else f"{scope.value} folder"
        return Placed(scope, f"{kind} '{folder or '/'}'")
    if rules.root_readme and low.rsplit(".", 1)[0] == "readme":
        return Placed(Scope.DOCS, "README at the root")
    return Placed(None, "in no folder that a scope names")


def _folders(rules: ScopeRules, adr_dir: str | None) -> list[tuple[int, Scope | None, str]]:
    found: list[tuple[int, Scope | None, str]] = [(0, Scope.DOCS, f) for f in rules.docs]
    found += [(1, Scope.ADR, folder) for folder in rules.adr]
    if adr_dir is not None:
        found.append((1, Scope.ADR, adr_dir))
    found += [(2, None, folder) for folder in rules.exclude]
    return found


def read_adr_dir(data: bytes) -> str | None:
    """The folder that a `.adr-dir` file names, with a slash at its end, or None if it names none.

    adr-tools writes one line: a folder, from the place of the file.
    """
    text = data.decode("utf-8-sig", errors="replace").strip()
    first = text.split("\n", 1)[0].strip().replace("\\", "/")
    parts = [part for part in first.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or first.startswith("/"):
        return None
    return "/".join(parts) + "/"
