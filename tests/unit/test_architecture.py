"""Imports go one way, each outside thing has one room, and nothing happens on import."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = ("concordance", "flows", "tasks", "sql")
PURE = ("concordance.text", "concordance.sessions", "concordance.indexing", "concordance.ranking")
SHARED = (
    "concordance.addresses",
    "concordance.models",
    "concordance.errors",
    "concordance.settings",
    "concordance.progress",
)
PARSERS = ("pydantic", "numpy", "regex", "markdown_it", "mdit_py_plugins", "docutils", "py3langid")
# Parts of the standard library that reach the clock, the environment, other processes or the net.
OUTSIDE = ("os", "time", "socket", "subprocess", "shutil", "tempfile", "urllib.request", "http")
DRIVERS = ("psycopg", "psycopg_pool", "pgvector")
SQL = re.compile(
    r"\s*(?:(?:select|insert|update|delete)\s|(?:create|alter|drop)\s+(?:or replace|temporary|"
    r"unique|table|index|view|database|schema|role|user|extension|function|policy|sequence|type)\b)",
    re.IGNORECASE,
)
LONGEST_FILE = 400
LONGEST_FUNCTION = 50


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
    tree: ast.Module

    @property
    def file(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def at(self, node: ast.AST) -> str:
        return f"{self.file}:{getattr(node, 'lineno', 0)}"


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            found.append(Module(name, path, text, ast.parse(text)))
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


def test_there_is_something_to_look_at() -> None:
    names = {module.name for module in modules()}
    assert {"concordance.index", "flows.reindex", "tasks.search", "sql"} <= names
    assert all(inside(room) for room in PURE)


# --- imports go one way ----------------------------------------------------------------------


def test_pure_rooms_import_parsers_and_each_other_alone() -> None:
    wrong = [
        found.where
        for module in inside(*PURE, *SHARED)
        for found in imports(module)
        if not (
            found.within(*PURE, *SHARED, *PARSERS)
            or (is_standard(found) and not found.within(*OUTSIDE))
        )
    ]
    assert wrong == []


def test_adapters_import_pure_rooms_and_sql_alone() -> None:
    allowed = (*PURE, *SHARED, "concordance.adapters", "sql")
    wrong = [
        found.where
        for module in inside("concordance.adapters")
        for found in imports(module)
        if found.within(*OURS) and not found.within(*allowed)
    ]
    assert wrong == []


def test_sql_imports_the_standard_library_alone() -> None:
    wrong = [f.where for m in inside("sql") for f in imports(m) if not is_standard(f)]
    assert wrong == []


def test_steps_and_front_door_know_nothing_of_who_calls_them() -> None:
    outer = ("concordance.cli", "concordance.http", "concordance.mcp", "concordance.retrievers")
    above = (*outer, "flows", "tasks")
    steps = [m for m in inside("concordance") if m not in inside("concordance.cli", *above)]
    wrong = [f.where for module in steps for f in imports(module) if f.within(*above)]
    assert wrong == []


def test_http_and_mcp_are_handed_what_they_need_of_prefect() -> None:
    above = ("concordance.cli", "flows", "tasks")
    room = inside("concordance.http", "concordance.mcp", "concordance.retrievers")
    assert room
    assert [f.where for m in room for f in imports(m) if f.within(*above)] == []


def test_mcp_is_handed_its_index_and_its_limits() -> None:
    room = inside("concordance.mcp")
    assert room
    assert [f.where for m in room for f in imports(m) if f.within("concordance.http")] == []


def test_the_framework_of_http_stays_in_its_room() -> None:
    framework = ("fastapi", "starlette", "uvicorn")
    users = {m for m in modules() for f in imports(m) if f.within(*framework)}
    assert users
    assert [m.file for m in users if m not in inside("concordance.http")] == []


def test_the_library_of_mcp_stays_in_the_rooms_that_serve_it() -> None:
    users = {m for m in modules() for f in imports(m) if f.within("mcp", "mcp_types")}
    assert {m.file for m in users} == {
        "concordance/http/tools.py",
        "concordance/mcp/server.py",
        "concordance/mcp/stdio.py",
    }


def test_each_other_framework_stays_in_the_module_of_its_retriever() -> None:
    for name, library in (("langchain", "langchain_core"), ("llamaindex", "llama_index")):
        users = {m.file for m in modules() for f in imports(m) if f.within(library)}
        assert users == {f"concordance/retrievers/{name}.py"}


def test_tasks_do_not_import_flows_nor_the_command_line() -> None:
    above = ("flows", "concordance.cli", "concordance.http", "concordance.mcp")
    wrong = [f.where for m in inside("tasks") for f in imports(m) if f.within(*above)]
    assert wrong == []


def test_one_module_of_the_package_reaches_for_flows() -> None:
    users = {
        module.file
        for module in inside("concordance")
        for found in imports(module)
        if found.within("flows", "tasks")
    }
    assert users == {"concordance/cli/orchestration.py"}


def test_prefect_stays_in_flows_and_tasks() -> None:
    typed = ("concordance/cli/orchestration.py", "concordance/cli/running.py")
    wrong = [
        found.where
        for module in inside("concordance", "sql")
        for found in imports(module)
        if found.within("prefect") and not (found.for_types and module.file in typed)
    ]
    assert wrong == []


# --- each outside thing has one room ---------------------------------------------------------


def test_the_driver_of_postgres_stays_in_the_adapters() -> None:
    wrong = [
        found.where
        for module in modules()
        for found in imports(module)
        if found.within(*DRIVERS) and not module.name.startswith("concordance.adapters.")
    ]
    assert wrong == []


def test_one_module_reads_the_environment() -> None:
    wrong = []
    for module in modules():
        uses = [
            module.at(node)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Attribute)
            and node.attr in ("environ", "environb", "getenv", "putenv")
            and ast.unparse(node.value) == "os"
        ]
        uses += [f.where for f in imports(module) if f.within("os.environ", "os.getenv")]
        if module.file != "concordance/adapters/environment.py":
            wrong += uses
        else:
            assert uses
    assert wrong == []


def test_one_module_reads_the_clock() -> None:
    clocks = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
    clocks |= {f"datetime.{name}" for name in clocks} | {"time.time", "time.time_ns"}
    users = {
        module.file
        for module in modules()
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Attribute) and ast.unparse(node) in clocks)
        or (isinstance(node, ast.ImportFrom) and node.module == "time" and _names_time(node))
    }
    assert users == {"concordance/adapters/clock.py"}


def _names_time(node: ast.ImportFrom) -> bool:
    return any(alias.name in ("time", "time_ns") for alias in node.names)


def test_sql_stands_in_sql_files() -> None:
    wrong = []
    for module in inside("concordance", "flows", "tasks"):
        prose = {
            id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)
        }  # docstrings
        wrong += [
            f"{module.at(node)}: {node.value[:40]!r}"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in prose
            and SQL.match(node.value)
        ]
    assert wrong == []


# --- failures --------------------------------------------------------------------------------


def test_one_flow_and_two_boundaries_take_any_failure() -> None:
    """One is that to readers of other packages, which may raise anything; one to a library that
    would send what any failure says."""
    users = [
        module.file for module in modules() for _, names in handlers(module) if "Exception" in names
    ]
    assert sorted(users) == [
        "concordance/mcp/server.py",
        "concordance/sessions/registry.py",
        "flows/reindex_project.py",
    ]


def test_what_ends_a_program_is_raised_again() -> None:
    wrong = []
    for module in modules():
        lines = module.text.splitlines()
        for handler, names in handlers(module):
            raised = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
            elsewhere = "raised again" in lines[handler.lineno - 1]
            if "BaseException" in names and not (raised or elsewhere):
                wrong.append(module.at(handler))
    assert wrong == []


# --- size and names --------------------------------------------------------------------------


def test_no_module_is_an_attic() -> None:
    attics = {"utils", "util", "common", "helpers", "helper", "core", "misc"}
    wrong = [m.file for m in modules() if attics & set(m.path.with_suffix("").parts[-2:])]
    assert wrong == []


def test_no_file_is_too_long_to_be_read() -> None:
    lengths = {module.file: module.text.count("\n") for module in modules()}
    assert {file: n for file, n in lengths.items() if n > LONGEST_FILE} == {}


def test_no_function_is_too_long_to_be_read() -> None:
    lengths = {
        f"{module.at(node)} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: n for name, n in lengths.items() if n > LONGEST_FUNCTION} == {}


# --- nothing happens on import ---------------------------------------------------------------

WATCH = """
import importlib, json, os, sys

seen = []
code = (".py", ".pyc", ".so", ".pth", "METADATA", "entry_points.txt")
busy = ("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.", "os.system",
        "os.fork", "os.exec", "os.posix_spawn", "urllib.", "os.mkdir", "os.remove", "os.rename",
        "os.putenv", "_thread.start_new_thread")

def watch(event, arguments):
    if event == "open":
        path = os.fsdecode(arguments[0]) if not isinstance(arguments[0], int) else "a descriptor"
        if not path.endswith(code):
            seen.append(f"{event} {path}")
    elif event.startswith(busy):
        seen.append(f"{event} {arguments!r:.120}")

# What others do when they are imported is not judged here.
for name in sys.argv[2].split(","):
    importlib.import_module(name)
sys.addaudithook(watch)
for name in sys.argv[1].split(","):
    importlib.import_module(name)
print(json.dumps(seen))
"""


def test_importing_every_module_touches_nothing() -> None:
    assert watched(*(module.name for module in inside("concordance"))) == []


def test_the_watch_sees_what_it_watches_for(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(
        "import os, socket, subprocess, sys, threading\n"
        "open('notes.txt', 'w').close()\n"
        "socket.socket().bind(('127.0.0.1', 0))\n"
        "subprocess.run([sys.executable, '--version'])\n"
        "os.environ['A'] = 'b'\n"
    )
    seen = watched("busy", folder=tmp_path)
    for event in ("open notes.txt", "socket.bind", "subprocess.Popen", "os.putenv"):
        assert any(line.startswith(event) for line in seen), event


def watched(*names: str, folder: Path = ROOT) -> list[str]:
    """What a fresh interpreter does while it imports modules."""
    needed = {
        _module_of(found)
        for module in modules()
        if module.name in names
        for found in imports(module)
        if not found.within(*OURS, "__future__") and not found.for_types
    }
    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCH, ",".join(names), ",".join(sorted(needed) or ["json"])],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return [str(line) for line in json.loads(done.stdout.splitlines()[-1])]


def _module_of(found: Import) -> str:
    """The module that a name is imported from."""
    return found.name.rpartition(".")[0] or found.name


def test_no_test_sets_how_many_examples_others_have() -> None:
    """A profile that is loaded holds for all files of a run, also where a conftest loads it."""
    loading = "load_" + "profile"
    assert [p.name for p in (ROOT / "tests").rglob("*.py") if loading in p.read_text("utf-8")] == []
