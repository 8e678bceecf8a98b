"""A home folder for an embedded server of a test's own, and the processes that use it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

import concordance
from concordance.adapters.embedded_postgres import EmbeddedLocation, EmbeddedPostgres, locate

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="needs root, to become other users")
CHECKOUT = str(Path(concordance.__file__).parents[1])

# What every script below begins with. Everything that may be needed is imported before a user is
# left behind who can read the interpreter's own folder.
PRELUDE = """
import encodings.idna, os, pwd, signal, socket, subprocess, sys, tempfile, time
from pathlib import Path
import psycopg
from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.errors import EmbeddedPostgresError
home, state, temp, user = sys.argv[1:]
if user:
    entry = pwd.getpwnam(user)
    os.setgroups([]); os.setgid(entry.pw_gid); os.setuid(entry.pw_uid)
def server():
    return EmbeddedPostgres(Path(home), state_root=Path(state), temp_dir=Path(temp))
"""
USE_UNTIL_TOLD = """
ours = server()
print(ours.start(), flush=True)
sys.stdin.readline()
"""
CONNECT = """
try:
    with psycopg.connect(home, connect_timeout=5):
        print("connected")
except psycopg.OperationalError as error:
    print(error)
"""


@dataclass
class Place:
    """A home folder below one that only its owner can enter, and the folders around it."""

    top: Path
    home: Path
    state: Path
    temp: Path
    scripts: list[subprocess.Popen[str]] = field(default_factory=list)

    def server(self) -> EmbeddedPostgres:
        return EmbeddedPostgres(self.home, state_root=self.state, temp_dir=self.temp)

    @property
    def location(self) -> EmbeddedLocation:
        return locate(
            self.home, effective_user=os.geteuid(), state_root=self.state, temp_dir=self.temp
        )

    def script(self, code: str, *, user: str = "", home: str | None = None) -> list[str]:
        places = (home or str(self.home), str(self.state), str(self.temp), user)
        return [sys.executable, "-c", PRELUDE + code, *places]

    def spawn(self, code: str = USE_UNTIL_TOLD, *, user: str = "") -> subprocess.Popen[str]:
        script = subprocess.Popen(
            self.script(code, user=user),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env=os.environ | {"PYTHONPATH": CHECKOUT},
        )
        self.scripts.append(script)
        return script

    def run(self, code: str, *, user: str = "", home: str | None = None) -> str:
        done = subprocess.run(
            self.script(code, user=user, home=home),
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            cwd="/",
            env=os.environ | {"PYTHONPATH": CHECKOUT},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def line_of(script: subprocess.Popen[str]) -> str:
    assert script.stdout is not None
    assert script.stderr is not None
    line = script.stdout.readline().strip()
    assert line, script.stderr.read()
    return line


def finish(script: subprocess.Popen[str], *, code: int = 0) -> None:
    _, errors = script.communicate("\n", timeout=20)
    assert script.returncode == code, errors


def kill(script: subprocess.Popen[str]) -> None:
    script.kill()
    script.communicate()


def execute(url: str, statement: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
    return str(row[0]) if row else ""


def postmaster(place: Place) -> int:
    return int((place.location.data / "postmaster.pid").read_text().split()[0])


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextlib.contextmanager
def open_place(state: Path | None = None, below: str = "") -> Iterator[Place]:
    top = Path(tempfile.mkdtemp(prefix="cpg-", dir="/tmp"))
    top.chmod(0o755)
    around = top / below
    for folder in (around, around / "private", top / "temp"):
        folder.mkdir(exist_ok=True)
    (around / "private").chmod(0o700)
    place = Place(top, around / "private" / "home", state or around / "state", top / "temp")
    try:
        yield place
    finally:
        for script in place.scripts:
            kill(script)
        place.server().stop(force=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(place.location.base)
        shutil.rmtree(top)


def copy_data(made: Path, to: Path) -> Path:
    """The data folder of a server that is stopped, with the owner that it has."""
    subprocess.run(["cp", "-a", made, to], check=True)
    return to
