"""Exports whose folders may have one name are told apart."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from concordance.sessions import cline, codex, slack
from concordance.sessions.exports import export_names, lies_in_export
from concordance.sessions.reader import Reader


@pytest.mark.parametrize(
    "exports",
    [
        {},
        {"/logs/a": ""},
        {"/logs/a": "a", "/logs/b": "b"},
        {"/logs": "logs", "/logs/b": "b"},
        {"/logs/x/tasks": "x/tasks", "/logs/y/tasks": "y/tasks", "/logs/b": "b"},
        {"/x/a": "/x/a", "/y/x/a": "y/x/a", "/z/x/a": "z/x/a"},
        {"/": "/", "/a": "a"},
    ],
)
def test_a_name_is_as_much_of_the_path_as_no_other_has(exports: dict[str, str]) -> None:
    paths = [PurePosixPath(path) for path in exports]
    found = export_names([*paths, *paths])
    assert found == {PurePosixPath(path): name for path, name in exports.items()}


def test_an_export_that_is_added_changes_no_name_but_of_those_that_end_alike() -> None:
    paths = [PurePosixPath(path) for path in ("/logs/a", "/logs/b", "/more/c", "/more/a")]
    before, after = export_names(paths[:3]), export_names(paths)
    assert {path: after[path] for path in paths[1:3]} == {path: before[path] for path in paths[1:3]}
    assert (before[paths[0]], after[paths[0]]) == ("a", "logs/a")


@pytest.mark.parametrize(
    ("name", "reader", "named", "inside"),
    [
        ("2030-01-02.json", slack.READER, None, True),
        ("2030-01-02.json", slack.READER, "codex", False),
        ("users.json", slack.READER, "slack", False),
        ("all.json", slack.READER, "slack", True),
        ("all.json", slack.READER, None, False),
        ("ui_messages.json", cline.READER, None, True),
        ("api_conversation_history.json", cline.READER, "cline", False),
        ("rollout-1.jsonl", codex.READER, None, False),
    ],
)
def test_which_files_lie_in_an_export(
    name: str, reader: Reader, named: str | None, inside: bool
) -> None:
    assert lies_in_export(name, reader, named) is inside
