"""Readers of other packages, found by entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

from concordance.adapters.log_folder import list_logs
from concordance.adapters.session_readers import check_format, known_readers
from concordance.errors import SettingsError
from concordance.sessions.reader import LogContext
from concordance.sessions.registry import BUILT_IN, read
from concordance.settings import SessionSource
from tests.session_package import MODULE, install, names


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The entry points of an installed package with a reader."""
    return install(tmp_path, monkeypatch)


def test_a_reader_of_another_package_is_found_and_used(package: Path, tmp_path: Path) -> None:
    names(package, "diary_logs:READER")
    readers = known_readers()
    assert set(readers) == {reader.name for reader in BUILT_IN} | {"diary"}
    name, found = read(b"me: Why?\nit: So.\n--\n", LogContext("x/monday.diary"), readers)
    assert name == "diary"
    assert [(e.session_id, e.text) for e in found.events] == [("monday", "Why?"), ("monday", "So.")]
    assert found.left_out == {"other lines": 1}
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "monday.diary").write_text("me: Why?\n")
    assert len(list_logs([SessionSource(path=logs)], readers)) == 1
    assert list_logs([SessionSource(path=logs)]) == []


def test_the_programs_own_are_there_without_any(package: Path) -> None:
    assert set(known_readers()) == {reader.name for reader in BUILT_IN}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module:READER", "can't be loaded: ModuleNotFoundError"),
        ("diary_logs:NOTHING", "can't be loaded: AttributeError"),
        ("diary_logs:read_diary", "is no Reader"),
    ],
)
def test_one_that_can_not_be_used_is_named(package: Path, value: str, reason: str) -> None:
    names(package, value)
    with pytest.raises(SettingsError) as refused:
        known_readers()
    assert reason in str(refused.value)
    assert value in str(refused.value)


def test_a_name_of_the_programs_own_is_taken(package: Path) -> None:
    (Path(package).parent.parent / "diary_logs.py").write_text(
        MODULE.replace('name="diary"', 'name="codex"')
    )
    names(package, "diary_logs:READER")
    with pytest.raises(SettingsError, match="has the name 'codex', which is taken"):
        known_readers()


def test_a_format_without_a_reader_is_refused_with_those_there_are() -> None:
    check_format("codex", known_readers())
    with pytest.raises(SettingsError, match="Known are aider, chatgpt, claude-code"):
        check_format("otter", known_readers())
