"""The program as a person uses it: a new home, its own processes, its exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from concordance.cli import run
from tests.sources import GitSource, event, write_log

SECONDS = 240


@dataclass
class Ran:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Person:
    """Somebody with a shell in a folder of their own."""

    folder: Path
    home: Path

    @classmethod
    def new(cls, factory: pytest.TempPathFactory, name: str, rules: Path) -> Self:
        """Somebody whose home has the scanner's compiled rules, and nothing else."""
        someone = cls(factory.mktemp(name), factory.mktemp(f"{name}-home"))
        shutil.copytree(rules, someone.home / "state" / "secret-rules")
        return someone

    def environment(self) -> dict[str, str]:
        kept = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "COLUMNS": "160"}
        return kept | {"HOME": str(self.home), "CONCORDANCE_HOME": str(self.home / "state")}

    def run(self, *arguments: str, **environment: str) -> Ran:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("concordance")), *arguments],
            cwd=self.folder,
            env=self.environment() | environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def ask_here(
    person: Person, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Runs a command as that person without a process of its own, which takes a second or two."""

    def asked(*arguments: str, **environment: str) -> Ran:
        with monkeypatch.context() as place:
            place.chdir(person.folder)
            for name, value in (person.environment() | environment).items():
                place.setenv(name, value)
            capsys.readouterr()
            code = run(arguments)
            said = capsys.readouterr()
            return Ran(code, said.out, said.err)

    return asked


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory, secret_rules: Path) -> Iterator[Person]:
    """A person with two projects and a log, who has indexed nothing yet."""
    someone = Person.new(tmp_path_factory, "desk", secret_rules)
    folder = someone.folder
    GitSource.make(
        folder / "lamp",
        {
            "README.md": "# Lamp\n\nA lamp that is dimmed over the network.\n",
            "docs/install.md": "# Install\n\nFlash the firmware with `lampctl flash`.\n",
            "docs/adr/0001-use-mqtt.md": "# 1. Use MQTT\n\n## Decision\n\nLamps speak MQTT.\n",
            "src/main.c": "int main(void) { return 0; }\n",
        },
    )
    GitSource.make(folder / "shade", {"docs/broken.md": b"# Shade\n\n\xb2\xe2\xca\xd4\n"})
    turns = ["How do I dim it at night?", "Send 20 to the topic lamp/level."]
    write_log(folder / "logs" / "a.jsonl", [event("s1", n, t) for n, t in enumerate(turns)])
    (folder / "projects.toml").write_text(
        '[settings]\nallowed_schemes = ["https", "ssh", "file"]\n', encoding="utf-8"
    )
    yield someone
    someone.run("down")
