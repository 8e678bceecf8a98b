"""The embedded server on real processes: shared, raced, killed and crashed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.postgres.place import Place, eventually, execute, finish, kill, line_of, postmaster

# --- several processes -----------------------------------------------------------------------


def test_the_last_process_stops_it(place: Place) -> None:
    first, second = place.spawn(), place.spawn()
    url = line_of(first)
    assert line_of(second) == url
    finish(first)
    assert execute(url, "select 1") == "1"
    finish(second)
    assert not place.server().status().running


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_its_processes_see_no_variable_of_ours(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READ_TOKEN", "planted-secret")
    with place.server():
        pid = postmaster(place)
        held = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"PGDATA=" in held
        assert b"planted-secret" not in held


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


def test_processes_that_start_at_the_same_moment_share_one_new_server(new_place: Place) -> None:
    scripts = [new_place.spawn() for _ in range(4)]
    urls = {line_of(script) for script in scripts}
    assert len(urls) == 1
    assert not (new_place.location.run / "initdb.log.1").exists()
    for script in scripts:
        finish(script)
    assert not new_place.server().status().running


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


def test_a_kill_in_the_middle_of_initdb_leaves_nothing_half_made(new_place: Place) -> None:
    staging = new_place.location.base / "data.new"
    script = new_place.spawn()
    eventually((staging / "base").exists)
    kill(script)
    assert not new_place.location.data.exists()
    with new_place.server() as server:
        assert execute(server.url, "select 1") == "1"
    assert not staging.exists()
