"""A real `concordance reindex` with a Prefect server of its own, of which one part is killed.

What belongs here: the command line, its processes, and who of them is killed at which request that
the provider is sent. The checks are those of every other kill.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.adapters.prefect_server import PrefectServer
from tests.fake_ollama import Asked, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.soak.comparing import compare
from tests.soak.histories import History
from tests.soak.kills import embedded_again
from tests.soak.points import Victim
from tests.soak.rules import Rules
from tests.soak.sites import Site
from tests.soak.tallies import Difference, Tally

SLUGS = ("p", "q")
COMMAND = str(Path(sys.executable).with_name("concordance"))
SECONDS = 240
VICTIMS: tuple[Victim, ...] = ("worker", "prefect", "postmaster", "provider")
# Two projects at a time, each with one claim in hand and one that is being stored.
IN_FLIGHT = 2 * 2 * 64
CHANGES = 3
STARTED = """
    select extract(epoch from min(last_attempt)) from concordance.coverage
    where last_attempt > to_timestamp(%s)
    """


@dataclass
class Desk:
    """A folder with `projects.toml`, and a home with a Prefect server and a Postgres in it."""

    top: Path
    home: Path
    provider: FakeOllama

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.top)}
        environment["CONCORDANCE_HOME"] = str(self.home)
        return subprocess.Popen(
            [COMMAND, *arguments],
            cwd=self.top,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """A command to its end; a code of -1 where it has none."""
        process = self.command(*arguments)
        try:
            out, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return -1, "", "it did not end"
        return process.returncode, out, errors

    def coverage(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.run("coverage", "--json")[1] or "[]")
        return rows

    def write(self, histories: list[History]) -> None:
        settings = (
            '[settings]\nallowed_schemes = ["file"]\nembedding_model = "ollama/nomic-embed-text"\n'
            f'ollama_url = "{self.provider.url}"\nproject_lock_seconds = 30\n'
        )
        parts = [settings]
        for history in histories:
            branch = "" if history.branch is None else f'branch = "{history.branch}"\n'
            parts.append(
                f'[[projects]]\nslug = "{history.slug}"\npath = "{history.source.path}"\n{branch}'
                f'sessions = [{{path = "{history.logs}"}}]\n'
            )
        (self.top / "projects.toml").write_text("\n".join(parts), encoding="utf-8")


class FlowHistory:
    """A run of the real flow that is killed, and the one after it."""

    def __init__(self, site: Site, number: int, tally: Tally) -> None:
        self._site = site
        self._number = number
        self._tally = tally
        self._dice = random.Random(f"{tally.seed}/{number}")  # noqa: S311 - chance, no secret
        self._step = 0

    def run(self, steps: int, until: Callable[[], bool]) -> None:
        """Make so many steps, or until there is no more time, with processes that end with it."""
        top = Path(tempfile.mkdtemp(prefix="soak-flow-"))
        with FakeOllama() as provider:
            desk = Desk(top, top / "home", provider)
            self._site.reset(migrated=True)
            try:
                seed = f"{self._tally.seed}/{self._number}"
                histories = [History(top, seed, slug) for slug in SLUGS]
                for self._step in range(1, steps + 1):
                    if self._step > 1 and until():
                        break
                    self._one_step(desk, histories)
            finally:
                _end(desk)
                shutil.rmtree(top, ignore_errors=True)
        self._tally.histories += 1

    def _one_step(self, desk: Desk, histories: list[History]) -> None:
        self._tally.steps += 1
        for history in histories:
            for _ in range(CHANGES):
                self._tally.moves[history.step()] += 1
        Rules().serve(desk.provider)
        desk.write(histories)
        desk.provider.forget()
        # In turn, so that a short soak has each of them.
        turn = (self._number // len(VICTIMS) + self._step) % len(VICTIMS)
        self._killed(desk, VICTIMS[turn], self._dice.randrange(1, 4))
        for said in desk.coverage():
            if said["state"] == "complete" and said["chunks_with_vector"] < said["chunks"]:
                self._differ(f"complete after a kill: {said}")
        begun, clock = time.time(), time.monotonic()
        code, out, errors = desk.run("reindex")
        self._tally.runs += 2
        self._tally.longest_run = max(self._tally.longest_run, time.monotonic() - clock)
        if code == -1:
            self._differ(f"the run after a kill did not end: {errors}")
            return
        if code != 0:
            self._differ(f"the run after a kill ended with {code}: {out[-300:]} {errors[-300:]}")
        with psycopg.connect(_database(desk)) as connection:
            found = connection.execute(STARTED, [begun]).fetchone()
        if found is not None and found[0] is not None:
            where = f"history {self._number}, step {self._step}"
            self._tally.started(float(found[0]) - begun, where, "with Prefect, to the first scope")
        again = embedded_again(desk.provider)
        self._tally.embedded += len(desk.provider.inputs)
        self._tally.embedded_again += again
        if again > IN_FLIGHT:
            self._differ(f"{again} texts embedded again after a kill")
        self._compare(desk, histories)

    def _killed(self, desk: Desk, victim: Victim, at: int) -> None:
        """A run in which somebody is killed at a request that the provider is sent."""
        left = at
        lock = threading.Lock()
        struck = threading.Event()
        process = desk.command("reindex")

        def decide(asked: Asked) -> Fault | None:
            nonlocal left
            with lock:
                left -= 1
                if left != 0:
                    return None
            struck.set()
            return _strike(desk, victim, process.pid)

        desk.provider.rule = decide
        try:
            process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self._differ(f"a run did not end after the kill of the {victim}")
            process.kill()
            process.communicate()
        desk.provider.rule = None
        desk.provider.restart()
        if struck.is_set():
            self._tally.kills[f"{victim} of a flow"] += 1
        else:
            self._tally.missed += 1

    def _compare(self, desk: Desk, histories: list[History]) -> None:
        Rules().serve(self._site.healthy)
        projects = [history.project(Rules()).model_dump(mode="json") for history in histories]
        order = self._site.order(projects, Rules().as_json())
        fresh = self._site.runner.run(self._site.fresh(order))
        if fresh.told is None or fresh.told.errors or fresh.told.crash:
            self._differ(f"a fresh index could not be built: {fresh}")
            return
        for slug in SLUGS:
            done = compare(_database(desk), self._site.fresh_url, slug, whole=True)
            self._tally.rows += done.rows
            for found in done.found:
                self._differ(f"{slug}: {found}")

    def _differ(self, what: str) -> None:
        self._tally.differences.append(Difference(self._number, self._step, what))


def _strike(desk: Desk, victim: Victim, worker: int) -> Fault | None:
    with suppress(ProcessLookupError, FileNotFoundError):
        match victim:
            case "worker":
                os.kill(worker, signal.SIGKILL)
            case "prefect":
                found = PrefectServer(desk.home, {}).find()
                if found is not None:
                    os.killpg(found.pid, signal.SIGKILL)
            case "postmaster":
                data = EmbeddedPostgres(desk.home).status().location.data
                os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
            case _:
                threading.Thread(target=desk.provider.stop, daemon=True).start()
                return Fault.connection_reset()
    return None


def _database(desk: Desk) -> str:
    server = EmbeddedPostgres(desk.home)
    return psycopg.conninfo.make_conninfo(server.start(), dbname="concordance")


def _end(desk: Desk) -> None:
    with suppress(OSError):
        PrefectServer(desk.home, {}).stop()
    server = EmbeddedPostgres(desk.home)
    base = server.status().location.base
    server.start()
    server.stop(force=True)
    shutil.rmtree(base, ignore_errors=True)
