"""Questions and filters of any kind, asked of a small index."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from concordance.errors import ConcordanceError
from concordance.index import Index
from concordance.models import Fusion, SearchRequest
from tests.fuzz.profile import FUZZED
from tests.postgres.library import make_library, shared_index

WORDS = st.sampled_from(
    [
        *(
            "tea",
            "kettle",
            "Wasser",
            "C++",
            "docs/guide.md",
            "--force",
            "'",
            '"',
            "\\",
            ":*",
            "!",
            "|",
        ),
        *(
            "&",
            "<->",
            "(",
            ")",
            "%s",
            "{}",
            "$1",
            "\0",
            "\ud800",
            "手順",
            "é",
            "🚀",
            "§1.docs",
            "x" * 3_000,
        ),
    ]
)
TEXTS = st.one_of(st.lists(WORDS, min_size=1, max_size=9).map(" ".join), st.text(max_size=60))
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "projects": st.lists(st.one_of(st.sampled_from(["shop", "laden"]), TEXTS), max_size=3),
        "scopes": st.lists(st.sampled_from(["docs", "adr", "session", "odd"]), max_size=3),
        "path_prefix": TEXTS,
        "since": st.datetimes().map(lambda moment: moment.isoformat()),
        "top_k": st.integers(-1, 120),
        "threshold": st.one_of(st.floats(), st.floats(0, 1)),
        "vector_weight": st.one_of(st.floats(), st.floats(0, 1)),
    },
)


@pytest.fixture(scope="module")
def library(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with shared_index(server_url, "fuzzed", tmp_path_factory.mktemp("fuzzed")) as make:
        yield make_library(make, tmp_path_factory.mktemp("sources"))


@FUZZED
@given(text=TEXTS, filters=FILTERS, fusion=st.sampled_from(list(Fusion)))
def test_a_question_is_answered_or_refused(
    library: Index, text: str, filters: dict[str, Any], fusion: Fusion
) -> None:
    try:
        request = SearchRequest.model_validate({"text": text, "fusion": fusion} | filters)
        answer = library.search(request)
    except (ConcordanceError, ValidationError):
        return
    assert len(answer.hits) <= request.top_k
    assert answer.hits or answer.empty_reason
    for hit in answer.hits:
        assert math.isfinite(hit.score)
        assert 0 <= hit.confidence <= 1
        assert request.projects is None or hit.project in request.projects
        assert request.scopes is None or hit.scope in request.scopes
        assert hit.quotation.startswith("Quoted source")
