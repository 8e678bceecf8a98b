"""Many session logs: the first run, one that finds nothing new, one with few changes, and memory.

    python -m benchmarks.sessions 10000

Each session has 40 turns and a log of its own. Vectors are not made.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from git import Repo

from benchmarks.setup import opened, scratch
from concordance.index import Index
from concordance.models import Scope
from concordance.settings import Configuration, Project, SessionSource, Settings
from concordance.writing import Written

TURNS = 40
SLUG = "many"
WORDS = [f"word{n}" for n in range(5_000)]


def write_log(folder: Path, number: int, turns: int) -> Path:
    """One session of made-up turns, the same for the same number."""
    dice = random.Random(number)  # noqa: S311 - made-up words, no secret
    path = folder / f"{number % 100:02d}" / f"{number:06d}.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = []
    for turn in range(turns):
        text = " ".join(dice.choices(WORDS, k=dice.randint(4, 60)))
        kind = "agent.response" if turn % 2 else "chat.message"
        when = f"2026-{number % 12 + 1:02d}-01T{turn // 60 + 10}:{turn % 60:02d}:00Z"
        value = {"session_id": f"s{number}", "event_id": f"{turn}", "type": kind, "text": text}
        lines.append(json.dumps(value | {"occurred_at": when}))
    path.write_text("\n".join(lines) + "\n")
    return path


def run(index: Index) -> Written:
    """One run over the logs of the project."""
    with index.hold(SLUG, uuid.uuid4(), on_wait=lambda: None) as held:
        source = index.plan_sessions(held, SLUG)
        written = index.write(held, SLUG, source)
        index.close_attempt(held, SLUG, source)
    return written


def timed(name: str, work: Callable[[], object]) -> None:
    """Do some work, and print what it took and the most memory that was ever held."""
    began = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024
    print(f"{name:<28} {seconds:8.1f} s   {most:6,} MB at the most   {found}", flush=True)


def main(sessions: int) -> None:
    """Make the logs, and run over them."""
    with scratch() as folder:
        logs, source = folder / "logs", folder / "source"
        logs.mkdir()
        Repo.init(source)
        for number in range(sessions):
            write_log(logs, number, TURNS)
        project = Project(slug=SLUG, path=source, sessions=(SessionSource(path=logs),))
        settings = Settings(
            home=folder / "home",
            projects_file=folder / "projects.toml",
            allowed_schemes=("https", "ssh", "file"),
        )
        with opened(Configuration(settings=settings, projects=(project,))) as index:
            index.survey([SLUG], scopes=[Scope.SESSION])
            timed("first run", lambda: run(index).written)
            timed("the survey finds nothing", lambda: index.survey([SLUG], scopes=[Scope.SESSION]))
            timed("a run that finds nothing", lambda: run(index).plan)
            for number in range(0, sessions, max(1, sessions // 20)):
                write_log(logs, number, TURNS + 2)
            timed("20 logs grew by 2 turns", lambda: run(index).plan)
            for path in logs.rglob("*.jsonl"):
                os.utime(path)
            timed("every log touched", lambda: run(index).plan)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
