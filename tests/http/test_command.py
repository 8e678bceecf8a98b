"""`concordance http` and `concordance keys`, as an operator uses them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from concordance.adapters.http_keys import PREFIX, digest_of, read_keys
from concordance.cli.http import http, new
from concordance.errors import SettingsError, UsageError
from concordance.http.callers import open_callers
from tests.http.conftest import Site
from tests.http.serving import client
from tests.postgres.house import READER, House

COMMAND = str(Path(sys.executable).with_name("concordance"))


@pytest.fixture
def house(site: Site) -> House:
    return site.house


def variables(house: House, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "CONCORDANCE_HOME": str(house.home),
        "CONCORDANCE_EMBEDDING_MODEL": "ollama/nomic-embed-text",
        "CONCORDANCE_OLLAMA_URL": house.provider.url,
        "CONCORDANCE_PROJECTS_FILE": str(house.home / "nowhere.toml"),
    } | more


def run(house: House, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments],
        env=variables(house, **more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@contextmanager
def served(house: House, **more: str) -> Iterator[tuple[str, list[str]]]:
    """A server of its own process; gives its address, and at the end what it logged."""
    logged: list[str] = []
    with subprocess.Popen(
        [COMMAND, "http", "--port", "0"],
        env=variables(house, **more),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        address = process.stderr.readline().strip().rstrip("/")
        assert address.startswith("http://127.0.0.1:"), address + process.stderr.read()
        try:
            yield address, logged
        finally:
            process.send_signal(signal.SIGINT)
            logged += process.stderr.read().splitlines()
            process.wait(30)


def test_a_key_made_by_the_command_asks_by_its_login(house: House, tmp_path: Path) -> None:
    made = run(house, "keys", "new", "my-reports")
    assert made.returncode == 0, made.stderr
    key, entry = made.stdout.split("\n", 1)
    assert digest_of(key) in entry
    assert key not in entry + made.stderr
    file = tmp_path / "keys.toml"
    file.write_text(entry)
    more = {
        "CONCORDANCE_HTTP_KEYS_FILE": str(file),
        "MY_REPORTS_DATABASE_URL": house.url_of(READER),
        # That of a reader is its login's, whatever is set for the others.
        "CONCORDANCE_TENANT": "other",
    }
    with served(house, **more) as (address, logged):
        with client(address, key) as asking:
            found = asking.post("/v1/search", json={"text": "tea"}).json()["hits"]
            assert {hit["project"] for hit in found} == {"shop", "laden"}
            refused = asking.post("/v1/reindex", json={})
        assert refused.status_code == 403
    assert [line.split()[1:4] for line in logged if "/v1/" in line] == [
        ["POST", "/v1/search", "200"],
        ["POST", "/v1/reindex", "403"],
    ]
    assert key not in "".join(logged)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_without_keys_only_this_machine_may_ask(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="without keys"):
        http(host=host, port=0)


def test_runs_need_a_prefect_server_and_say_so(house: House, tmp_path: Path) -> None:
    more = {"CONCORDANCE_DATABASE_URL": house.url, "CONCORDANCE_HOME": str(tmp_path)}
    with served(house, **more) as (address, logged), client(address) as asking:
        response = asking.post("/v1/reindex", json={})
        assert response.status_code == 503
        assert response.json()["type"] == "urn:concordance:problem:runs-unavailable"
        assert response.json()["detail"] == "no Prefect server runs"
        assert int(response.headers["retry-after"]) > 0
    assert not re.search("Traceback", "".join(logged))


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("Not A Slug", {}, "a key's name is a slug"),
        ("a", {"env": "9"}, "env"),
        ("a", {"env": "A", "secret_block": "b"}, "exactly one"),
    ],
)
def test_what_can_t_be_a_key_s_is_refused_and_no_key_shown(
    name: str, options: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=said):
        new(name, **options)
    assert PREFIX not in capsys.readouterr().out
    assert new("9-lives.a") == 0
    assert 'env = "KEY_9_LIVES_A_DATABASE_URL"' in capsys.readouterr().out


def test_a_login_that_sees_every_tenant_is_bound_to_no_key(house: House, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(
        "".join(
            f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(name)}"\nlogin = {{ env = "X" }}\n'
            for name in ("good", "same", "owner")
        )
    )
    good, same, owner = read_keys(file)
    configuration = house.owner.configuration
    reads = SecretStr(house.url_of(READER))
    logins = {"good": reads, "same": reads, "owner": SecretStr(house.url)}
    with pytest.raises(SettingsError, match="the key 'owner' is no reader's"):
        open_callers(configuration, os.environ, [good, owner], logins)
    callers = open_callers(configuration, os.environ, [good, same], logins)
    found = [callers.find(f"Bearer {name}") for name in ("good", "same", "owner")]
    assert found[0] is not None
    assert found[1] is not None
    assert found[2] is None
    assert found[0].index is found[1].index
    # What is configured here is of all tenants.
    assert found[0].index.configuration.projects == ()
    callers.close()
