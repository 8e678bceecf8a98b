"""A real streaming replica: what reads works on it, and what writes says where to go."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from concordance import cli
from concordance.adapters.embedded_binaries import prepare
from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.adapters.postgres.database import create_database
from concordance.adapters.postgres.schema import migrate
from concordance.errors import DatabaseReadOnly, SchemaMismatch
from concordance.index import Index
from concordance.settings import Project
from sql import Migration, migrations
from tests.fake_ollama import FakeOllama
from tests.postgres.house import READER, grant, open_index
from tests.postgres.library import make_library, search
from tests.postgres.place import Place, copy_data, eventually, execute, open_place

RECORDING = {"wal_level": "replica", "max_wal_senders": "4", "fsync": "off"}


@dataclass
class Pair:
    """A primary and its replica, with an index opened on each."""

    folder: Path
    provider: FakeOllama
    primary_url: str
    replica_url: str
    primary: Index
    replica: Index

    def caught_up(self) -> None:
        here = execute(self.primary_url, "select pg_current_wal_lsn()")
        asked = f"select pg_last_wal_replay_lsn() >= '{here}'"
        eventually(lambda: execute(self.replica_url, asked) == "True")


@pytest.fixture(scope="module")
def pair(
    shared_state: Path, data_made_before: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    with (
        FakeOllama() as provider,
        open_place(shared_state) as one,
        open_place(shared_state) as other,
    ):
        prepare(one.location, one.state)
        copy_data(data_made_before, one.location.data)
        serving = [start(one, RECORDING)]
        root = serving[0].url
        url = create_database(root, "concordance")
        opened: list[Index] = []

        def make(*projects: Project, **settings: object) -> Index:
            opened.append(open_index(folder / "home", url, provider, *projects, **settings))
            return opened[-1]

        primary = make_library(make, folder)
        primary.record_question("shop", "where is tea sold", "README.md:1-3")
        grant(url, {READER: "default"})
        serving.append(start_replica(one, other))
        replica_url = url.replace(str(one.location.socket), str(other.location.socket))
        projects = primary.configuration.projects
        replica = open_index(folder / "home", replica_url, provider, *projects)
        yield Pair(folder, provider, url, replica_url, primary, replica)
        for index in (replica, *opened):
            index.close()
        for server in reversed(serving):
            server.stop()


def start(place: Place, settings: dict[str, str]) -> EmbeddedPostgres:
    """Start a server with settings that outrank those which the product writes."""
    with (place.location.data / "postgresql.auto.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    server = place.server()
    server.start()
    return server


def start_replica(primary: Place, replica: Place) -> EmbeddedPostgres:
    """Copy the data of a primary that is stopped for it, and follow it from there."""
    primary.server().stop(force=True)
    prepare(replica.location, replica.state)
    copy_data(primary.location.data, replica.location.data)
    with primary.server():  # it was stopped for all its users, of whom one is left
        pass
    signal = replica.location.data / "standby.signal"
    signal.touch()
    owner = replica.location.data.stat()
    os.chown(signal, owner.st_uid, owner.st_gid)
    where = f"host={primary.location.socket} port=5432 user=postgres"
    return start(replica, {"primary_conninfo": where})


def test_what_reads_gives_on_a_replica_what_it_gives_on_the_primary(pair: Pair) -> None:
    assert execute(pair.replica_url, "select pg_is_in_recovery()") == "True"
    pair.caught_up()
    for text in ("retry the clone", "Kessel Wasser", "tea queue", "how do we brew the tea"):
        here, there = search(pair.primary, text), search(pair.replica, text)
        assert here.hits
        assert there.hits == here.hits
        assert there.freshness == here.freshness
        assert not there.degraded
    assert pair.replica.coverage() == pair.primary.coverage()
    for index in (pair.primary, pair.replica):
        assert index.explain("shop", "docs/guide.md").in_index
        assert len(index.decision_records("shop").records) == 1
        assert [q.question for q in index.recorded_questions()] == ["where is tea sold"]
        assert index.problems("shop") == []
        assert index.stored_slugs() == ["laden", "shop"]
        assert index.check_statistics() == []


def test_a_reader_gets_the_same_answers_on_a_replica(pair: Pair) -> None:
    at = make_conninfo(pair.replica_url, user=READER)
    pair.caught_up()
    with open_index(pair.folder / "home", at, pair.provider) as reader:
        assert search(reader, "tea queue").hits == search(pair.primary, "tea queue").hits
        assert reader.coverage() == pair.primary.coverage()


def hold(index: Index) -> None:
    with index.hold("shop", uuid.uuid4(), on_wait=lambda: None):
        pass


def test_what_writes_is_refused_with_what_to_do(pair: Pair) -> None:
    index = pair.replica
    writes: dict[str, Callable[[], object]] = {
        "hold": lambda: hold(index),
        "start_run": lambda: index.start_run(uuid.uuid4(), "reindex"),
        "survey": lambda: index.survey(["shop"]),
        "fill_vectors": lambda: index.fill_vectors(started=index.now()),
        "record": lambda: index.record_question("shop", "what boils", "docs/guide.md:1-3"),
        "purge": index.purge_secrets,
        "forget": lambda: index.forget("laden"),
        "undo": lambda: index.undo_calibration("shop"),
        "rebuild": lambda: index.check_statistics(rebuild=True),
    }
    for name, write in writes.items():
        with pytest.raises(DatabaseReadOnly) as error:
            write()
        said = str(error.value)
        assert "takes no writes" in said, name
        assert "to the primary" in said, name


def test_a_tenant_that_is_not_there_can_t_be_made_on_a_replica(pair: Pair) -> None:
    with pytest.raises(DatabaseReadOnly, match="to the primary"):
        open_index(pair.folder / "home", pair.replica_url, pair.provider, tenant="new")


def test_a_program_that_is_newer_than_the_replica_says_to_upgrade_the_primary(pair: Pair) -> None:
    newer = [*migrations(), Migration(9_999, "more", "create table concordance.more ()")]
    with pytest.raises(SchemaMismatch, match=r"older than this program.*address of the primary"):
        migrate(pair.replica._resources.database, newer)


def test_the_command_line_says_it_in_one_line(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONCORDANCE_DATABASE_URL", pair.replica_url)
    monkeypatch.setenv("CONCORDANCE_HOME", str(pair.folder / "home"))
    monkeypatch.setenv("CONCORDANCE_EMBEDDING_MODEL", "ollama/nomic-embed-text")
    monkeypatch.setenv("CONCORDANCE_OLLAMA_URL", pair.provider.url)
    monkeypatch.setenv("CONCORDANCE_PROJECTS_FILE", str(pair.folder / "none.toml"))
    assert cli.run(["search", "retry the clone"]) == 0
    assert cli.run(["adr", "shop"]) == 0
    assert cli.run(["questions", "list"]) == 0
    capsys.readouterr()
    assert cli.run(["projects", "forget", "laden"]) == 1
    said = capsys.readouterr().err
    assert "takes no writes" in said
    assert "Traceback" not in said
    assert said.count("\n") == 1


def test_a_replica_that_lost_its_primary_answers_on(pair: Pair) -> None:
    before = search(pair.replica, "retry the clone").hits
    pair.caught_up()
    execute(pair.replica_url, "select pg_wal_replay_pause()")
    assert search(pair.replica, "retry the clone").hits == before
    execute(pair.replica_url, "select pg_wal_replay_resume()")
