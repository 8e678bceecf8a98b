"""The lexical leg on questions as people ask them."""

from __future__ import annotations

from pathlib import Path

import pytest

from concordance.index import Index
from tests.conftest import IndexMaker
from tests.postgres.library import make_library, places, search


@pytest.fixture
def index(make_index: IndexMaker, tmp_path: Path) -> Index:
    return make_library(make_index, tmp_path, embed=False)


def test_one_missing_word_does_not_empty_the_leg_fts_1(index: Index) -> None:
    answer = search(index, "how do we retry a clone on flaky wifi", fusion="lexical")
    assert places(answer)[0] == "shop:docs/guide.md"
    assert "exponential backoff" in answer.hits[0].content


def test_questions_without_a_word_are_no_error_fts_2(index: Index) -> None:
    for question in ("what is this about", "a", "🚀", "???"):
        answer = search(index, question, fusion="lexical", projects=["shop"], scopes=["docs"])
        assert answer.hits == ()
        assert answer.empty_reason
        assert not answer.degraded
