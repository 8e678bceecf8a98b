"""The rows that Postgres counts of a reader's work tell nothing of the words of another tenant.

Pages do where an index is large, and are not promised: see docs/tenants.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from concordance.settings import Project
from tests.postgres.driver import reindex
from tests.postgres.house import House, open_house
from tests.postgres.library import search
from tests.postgres.reader_calls import CALLS, Session, numbers
from tests.sources import GitSource

OWN = 11
# Words of one length, which the analysis leaves as they are. The first three stand in each of the
# reader's own passages, the others in none; in so many of the other tenant's.
SHARED = {"qxbrk": 0, "qxbrl": 1, "qxbrm": 50}
FOREIGN = {"qxdrk": 0, "qxdrl": 1, "qxdrm": 50}
OTHERS = 60
COUNTED = """
select c.oid::regclass::text, pg_stat_get_xact_tuples_returned(c.oid),
       pg_stat_get_xact_tuples_fetched(c.oid)
from pg_class c
where c.oid in (
    select r.oid from pg_class r where r.relnamespace = 'concordance'::regnamespace
    union all
    select r.reltoastrelid from pg_class r where r.relnamespace = 'concordance'::regnamespace)
order by 1
"""
# What a reader can put into a condition: the word, what needs the row itself to be told, other
# tenants' places, and what would meet every row.
CONDITIONS = (
    "{}",
    "{} | {}:*",
    "{}:ABCD",
    "!{}",
    "{} & !'§{own}.docs'",
    "{} & '§{other}.docs'",
    "{} | '§{other}.docs'",
    "{} <-> {}",
    "",
)


@pytest.fixture(scope="module")
def house(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    with open_house(server_url, "counters", folder) as made:
        own = GitSource.make(
            folder / "ward", {f"docs/{n}.md": " ".join(("tea", *SHARED)) for n in range(OWN)}
        )
        texts = {
            f"docs/{n}.md": " ".join(
                ("tea", *(w for w, held in (SHARED | FOREIGN).items() if n < held))
            )
            for n in range(OTHERS)
        }
        other = GitSource.make(folder / "annex", dict(texts))
        for tenant, slug, source in (("default", "ward", own), ("other", "annex", other)):
            with made.open(None, Project(slug=slug, path=source.path), tenant=tenant) as index:
                reindex(index, slug)
        with psycopg.connect(made.url, autocommit=True) as connection:
            connection.execute("vacuum analyze")
        yield made


def test_the_words_stand_where_they_should(house: House) -> None:
    for word, held in (SHARED | FOREIGN).items():
        found = house.ask(
            "select t.slug, count(*)::integer from lexical l join tenants t on t.id = l.tenant_id "
            "where l.lexemes @@ %s::tsquery group by 1 order by 1",
            word,
        )
        own = {"default": OWN} if word in SHARED else {}
        assert dict(found) == own | ({"other": held} if held else {})


@pytest.fixture(scope="module")
def session(house: House) -> Iterator[Session]:
    with house.session() as opened:
        # So few rows would be read without any index.
        opened.execute("set enable_seqscan = off")
        # As in a new session; after some calls a plan may be kept that is made for any word.
        opened.execute("set plan_cache_mode = force_custom_plan")
        yield opened


@pytest.mark.parametrize("words", [SHARED, FOREIGN])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("narrow", [False, True])
def test_counters_are_the_same_however_many_of_others_hold_a_word(
    house: House, session: Session, words: dict[str, int], condition: str, narrow: bool
) -> None:
    told = [work(house, session, word, condition, narrow=narrow) for word in words]
    assert told[0] == told[1] == told[2]
    if not condition:
        assert told[0]["reader_top"]["rows"] == 0, "no word is met by no passage"
    if condition == "{}":
        found = told[0]["reader_top"]
        assert found["rows"] == (OWN if words is SHARED else 0)
        given, _ = found["counters"].get("concordance.lexical_lexemes", (0, 0))
        assert given == found["rows"], "the index gives this tenant's rows alone"


def work(
    house: House, session: Session, word: str, condition: str, *, narrow: bool
) -> dict[str, Any]:
    """What each function read, as its session is told: by counters and by `explain`."""
    both = numbers(house, "default", "other")
    (own, other) = (numbers(house, tenant)["projects"][-1] for tenant in ("default", "other"))
    given = both | {"text": word, "condition": condition.format(word, word, own=own, other=other)}
    if narrow:
        given["projects"] = [own]
    # What takes no condition is asked with the first alone.
    asked = {n: c for n, c in CALLS.items() if condition == CONDITIONS[0] or "%(condition)s" in c}
    return {name: _read(session, call, given) for name, call in asked.items()}


def _read(session: Session, call: Any, given: dict[str, Any]) -> dict[str, Any]:
    session.execute(call, given)  # the catalogs are known from here on
    session.execute("begin")
    before = _counters(session)
    rows = len(session.execute(call, given).fetchall())
    after = _counters(session)
    session.execute("commit")
    asked = sql.SQL("explain (analyze, buffers, timing off, format json) ") + sql.SQL(call)
    row = session.execute(asked, given).fetchone()
    counters = {
        name: tuple(now - then for now, then in zip(after[name], before[name], strict=True))
        for name in after
    }
    return {
        "rows": rows,
        "counters": {name: told for name, told in counters.items() if any(told)},
        "explained": _kept(row[0][0]["Plan"] if row else {}),
    }


def _counters(session: Session) -> dict[str, tuple[int, ...]]:
    return {name: tuple(told) for name, *told in session.execute(COUNTED).fetchall()}


def _kept(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of every node of a plan."""
    nodes = [plan]
    found: list[dict[str, Any]] = []
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        found.append({key: value for key, value in node.items() if "Rows" in key})
    return found


def test_no_setting_has_the_text_index_answer_by_how_many_hold_a_word(house: House) -> None:
    """Where it may leave rows out, it does so for a word that many passages hold, whosever."""
    given = numbers(house, "default")
    with house.session() as session:
        for limit in (0, 1, 5, 20, 40):
            session.execute("select set_config('gin_fuzzy_search_limit', %s, false)", [str(limit)])
            for word in SHARED:
                asked = given | {"condition": word, "text": word}
                for name in ("reader_top", "reader_top, by ts_rank_cd", "reader_words"):
                    assert len(session.execute(CALLS[name], asked).fetchall()) == OWN


def test_a_reader_gets_its_own_passages_of_a_word_that_others_hold(house: House) -> None:
    for word in SHARED:
        hits = search(house.reader, word, top_k=50, fusion="lexical").hits
        assert [hit.project for hit in hits] == ["ward"] * OWN
    for word in FOREIGN:
        assert search(house.reader, word, fusion="lexical").hits == ()
