"""Session logs on disk: a folder that can't be read is an error, never an empty folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from concordance.adapters.log_folder import (
    LogFile,
    list_logs,
    look_for_logs,
    marker,
    read_beside,
    read_log,
)
from concordance.errors import LogsUnreadable
from concordance.settings import SessionSource


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "logs"
    made.mkdir()
    return made


def put(path: Path, text: str = "x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def listed(folder: Path, pattern: str = "**/*.jsonl") -> list[str]:
    logs = list_logs([SessionSource(path=folder, pattern=pattern)])
    return [log.path.relative_to(folder).as_posix() for log in logs]


# --- what is listed --------------------------------------------------------------------------


def test_logs_are_listed_by_path_however_deep(folder: Path) -> None:
    for name in ("b.jsonl", "a/c.jsonl", "a/b/c/d.jsonl", "a/notes.md", "B.JSONL"):
        put(folder / name)
    assert listed(folder) == ["a/b/c/d.jsonl", "a/c.jsonl", "b.jsonl"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**/*.jsonl", ["a.jsonl", "x/b.jsonl", "x/y/c.jsonl"]),
        ("*.jsonl", ["a.jsonl"]),
        ("*/*.jsonl", ["x/b.jsonl"]),
        ("x/**/*.jsonl", ["x/b.jsonl", "x/y/c.jsonl"]),
        ("**/y/*", ["x/y/c.jsonl", "x/y/d.log"]),
        ("x/**", ["x/b.jsonl", "x/y/c.jsonl", "x/y/d.log"]),
        ("**/[bc].jsonl", ["x/b.jsonl", "x/y/c.jsonl"]),
        ("**", ["a.jsonl", "x/b.jsonl", "x/y/c.jsonl", "x/y/d.log"]),
        ("y/*.jsonl", []),
        ("**/X/*.jsonl", []),
        ("../*.jsonl", []),
        ("/*.jsonl", []),
    ],
)
def test_a_pattern_is_read_from_the_folder(folder: Path, pattern: str, expected: list[str]) -> None:
    for name in ("a.jsonl", "x/b.jsonl", "x/y/c.jsonl", "x/y/d.log"):
        put(folder / name)
    assert listed(folder, pattern) == expected


def test_an_empty_folder_has_no_logs(folder: Path) -> None:
    assert listed(folder) == []
    assert list_logs([]) == []


def test_a_file_is_taken_whatever_its_name(folder: Path) -> None:
    path = put(folder / "session.log", "12345")
    (log,) = list_logs([SessionSource(path=path)])
    assert (log.path, log.size, log.modified_ns) == (path, 5, path.stat().st_mtime_ns)


def test_a_log_of_two_sources_is_listed_once(folder: Path) -> None:
    path = put(folder / "a.jsonl")
    assert len(list_logs([SessionSource(path=folder), SessionSource(path=path)])) == 1


def test_links_are_followed_for_the_source_alone(folder: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "o.jsonl")
    put(folder / "a.jsonl")
    (folder / "file.jsonl").symlink_to(outside)
    (folder / "dangling.jsonl").symlink_to(tmp_path / "nothing")
    (folder / "folder").symlink_to(outside.parent)
    (folder / "round").symlink_to(folder)
    (folder / "other.txt").symlink_to(outside)
    assert listed(folder) == ["a.jsonl"]
    found = look_for_logs([SessionSource(path=folder, pattern="**/*.jsonl")])
    assert [path.name for path in found.links] == [
        *("dangling.jsonl", "file.jsonl", "folder", "round"),
    ]
    assert marker(found.logs, found.links) != marker(found.logs, found.links[1:])
    assert marker(found.logs, []) == marker(found.logs)
    both = [SessionSource(path=folder), SessionSource(path=folder / "folder")]
    named = look_for_logs(both)
    assert folder / "folder" not in named.links
    assert [log.path.name for log in named.logs] == ["a.jsonl", "o.jsonl"]

    link = tmp_path / "link"
    link.symlink_to(folder)
    assert listed(link) == ["a.jsonl"]
    file_link = tmp_path / "link.jsonl"
    file_link.symlink_to(outside)
    assert [log.size for log in list_logs([SessionSource(path=file_link)])] == [2]


def test_a_pipe_is_no_log_and_is_waited_for_by_nobody(folder: Path) -> None:
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "folder.jsonl").mkdir()
    assert listed(folder) == []


# --- what can't be read ----------------------------------------------------------------------


def test_a_missing_source_is_an_error_that_says_nothing_was_deleted(folder: Path) -> None:
    with pytest.raises(LogsUnreadable) as caught:
        list_logs([SessionSource(path=folder), SessionSource(path=folder / "gone")])
    assert f"session logs at {folder / 'gone'} can't be read: No such file" in str(caught.value)
    assert "Nothing was deleted" in str(caught.value)


def test_a_source_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    ring.symlink_to(ring)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (ring, pipe, tmp_path / ("x" * 300)):
        with pytest.raises(LogsUnreadable, match="can't be read"):
            list_logs([SessionSource(path=path)])


def test_a_folder_below_that_can_not_be_listed_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "a.jsonl")
    put(folder / "closed" / "b.jsonl")
    # The tests may run as root, whom no mode keeps out.
    monkeypatch.setattr(os, "scandir", refusing(os.scandir, "closed"))
    with pytest.raises(LogsUnreadable, match="closed can't be read: Permission denied"):
        listed(folder)


def test_a_log_that_can_not_be_looked_at_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "a.jsonl")
    monkeypatch.setattr(Path, "stat", refusing(Path.stat, "a.jsonl"))
    with pytest.raises(LogsUnreadable, match=r"a\.jsonl can't be read: Permission denied"):
        listed(folder)


def refusing(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    def refuse(path: Any, *arguments: Any, **options: Any) -> Any:
        if str(path).endswith(name):
            raise PermissionError(13, "Permission denied", str(path))
        return call(path, *arguments, **options)

    return refuse


def test_a_path_that_is_not_utf_8_can_be_told_of(tmp_path: Path) -> None:
    with pytest.raises(LogsUnreadable) as caught:
        list_logs([SessionSource(path=tmp_path / "caf\udce9")])
    assert str(caught.value).encode()


def test_a_log_that_went_away_is_an_error(folder: Path) -> None:
    path = put(folder / "a.jsonl")
    (log,) = list_logs([SessionSource(path=folder)])
    path.unlink()
    with pytest.raises(LogsUnreadable, match=r"a\.jsonl can't be read"):
        read_log(log)


# --- while it grows --------------------------------------------------------------------------


def test_what_was_written_after_listing_is_read_next_time(folder: Path) -> None:
    path = put(folder / "a.jsonl", "one\n")
    before = list_logs([SessionSource(path=folder)])
    with path.open("a") as file:
        file.write("two\n")
    assert read_log(before[0]).data == b"one\n"
    after = list_logs([SessionSource(path=folder)])
    assert read_log(after[0]).data == b"one\ntwo\n"
    assert marker(before) != marker(after)


def test_a_log_that_shrank_gives_what_is_left(folder: Path) -> None:
    path = put(folder / "a.jsonl", "one\ntwo\n")
    (log,) = list_logs([SessionSource(path=folder)])
    path.write_text("one\n")
    assert read_log(log).data == b"one\n"


def test_the_marker_changes_with_whatever_changes_the_logs() -> None:
    log = LogFile(Path("a"), 1, 2)
    markers = [
        marker([log]),
        marker([]),
        marker([LogFile(Path("b"), 1, 2)]),
        marker([LogFile(Path("a"), 2, 2)]),
        marker([LogFile(Path("a"), 1, 3)]),
        marker([log, LogFile(Path("b"), 1, 2)]),
        marker([LogFile(Path("caf\udce9"), 1, 2)]),
    ]
    assert len(set(markers)) == len(markers)
    assert marker([LogFile(Path("a"), 1, 2)]) == markers[0]
    assert markers[0].startswith("logs-")


# --- names and what stands beside ------------------------------------------------------------


def test_without_a_pattern_the_names_count_that_readers_know(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b/rollout-1.jsonl.zst", "c/notes.txt", "d/general/2030-01-02.json"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    found = list_logs([SessionSource(path=tmp_path / "logs")])
    assert [log.name for log in found] == [
        "logs/a.jsonl",
        "logs/b/rollout-1.jsonl.zst",
        "logs/d/general/2030-01-02.json",
    ]
    only = list_logs([SessionSource(path=tmp_path / "logs", format="codex")])
    assert [log.name for log in only] == ["logs/b/rollout-1.jsonl.zst"]


def test_a_single_file_is_named_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "demo" / ".aider.chat.history.md"
    path.parent.mkdir()
    path.write_bytes(b"")
    assert [log.name for log in list_logs([SessionSource(path=path)])] == [
        "demo/.aider.chat.history.md"
    ]


def test_a_change_of_what_stands_beside_a_log_is_a_change_of_the_log(tmp_path: Path) -> None:
    day = tmp_path / "export" / "general" / "2030-01-02.json"
    day.parent.mkdir(parents=True)
    day.write_bytes(b"[]")
    sources = [SessionSource(path=tmp_path / "export")]
    before = list_logs(sources)
    (tmp_path / "export" / "users.json").write_bytes(b"[]")
    after = list_logs(sources)
    assert marker(before) != marker(after)
    assert read_beside(after[0], ["../users.json", "../none.json"]) == {"../users.json": b"[]"}


def test_a_packed_log_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "rollout-1.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"{}\n"))
    (log,) = list_logs([SessionSource(path=path)])
    assert read_log(log).data == b"{}\n"
