"""Everything on one machine from nothing, and one question by every way in.

    python -m benchmarks.tour [folder]

Starts the embedded Postgres, a Prefect server, a worker and the HTTP interface, each a process of
its own as a person would start it; runs the nightly once on three projects; asks the same by each
way, and says whether all gave the same hits in the same order. Last, what HTTP and MCP add to the
plain Python call, in turn and in one run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import httpx

from benchmarks.tour_ways import ROUNDS, WAYS, Place, overhead
from tests.sources import GitSource

ROOT = Path(__file__).parents[1]
QUESTION = "how is a backup restored?"
PATIENCE = 300.0
HARBOUR: dict[str, str | bytes] = {
    "README.md": "# Harbour\n\nA registry of ships and berths.\n",
    "docs/backups.md": "# Backups\n\n## Restore\n\nA backup of the registry is restored by "
    "`harbour restore`, which stops the writers first.\n",
    "docs/adr/0001-use-postgres.md": "# 1. Use Postgres\n\n## Status\n\nAccepted\n\n## Decision\n\n"
    "The registry is kept in Postgres.\n",
}
PROJECTS = """\
[settings]
allowed_schemes = ["https", "ssh", "file"]

[[projects]]
slug = "concordance"
path = "{root}"

[[projects]]
slug = "beacon"
path = "beacon"
sessions = [{{ path = "sessions" }}]

[[projects]]
slug = "harbour"
path = "harbour"
"""


def main() -> int:
    """Take the tour; 1 where a way in gave other hits, or the nightly did not end well."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".tour").absolute()
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)

    lay_out(folder)
    say(f"three projects lie in {folder}")
    with ExitStack() as running:
        place = start(folder, running, say)
        state = nightly(place, say)
        say(f"the nightly ended: {state}")
        same = ask_every_way(place, say)
        asyncio.run(overhead(place, ROUNDS))
    return 0 if same and state.startswith("Completed") else 1


def lay_out(folder: Path) -> None:
    """The projects, as repositories and session logs; whatever lay there before is thrown away."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    files = ROOT / "concordance" / "cli" / "demo_files"
    shutil.copytree(files / "sessions", folder / "sessions")
    beacon = {
        str(path.relative_to(files / "beacon")): path.read_bytes()
        for path in sorted((files / "beacon").rglob("*"))
        if path.is_file()
    }
    GitSource.make(folder / "beacon", dict(beacon))
    GitSource.make(folder / "harbour", HARBOUR)
    (folder / "projects.toml").write_text(PROJECTS.format(root=ROOT), encoding="utf-8")


def start(folder: Path, running: ExitStack, say: Any) -> Place:
    """The Prefect server, a worker and the HTTP server; they end with `running`."""
    home = folder / "home"
    os.environ.update(
        {
            "CONCORDANCE_HOME": str(home),
            "CONCORDANCE_PROJECTS_FILE": str(folder / "projects.toml"),
            "DO_NOT_TRACK": "1",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "ORT_DISABLE_TELEMETRY": "1",
        }
    )
    os.environ.pop("PREFECT_API_URL", None)
    command = str(Path(sys.executable).with_name("concordance"))
    address = subprocess.run(
        [command, "ui"], check=True, capture_output=True, text=True
    ).stdout.strip()
    running.callback(subprocess.run, [command, "down", "--force"], check=False)
    say(f"Prefect is at {address}")
    running.enter_context(kept(command, "serve", log=folder / "serve.log"))
    with (folder / "http.log").open("w") as log:
        running.enter_context(kept(command, "http", "--port", "0", log=log))
    http = wait_for(lambda: _first_line(folder / "http.log"), "the HTTP server")
    say(f"HTTP, the search page and MCP are at {http}")
    prefect = {"PREFECT_API_URL": f"{address}/api", "PREFECT_HOME": str(home / "prefect")}
    return Place(command, http.rstrip("/"), f"{address}/api", dict(os.environ) | prefect)


@contextmanager
def kept(*command: str, log: Path | IO[str]) -> Iterator[None]:
    """A process that is interrupted at the end, as by a person."""
    with ExitStack() as files:
        into = files.enter_context(log.open("w")) if isinstance(log, Path) else log
        process = subprocess.Popen(command, stdout=into, stderr=into)
        try:
            yield
        finally:
            process.send_signal(2)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def nightly(place: Place, say: Any) -> str:
    """Start the deployment over HTTP as soon as it is there, and wait for its end."""

    def started() -> str | None:
        response = httpx.post(f"{place.http}/v1/reindex", json={}, timeout=60, trust_env=False)
        return response.json()["flow_run_id"] if response.status_code == 202 else None

    run = wait_for(started, "the deployment")
    say(f"the nightly was started: run {run}")

    def ended() -> str | None:
        found = httpx.get(f"{place.prefect}/flow_runs/{run}", timeout=60, trust_env=False).json()
        over = found["state_type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
        return f"{found['state_name']}: {found['state'].get('message')}" if over else None

    return wait_for(ended, "the nightly")


def ask_every_way(place: Place, say: Any) -> bool:
    """One line for each way in; whether all hits were the same, in the same order."""
    first: Sequence[str] | None = None
    same = True
    for name, way in WAYS.items():
        began = time.monotonic()
        hits = way(place, QUESTION)
        took = time.monotonic() - began
        first = hits if first is None else first
        same = same and hits == first and bool(hits)
        told = "the same" if hits == first else "OTHERS"
        say(f"{name:<13} {len(hits)} hits, {told}, in {took:5.2f} s; first {hits[:1]}")
    return same


def wait_for(found: Any, what: str) -> str:
    """What a function gives, as soon as it gives something."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if given := found():
                return str(given)
        except (httpx.HTTPError, OSError):
            pass
        time.sleep(0.5)
    raise SystemExit(f"{what} did not come within {PATIENCE:g} s; the logs lie in the folder")


def _first_line(path: Path) -> str | None:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.strip() for line in lines if line.startswith("http")), None)


if __name__ == "__main__":
    sys.exit(main())
