"""Nothing happens on import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.our_modules import OURS, ROOT, Import, imports, inside, modules

WATCH = """
import importlib, json, os, sys

seen = []
code = (".py", ".pyc", ".so", ".pth", "METADATA", "entry_points.txt")
busy = ("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.", "os.system",
        "os.fork", "os.exec", "os.posix_spawn", "urllib.", "os.mkdir", "os.remove", "os.rename",
        "os.putenv", "_thread.start_new_thread")

def watch(event, arguments):
    if event == "open":
        path = os.fsdecode(arguments[0]) if not isinstance(arguments[0], int) else "a descriptor"
        if not path.endswith(code):
            seen.append(f"{event} {path}")
    elif event.startswith(busy):
        seen.append(f"{event} {arguments!r:.120}")

# What others do when they are imported is not judged here.
for name in sys.argv[2].split(","):
    importlib.import_module(name)
sys.addaudithook(watch)
for name in sys.argv[1].split(","):
    importlib.import_module(name)
print(json.dumps(seen))
"""


def test_importing_every_module_touches_nothing() -> None:
    assert watched(*(module.name for module in inside("concordance"))) == []


def test_the_watch_sees_what_it_watches_for(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(
        "import os, socket, subprocess, sys, threading\n"
        "open('notes.txt', 'w').close()\n"
        "socket.socket().bind(('127.0.0.1', 0))\n"
        "subprocess.run([sys.executable, '--version'])\n"
        "os.environ['A'] = 'b'\n"
    )
    seen = watched("busy", folder=tmp_path)
    for event in ("open notes.txt", "socket.bind", "subprocess.Popen", "os.putenv"):
        assert any(line.startswith(event) for line in seen), event


def watched(*names: str, folder: Path = ROOT) -> list[str]:
    """What a fresh interpreter does while it imports modules."""
    needed = {
        _module_of(found)
        for module in modules()
        if module.name in names
        for found in imports(module)
        if not found.within(*OURS, "__future__") and not found.for_types
    }
    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCH, ",".join(names), ",".join(sorted(needed) or ["json"])],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return [str(line) for line in json.loads(done.stdout.splitlines()[-1])]


def _module_of(found: Import) -> str:
    """The module that a name is imported from."""
    return found.name.rpartition(".")[0] or found.name
