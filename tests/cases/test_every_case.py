"""Every public bug report that was collected has a test here; skipped without the collection."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COLLECTION = HERE.parents[2] / "shared" / "cases" / "cases.jsonl"
IDENTIFIER = re.compile(r"_((?:vec|fts|oll|md|git|pre|inc|fus)_\d+)(?=_|$)")


def ids_in_names() -> set[str]:
    """Ids in the names of the tests of this folder, such as `GIT-7`."""
    names = [
        node.name
        for path in HERE.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    return {found.upper().replace("_", "-") for name in names for found in IDENTIFIER.findall(name)}


def test_ids_are_found_in_names() -> None:
    assert {"GIT-7", "FUS-2", "FUS-3", "INC-6"} <= ids_in_names()


@pytest.mark.skipif(not COLLECTION.exists(), reason="the collection is not on this machine")
def test_every_report_has_a_test() -> None:
    lines = COLLECTION.read_text(encoding="utf-8").splitlines()
    wanted = {json.loads(line)["id"] for line in lines if line.strip()}
    assert wanted
    assert sorted(wanted - ids_in_names()) == []
