"""`auto`: each document in its own language, and what becomes of an older index."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from concordance.adapters.postgres import projects
from concordance.adapters.postgres.database import Database, create_database
from concordance.adapters.postgres.schema import migrate
from concordance.errors import SettingsError
from concordance.index import Index
from concordance.settings import Project, SessionSource
from sql import migrations
from tests.conftest import IndexMaker
from tests.postgres.driver import ask, documents_of, needs, passages_of, reindex, statistics_of
from tests.postgres.library import places, search
from tests.sources import GitSource, event, write_log

PAGES: dict[str, str | bytes] = {
    "docs/de.md": "# Bestellungen\n\nDie Häuser der Kunden werden nacheinander beliefert, und der "
    "Fahrer meldet jede Lieferung an die Zentrale.\n",
    "docs/en.md": "# Orders\n\nThe houses of the customers are visited one after another, and the "
    "driver reports every delivery to the office.\n",
    "docs/fr.md": "# Commandes\n\nLes maisons des clients sont livrées les unes après les "
    "autres, et le chauffeur signale chaque livraison au bureau.\n",
    "docs/ja.md": "# 注文\n\n顧客の家を順番に訪問し、運転手はすべての配達を事務所に報告します。\n",
    "docs/short.md": "Houses\n",
}


def languages(url: str) -> dict[str, str | None]:
    return {d["name"]: d["language"] for d in documents_of(url)}


def test_documents_of_several_languages_are_each_searched_in_theirs(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(tmp_path / "source", PAGES)
    log = [event("s", n, "Wir haben die Lieferungen gestern alle erledigt") for n in range(3)]
    write_log(tmp_path / "logs" / "a.jsonl", log)
    sessions = (SessionSource(path=tmp_path / "logs"),)
    index = make_index(Project(slug="p", path=source.path, language="auto", sessions=sessions))
    reindex(index, embed=False)
    assert languages(database_url) == {
        "docs/de.md": "german",
        "docs/en.md": "english",
        "docs/fr.md": "french",
        "docs/ja.md": "simple",
        "docs/short.md": "simple",
        "s": "german",
    }
    for question, wanted in {
        "Haus": "p:docs/de.md",
        "house": "p:docs/en.md",
        "maison": "p:docs/fr.md",
        "Lieferung": "p:docs/de.md",
        "livraisons": "p:docs/fr.md",
        "配達": "p:docs/ja.md",
        "houses": "p:docs/short.md",
    }.items():
        assert wanted in places(search(index, question, fusion="lexical")), question
    source.commit({"docs/de.md": PAGES["docs/en.md"]})
    reindex(index, embed=False)
    assert languages(database_url)["docs/de.md"] == "english"
    assert places(search(index, "Haus", fusion="lexical", scopes=["docs"])) == []


def test_a_server_without_a_configuration_gets_the_simple_one(
    make_index: IndexMaker, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = projects.known_languages

    def fewer(database: Database) -> frozenset[str]:
        return known(database) - {"german"}

    monkeypatch.setattr(projects, "known_languages", fewer)
    source = GitSource.make(tmp_path / "source", PAGES)
    index = make_index(Project(slug="p", path=source.path, language="auto"))
    reindex(index, embed=False)
    assert languages(database_url)["docs/de.md"] == "simple"
    assert places(search(index, "Häuser", fusion="lexical"))[0] == "p:docs/de.md"


def test_a_language_that_is_asked_for_by_name_must_be_there(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    source = GitSource.make(tmp_path / "source", PAGES)
    index = make_index(Project(slug="p", path=source.path, language="klingon"))
    with (
        pytest.raises(SettingsError, match="klingon"),
        index.hold("p", __import__("uuid").uuid4(), on_wait=lambda: None) as held,
    ):
        index.plan_files(held, "p", index.fetch("p").commit)


def test_a_change_of_the_language_analyses_everything_anew(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    source = GitSource.make(tmp_path / "source", PAGES)
    reindex(make_index(Project(slug="p", path=source.path, language="simple")), embed=False)
    index = make_index(Project(slug="p", path=source.path, language="german"))
    assert needs(index) == "index"
    reindex(index, embed=False)
    assert set(languages(database_url).values()) == {"german"}
    counts, _ = statistics_of(database_url)
    assert {row["language"] for row in counts} == {"german"}


def test_an_index_of_the_first_schema_is_analysed_anew(
    make_index: IndexMaker, tmp_path: Path, server_url: str, database_url: str
) -> None:
    url = create_database(server_url, "at_first")
    old = Database(url, pool_size=2)
    old.open()
    migrate(old, migrations()[:1])
    source = GitSource.make(tmp_path / "source", PAGES)
    project = Project(slug="p", path=source.path)
    fresh = make_index(project)
    reindex(fresh)
    _copy_at_first(fresh, database_url, url)
    migrate(old)
    old.close()
    assert ask(url, "select count(*) as n from lexical") == [{"n": 0}]
    index = make_index(project, database_url=SecretStr(url))
    before = ask(url, "select id, content_hash from chunks order by id")
    assert len(before) >= len(PAGES)
    assert needs(index) == "index"
    reindex(index)
    assert ask(url, "select id, content_hash from chunks order by id") == before, "rows are kept"
    assert passages_of(url) == passages_of(database_url)
    assert documents_of(url) == documents_of(database_url)
    assert statistics_of(url) == statistics_of(database_url)
    assert needs(index) == "none"
    index.close()
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database at_first with (force)"))


TABLES = (
    "tenants",
    "projects",
    "documents",
    "chunks",
    "embedding_models",
    "embeddings",
    "embedding_backlog",
    "coverage",
)


def _copy_at_first(index: Index, source: str, target: str) -> None:
    """The rows as a run at the first schema left them: no language, another fingerprint."""
    with psycopg.connect(source) as here, psycopg.connect(target) as there:
        for table in TABLES:
            name = sql.Identifier("concordance", table)
            names = [
                row[0]
                for row in there.execute(
                    "select column_name from information_schema.columns where table_schema = "
                    "'concordance' and table_name = %s order by ordinal_position",
                    [table],
                )
            ]
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            rows = here.execute(sql.SQL("select {} from {}").format(columns, name)).fetchall()
            marks = sql.SQL(", ").join([sql.Placeholder()] * len(names))
            there.execute(sql.SQL("delete from {}").format(name))
            there.cursor().executemany(
                sql.SQL("insert into {} ({}) overriding system value values ({})").format(
                    name, columns, marks
                ),
                rows,
            )
        there.execute("update concordance.documents set chunker = 'older'")
        there.execute("update concordance.coverage set fingerprint = 'older'")
        there.execute(
            "insert into concordance.lexical (chunk_id, tenant_id, project_id, scope, lexemes) "
            "select k.id, k.tenant_id, k.project_id, d.scope, to_tsvector('english', k.content) "
            "from concordance.chunks k join concordance.documents d on d.id = k.document_id"
        )
        for table in ("documents", "chunks", "projects", "tenants", "embedding_models"):
            there.execute(
                sql.SQL(
                    "select setval(pg_get_serial_sequence({}, 'id'), 1 + max(id)) from {}"
                ).format(sql.Literal(f"concordance.{table}"), sql.Identifier("concordance", table))
            )
