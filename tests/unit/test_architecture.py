"""Imports go one way, each outside thing has one room, and no file is too long."""

from __future__ import annotations

import ast
import re

from tests.our_modules import (
    OURS,
    ROOT,
    below,
    handlers,
    imports,
    inside,
    is_standard,
    modules,
)

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
            last = handler.body[-1]
            raised = isinstance(last, ast.Raise) and last.exc is None
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
    lengths = {module.file: module.text.count("\n") for module in (*modules(), *below("tests"))}
    assert {file: n for file, n in lengths.items() if n > LONGEST_FILE} == {}


def test_no_function_is_too_long_to_be_read() -> None:
    lengths = {
        f"{module.at(node)} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: n for name, n in lengths.items() if n > LONGEST_FUNCTION} == {}


def test_no_test_sets_how_many_examples_others_have() -> None:
    """A profile that is loaded holds for all files of a run, also where a conftest loads it."""
    loading = "load_" + "profile"
    assert [p.name for p in (ROOT / "tests").rglob("*.py") if loading in p.read_text("utf-8")] == []


def test_no_test_holds_a_stop_watch() -> None:
    """What is soon on one machine is late on a loaded one; a fault that lasts needs a timeout."""
    clocks = {f"time.{name}()" for name in ("monotonic", "perf_counter", "process_time", "time")}
    wrong = [
        module.at(node)
        for module in below("tests")
        if module.path.name.startswith("test_") and "time." in module.text
        for node in ast.walk(module.tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and ast.unparse(node.left) in clocks
        and not isinstance(node.right, ast.Constant)
    ]
    assert wrong == []
