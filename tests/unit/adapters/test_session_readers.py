"""Readers of other packages, found by entry point."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from concordance.adapters.log_folder import list_logs
from concordance.adapters.session_readers import check_format, known_readers
from concordance.errors import SettingsError
from concordance.sessions.events import LogContent
from concordance.sessions.reader import LogContext, NotThisFormat, Reader
from concordance.sessions.registry import BUILT_IN, by_name, read
from concordance.settings import SessionSource
from tests.session_logs import EXAMPLES
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


def failing(**parts: Any) -> dict[str, Reader]:
    reader = Reader(
        "diary", "diaries", ("**/*.diary",), lambda _: True, lambda _, __: LogContent(())
    )
    return {**by_name(), "diary": replace(reader, **parts)}


def events(given: Any) -> Any:
    return given and (given,)


def boom(*_: object) -> bool:
    raise ValueError("boom " + "gh" + "p_" + "k" * 30)


@pytest.mark.parametrize("named", [None, "diary"])
@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"read": boom}, "reader diary failed: ValueError"),
        ({"read": lambda _, __: None}, "reader diary gave something else"),
        (
            {"read": lambda _, __: LogContent(events("x"))},
            "something else than events",
        ),
        ({"read": lambda _, __: LogContent(events(None))}, "reader diary failed: TypeError"),
    ],
)
def test_a_failing_reader_refuses_its_log_without_its_words(
    parts: dict[str, Any], reason: str, named: str | None
) -> None:
    with pytest.raises(NotThisFormat) as refused:
        read(b"me: Why?\n", LogContext("x.diary"), failing(**parts), named)
    assert reason in str(refused.value)
    assert "boom" not in str(refused.value)
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None


def test_a_reader_that_fails_to_recognise_lets_the_others_be_asked() -> None:
    readers = failing(recognises=boom)
    with pytest.raises(NotThisFormat, match="reader diary failed: ValueError") as refused:
        read(b"me: Why?\n", LogContext("x.diary"), readers)
    assert "boom" not in str(refused.value)
    other = replace(readers["diary"], name="other", recognises=lambda _: True)
    assert read(b"me: Why?\n", LogContext("x"), readers | {"other": other})[0] == "other"
    for example in EXAMPLES:
        assert read(example.data, LogContext(example.name), readers)[0] == example.format
