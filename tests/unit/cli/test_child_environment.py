"""Programs that are started see no address and no token of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from concordance.adapters.environment import program_environment
from concordance.adapters.git_version import git_version
from concordance.cli import demo, orchestration
from concordance.errors import SettingsError

SECRET = "planted-secret"
NAMES = ("CONCORDANCE_DATABASE_URL", "CONCORDANCE_RERANKER_KEY", "READ_TOKEN", "OLLAMA_API_KEY")


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where stand-ins for git and Prefect write the environment that they are started in."""
    for name in NAMES:
        monkeypatch.setenv(name, SECRET)
    log = tmp_path / "told"
    stand_in = tmp_path / "bin" / "git"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!/bin/sh\nenv >> {log}\necho git version 2.40.1\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}:/usr/bin:/bin")
    package = tmp_path / "lib" / "prefect"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import os\n"
        f"with open({str(log)!r}, 'a') as file:\n"
        "    file.writelines(f'{name}={value}\\n' for name, value in os.environ.items())\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return log


def test_git_of_the_demo_and_the_doctor_sees_none(told: Path, tmp_path: Path) -> None:
    demo._git(tmp_path, "init")
    assert git_version(f"{tmp_path / 'bin'}:/usr/bin:/bin") == (2, 40, 1)
    assert told.read_text().count("PATH=") == 2
    assert SECRET not in told.read_text()


def test_a_deployment_is_made_without_any(
    told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_KEY", "needed-there")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org")
    monkeypatch.setenv("CONCORDANCE_ROOT", "/srv/checkout")
    orchestration._prefect(tmp_path, "deploy")
    seen = told.read_text()
    assert SECRET not in seen
    for kept in ("needed-there", "HTTPS_PROXY=", "CONCORDANCE_ROOT=/srv/checkout"):
        assert kept in seen


def test_only_what_is_known_to_be_needed_is_handed_on() -> None:
    given = {"PATH": "/bin", "LC_ALL": "C", "PREFECT_HOME": "/p", "AWS_SECRET": "x", "X": "y"}
    assert program_environment(given) == {"PATH": "/bin", "LC_ALL": "C", "PREFECT_HOME": "/p"}
    assert program_environment(given, "X")["X"] == "y"


@pytest.mark.parametrize("rest", ["ada:{}@h/api", "{}@h:4200/api", "ada:{}@h?x"])
def test_an_address_of_prefect_with_user_information_is_refused(rest: str) -> None:
    environ = {"PREFECT_API_URL": "http://" + rest.format(SECRET)}
    with pytest.raises(SettingsError, match="PREFECT_API_AUTH_STRING") as caught:
        orchestration.given_api(environ)
    assert SECRET not in str(caught.value)
    for fine in ("http://h:4200/api", "http://h/api@v2", ""):
        assert orchestration.given_api({"PREFECT_API_URL": fine}) == fine
