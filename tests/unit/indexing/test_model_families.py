"""What is known of a model by its name, however it is spelled."""

from __future__ import annotations

import pytest

from concordance.indexing.model_families import ENGLISH, known_languages, known_prefixes

ASK = "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("nomic-embed-text", ("search_document: ", "search_query: ")),
        ("nomic-embed-text:v1.5", ("search_document: ", "search_query: ")),
        ("nomic-embed-text-v2-moe:latest", ("search_document: ", "search_query: ")),
        ("hf.co/nomic-ai/Nomic-Embed-Text-v1.5-GGUF:Q8_0", ("search_document: ", "search_query: ")),
        ("e5-base", ("passage: ", "query: ")),
        ("jeffh/intfloat-multilingual-e5-large:f16", ("passage: ", "query: ")),
        ("multilingual-e5-large-instruct", ("", "")),
        ("mxbai-embed-large:335m", ("", ASK)),
        ("snowflake-arctic-embed:110m", ("", ASK)),
        ("snowflake-arctic-embed2", ("", "query: ")),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", ("", "query: ")),
        ("bge-small-en-v1.5", ("", ASK)),
        ("bge-m3", ("", "")),
        ("all-minilm", ("", "")),
        ("somebody/all-minilm-l6-v2:latest", ("", "")),
    ],
)
def test_prefixes_follow_the_family(model: str, expected: tuple[str, str]) -> None:
    assert known_prefixes(model) == expected


@pytest.mark.parametrize(
    "model",
    [
        "all-minilm-l6-v2",
        "all-minilm:latest",
        "nomic-embed-text",
        "nomic-embed-text:v1.5",
        "mxbai-embed-large",
        "bge-small-en-v1.5",
        "snowflake-arctic-embed:110m",
        "e5-base-v2",
        "granite-embedding:30m",
        "somebody/of-no-known-family",
    ],
)
def test_most_models_know_english(model: str) -> None:
    assert known_languages(model) == ENGLISH


@pytest.mark.parametrize(
    "model",
    [
        "paraphrase-multilingual:latest",
        "jeffh/intfloat-multilingual-e5-large:f16",
        "bge-m3",
        "Qwen3-Embedding:0.6b",
        "embeddinggemma:300m",
        "nomic-embed-text-v2-moe",
        "snowflake-arctic-embed2",
        "Snowflake/snowflake-arctic-embed-l-v2.0",
        "granite-embedding:278m",
        "text-embedding-3-small",
        "embed-multilingual-v3.0",
    ],
)
def test_some_know_many(model: str) -> None:
    assert known_languages(model) is None
