"""Our own modules as they are written, and parsed: what tests of the architecture look at.

What belongs here: reading and parsing them. What they may and may not hold is said in the tests.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ("concordance", "flows", "tasks", "sql")


@dataclass(frozen=True)
class Import:
    """An import of a module or of a name in it, told by its full name."""

    name: str
    where: str
    for_types: bool

    def within(self, *rooms: str) -> bool:
        return any(self.name == room or self.name.startswith(f"{room}.") for room in rooms)


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def file(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def at(self, node: ast.AST) -> str:
        return f"{self.file}:{getattr(node, 'lineno', 0)}"


def modules() -> tuple[Module, ...]:
    """Those of the program."""
    return below(*OURS)


@cache
def below(*folders: str) -> tuple[Module, ...]:
    """Those below some folders."""
    found = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append(Module(name, path, path.read_text(encoding="utf-8")))
    return tuple(found)


def inside(*rooms: str) -> list[Module]:
    return [m for m in modules() if any(m.name == r or m.name.startswith(f"{r}.") for r in rooms)]


def imports(module: Module) -> Iterator[Import]:
    typed = {
        id(inner)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in ast.walk(module.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import at {module.at(node)}"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            yield Import(name, f"{module.at(node)} imports {name}", id(node) in typed)


def is_standard(found: Import) -> bool:
    return found.name.split(".")[0] in sys.stdlib_module_names


def handlers(module: Module) -> Iterator[tuple[ast.ExceptHandler, set[str]]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            caught = [] if node.type is None else ast.walk(node.type)
            names = {n.id for n in caught if isinstance(n, ast.Name)}
            yield node, names or {"BaseException"}
