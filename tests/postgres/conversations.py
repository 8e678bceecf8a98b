"""Logs laid where a project looks for them, and what of them stands in the tables."""

from __future__ import annotations

from pathlib import Path

from tests.postgres.driver import ask, passages_of
from tests.session_logs import Example


def lay(logs: Path, example: Example, data: bytes | None = None) -> Path:
    path = logs / example.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(example.data if data is None else data)
    return path


def turns(url: str) -> dict[str, list[str]]:
    """What was said in each session, by passage."""
    found: dict[str, list[str]] = {}
    for passage in passages_of(url):
        if passage["kind"] == "session":
            found.setdefault(passage["name"], []).append(passage["content"])
    return found


def rows(url: str) -> dict[int, str]:
    found = ask(url, "select id, content from chunks where event_id is not null")
    return {row["id"]: row["content"] for row in found}
