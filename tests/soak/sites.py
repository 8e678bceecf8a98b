"""A machine of one's own for a soak: an embedded server, two providers, and runs as processes.

What belongs here: making, resetting and removing it. What is done on it is in the modules beside
this one.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.adapters.postgres.database import Database, create_database
from concordance.adapters.postgres.schema import migrate
from concordance.resources import EMBEDDED_DATABASE
from tests.fake_ollama import FakeOllama
from tests.soak.victim import Order, Told

ROOT = Path(__file__).parents[2]
TEMPLATE, FRESH = "template", "fresh"
RUN_SECONDS = 120.0
"""After so long a run counts as one that never ends."""


@dataclass(frozen=True)
class Ran:
    """How a run ended: its exit code (below zero: the signal), and what it told; late or not."""

    code: int
    told: Told | None
    late: bool
    seconds: float


class Runner:
    """A process that forks one run after the other."""

    def __init__(self, folder: Path, *, scans: bool) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.victim", str(folder) if scans else ""],
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._number = 0
        self._said: queue.Queue[dict[str, int]] = queue.Queue()
        self._ear = threading.Thread(target=self._hear, daemon=True)
        self._ear.start()

    def run(self, order: Order) -> Ran:
        """Make a run, and wait for its end."""
        self._number += 1
        answer = self._folder / f"answer-{self._number}.json"
        asked = time.monotonic()
        self._tell(replace(order, answer=str(answer), asked=asked))
        process = self._listen(RUN_SECONDS)["process"]
        said = self._listen(RUN_SECONDS)
        late = "code" not in said
        if late:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            said = self._listen(RUN_SECONDS)
        told = None
        if answer.exists():
            told = Told(**json.loads(answer.read_text(encoding="utf-8")))
            answer.unlink()
        return Ran(said["code"], told, late, time.monotonic() - asked)

    def close(self) -> None:
        """End it, and the run that it may still have."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._ear.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _tell(self, order: Order) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()

    def _listen(self, seconds: float) -> dict[str, int]:
        """The next line, or nothing in time."""
        try:
            return self._said.get(timeout=seconds)
        except queue.Empty:
            return {}

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(json.loads(line))


def _environment() -> dict[str, str]:
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    return given | {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}


class Site:
    """A home folder with its embedded server, which anybody may kill.

    Attributes:
        provider: The provider of the index that has a history.
        healthy: That of fresh indexes, which never fails.
    """

    def __init__(self, top: Path, *, scans: bool = True) -> None:
        self.top = top
        self.home = top / "home"
        self.server = EmbeddedPostgres(self.home)
        self.server.start()
        self.data = self.server.status().location.data
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            # What is thrown away need not outlast a power cut; a kill it outlasts all the same.
            connection.execute("alter system set fsync = off")
            connection.execute("select pg_reload_conf()")
        with suppress(psycopg.errors.DuplicateDatabase):
            template = Database(create_database(self.server.url, TEMPLATE), pool_size=1)
            template.open()
            migrate(template)
            template.close()
        self.provider, self.healthy = FakeOllama(), FakeOllama()
        self.runner = Runner(top, scans=scans)

    @classmethod
    @contextmanager
    def open(cls, folder: Path | None = None, *, scans: bool = True) -> Iterator[Self]:
        """A site below a folder, or one of its own; nothing of it is left.

        Without `scans`, texts are not looked through for the keys of other issuers, whose rules
        take seconds to compile.
        """
        top = Path(tempfile.mkdtemp(prefix="soak-", dir=folder))
        site = cls(top, scans=scans)
        try:
            yield site
        finally:
            site.close()

    def close(self) -> None:
        """Stop and remove all of it."""
        self.runner.close()
        self.provider.stop()
        self.healthy.stop()
        base = self.server.status().location.base
        self.server.stop(force=True)
        # As root it lies outside the folder that is thrown away here.
        shutil.rmtree(base, ignore_errors=True)
        shutil.rmtree(self.top, ignore_errors=True)

    @property
    def url(self) -> str:
        """The database of the index that has a history."""
        return make_conninfo(self.server.url, dbname=EMBEDDED_DATABASE)

    @property
    def fresh_url(self) -> str:
        """The database of the fresh index."""
        return make_conninfo(self.server.url, dbname=FRESH)

    def reset(self, *, migrated: bool) -> Path:
        """Begin anew, with empty databases, or with none; returns an empty folder for sources."""
        self.server.start()
        made = [FRESH, *([EMBEDDED_DATABASE] if migrated else [])]
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            for name in (FRESH, EMBEDDED_DATABASE):
                gone = sql.SQL("drop database if exists {} with (force)")
                connection.execute(gone.format(sql.Identifier(name)))
            for name in made:
                make = sql.SQL("create database {} template {} strategy file_copy")
                connection.execute(make.format(sql.Identifier(name), sql.Identifier(TEMPLATE)))
        for folder in (self.home / "repositories", self.top / "fresh", self.top / "sources"):
            shutil.rmtree(folder, ignore_errors=True)
        sources = self.top / "sources"
        sources.mkdir()
        return sources

    def order(self, projects: Sequence[dict[str, Any]], rules: dict[str, Any]) -> Order:
        """A run of the index that has a history."""
        return Order(
            home=str(self.home),
            provider=self.provider.url,
            projects=projects,
            rules=rules,
            answer="",
            data=str(self.data),
        )

    def fresh(self, order: Order) -> Order:
        """The same run in an index that knows nothing before."""
        return replace(
            order,
            home=str(self.top / "fresh"),
            provider=self.healthy.url,
            database_url=self.fresh_url,
            forget=True,
            small=False,
            kill=None,
            full=False,
        )
