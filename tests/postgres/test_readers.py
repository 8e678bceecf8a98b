"""A reader's login: the same answers as the owner's, by functions alone, and by plain SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from concordance.adapters.postgres import lexical
from concordance.adapters.postgres import search as legs
from concordance.adapters.postgres.embeddings import vector_as_text
from concordance.errors import DatabaseUnsuitable, SettingsError, UsageError
from concordance.models import POOL, Fusion
from sql import queries
from tests.postgres.driver import reindex
from tests.postgres.house import (
    NEIGHBOUR,
    READER,
    House,
    logins,
    open_house,
    open_index,
    told,
)
from tests.postgres.library import search

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
