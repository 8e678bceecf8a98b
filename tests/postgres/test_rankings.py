"""The other rankings of the words, against plain SQL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from concordance.adapters.postgres import lexical
from concordance.adapters.postgres import search as legs
from concordance.models import LexicalRanking, Scope
from concordance.ranking.candidates import Scored
from tests.postgres.corpus import Library, judged
from tests.postgres.rows import Shelf

# --- other rankings ---------------------------------------------------------------------------


def _ranked(shelf: Shelf, ranking: LexicalRanking, text: str, *, pool: int = 100) -> list[Scored]:
    filters = legs.Filters((shelf.project().id,), ("docs",), None, None)
    with shelf.database.transaction() as connection:
        questions = lexical.read_questions(connection, text, filters.projects)
        parameters = filters.parameters() | {"pool": pool}
        return lexical.find(connection, questions, parameters, (), ranking=ranking)


@pytest.fixture
def ranked(shelf: Shelf) -> Shelf:
    library = Library(shelf, 3)
    for _ in range(10):
        batch = [
            replace(library.made(name), language="simple", scope=Scope.DOCS)
            for name in library.dice.sample(library.names()[:-1], k=5)
        ]
        shelf.write(*batch)
    return shelf


@pytest.mark.parametrize("pool", [3, 100])
def test_ts_rank_cd_is_what_plain_sql_gives(ranked: Shelf, pool: int) -> None:
    plain = ranked.ask(
        "select chunk_id, ts_rank_cd(lexemes, q)::float8 as score from concordance.lexical, "
        "to_tsquery('simple', 'tea | kettle | queue') as q where lexemes @@ q "
        "order by 2 desc, 1 limit %(pool)s",
        {"pool": pool},
    )
    found = _ranked(ranked, LexicalRanking.TS_RANK_CD, "tea kettle queue", pool=pool)
    assert plain
    assert [(s.chunk_id, s.score) for s in found] == [(r["chunk_id"], r["score"]) for r in plain]


def test_all_words_is_what_plain_sql_gives(ranked: Shelf) -> None:
    plain = ranked.ask(
        "select chunk_id, ts_rank_cd(lexemes, q)::float8 as score from concordance.lexical, "
        "plainto_tsquery('simple', 'tea kettle') as q where lexemes @@ q order by 2 desc, 1"
    )
    found = _ranked(ranked, LexicalRanking.ALL_WORDS, "tea kettle")
    assert plain
    assert [(s.chunk_id, s.score) for s in found] == [(r["chunk_id"], r["score"]) for r in plain]
    assert _ranked(ranked, LexicalRanking.ALL_WORDS, "tea zebra") == []
    assert _ranked(ranked, LexicalRanking.ALL_WORDS, "???") == []


def test_a_ranking_scores_given_passages_by_itself(ranked: Shelf) -> None:
    ids = list(ranked.ids().values())
    for ranking in LexicalRanking:
        for text in ("tea kettle", "tea zebra", "zebra", "???"):
            with ranked.database.transaction() as connection:
                questions = lexical.read_questions(connection, text, [ranked.project().id])
                scored = judged(connection, questions, ids, ranking)
            found = {s.chunk_id: s.score for s in _ranked(ranked, ranking, text)}
            with_words = {
                k.chunk_id: k.lexical_score for k in scored if k.lexical_score is not None
            }
            assert with_words == found, ranking
