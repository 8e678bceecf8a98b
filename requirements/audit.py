"""Asks whether a pinned package has a known fault: `make audit`.

What belongs here: a copy of the advisories on this machine, served to pip-audit as OSV serves its
own. pip-audit reads the pinned packages, asks for each, and judges; without such a copy nothing is
audited, and that is what is said.

CONCORDANCE_ADVISORIES names a folder of advisories as OSV exports them for PyPI, one JSON file
each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

VARIABLE = "CONCORDANCE_ADVISORIES"
PINNED = Path(__file__).parent / "dev.txt"
ECOSYSTEM = "PyPI"
UNUSABLE = 2

Advisory = Mapping[str, Any]


@dataclass
class Advisories:
    """Advisories by package, and how often they were asked for."""

    by_package: dict[str, list[Advisory]] = field(default_factory=dict)
    count: int = 0
    newest: str = ""
    asked: int = 0

    @classmethod
    def read(cls, folder: Path) -> Advisories:
        """Those of a folder and the folders in it.

        Raises:
            ValueError: A file holds none, or no file is there: a copy must not be half of one.
        """
        found = cls()
        for path in sorted(folder.rglob("*.json")):
            advisory = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(advisory, dict) or not isinstance(advisory.get("id"), str):
                raise ValueError(f"{path} is no advisory")  # noqa: TRY004 - the file's value
            found._add(advisory)
        if not found.count:
            raise ValueError(f"{folder} holds no advisory")
        return found

    def _add(self, advisory: Advisory) -> None:
        self.count += 1
        self.newest = max(self.newest, str(advisory.get("modified", "")))
        for name in {_package(affected) for affected in advisory.get("affected", ())}:
            if name is not None:
                self.by_package.setdefault(name, []).append(advisory)

    def of(self, name: str, version: str) -> list[Advisory]:
        """Those that a version of a package is affected by."""
        package = canonicalize_name(name)
        return [
            advisory
            for advisory in self.by_package.get(package, ())
            if any(
                _package(affected) == package and _is_affected(affected, Version(version))
                for affected in advisory["affected"]
            )
        ]


def _package(affected: Mapping[str, Any]) -> str | None:
    package = affected.get("package", {})
    return canonicalize_name(package["name"]) if package.get("ecosystem") == ECOSYSTEM else None


def _is_affected(affected: Mapping[str, Any], version: Version) -> bool:
    """Whether a version is listed, or lies in a range; what can't be read counts as affected."""
    try:
        listed = any(Version(one) == version for one in affected.get("versions", ()))
    except InvalidVersion:
        listed = str(version) in affected["versions"]
    ranges = (r for r in affected.get("ranges", ()) if r.get("type") == "ECOSYSTEM")
    return listed or any(_lies_in(version, found.get("events", ())) for found in ranges)


def _lies_in(version: Version, events: Sequence[Mapping[str, str]]) -> bool:
    try:
        ordered = sorted(
            (Version(at), kind) for event in events for kind, at in event.items() if kind != "limit"
        )
    except InvalidVersion:
        return True
    inside = False
    for at, kind in ordered:
        if kind == "introduced" and version >= at:
            inside = True
        if (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


@contextmanager
def served(advisories: Advisories) -> Iterator[str]:
    """A server on loopback that answers as OSV does, and the address for its queries."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            found = advisories.of(query["package"]["name"], query["version"])
            advisories.asked += 1
            body = json.dumps({"vulns": found} if found else {}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: pip-audit reports."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()


def audit(advisories: Advisories, pinned: Path) -> int:
    """Have pip-audit ask for every pinned package; its exit code, or ours where it asks nothing."""
    with served(advisories) as address, tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip_audit", "--strict", "--disable-pip"),
                *("--require-hashes", "--requirement", str(pinned), "--cache-dir", cache),
                *("--vulnerability-service", "osv", "--osv-url", address),
                *("--progress-spinner", "off"),
            ],
            # A proxy can't reach this machine's loopback.
            env=os.environ | {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
            check=False,
        )
    if not advisories.asked:
        print(f"Nothing was audited: pip-audit asked for no package of {pinned}", file=sys.stderr)
        return done.returncode or UNUSABLE
    print(
        f"{advisories.asked} packages of this system asked for in {advisories.count:,} advisories, "
        f"the newest of {advisories.newest or 'no date'}"
    )
    return done.returncode


def main() -> int:
    """Audit against the folder that the environment names, or say that nothing was audited."""
    given = os.environ.get(VARIABLE)
    if not given:
        print(
            f"Nothing was audited: {VARIABLE} names no folder with advisories "
            "(https://osv.dev exports those of PyPI)"
        )
        return 0
    try:
        advisories = Advisories.read(Path(given))
    except (OSError, ValueError, LookupError) as error:
        print(f"Nothing was audited: {error}", file=sys.stderr)
        return UNUSABLE
    return audit(advisories, PINNED)


if __name__ == "__main__":
    sys.exit(main())
