"""The pages of the reference are what the code says of itself now."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from concordance import settings
from docs.reference.generate import FOLDER, pages


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


def test_the_pages_are_those_of_the_code(made: dict[str, str]) -> None:
    there = {path.name for path in FOLDER.iterdir() if path.suffix in {".md", ".json"}}
    assert there == set(made)
    old = [name for name, text in made.items() if (FOLDER / name).read_text("utf-8") != text]
    assert old == [], "run `make reference`"


def test_every_setting_and_key_is_told_and_explained(made: dict[str, str]) -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", made["settings.md"], re.MULTILINE)
    known = dict(rows)
    assert [name for name, told in rows if not told] == []
    for name in settings.Settings.model_fields:
        assert f"CONCORDANCE_{name.upper()}" in known
    for name in settings.Project.model_fields:
        assert name in known


def test_every_command_and_path_is_told(made: dict[str, str]) -> None:
    for command in ("reindex", "search", "projects add", "tenants check", "keys new"):
        assert f"concordance {command}" in made["commands.md"]
    assert {"/v1/search", "/v1/coverage", "/v1/reindex"} <= set(
        json.loads(made["openapi.json"])["paths"]
    )


def test_every_function_that_the_migrations_make_for_readers_is_told(made: dict[str, str]) -> None:
    folder = Path(__file__).parents[2] / "sql" / "migrations"
    text = "".join(path.read_text("utf-8") for path in folder.glob("*.sql"))
    made_there = set(re.findall(r"function (reader_\w+)\(", text))
    assert made_there - set(re.findall(r"^## (\w+)$", made["sql.md"], re.MULTILINE)) == set()
