"""Examples of responses for the OpenAPI document, as a small index would give them.

What belongs here: data. A test holds each against the model that it is an example of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from concordance.models import Answer, FileOrigin, Fusion, Hit, LexicalRanking, Scope, SearchRequest

_COMMIT = "2d5496449cec0c2f2f9d3f5e2b7f6a1c8e4d9b70"
_MOMENT = "2026-03-02T02:31:07Z"
_FRESH = {
    "project": "beacon",
    "scope": "docs",
    "state": "complete",
    "reason": "3 documents, 12 chunks, all with a vector",
    "indexed_commit": _COMMIT,
    "last_success": _MOMENT,
    "chunks": 12,
    "chunks_with_vector": 12,
}
_HIT = Hit(
    rank=1,
    score=0.97,
    confidence=0.96,
    lexical_score=4.1,
    lexical_rank=1,
    vector_score=0.71,
    vector_rank=1,
    project="beacon",
    scope=Scope.DOCS,
    content="## Restore from a backup\n\nBackups are taken at 01:00 UTC and kept for thirty days.",
    origin=FileOrigin(
        path="docs/operations.md",
        title="Operations",
        heading_path=("Operations", "Restore from a backup"),
        start_line=13,
        end_line=17,
        commit=_COMMIT,
        link=f"https://git.example.org/team/beacon/blob/{_COMMIT}/docs/operations.md#L13-L17",
    ),
)


def answer() -> dict[str, Any]:
    """An answer with one hit."""
    return Answer.model_validate(
        {
            "request": SearchRequest(text="how is a backup restored?", projects=("beacon",)),
            "hits": [_HIT],
            "confidence": 0.96,
            "vector_available": True,
            "degraded": False,
            "degraded_reason": None,
            "empty_reason": None,
            "model": "local/all-minilm-l6-v2",
            "fusion": Fusion.CONVEX,
            "fusion_parameters": {"threshold": 0.1, "vector_weight": 0.7},
            "lexical_ranking": LexicalRanking.BM25,
            "candidates": 12,
            "cut_by_threshold": 11,
            "milliseconds": {"embedding": 6.1, "lexical": 1.2, "vector": 1.9, "total": 12.4},
            "as_of": "2026-03-02T09:00:00Z",
            "freshness": [_FRESH | {"age_seconds": 23_333.0}],
        }
    ).model_dump(mode="json")


def coverage() -> dict[str, Any]:
    """The coverage of one scope."""
    return {
        "as_of": "2026-03-02T09:00:00Z",
        "coverage": [
            _FRESH
            | {
                "found": 3,
                "indexed": 3,
                "empty": 0,
                "failed": 0,
                "skipped": 0,
                "chunks_refused": 0,
                "embedding_error": None,
                "secrets": {},
                "model": "local/all-minilm-l6-v2",
                "remote_commit": _COMMIT,
                "last_attempt": _MOMENT,
                "last_complete": _MOMENT,
                "turns": None,
                "turns_left_out": None,
                "last_event": None,
            }
        ],
    }


RESPONSES: Mapping[tuple[str, str], Callable[[], dict[str, Any]]] = {
    ("/v1/search", "post"): answer,
    ("/v1/coverage", "get"): coverage,
}
