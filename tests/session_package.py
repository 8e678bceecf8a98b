"""A package with a reader of session logs, installed for a test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The example of docs/sessions.md.
MODULE = '''
from concordance.sessions.events import Event, LogContent
from concordance.sessions.reader import LogContext, NotThisFormat, Reader, Sample


def read_diary(data: bytes, context: LogContext) -> LogContent:
    """One turn a line: `me: …` or `it: …`."""
    events, other = [], 0
    for number, line in enumerate(data.decode(errors="replace").splitlines(), start=1):
        who, colon, text = line.partition(": ")
        if not colon or who not in ("me", "it"):
            other += 1
            continue
        speaker = "human" if who == "me" else "agent"
        events.append(Event(context.path.stem, f"line-{number}", speaker, text, None))
    if not events:
        raise NotThisFormat("no line begins with 'me: ' or 'it: '")
    return LogContent(tuple(events), left_out={"other lines": other} if other else {})


READER = Reader(
    name="diary",
    about="diaries",
    patterns=("**/*.diary",),
    recognises=lambda sample: sample.text.startswith(("me: ", "it: ")),
    read=read_diary,
)
'''


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the package on the path; the file of its entry points, which `names` writes."""
    (folder / "diary_logs.py").write_text(MODULE)
    about = folder / "diary_logs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: diary-logs\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "diary_logs", raising=False)
    return about / "entry_points.txt"


def names(file: Path, value: str, name: str = "diary") -> None:
    """Write the entry points of the package."""
    file.write_text(f"[concordance.session_readers]\n{name} = {value}\n")
