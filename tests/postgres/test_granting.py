"""Granting: which logins read, what an administrator must do, and what is told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from concordance.adapters.embedded_binaries import MAJOR, find_package
from concordance.adapters.postgres.database import Database, create_database
from concordance.adapters.postgres.projects import ensure_tenant
from concordance.adapters.postgres.schema import migrate
from concordance.cli import run
from concordance.errors import DatabaseUnsuitable, UsageError
from concordance.granting import open_tenants
from concordance.settings import Project, Settings
from sql import migrations
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import reindex
from tests.postgres.house import (
    NEIGHBOUR,
    NOON,
    READER,
    House,
    grant,
    logins,
    open_house,
    open_index,
    told,
)
from tests.postgres.library import SHOP, search
from tests.sources import GitSource

FIRST_WITH_READERS = 9


@pytest.fixture(scope="module")
def house(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with open_house(server_url, "granting", tmp_path_factory.mktemp("house")) as made:
        yield made


# --- granting --------------------------------------------------------------------------------


def test_a_revoked_login_reads_nothing_and_one_of_another_tenant_gives_up_the_first(
    house: House, server_url: str
) -> None:
    with logins(server_url, "tenant_guest"):
        grant(house.url, {"tenant_guest": "default"})
        asked = "select slug from concordance.reader_tenant()"
        assert house.ask(asked, login="tenant_guest") == [("default",)]
        grant(house.url, {"tenant_guest": "other"})
        assert house.ask(asked, login="tenant_guest") == [("other",)]
        with open_tenants(_settings(house.url, house.home)) as tenants:
            assert tenants.revoke("tenant_guest")
            assert not tenants.revoke("tenant_guest")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            house.ask(asked, login="tenant_guest")
        with pytest.raises(DatabaseUnsuitable, match="lacks a right"):
            house.open("tenant_guest")
    assert "tenant_guest" not in {row[0] for row in house.ask("select login from tenant_access")}


def test_a_login_that_was_dropped_and_made_anew_has_no_functions(
    house: House, server_url: str
) -> None:
    with logins(server_url, "tenant_guest"):
        grant(house.url, {"tenant_guest": "default"})
        with psycopg.connect(house.url, autocommit=True) as connection:
            connection.execute("drop owned by tenant_guest; drop role tenant_guest")
            connection.execute("create role tenant_guest login")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            house.ask("select slug from concordance.reader_tenant()", login="tenant_guest")
        with open_tenants(_settings(house.url, house.home)) as tenants:
            tenants.revoke("tenant_guest")


def test_logins_may_be_granted_at_once(house: House, server_url: str) -> None:
    names = [f"tenant_guest_{number}" for number in range(4)]
    with logins(server_url, *names):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda name: grant(house.url, {name: "default"}), names))
        for name in names:
            assert house.ask("select slug from concordance.reader_tenant()", login=name)
        with open_tenants(_settings(house.url, house.home)) as tenants:
            assert all(tenants.revoke(name) for name in names)


def test_only_a_login_that_reads_nothing_else_is_granted(house: House, server_url: str) -> None:
    with open_tenants(_settings(house.url, house.home)) as tenants:
        for login, told_why in (
            ("postgres", "above row level security"),
            ("concordance_functions", "may act as"),
            ("pg_monitor", "may not log in"),
        ):
            with pytest.raises(UsageError, match=told_why):
                tenants.grant(login, "default")
        with logins(server_url, "tenant_guest"):
            for right in ("replication", "pg_read_server_files", "pg_execute_server_program"):
                give = "grant {} to tenant_guest" if "_" in right else "alter role tenant_guest {}"
                take = (
                    "revoke {} from tenant_guest"
                    if "_" in right
                    else "alter role tenant_guest no{}"
                )
                with psycopg.connect(house.url, autocommit=True) as connection:
                    connection.execute(give.format(right).encode())
                    with pytest.raises(UsageError, match="above row level security"):
                        tenants.grant("tenant_guest", "default")
                    connection.execute(take.format(right).encode())
        with pytest.raises(UsageError, match=r"no tenant 'nobody'.*default, other"):
            tenants.grant(READER, "nobody")
    with (
        pytest.raises(DatabaseUnsuitable, match="is a reader's"),
        open_tenants(_settings(house.url_of(READER), house.home)),
    ):
        pass


def test_tenants_from_the_command_line(
    house: House,
    server_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CONCORDANCE_DATABASE_URL", house.url)
    monkeypatch.setenv("CONCORDANCE_HOME", str(house.home))
    monkeypatch.setenv("CONCORDANCE_PROJECTS_FILE", str(house.home / "none.toml"))

    def told(*command: str) -> tuple[int, dict[str, Any]]:
        code = run(["tenants", *command, "--json"])
        return code, json.loads(capsys.readouterr().out)

    with logins(server_url):
        made = {"login": "tenant_made", "tenant": "other", "made": True}
        assert told("grant", "tenant_made", "--tenant", "other") == (0, made)
        assert told("grant", "tenant_made", "--tenant", "other") == (0, made | {"made": False})
        assert house.ask("select slug from concordance.reader_tenant()", login="tenant_made") == [
            ("other",)
        ]
        code, listed = told("list")
        assert code == 0
        assert {row["login"]: row["tenant"] for row in listed["logins"]} == {
            READER: "default", NEIGHBOUR: "other", "tenant_made": "other",
        }  # fmt: skip
        assert told("check") == (0, {"faults": []})
        assert told("revoke", "tenant_made") == (0, {"login": "tenant_made", "revoked": True})
        assert told("revoke", "tenant_made") == (1, {"login": "tenant_made", "revoked": False})
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute("drop role tenant_made")
    monkeypatch.setenv("CONCORDANCE_DATABASE_URL", house.url_of(READER))
    monkeypatch.setenv("CONCORDANCE_EMBEDDING_MODEL", "ollama/nomic-embed-text")
    monkeypatch.setenv("CONCORDANCE_OLLAMA_URL", house.provider.url)
    assert run(["search", "kettle", "--json", "--threshold", "0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["degraded"]
    assert {hit["project"] for hit in found["hits"]} == {"shop", "laden"}
    assert run(["coverage", "--json"]) == 0
    assert capsys.readouterr().out
    assert run(["adr", "shop"]) == 1
    assert "permission denied" in capsys.readouterr().err
    run(["doctor", "--json"])
    assert "reads the tenant 'default'" in capsys.readouterr().out
    monkeypatch.setenv("CONCORDANCE_DATABASE_URL", house.url)
    for command in (["grant", READER, "--tenant", "default"], ["list"], ["check"]):
        assert run(["tenants", *command]) == 0
        assert capsys.readouterr().out
    assert run(["tenants", "grant", READER, "--tenant", "nobody"]) == 2
    assert "no tenant 'nobody'" in capsys.readouterr().err


def _settings(url: str, home: Path) -> Settings:
    return Settings.model_validate({"home": home, "database_url": url})


# --- a server on which the indexer is nobody special -----------------------------------------


@pytest.fixture
def managed(server_url: str, tmp_path: Path) -> Iterator[tuple[str, Callable[[str], None]]]:
    """A database of a login that may make no role; and what its administrator can do."""
    name = "tenant_managed"
    with logins(server_url, "tenant_indexer", "tenant_guest"):
        url = create_database(server_url, name)

        def administer(statement: str) -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(statement.encode())

        administer("create extension vector")
        administer(f"grant create on database {name} to tenant_indexer")
        yield make_conninfo(url, user="tenant_indexer"), administer
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            )
            connection.execute(
                "do $$ begin if to_regrole('concordance_functions') is not null then "
                "revoke concordance_functions from tenant_indexer; end if; end $$"
            )
            connection.execute("drop database if exists tenant_restored with (force)")


def test_an_indexer_that_may_make_no_role_works_alone_and_is_told_what_readers_need(
    managed: tuple[str, Callable[[str], None]], tmp_path: Path, provider: FakeOllama
) -> None:
    url, administer = managed
    source = GitSource.make(tmp_path / "shop", SHOP)
    project = Project(slug="shop", path=source.path)
    owner = open_index(tmp_path / "home", url, provider, project)
    reindex(owner, "shop")
    expected = search(owner, "kettle water")
    assert expected.hits
    assert not expected.degraded
    with open_tenants(_settings(url, tmp_path / "home")) as tenants:
        assert tenants.faults() == []
        with pytest.raises(DatabaseUnsuitable, match='create role "new" login') as raised:
            tenants.grant("new", "default")
        with pytest.raises(DatabaseUnsuitable) as raised:
            tenants.grant("tenant_guest", "default")
        assert raised.value.hint is not None
        for command in raised.value.hint.split(": ", 1)[1].split("; "):
            administer(command)
        tenants.grant("tenant_guest", "default")
        assert tenants.faults() == []
    reader = open_index(
        tmp_path / "home", make_conninfo(url, user="tenant_guest"), provider, project
    )
    assert told(search(reader, "kettle water")) == told(expected)
    reader.close()
    owner.close()


def test_such_an_indexer_brings_readers_functions_up_to_date(
    managed: tuple[str, Callable[[str], None]], tmp_path: Path, provider: FakeOllama
) -> None:
    """They are those of the role that they run as, and logins have them already."""
    url, administer = managed
    administer(
        "do $$ begin create role concordance_functions nologin; "
        "exception when duplicate_object then null; end $$; "
        "grant concordance_functions to tenant_indexer with inherit true, set true"
    )
    database = Database(url, pool_size=1)
    database.open()
    migrate(database, [step for step in migrations() if step.number <= FIRST_WITH_READERS])
    ensure_tenant(database, "default")
    database.close()
    grant(url, {"tenant_guest": "default"})
    project = Project(slug="shop", path=GitSource.make(tmp_path / "shop", SHOP).path)
    home, guest = tmp_path / "home", make_conninfo(url, user="tenant_guest")
    with open_index(home, url, provider, project) as owner:
        reindex(owner, "shop")
        with open_tenants(_settings(url, home)) as tenants:
            assert tenants.faults() == []
        with open_index(home, guest, provider, project) as reader:
            found = told(search(reader, "kettle water"))
            assert found["hits"]
            assert found == told(search(owner, "kettle water"))


def test_rows_of_another_owner_are_never_hidden_from_it(
    managed: tuple[str, Callable[[str], None]], tmp_path: Path, provider: FakeOllama
) -> None:
    """As after a restore under another login: the old owner's policies came along."""
    url, administer = managed
    project = Project(slug="shop", path=GitSource.make(tmp_path / "shop", SHOP).path)
    owner = open_index(tmp_path / "home", url, provider, project)
    reindex(owner, "shop")
    expected = told(search(owner, "kettle water"))
    owner.close()
    administer(
        "do $$ declare t text; begin alter schema concordance owner to tenant_guest; "
        "for t in select relname from pg_class where relnamespace = 'concordance'::regnamespace "
        "and relkind = 'r' loop "
        "execute format('alter table concordance.%I owner to tenant_guest', t); end loop; end $$"
    )
    settings = _settings(make_conninfo(url, user="tenant_guest"), tmp_path / "home")
    moved = open_index(
        tmp_path / "home", make_conninfo(url, user="tenant_guest"), provider, project
    )
    assert told(search(moved, "kettle water")) == expected
    moved.close()
    with open_tenants(settings) as tenants:
        faults = tenants.faults()
        assert any("the policy indexer is not the one" in fault for fault in faults)


def test_an_administrator_may_grant_in_the_indexers_place(
    managed: tuple[str, Callable[[str], None]], tmp_path: Path, provider: FakeOllama
) -> None:
    url, _ = managed
    open_index(tmp_path / "home", url, provider).close()
    grant(make_conninfo(url, user="postgres"), {"tenant_guest": "default"})
    with open_tenants(_settings(url, tmp_path / "home")) as tenants:
        assert tenants.faults() == []
        assert tenants.revoke("tenant_guest")
        assert not tenants.grant("tenant_guest", "default")
        assert tenants.faults() == []


def test_a_dump_keeps_the_protection(
    managed: tuple[str, Callable[[str], None]],
    tmp_path: Path,
    provider: FakeOllama,
    server_url: str,
) -> None:
    url, administer = managed
    project = Project(slug="shop", path=GitSource.make(tmp_path / "shop", SHOP).path)
    owner = open_index(tmp_path / "home", url, provider, project)
    reindex(owner, "shop")
    expected = told(search(owner, "kettle water"))
    owner.close()
    administer(
        "do $$ begin if to_regrole('concordance_functions') is null then "
        "create role concordance_functions nologin; end if; end $$"
    )
    administer("grant concordance_functions to tenant_indexer with inherit true, set true")
    grant(url, {"tenant_guest": "default"})
    dump = tmp_path / "concordance.dump"
    plain = ("--schema=concordance", "--format=custom", f"--file={dump}", url)
    assert "row-level security" in _tool("pg_dump", *plain).stderr, "never a dump without its rows"
    assert _tool("pg_dump", "--enable-row-security", *plain).stderr == ""
    restored = create_database(server_url, "tenant_restored")
    with psycopg.connect(restored, autocommit=True) as connection:
        connection.execute("create extension vector")
    assert _tool("pg_restore", f"--dbname={restored}", str(dump)).stderr == ""
    with open_tenants(_settings(restored, tmp_path / "home")) as tenants:
        assert tenants.faults() == []
        assert [row.login for row in tenants.logins()] == ["tenant_guest"]
    for login in ("tenant_indexer", "tenant_guest"):
        at = make_conninfo(restored, user=login)
        index = open_index(tmp_path / "home", at, provider, project)
        assert told(search(index, "kettle water")) == expected
        index.close()
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("drop database tenant_restored with (force)")


def _tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    binary = find_package() / f"pginstall{MAJOR}" / "bin" / name
    return subprocess.run([binary, *arguments], capture_output=True, text=True, check=False)


def test_a_clock_is_what_grants_are_dated_by(house: House) -> None:
    rows = house.ask("select granted_at from tenant_access where login = %s", READER)
    assert rows == [(NOON,)]
