"""A reader's login: the same answers as the owner's, by functions alone."""

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
from concordance.adapters.postgres import lexical
from concordance.adapters.postgres import search as legs
from concordance.adapters.postgres.database import create_database
from concordance.adapters.postgres.embeddings import vector_as_text
from concordance.cli import run
from concordance.errors import DatabaseUnsuitable, SettingsError, UsageError
from concordance.granting import open_tenants
from concordance.models import POOL, Answer, Fusion
from concordance.settings import Project, Settings
from sql import queries
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
)
from tests.postgres.library import SHOP, search
from tests.sources import GitSource

REQUESTS: list[dict[str, Any]] = [
    {},
    {"projects": ["laden"]},
    {"projects": ["shop"], "scopes": ["adr"]},
    {"scopes": ["session"]},
    {"path_prefix": "docs/more/"},
    {"since": "2026-03-01T10:01:00Z"},
    {"adr_status": ["unknown"]},
    {"lexical_ranking": "ts_rank_cd"},
    {"lexical_ranking": "all_words"},
]
QUESTIONS = ["tea water kettle queue", "Kessel kettles", "C++", "what is this about", "zanzibar"]
# Words of two languages, stop words of one, accents, and what is taken apart.
MIXED = [
    "the tea und der Kessel",
    "Die kettles, die Kessel: was water",
    "Téa kéttle-queue getKesselWater docs/tea.md 茶 tea",
]
# More words than are asked for: `water` is left out, `kettle` stands in it most often.
PASTED = f"tea {' '.join(f'w{n}' for n in range(lexical.MOST_ASKED))} water kettle Kessel kettle"


@pytest.fixture(scope="module")
def house(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with open_house(server_url, "readers", tmp_path_factory.mktemp("house")) as made:
        yield made


def told(answer: Answer) -> dict[str, Any]:
    return answer.model_dump(exclude={"milliseconds"})


@pytest.mark.parametrize("fusion", list(Fusion))
def test_a_reader_gets_the_answers_of_the_owner(house: House, fusion: Fusion) -> None:
    hits = 0
    for text in QUESTIONS:
        for more in REQUESTS:
            asked = {"fusion": fusion, "top_k": 50} | more
            mine, owners = search(house.reader, text, **asked), search(house.owner, text, **asked)
            assert told(mine) == told(owners), (text, more)
            assert not mine.degraded
            hits += len(mine.hits)
    assert hits > 40


def test_a_reader_gets_a_calibration_and_what_replaced_a_record(
    house: House, server_url: str
) -> None:
    asked = {"projects": ["shop"], "scopes": ["adr"]}
    (shop,) = house.ask("select id from projects where slug = 'shop'")
    (model,) = house.ask("select fingerprint, provider || '/' || model from embedding_models m "
                         "join tenants t on t.id = m.tenant_id and t.slug = 'default'")  # fmt: skip
    with psycopg.connect(house.url, options="-c search_path=concordance") as connection:
        connection.execute(
            "insert into calibrations (project_id, tenant_id, set_name, questions_hash, fitted_on, "
            "checked_on, model, model_name, vector_weight, threshold, figures, made_at) "
            "values (%s, (select id from tenants where slug = 'default'), 's', 'h', 9, 9, %s, %s, "
            "0.4, 0.05, '[]', now())",
            (shop[0], *model),
        )
        connection.execute(
            "insert into successions (older_id, newer_id, tenant_id, project_id) "
            "select d.id, n.id, d.tenant_id, d.project_id from documents d join documents n "
            "on n.project_id = d.project_id and n.name = 'docs/guide.md' "
            "where d.name = 'docs/adr/0001-queue.md'"
        )
    mine, owners = search(house.reader, "queue", **asked), search(house.owner, "queue", **asked)
    assert told(mine) == told(owners)
    assert any("calibrated" in note for note in mine.notes)
    assert "docs/guide.md" in json.dumps(mine.model_dump(mode="json"))
    with psycopg.connect(house.url, options="-c search_path=concordance") as connection:
        connection.execute("delete from calibrations; delete from successions")


@pytest.mark.parametrize("text", [*MIXED, PASTED])
def test_a_reader_has_the_words_of_the_owner(house: House, text: str) -> None:
    mine, owners = (search(index, text, top_k=50) for index in (house.reader, house.owner))
    assert told(mine) == told(owners)
    projects = [row[0] for row in house.ask("select id from projects where slug <> 'vault'")]
    asked = {"question": text, "projects": projects}
    for most in (2, lexical.MOST_ASKED):
        with psycopg.connect(house.url, options="-c search_path=concordance,public") as owner:
            theirs = owner.execute(queries("lexical")["terms"], asked | {"most": most}).fetchall()
        with psycopg.connect(house.url_of(READER)) as reader:
            call = queries("readers")["lexical_terms"]
            assert reader.execute(call, asked | {"most": most}).fetchall() == theirs
        assert theirs


def test_a_reader_is_told_of_its_own_passages_that_wait_for_words(house: House) -> None:
    with psycopg.connect(house.url, autocommit=True) as connection:
        connection.execute(
            "create table public.kept as select l.* from concordance.lexical l "
            "join concordance.projects p on p.id = l.project_id and p.slug in ('vault', 'shop')"
        )
        connection.execute(
            "delete from concordance.lexical where chunk_id in (select chunk_id from public.kept)"
        )
    mine, owners = search(house.reader, "tea"), search(house.owner, "tea")
    with psycopg.connect(house.url, autocommit=True) as connection:
        connection.execute("insert into concordance.lexical select * from public.kept")
        connection.execute("drop table public.kept")
    assert told(mine) == told(owners)
    assert "for their words, which the next run writes" in str(mine.degraded_reason)
    assert not search(house.reader, "tea").degraded


def test_coverage_is_the_same_and_unknown_projects_are_unknown(house: House) -> None:
    assert house.reader.coverage() == house.owner.coverage()
    assert house.reader.coverage(["laden"]) == house.owner.coverage(["laden"])
    bare = house.open(READER)
    assert bare.coverage(["shop"]) == house.owner.coverage(["shop"])
    for slug in ("vault", "nobody"):
        with pytest.raises(UsageError, match=f"no project '{slug}'"):
            bare.coverage([slug])
    bare.close()


def test_what_a_reader_may_not_do_says_so(house: House) -> None:
    for step in (
        house.reader.stored_slugs,
        lambda: house.reader.decision_records("shop"),
        lambda: house.reader.forget("shop"),
        lambda: reindex(house.reader, "shop"),
    ):
        with pytest.raises(DatabaseUnsuitable, match="A reader's login may search") as raised:
            step()
        assert "permission denied" in raised.value.message


def test_a_readers_tenant_is_that_of_its_login(house: House) -> None:
    other = house.open(NEIGHBOUR)
    assert [hit.project for hit in search(other, "tea", fusion="lexical").hits] == ["vault"] * 3
    other.close()
    with pytest.raises(SettingsError, match="reads the tenant 'other', and 'default' is set"):
        house.open(NEIGHBOUR, tenant="default")
    house.open(NEIGHBOUR, tenant="other").close()


def test_a_reader_writes_nothing_so_that_a_replica_will_do(house: House) -> None:
    url = house.url_of(READER, options="-c default_transaction_read_only=on")
    replica = open_index(house.home, url, house.provider, *house.projects)
    assert told(search(replica, "tea")) == told(search(house.owner, "tea"))
    assert replica.coverage() == house.owner.coverage()
    replica.close()


def test_a_login_with_tables_and_no_rows_is_no_empty_index(house: House, server_url: str) -> None:
    with logins(server_url, "tenant_guest"), psycopg.connect(house.url, autocommit=True) as owner:
        owner.execute("grant usage on schema concordance to tenant_guest")
        owner.execute("grant select, insert on all tables in schema concordance to tenant_guest")
        with pytest.raises(DatabaseUnsuitable, match="shows it none of their rows") as raised:
            house.open("tenant_guest")
        assert 'grant "postgres" to "tenant_guest"' in str(raised.value)
        owner.execute("drop owned by tenant_guest")


# --- plain SQL -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*QUESTIONS, *MIXED, PASTED, "tea tea queue", "???"])
def test_words_are_scored_by_sql_as_the_search_scores_them(house: House, text: str) -> None:
    for projects in (["shop", "laden"], ["shop"]):
        owners = search(house.owner, text, fusion="lexical", top_k=100, projects=projects)
        rows = house.ask(
            "select p.content, w.score from reader_words(%s, "
            "(select array_agg(distinct project_id) from reader_targets(%s))) w "
            "join lateral reader_passages(array[w.chunk_id]) p on true order by w.score desc",
            text, projects, login=READER,
        )  # fmt: skip
        assert sorted(content for content, _ in rows) == sorted(h.content for h in owners.hits)
        scores = dict(rows)
        for hit in owners.hits:
            assert scores[hit.content] == pytest.approx(hit.lexical_score, rel=1e-6)


@pytest.mark.parametrize(
    "narrow", [(None, None), ("docs/more/", None), (None, "2026-03-01T10:01Z")]
)
def test_the_nearest_are_found_by_sql_as_the_search_finds_them(
    house: House, narrow: tuple[str | None, str | None]
) -> None:
    text = "kettle"
    resources = house.owner._resources
    vector = vector_as_text(resources.embedder.embed_query(text, deadline_seconds=9))
    owners = search(
        house.owner, text, fusion="vector", top_k=100, path_prefix=narrow[0], since=narrow[1]
    )
    for way in (None, "index", "all"):
        rows = house.ask(
            "select p.content, n.score from reader_model() m, "
            "reader_nearest(m.id, %s, null, null, %s, %s, null, 100, %s) n, "
            "reader_passages(array[n.chunk_id]) p order by n.score desc",
            vector, *narrow, way, login=READER,
        )  # fmt: skip
        assert dict(rows) == pytest.approx({h.content: h.vector_score for h in owners.hits})
        assert len(rows) == len(owners.hits) > 0


def test_functions_choose_between_index_and_all_by_the_same_numbers(house: House) -> None:
    (body,) = house.ask("select prosrc from pg_proc where proname = 'reader_nearest'")
    share, bound, most = legs.LEAST_SHARE, legs.EXACT_UP_TO, legs.EXACT_AT_MOST
    assert f"greatest({bound}, least(floor({share} *" in body[0]
    assert f"), {most}))" in body[0]
    assert f"'hnsw.ef_search', '{2 * POOL}'" in body[0]
    defaults = house.ask(
        "select pg_get_function_arguments(oid) from pg_proc where proname = any(%s)",
        ["reader_nearest", "reader_top", "reader_words"],
    )
    assert all(f"pool integer DEFAULT {POOL}" in row[0] for row in defaults)
    (words,) = house.ask("select prosrc from pg_proc where proname = 'reader_words'")
    assert f"limit {lexical.MOST_ASKED}\n" in words[0]
    assert f"place <= {lexical.MOST_WORDS}\n" in words[0]
    assert f"passages > {lexical.FEW_PASSAGES} " in words[0]
    (terms,) = house.ask("select pg_get_function_arguments(oid) from pg_proc where proname = %s",
                         "reader_terms")  # fmt: skip
    assert terms[0].endswith(f"most integer DEFAULT {lexical.MOST_ASKED}")


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
