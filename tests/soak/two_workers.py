"""Two workers of a process pool share many projects, and one is killed in the middle.

    python -m tests.soak.two_workers [--projects 50] [--reindex]

A Prefect server, an embedded Postgres and two embedding servers of its own; the pool, the
deployments and the automations are those of `deployments/`. Each worker has a home of its own, as
on two machines. When a third of the projects is done, one is killed with all of its runs: the one
that does not work on `reindex` itself, or with `--reindex` the one that does. The next run has to
leave the rows of a fresh index.

Some minutes, mostly of processes that load Prefect.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.adapters.environment import read_configuration
from concordance.adapters.postgres.database import Database, create_database
from concordance.adapters.postgres.schema import migrate
from concordance.adapters.prefect_server import PREFECT_VARIABLES, PrefectServer
from concordance.index import Index
from tests.acceptance.test_serve import ask, deployment
from tests.fake_ollama import Asked, FakeOllama
from tests.fake_ollama_faults import Fault
from tests.soak.comparing import compare
from tests.soak.running import run_all
from tests.sources import GitSource

ROOT = Path(__file__).parents[2]
SECONDS = 1_800
PAGES = 8
PARTS = 6
# What a request of 32 passages takes: enough for a worker to be at work when it is killed.
EMBEDDING_SECONDS = 0.2
ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
LIMIT = 4
DONE = "select count(*) from concordance.coverage where scope = 'docs' and last_success is not null"
PARTLY = """
    select count(*) from concordance.projects p join concordance.coverage c on c.project_id = p.id
    where c.scope = 'docs' and c.last_success is not null and c.chunks_with_vector < c.chunks
    """


@dataclass
class Worker:
    """A worker's processes, all of which have its home in their environment."""

    name: str
    home: Path
    process: subprocess.Popen[bytes]

    def processes(self) -> list[int]:
        return processes_with(f"CONCORDANCE_HOME={self.home}\0")

    def kill(self) -> int:
        """End it and all its runs at once, as the loss of its machine would; how many."""
        found = self.processes()
        for number in found:
            os.kill(number, signal.SIGKILL)
        self.process.wait()
        return len(found)


@dataclass
class Scene:
    """Where everything is, and what was started."""

    top: Path
    api: str
    database: str
    environment: dict[str, str]
    servers: list[FakeOllama]
    slugs: list[str]
    workers: list[Worker] = field(default_factory=list)

    def prefect(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env=self.environment | {"CONCORDANCE_HOME": str(self.top / "deploying")},
            check=True,
            capture_output=True,
        )

    def start_worker(self, name: str) -> None:
        home = self.top / f"home-{name}"
        environment = self.environment | {
            "CONCORDANCE_HOME": str(home),
            "PREFECT_HOME": str(home / "prefect"),
        }
        home.mkdir()
        with (self.top / f"worker-{name}.log").open("wb") as log:
            command = ["prefect", "worker", "start", "--pool", "concordance"]
            process = subprocess.Popen(
                [sys.executable, "-m", *command, "--name", name, "--limit", str(LIMIT)],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.workers.append(Worker(name, home, process))

    def start_run(self) -> str:
        path = f"/deployments/{deployment(self.api, 'reindex/reindex')}/create_flow_run"
        return str(ask(self.api, path, {"parameters": {}})["id"])

    def run(self, number: str) -> dict[str, Any]:
        found: dict[str, Any] = ask(self.api, f"/flow_runs/{number}")
        return found

    def wait(self, number: str) -> dict[str, Any]:
        self.eventually(lambda: self.run(number)["state_type"] in ENDED, "the run never ended")
        return self.run(number)

    def count(self, statement: str) -> int:
        with psycopg.connect(self.database) as connection:
            row = connection.execute(statement.encode()).fetchone()
        return int(row[0]) if row else 0

    def taken(self) -> Counter[str]:
        """How many runs each worker began so far."""
        return Counter(
            {
                worker.name: (self.top / f"worker-{worker.name}.log")
                .read_text("utf-8", errors="replace")
                .count("submitting flow run")
                for worker in self.workers
            }
        )

    @staticmethod
    def eventually(holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, what
            time.sleep(0.5)


def processes_with(variable: str) -> list[int]:
    """Processes that have a variable in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            held = (place / "environ").read_bytes()
        except OSError:
            continue
        if variable.encode() in held:
            found.append(int(place.name))
    return found


def write_projects(top: Path, number: int) -> list[str]:
    """Small projects, half of whose pages are in all of them."""
    slugs = [f"project-{n:02}" for n in range(number)]
    tables = ['[settings]\nallowed_schemes = ["file"]\n']
    for slug in slugs:
        files: dict[str, str | bytes] = {}
        for page in range(PAGES):
            whose = slug if page % 2 else "all"
            parts = (
                f"## Part {n}\n\nPart {n} of page {page} of {whose}.\n\n" for n in range(PARTS)
            )
            files[f"docs/{page}.md"] = f"# Page {page}\n\n{''.join(parts)}"
        source = GitSource.make(top / "sources" / slug, files)
        tables.append(f'[[projects]]\nslug = "{slug}"\npath = "{source.path}"\n')
    (top / "projects.toml").write_text("\n".join(tables), encoding="utf-8")
    return slugs


@contextmanager
def set_up(number: int) -> Iterator[Scene]:
    """A scene with two workers, and nothing left of it afterwards."""
    top = Path(tempfile.mkdtemp(prefix="soak-workers-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, top, ignore_errors=True)
        servers = [stack.enter_context(FakeOllama()) for _ in range(2)]
        for one in servers:
            one.rule = slowly
        postgres = EmbeddedPostgres(top / "postgres")
        base = postgres.status().location.base
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        stack.callback(postgres.stop, force=True)
        database = create_database(postgres.start(), "concordance")
        migrated(database)
        plain = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(top)}
        prefect = PrefectServer(top / "server", plain)
        stack.callback(prefect.stop)
        api = prefect.ensure().api_url
        environment = (
            plain
            | PREFECT_VARIABLES
            | {
                "PYTHONPATH": str(ROOT),
                "PREFECT_API_URL": api,
                "PREFECT_HOME": str(top / "client"),
                "CONCORDANCE_ROOT": str(ROOT),
                "CONCORDANCE_PROJECTS_FILE": str(top / "projects.toml"),
                "CONCORDANCE_DATABASE_URL": database,
                "CONCORDANCE_EMBEDDING_MODEL": "ollama/nomic-embed-text",
                "CONCORDANCE_OLLAMA_URL": ",".join(one.url for one in servers),
                "CONCORDANCE_EMBEDDING_CONCURRENCY": "3",
                "CONCORDANCE_WORK_POOL": "true",
                "CONCORDANCE_MAX_PARALLEL_PROJECTS": str(2 * LIMIT - 1),
            }
        )
        scene = Scene(top, api, database, environment, servers, write_projects(top, number))
        stack.callback(lambda: [worker.kill() for worker in scene.workers])
        pool = ("--base-job-template", "deployments/pools/process.json")
        scene.prefect("prefect", "work-pool", "create", "concordance", "--type", "process", *pool)
        deploying = ("--no-prompt", "deploy", "--all", "--prefect-file")
        scene.prefect("prefect", *deploying, "deployments/prefect.yaml")
        scene.prefect("flows.automations", "deployments/automations.yaml")
        for name in "ab":
            scene.start_worker(name)
        yield scene


def migrated(url: str) -> None:
    database = Database(url, pool_size=1)
    database.open()
    migrate(database)
    database.close()


def slowly(asked: Asked) -> Fault | None:
    return Fault.slow(EMBEDDING_SECONDS) if len(asked.inputs) > 1 else None


def kill_in_the_middle(scene: Scene, run: str, *, its_own: bool) -> None:
    """Kill the worker that a run is on, or the other one, when a third of the projects is done."""
    third = len(scene.slugs) // 3
    scene.eventually(lambda: scene.count(DONE) >= third, "no project was ever done")
    busy = set(processes_with(run))
    victim = next(w for w in scene.workers if bool(busy & set(w.processes())) is its_own)
    done, partly = scene.count(DONE), scene.count(PARTLY)
    killed = victim.kill()
    print(
        f"killed worker {victim.name} with {killed} processes: {done} of {len(scene.slugs)} "
        f"projects had their words, {partly} of them not all vectors; runs begun {scene.taken()}"
    )
    scene.workers.remove(victim)
    Path(scene.top / f"worker-{victim.name}.log").rename(scene.top / "killed.log")


def build_fresh(scene: Scene) -> str:
    """The same projects in a database that nobody else writes to."""
    url = create_database(scene.database, "fresh")
    environment = scene.environment | {
        "CONCORDANCE_HOME": str(scene.top / "fresh"),
        "CONCORDANCE_DATABASE_URL": url,
    }
    with Index.open(read_configuration(environment), environment=environment) as index:
        assert run_all(index, scene.slugs) == []
    return url


def main() -> None:
    """Run it, and print what came of it; ends with 1 where a row differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--projects", type=int, default=50)
    parser.add_argument("--reindex", action="store_true")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left behind
    with set_up(given.projects) as scene:
        began = time.monotonic()
        first = scene.start_run()
        stopper = threading.Timer(SECONDS, lambda: os._exit(2))
        stopper.daemon = True
        stopper.start()
        kill_in_the_middle(scene, first, its_own=given.reindex)
        struck = time.monotonic()
        ended = scene.wait(first)
        later = time.monotonic() - struck
        print(f"the run that lost a worker: {ended['state_name']}, {struck - began:.0f} s to the")
        print(f"  kill and {later:.0f} s from there: {ended['state']['message']}")
        before = Counter(text for one in scene.servers for text in one.inputs)
        scene.start_worker("c")
        began = time.monotonic()
        ended = scene.wait(scene.start_run())
        print(f"the next run: {ended['state_name']} after {time.monotonic() - began:.0f} s")
        print(f"  {ended['state']['message']}; runs begun {dict(scene.taken())}")
        sent = Counter(text for one in scene.servers for text in one.inputs)
        texts = {text: times for text, times in sent.items() if "of page" in text}
        again = sum(times - 1 for times in texts.values())
        shares = [sum("of page" in text for text in one.inputs) for one in scene.servers]
        print(f"{len(texts)} texts embedded, {again} of them again; by server {shares}")
        print(f"  {sum(before[t] for t in texts)} of them by the run that lost a worker")
        fresh = build_fresh(scene)
        done = [compare(scene.database, fresh, slug, whole=True) for slug in scene.slugs]
        differ = [found for one in done for found in one.found]
        rows = sum(one.rows for one in done)
        print(f"{rows} rows compared with those of a fresh index: {len(differ)} differ")
        for found in differ[:20]:
            print(found)
    sys.exit(1 if differ or ended["state_name"] != "Completed" else 0)


if __name__ == "__main__":
    main()
