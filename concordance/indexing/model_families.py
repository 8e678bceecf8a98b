"""What is known of an embedding model by its name: prefixes, and the languages it was trained on.

What belongs here: the tables, with the models' own cards as their source. A model that no table
names has no prefixes and is taken to know English alone, as most do.
"""

from __future__ import annotations

import re

_ASK_FOR_PASSAGES = "Represent this sentence for searching relevant passages: "

# Each family's pattern is tried on the bare model name; the first that matches decides.
_PREFIXES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"nomic-embed-text"), "search_document: ", "search_query: "),
    (re.compile(r"(?:.*-)?e5-(?:small|base|large)(?!.*instruct)"), "passage: ", "query: "),
    (re.compile(r"mxbai-embed-large"), "", _ASK_FOR_PASSAGES),
    (re.compile(r"snowflake-arctic-embed(?:2|.*v2)"), "", "query: "),
    (re.compile(r"snowflake-arctic-embed"), "", _ASK_FOR_PASSAGES),
    (re.compile(r"bge-[a-z]+-en"), "", _ASK_FOR_PASSAGES),
)

# Trained on many languages; every other model on English.
_MULTILINGUAL = re.compile(
    r".*multilingual|bge-m3|gte-qwen|qwen3-embedding|embeddinggemma|labse|"
    r"nomic-embed-text-v2|snowflake-arctic-embed(?:2|.*v2)|jina-embeddings-v[34]|"
    r"granite-embedding-(?:107m|278m)|text-embedding-(?:3|ada)"
)
# The same models under tags, where the name alone is not enough.
_MULTILINGUAL_TAGS = {"granite-embedding": ("278m", "107m")}

ENGLISH = frozenset({"english"})


def known_prefixes(model: str) -> tuple[str, str]:
    """Give the prefixes that a model was trained with, by the name of its family.

    The sources are the models' own cards:

    | family | passage | query | card |
    |---|---|---|---|
    | nomic-embed-text | `search_document: ` | `search_query: ` | nomic-ai/nomic-embed-text-v1.5 |
    | e5, multilingual-e5 | `passage: ` | `query: ` | intfloat/multilingual-e5-large |
    | mxbai-embed-large | none | `Represent this sentence …` | mixedbread-ai/mxbai-embed-large-v1 |
    | snowflake-arctic-embed | none | the same | Snowflake/snowflake-arctic-embed-l |
    | snowflake-arctic-embed2 | none | `query: ` | Snowflake/snowflake-arctic-embed-l-v2.0 |
    | bge-*-en | none | `Represent this sentence …` | BAAI/bge-large-en-v1.5 |

    Args:
        model: A name with or without namespace and tag; case does not matter.

    Returns:
        The prefix of a passage and that of a query, both empty for any other family.
    """
    family = model.rsplit("/", 1)[-1].split(":", 1)[0].lower()
    for pattern, document, query in _PREFIXES:
        if pattern.match(family):
            return document, query
    return "", ""


def known_languages(model: str) -> frozenset[str] | None:
    """The languages that a model was trained on, as text-search configurations; None: many.

    The sources are the models' own cards, as for the prefixes: paraphrase-multilingual and
    multilingual-e5, bge-m3, Qwen3-Embedding, EmbeddingGemma, LaBSE, nomic-embed-text-v2-moe,
    snowflake-arctic-embed2, jina-embeddings-v3, granite-embedding (107m, 278m), Cohere's
    embed-multilingual and OpenAI's text-embedding-3 name many languages.

    Args:
        model: A name with or without namespace and tag; case does not matter.
    """
    name, _, tag = model.rsplit("/", 1)[-1].lower().partition(":")
    tagged = tag.startswith(_MULTILINGUAL_TAGS.get(name, ("\0",)))
    return None if tagged or _MULTILINGUAL.match(name) else ENGLISH
