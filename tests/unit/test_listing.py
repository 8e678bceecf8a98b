"""What tells that the session logs of a project are to be looked at again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from concordance.adapters.log_folder import LogFile
from concordance.listing import Listed, reader_versions
from concordance.sessions.registry import by_name

FILES = (LogFile(Path("/logs/a.jsonl"), 10, 1),)


def test_a_reader_that_reads_otherwise_makes_unchanged_logs_be_read() -> None:
    readers = by_name()
    newer = dict(readers, codex=replace(readers["codex"], version=readers["codex"].version + 1))
    fewer = {name: reader for name, reader in readers.items() if name != "codex"}
    versions = [reader_versions(each) for each in (readers, newer, fewer)]
    assert len({Listed(FILES, (), each).marker() for each in versions}) == 3
    assert Listed(FILES, (), versions[0]).marker() == Listed(FILES, (), versions[0]).marker()


def test_a_project_without_logs_is_not_looked_at_for_a_reader() -> None:
    assert Listed((), (), "codex=1").marker() == Listed((), (), "codex=2").marker()
