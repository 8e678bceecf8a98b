"""What a reader may ask, with everything that could be another tenant's."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg
from psycopg import sql

from tests.postgres.house import MARK, House

Session = psycopg.Connection[tuple[Any, ...]]

# Each with everything that it could be asked of another tenant: `projects`, `chunks` and `model`
# are the numbers of both. One that has several ways is asked by each.
CALLS: dict[str, LiteralString] = {
    "reader_tenant": "select * from concordance.reader_tenant()",
    "reader_model": "select * from concordance.reader_model()",
    "reader_targets": "select * from concordance.reader_targets(%(slugs)s)",
    "reader_coverage": "select * from concordance.reader_coverage(%(slugs)s)",
    "reader_calibration": "select c.* from unnest(%(projects)s::integer[]) p, "
    "concordance.reader_calibration(p) c",
    "reader_terms": "select * from concordance.reader_terms(%(text)s, %(projects)s)",
    "reader_top": "select * from concordance.reader_top(array['english'], "
    "array['{1:1}/1000000000'], array[%(condition)s], null, %(projects)s)",
    "reader_words": "select * from concordance.reader_words(%(text)s, %(projects)s)",
    "reader_count": "select concordance.reader_count(%(projects)s, null, 'docs/', null, null, 99)",
    "reader_wordless": "select concordance.reader_wordless(%(projects)s, null, 99)",
    "reader_nearest": "select n.* from unnest(%(models)s::integer[]) m, "
    "concordance.reader_nearest(m, %(vector)s, %(projects)s) n",
    "reader_candidates": "select c.* from unnest(%(models)s::integer[]) m, "
    "concordance.reader_candidates(%(chunks)s, array['english'], array['{1:1}/1000000000'], "
    "array[%(condition)s], true, array[1.0], array[%(condition)s], array['english'], m, "
    "%(vector)s) c",
    "reader_top, by places": "select * from concordance.reader_top(array['english'], "
    "array['{1:1}/1000000000'], array[%(condition)s], null, %(projects)s, null, 'docs/')",
    "reader_top, by ts_rank_cd": "select * from concordance.reader_top(array['english'], null, "
    "array[%(condition)s], array[%(condition)s], %(projects)s)",
    "reader_words, by places": "select * from concordance.reader_words(%(text)s, %(projects)s, "
    "null, 'docs/')",
    "reader_nearest, by the index": "select n.* from unnest(%(models)s::integer[]) m, "
    "concordance.reader_nearest(m, %(vector)s, %(projects)s, way => 'index') n",
    "reader_nearest, by the index and places": "select n.* from unnest(%(models)s::integer[]) m, "
    "concordance.reader_nearest(m, %(vector)s, %(projects)s, null, 'docs/', way => 'index') n",
    "reader_nearest, by places": "select n.* from unnest(%(models)s::integer[]) m, "
    "concordance.reader_nearest(m, %(vector)s, %(projects)s, null, 'docs/', way => 'all') n",
    "reader_candidates, by vectors": "select c.* from unnest(%(models)s::integer[]) m, "
    "concordance.reader_candidates(%(chunks)s, null, null, null, true, null, null, null, m, "
    "%(vector)s) c",
    "reader_passages": "select * from concordance.reader_passages(%(chunks)s)",
    "reader_records": "select * from concordance.reader_records(%(chunks)s)",
    "reader_document": "select d.* from unnest(%(slugs)s::text[]) s, "
    "concordance.reader_document(s, 'file', %(path)s) d",
    "reader_document, of a session": "select d.* from unnest(%(slugs)s::text[]) s, "
    "concordance.reader_document(s, 'session', %(session)s) d",
    "reader_lines": "select l.* from unnest(%(slugs)s::text[]) s, "
    "concordance.reader_lines(s, %(path)s, 1, 9, 5, 9) l",
    "reader_turns": "select t.* from unnest(%(slugs)s::text[]) s, "
    "concordance.reader_turns(s, %(session)s, %(session)s || '-0', 5, 9) t",
}


def numbers(house: House, *tenants: str) -> dict[str, Any]:
    """What the functions are asked with: all numbers of these tenants."""

    def ids(table: LiteralString) -> list[int]:
        statement = sql.SQL(
            "select x.id from {} x join tenants t on t.id = x.tenant_id where t.slug = any(%s)"
        ).format(sql.Identifier(table))
        return [row[0] for row in house.ask(statement, list(tenants))]

    slugs = (
        "select p.slug from projects p join tenants t on t.id = p.tenant_id and t.slug = any(%s)"
    )
    return {
        "slugs": [row[0] for row in house.ask(slugs, list(tenants))],
        "projects": ids("projects"),
        "chunks": ids("chunks"),
        "models": ids("embedding_models"),
        "text": f"{MARK} tea kettle",
        "condition": f"{MARK} | tea",
        "path": f"docs/{MARK}.md",
        "session": MARK,
        "vector": "[" + ",".join(["1"] * 64) + "]",
    }


def results(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """What each function says, or how it fails."""
    found: dict[str, Any] = {}
    for name, call in CALLS.items():
        try:
            found[name] = sorted(map(repr, session.execute(call, given).fetchall()))
        except psycopg.Error as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found
