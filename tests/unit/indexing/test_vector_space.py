"""What makes vectors comparable, and what a usable vector is."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.errors import BadEmbedding
from concordance.indexing.vector_space import (
    VectorSpace,
    check_vectors,
    content_hash,
    encodable,
    passage_text,
    pooled,
    unit_rows,
)

SPACE = VectorSpace("ollama", "nomic-embed-text:latest", "ab12", 768, "d: ", "q: ", 1)


def test_equal_spaces_have_one_fingerprint() -> None:
    assert SPACE.fingerprint == replace(SPACE).fingerprint
    assert len(bytes.fromhex(SPACE.fingerprint)) == 32


@pytest.mark.parametrize("name", [field.name for field in fields(VectorSpace)])
def test_every_field_is_part_of_the_fingerprint(name: str) -> None:
    value = getattr(SPACE, name)
    change: dict[str, Any] = {name: value + 1 if isinstance(value, int) else value + "x"}
    other = replace(SPACE, **change)
    assert other.fingerprint != SPACE.fingerprint


def test_what_moves_from_one_field_to_the_next_is_noticed() -> None:
    one = replace(SPACE, document_prefix="ab", query_prefix="")
    other = replace(SPACE, document_prefix="a", query_prefix="b")
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("title", "path", "content", "expected"),
    [
        (None, [], "Text.", "Text."),
        ("Guide", [], "Text.", "Guide\n\nText."),
        ("", ["  "], "Text.", "Text."),
        ("Guide", ["Set-up", "Linux"], "Text.", "Guide\nSet-up > Linux\n\nText."),
        (None, ["Set-up"], "Text.", "Set-up\n\nText."),
        ("Guide", ["Guide", "Linux"], "Text.", "Guide > Linux\n\nText."),
        ("Guide", ["The `guide`"], "Text.", "Guide\nThe `guide`\n\nText."),
        ("Guide", ["Guide"], "# Guide\n\nText.", "# Guide\n\nText."),
        ("Guide", [], "# Guide\n\nText.", "# Guide\n\nText."),
        ("Guide", ["Linux"], "## Linux ##\nText.", "Guide\n\n## Linux ##\nText."),
        ("G", ["Set-up", "Linux"], "Linux\n=====\nText.", "G\nSet-up\n\nLinux\n=====\nText."),
        (None, ["Linux"], "=====\nLinux\n=====\nText.", "=====\nLinux\n=====\nText."),
        (None, ["Use of foo()"], "\n### Use of `foo()`\nText.", "\n### Use of `foo()`\nText."),
        (None, ["Linux"], "Linux is a kernel.", "Linux\n\nLinux is a kernel."),
        (None, ["導入"], "## 導入\n本文。", "## 導入\n本文。"),
        (None, ["???"], "Text.", "???\n\nText."),
    ],
)
def test_what_is_embedded_names_everything_once(
    title: str | None, path: list[str], content: str, expected: str
) -> None:
    assert passage_text(title, path, content) == expected


@given(st.none() | st.text(), st.lists(st.text(), max_size=4), st.text())
def test_the_content_is_always_there_unchanged(
    title: str | None, path: list[str], content: str
) -> None:
    assert passage_text(title, path, content).endswith(content)


def test_the_hash_can_tell_where_each_part_ends() -> None:
    seen = {
        content_hash(None, [], "ab"),
        content_hash("", [], "ab"),
        content_hash("a", [], "b"),
        content_hash(None, ["a"], "b"),
        content_hash(None, ["a", "b"], ""),
        content_hash(None, ["ab"], ""),
        content_hash(None, ["", "ab"], ""),
        content_hash(None, [], "ab\ud800"),
        content_hash(None, [], "ab\ud801"),
    }
    assert len(seen) == 9
    assert content_hash("t", ("h",), "c") == content_hash("t", ["h"], "c")
    assert len(content_hash("t", ["h"], "c")) == 32


def test_good_vectors_come_back_as_float32() -> None:
    matrix = check_vectors([[3, 4], [0.5, 0]], expected=2, dimensions=2)
    assert matrix.dtype == np.float32
    assert matrix.shape == (2, 2)
    assert unit_rows(matrix).tolist() == [[np.float32(0.6), np.float32(0.8)], [1.0, 0.0]]


def test_no_texts_give_no_vectors() -> None:
    assert check_vectors([], expected=0, dimensions=7).shape == (0, 7)


@pytest.mark.parametrize(
    ("vectors", "expected", "dimensions"),
    [
        ([], 1, 2),
        ([[1.0, 0.0]], 2, 2),
        ([[1.0, 0.0], [1.0, 0.0]], 1, 2),
        ([[1.0, 0.0]], 1, 3),
        ([[1.0, 0.0], [1.0]], 2, None),
        ([[]], 1, None),
        ([[math.nan, 1.0]], 1, 2),
        ([[math.inf, 1.0]], 1, 2),
        ([[1e39, 1.0]], 1, 2),
        ([[1.0, 0.0], [0.0, 0.0]], 2, 2),
        ([[1e-13, 0.0]], 1, 2),
    ],
)
def test_unusable_vectors_are_refused(
    vectors: list[list[float]], expected: int, dimensions: int | None
) -> None:
    with pytest.raises(BadEmbedding):
        check_vectors(vectors, expected=expected, dimensions=dimensions)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_whatever_is_accepted_can_be_scaled(values: list[float]) -> None:
    try:
        matrix = check_vectors([values], expected=1, dimensions=3)
    except BadEmbedding:
        assert math.hypot(*values) < 1.01e-12
        return
    assert np.linalg.norm(unit_rows(matrix)[0]) == pytest.approx(1.0, abs=1e-6)


def test_parts_are_pooled_by_their_weight() -> None:
    rows = np.asarray([[1, 0], [0, 1]], dtype=np.float32)
    assert pooled(rows, [3, 4]).tolist() == pytest.approx([0.6, 0.8])
    with pytest.raises(BadEmbedding):
        pooled(np.asarray([[1, 0], [-1, 0]], dtype=np.float32), [1, 1])


def test_lone_surrogates_are_replaced_and_nothing_else() -> None:
    assert encodable("a\ud800b 𝄞 é") == "a?b 𝄞 é"
