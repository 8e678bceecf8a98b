"""What the embedded server touches on disk, and who may touch it."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import stat
import sys
from pathlib import Path

import pytest

from concordance.adapters import embedded_binaries
from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.errors import EmbeddedPostgresError
from tests.postgres.place import CONNECT, Place, as_root, execute, finish, line_of, open_place


def modes_above(*paths: Path) -> dict[Path, tuple[int, int, int]]:
    folders = {folder for path in paths for folder in (path, *path.parents) if folder.exists()}
    stats = {folder: folder.stat() for folder in folders}
    return {folder: (s.st_mode, s.st_uid, s.st_gid) for folder, s in stats.items()}


def installed_package() -> Path:
    spec = importlib.util.find_spec(embedded_binaries.PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def test_no_folder_that_was_there_gets_another_mode_or_owner() -> None:
    with open_place() as place:
        venv = place.top / "private" / "venv"
        package = venv / embedded_binaries.PACKAGE
        for name in (f"{embedded_binaries.PACKAGE}.libs", f"{package.name}/pginstall18"):
            source = installed_package().parent / name
            if source.is_dir():
                shutil.copytree(source, venv / name, ignore=shutil.ignore_patterns("*.a"))
        watched = (
            place.home,
            package / "pginstall18" / "bin" / "postgres",
            installed_package() / "pginstall18" / "bin",
            Path(sys.prefix),
            place.state,
            place.temp,
            Path("/var/lib/none"),
        )
        before = modes_above(*watched)
        server = EmbeddedPostgres(
            place.home, state_root=place.state, temp_dir=place.temp, package=package
        )
        with server:
            assert execute(server.url, "select 1") == "1"
        after = modes_above(*watched)
        assert {folder: after[folder] for folder in before} == before
        assert stat.S_IMODE(before[place.top / "private"][0]) == 0o700


@as_root
def test_root_puts_nothing_into_home_and_the_server_is_not_root(new_place: Place) -> None:
    with new_place.server():
        assert not new_place.home.exists()
        data = new_place.location.data.stat()
        assert data.st_uid == pwd.getpwnam("pgserver").pw_uid
        assert stat.S_IMODE(data.st_mode) == 0o700
        assert new_place.location.run.stat().st_uid == 0


@as_root
def test_no_other_user_can_connect(place: Place) -> None:
    with place.server() as server:
        assert "Permission denied" in place.run(CONNECT, home=server.url, user="nobody")


@as_root
def test_an_ordinary_user_has_it_all_below_home(new_place: Place) -> None:
    private = new_place.home.parent
    os.chown(private, pwd.getpwnam("nobody").pw_uid, -1)
    private.chmod(0o711)  # so that nothing but the server's own folders keeps others out
    before = modes_above(private, installed_package())
    script = new_place.spawn(
        """
ours = server()
url = ours.start()
with psycopg.connect(url) as connection:
    connection.execute("create extension vector")
print(url, flush=True)
sys.stdin.readline()
ours.stop()
assert not ours.status().running
""",
        user="nobody",
    )
    url = line_of(script)
    assert "Permission denied" in new_place.run(CONNECT, home=url, user="daemon")
    base = new_place.home / "postgres" / "18"
    finish(script)
    assert base.owner() == "nobody"
    assert modes_above(private, installed_package()) == before


@as_root
def test_a_home_folder_may_have_any_name(new_place: Place) -> None:
    os.chown(new_place.home.parent, pwd.getpwnam("nobody").pw_uid, -1)
    new_place.temp.chmod(0o1777)
    name = "a, 'b' \"c\" $(touch pwned) `d` é \\ %41 " + "long " * 20
    said = new_place.run(
        """
ours = server()
with psycopg.connect(ours.start()) as connection:
    print(connection.execute("show data_directory").fetchone()[0] == home + "/postgres/18/data")
ours.stop()
""",
        user="nobody",
        home=str(new_place.home / name.strip()),
    )
    assert said == "True\n"


def test_a_path_too_long_for_a_socket_is_given_a_short_one_of_our_own() -> None:
    with open_place(below="long" * 30) as place:
        socket = place.location.socket
        assert socket.parent == place.temp
        socket.symlink_to(place.top)
        with pytest.raises(EmbeddedPostgresError, match="is not a folder of user"):
            place.server().start()
        socket.unlink()
        with place.server() as server:
            assert execute(server.url, "select 1") == "1"
            assert stat.S_IMODE(socket.stat().st_mode) == 0o700


@as_root
def test_a_state_folder_that_others_can_write_is_refused() -> None:
    with open_place() as place:
        place.state.mkdir()
        place.state.chmod(0o777)
        with pytest.raises(EmbeddedPostgresError, match="only root can write"):
            place.server().start()
