"""Pinned packages: known faults are asked for, and licences are listed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from requirements import audit, licences

ROOT = Path(__file__).parents[2]


def advisory(name: str, number: int = 1, **affected: Any) -> dict[str, Any]:
    return {
        "id": f"PYSEC-2026-{number}",
        "schema_version": "1.7.0",
        "modified": "2026-03-01T00:00:00Z",
        "summary": "It does what it should not",
        "affected": [{"package": {"ecosystem": "PyPI", "name": name}} | affected],
    }


def between(*events: tuple[str, str]) -> dict[str, Any]:
    return {"ranges": [{"type": "ECOSYSTEM", "events": [{k: at} for k, at in events]}]}


def write(folder: Path, *found: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    for one in found:
        (folder / f"{one['id']}.json").write_text(json.dumps(one))
    return folder


# --- known faults ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("affected", "versions"),
    [
        (between(("introduced", "0"), ("fixed", "1.10")), {"0.1", "1.2", "1.9", "1.10rc1"}),
        (between(("introduced", "1.2"), ("last_affected", "1.9")), {"1.9", "1.2"}),
        (between(("fixed", "1.9"), ("introduced", "1.2")), {"1.2"}),
        (between(("introduced", "0"), ("fixed", "1"), ("introduced", "1.10")), {"0.1", "1.10"}),
        ({"versions": ["1.9.0", "1.2"]}, {"1.9", "1.2"}),
        ({"versions": ["what?", "1.2"]}, {"1.2"}),
        (between(("introduced", "what?")), {"0.1", "1.2", "1.9", "1.10rc1", "1.10"}),
        ({"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}, set()),
        ({}, set()),
    ],
)
def test_a_version_is_judged_by_lists_and_ranges(
    tmp_path: Path, affected: dict[str, Any], versions: set[str]
) -> None:
    found = audit.Advisories.read(write(tmp_path / "a", advisory("Some_Thing", **affected)))
    tried = {"0.1", "1.2", "1.9", "1.10rc1", "1.10"}
    assert {version for version in tried if found.of("some-thing", version)} == versions
    assert found.of("other", "1.2") == []


@pytest.mark.parametrize("text", ["", "[]", '{"affected": []}', "{"])
def test_half_a_copy_of_the_advisories_is_none(tmp_path: Path, text: str) -> None:
    folder = write(tmp_path / "a", advisory("x"))
    (folder / "zz.json").write_text(text)
    with pytest.raises(ValueError, match=r"advisory|Expecting"):
        audit.Advisories.read(folder)
    with pytest.raises(ValueError, match="holds no advisory"):
        audit.Advisories.read(tmp_path / "nowhere")


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "requirements/audit.py"],
        cwd=ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_advisories_nothing_is_called_free_of_faults(tmp_path: Path) -> None:
    for environment, code in (
        ({}, 0),
        ({audit.VARIABLE: str(tmp_path / "nowhere")}, audit.UNUSABLE),
    ):
        done = run(**environment)
        assert done.returncode == code
        told = done.stdout + done.stderr
        assert told.startswith("Nothing was audited: ")
        assert "vulnerabilities" not in told


def test_a_known_fault_of_a_pinned_package_is_found(tmp_path: Path) -> None:
    pytest.importorskip("pip_audit")
    pinned = next(pin for pin in licences.pins("runtime.txt") if pin.name == "pydantic")
    folder = write(
        tmp_path / "a",
        advisory("pydantic", 1, **between(("introduced", "0"))),
        advisory("pydantic", 2, **between(("introduced", "0"), ("fixed", pinned.version))),
        advisory("no-package-of-ours", 3, **between(("introduced", "0"))),
    )
    done = run(**{audit.VARIABLE: str(folder)})
    told = done.stdout + done.stderr
    assert done.returncode == 1, told
    assert f"pydantic {pinned.version} " in " ".join(told.split())
    assert "PYSEC-2026-1" in told
    assert "PYSEC-2026-2" not in told
    assert "in 3 advisories, the newest of 2026-03-01" in told


# --- licences --------------------------------------------------------------------------------


def test_the_page_of_licences_is_what_packages_say() -> None:
    page = licences.PAGE.read_text(encoding="utf-8")
    for row in licences.rows():
        assert str(row) in page.splitlines(), "make licences"
    for pin in licences.pins("dev.txt"):
        assert f"\n| {pin.name} | " in page or f"\n- {pin.name}\n" in page, "make licences"
    whole = all(licences.licence_of(p.name) for p in licences.pins("dev.txt") if p.applies)
    if whole and sys.platform == "linux" and sys.version_info[:2] == (3, 11):
        assert page == licences.page(), "make licences"


def test_a_licence_that_nobody_said_a_word_about_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(licences.WORDS, "LGPL-3.0-only")
    with pytest.raises(ValueError, match="psycopg"):
        licences.rows()


def test_what_runs_is_under_no_licence_that_forbids_it() -> None:
    """A strict licence is one of several, or a word says why it reaches nothing of ours."""
    for row in licences.rows():
        strict = [w for w in row.licence.split() if w.startswith(("GPL", "AGPL", "SSPL"))]
        if strict:
            assert " OR " in row.licence or all(word in licences.WORDS for word in strict)
