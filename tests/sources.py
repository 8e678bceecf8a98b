"""Git projects and session logs that tests make on the spot."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


@dataclass
class GitSource:
    """A git project with a work tree, as its developers have it."""

    path: Path

    @classmethod
    def make(
        cls, path: Path, files: Mapping[str, str | bytes] | None = None, *, branch: str = "main"
    ) -> GitSource:
        path.mkdir(parents=True)
        source = cls(path)
        source.git("init", "-q", "-b", branch)
        if files is not None:
            source.commit(files)
        return source

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=os.environ | _GIT_ENVIRONMENT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def commit(
        self, files: Mapping[str, str | bytes], *, delete: Sequence[str] = (), message: str = "x"
    ) -> str:
        for name, content in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        for name in delete:
            (self.path / name).unlink()
        self.git("add", "-A", "-f", ".")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


def event(session: str, number: int, text: str, **more: Any) -> dict[str, Any]:
    """One canonical event, a person's where nothing else is said."""
    return {
        "session_id": session,
        "event_id": f"{session}-{number}",
        "type": "chat.message",
        "text": text,
        "occurred_at": f"2026-03-01T10:{number % 60:02d}:00Z",
    } | more


def write_log(path: Path, events: Sequence[Mapping[str, Any]]) -> Path:
    """A log of canonical events, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(e) + "\n" for e in events), encoding="utf-8")
    return path
