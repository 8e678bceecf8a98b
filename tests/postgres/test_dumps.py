"""A dump that is restored gives the same answers, and the next run has nothing to do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from concordance.adapters.embedded_binaries import MAJOR, find_package
from concordance.adapters.postgres.calibrations import save_calibration
from concordance.adapters.postgres.database import create_database
from concordance.index import Index
from concordance.models import Answer, CoverageState
from concordance.ranking.calibration import Calibration
from tests.postgres.driver import ask, documents_of, embedded, passages_of, reindex
from tests.postgres.house import (
    NEIGHBOUR,
    NOON,
    READER,
    House,
    grant,
    open_house,
    open_index,
)
from tests.postgres.library import search
from tests.postgres.place import Place
from tests.sources import GitSource

QUESTIONS = ("retry the clone", "Kessel Wasser", "tea queue", "how do we brew the tea")
TABLES = """
    select c.relname as name from pg_class c
    where c.relnamespace = 'concordance'::regnamespace and c.relkind = 'r' order by c.relname
"""


@dataclass
class Dumped:
    """A database with two tenants and something in each table, and its dump."""

    house: House
    file: Path
    rows: dict[str, list[str]]
    answers: list[Any]


@pytest.fixture(scope="module")
def dumped(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dumped]:
    folder = tmp_path_factory.mktemp("dumped")
    with open_house(server_url, "dumped", folder) as house:
        fill_the_rest(house)
        file = folder / "concordance.dump"
        tool("pg_dump", "--format=custom", f"--file={file}", house.url)
        yield Dumped(house, file, rows_of(house.url), answers_of(house.owner))


def fill_the_rest(house: House) -> None:
    owner = house.owner
    owner.record_question("shop", "where is tea sold", "README.md:1-3")
    own = Calibration(
        project="shop",
        set_name="set",
        questions_hash="00ff",
        fitted_on=10,
        checked_on=5,
        model=ask(house.url, "select fingerprint from embedding_models limit 1")[0]["fingerprint"],
        model_name="ollama/nomic-embed-text",
        vector_weight=0.31,
        threshold=0.02,
        confidence=None,
        figures=(),
        made_at=NOON,
    )
    project = ask(house.url, "select id, tenant_id from projects where slug = 'shop'")[0]
    save_calibration(owner._resources.database, project["tenant_id"], project["id"], own)


def rows_of(url: str) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    found = {}
    for table in ask(url, TABLES):
        query = sql.SQL("select t::text as row from {} t order by 1").format(
            sql.Identifier(table["name"])
        )
        found[table["name"]] = [row["row"] for row in ask(url, query)]
    return found


def answers_of(index: Index) -> list[Any]:
    found: list[Answer] = [search(index, text) for text in QUESTIONS]
    assert [answer.empty_reason or answer.degraded_reason for answer in found] == [None] * 4
    shown = [
        (a.hits, a.confidence, a.fusion_parameters, a.freshness, a.degraded_reason) for a in found
    ]
    return [shown, index.coverage(), index.stored_calibrations(), index.recorded_questions()]


def tool(name: str, *arguments: str, fails: bool = False) -> str:
    binary = find_package() / f"pginstall{MAJOR}" / "bin" / name
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode != 0) is fails, done.stderr
    return done.stderr


@contextmanager
def empty_database(root: str, name: str, *statements: str) -> Iterator[str]:
    """A database that holds nothing, and what an administrator does in it beforehand."""
    url = create_database(root, name)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    try:
        yield url
    finally:
        with psycopg.connect(root, autocommit=True) as connection:
            connection.execute(
                sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            )


def opened(dumped: Dumped, url: str) -> Index:
    house = dumped.house
    return open_index(house.home, url, house.provider, *house.projects)


def nothing_to_do(index: Index) -> None:
    assert [found.action for found in index.survey(["shop", "laden"])] == ["none", "none"]


# No run of the tests' driver notes itself, nothing waits for a vector when a run is over, and no
# record of the corpus replaced another.
EMPTY = {"runs", "embedding_backlog", "successions", "project_commits"}


def test_a_dump_that_is_restored_with_its_roles_is_the_same_index(
    dumped: Dumped, server_url: str
) -> None:
    assert {name for name, rows in dumped.rows.items() if not rows} <= EMPTY
    with empty_database(server_url, "restored") as url:
        assert tool("pg_restore", f"--dbname={url}", str(dumped.file)) == ""
        assert rows_of(url) == dumped.rows
        dumped.house.provider.forget()
        with opened(dumped, url) as index:
            assert answers_of(index) == dumped.answers
            nothing_to_do(index)
            reindex(index, "shop")
            assert embedded(dumped.house.provider) == []
            assert rows_of(url)["chunks"] == dumped.rows["chunks"]
            assert index.coverage(["shop"])[0].state is CoverageState.COMPLETE
        as_readers(dumped, url)
        assert faults(url) == []


def as_readers(dumped: Dumped, url: str) -> None:
    """Each reader gets the answers of its tenant, and nothing of the other one."""
    with opened(dumped, make_conninfo(url, user=READER)) as index:
        assert search(index, QUESTIONS[0]).hits == dumped.answers[0][0][0]
    with open_index(
        dumped.house.home, make_conninfo(url, user=NEIGHBOUR), dumped.house.provider
    ) as index:
        assert {hit.project for hit in search(index, "zanzibar tea").hits} == {"vault"}


def test_what_comes_after_a_restore_is_as_in_a_fresh_build(dumped: Dumped, server_url: str) -> None:
    """Numbers go on where they were, and vectors are found again by their texts."""
    path = next(p.path for p in dumped.house.projects if p.slug == "shop")
    assert path is not None
    shop = GitSource(path)
    before = shop.git("rev-parse", "HEAD")
    dumped.house.provider.forget()
    with (
        empty_database(server_url, "restored") as url,
        empty_database(server_url, "fresh_build", "create extension vector") as fresh,
    ):
        tool("pg_restore", f"--dbname={url}", str(dumped.file))
        shop.commit({"docs/new.md": "# New\n\nA spout for the kettle.\n"}, delete=["README.md"])
        with opened(dumped, url) as index:
            reindex(index, "shop")
            assert len(embedded(dumped.house.provider)) == 1
        with opened(dumped, fresh) as index:
            reindex(index, "shop")
        for rows in (documents_of, passages_of):
            assert rows(url, "shop") == rows(fresh, "shop")
        shop.git("reset", "-q", "--hard", before)


def test_without_its_roles_the_rows_are_whole_and_the_rest_is_named_and_mended(
    dumped: Dumped, place: Place
) -> None:
    """On another server; the roles of a server are in no dump of a database."""
    with place.server() as server, empty_database(server.url, "restored") as url:
        said = tool("pg_restore", f"--dbname={url}", str(dumped.file), fails=True)
        assert 'role "concordance_functions" does not exist' in said
        assert rows_of(url) == dumped.rows
        with opened(dumped, url) as index:
            assert answers_of(index) == dumped.answers
            nothing_to_do(index)
        found = faults(url)
        assert "the role concordance_functions is missing" in found
        assert f"the login {READER} of tenant_access is not there" in found
        assert any("may be called by everybody" in fault for fault in found)
        grant(url, {READER: "default", NEIGHBOUR: "other"})
        assert faults(url) == []
        as_readers(dumped, url)


def test_another_owner_sees_every_row(dumped: Dumped, place: Place) -> None:
    beforehand = (
        "create role heir login",
        "create extension vector",
        "grant create on database restored to heir",
    )
    file = dumped.file.with_name("schema.dump")
    tool("pg_dump", "--schema=concordance", "--format=custom", f"--file={file}", dumped.house.url)
    as_heir = ("--no-owner", "--role=heir")
    with place.server() as server, empty_database(server.url, "restored", *beforehand) as url:
        tool("pg_restore", f"--dbname={url}", *as_heir, str(file), fails=True)
        with opened(dumped, make_conninfo(url, user="heir")) as index:
            assert answers_of(index) == dumped.answers
            nothing_to_do(index)
        assert any("the policy indexer is not the one" in fault for fault in faults(url))
        grant(url, {READER: "default", NEIGHBOUR: "other"})
        assert faults(url) == []
        assert rows_of(make_conninfo(url, user="heir")) == dumped.rows
        as_readers(dumped, url)


def faults(url: str) -> list[str]:
    from concordance.adapters.postgres.database import Database  # noqa: PLC0415
    from concordance.granting import Tenants  # noqa: PLC0415

    database = Database(url, pool_size=1)
    database.open()
    try:
        return Tenants(database, lambda: NOON).faults()
    finally:
        database.close()
