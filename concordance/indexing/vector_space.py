"""What makes two vectors comparable, and what a usable vector is.

What belongs here: the identity of a vector space, the text that is embedded for a passage, and the
arithmetic that checks vectors. What is known of a model by its name is in `model_families`; asking
a provider for vectors is the adapters' work.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from concordance.errors import BadEmbedding
from concordance.indexing.counting import agreeing, counted

CHUNK_TEXT_VERSION = 1
"""Raised whenever `passage_text` gives another text for the same passage."""

SMALLEST_NORM = 1e-12

Matrix = npt.NDArray[np.float32]
"""One row for each vector, or a single row."""


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """Everything that two vectors must have in common before their distance means anything."""

    provider: str
    model: str
    digest: str
    dimensions: int
    document_prefix: str
    query_prefix: str
    chunk_text_version: int

    @property
    def fingerprint(self) -> str:
        """Identify the space: sha256 over every field, as 64 hexadecimal digits."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def named(self, model: str) -> VectorSpace:
        """The same model under another name, which people may give it; its digest says which."""
        return replace(self, model=model)


def passage_text(
    title: str | None, heading_path: Sequence[str], content: str, preceding: str | None = None
) -> str:
    """Compose what is embedded for a passage, before the model's prefix.

    Args:
        title: The document's title, or None.
        heading_path: The headings above the passage, outermost first.
        content: The passage itself.
        preceding: What was said before it, or None.

    Returns:
        Title, headings, content, and last what came before it, as models heed the beginning most;
        each named once: a title that is also the first heading is
        left out, and so is the last heading where the content begins with its line.
    """
    headings = [heading.strip() for heading in heading_path if heading.strip()]
    own_title = [title.strip()] if title and title.strip() else []
    if own_title and headings and _same_words(own_title[0], headings[0]):
        own_title = []
    if headings and _opens_with(content, headings[-1]):
        headings.pop()
    elif not headings and own_title and _opens_with(content, own_title[0]):
        own_title = []
    above = [*own_title, " > ".join(headings)] if headings else own_title
    if preceding is not None:
        content = f"{content}\n\n{preceding}"
    return "\n".join([*above, "", content]) if above else content


def encodable(text: str) -> str:
    """Replace lone surrogates, which neither JSON nor a tokenizer takes, with question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def content_hash(
    title: str | None, heading_path: Sequence[str], content: str, preceding: str | None = None
) -> bytes:
    """Identify what is embedded for a passage, whatever the model.

    Args:
        title: The document's title, or None, which differs from an empty title.
        heading_path: The headings above the passage, outermost first.
        content: The passage itself.
        preceding: What was said before it, or None, which differs from an empty text.

    Returns:
        A sha256 digest of 32 bytes.
    """
    digest = hashlib.sha256(b"\0" if title is None else b"\1")
    digest.update(len(heading_path).to_bytes(8, "big"))
    more = () if preceding is None else (preceding,)
    for part in (title or "", *heading_path, content, *more):
        # A lone surrogate is no valid UTF-8, yet two different ones are two different texts.
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.digest()


def check_vectors(
    vectors: Sequence[Sequence[float] | Matrix] | Matrix,
    *,
    expected: int,
    dimensions: int | None,
) -> Matrix:
    """Take a provider's answer for vectors only if every one of them can be compared.

    Args:
        vectors: One row of numbers for each text.
        expected: How many texts were sent.
        dimensions: The width that every row must have; None takes that of the first.

    Returns:
        The same numbers, of shape (expected, width), not yet of unit length.

    Raises:
        BadEmbedding: Wrong count or width, a number that is not finite, or an all-zero row.
    """
    if len(vectors) != expected:
        raise BadEmbedding(
            f"{counted(expected, 'text')} {agreeing(expected, 'was', 'were')} sent and "
            f"{counted(len(vectors), 'vector')} came back"
        )
    if expected == 0:
        return np.empty((0, dimensions or 0), dtype=np.float32)
    widths = {len(row) for row in vectors}
    wanted = dimensions if dimensions is not None else len(vectors[0])
    if widths != {wanted} or wanted == 0:
        raise BadEmbedding(f"vectors of width {sorted(widths)} came back, not {wanted}")
    # A number beyond float32 turns into infinity here and is refused as such below.
    with np.errstate(over="ignore"):
        matrix = np.asarray(vectors, dtype=np.float64).astype(np.float32)
    if not np.isfinite(matrix).all():
        raise BadEmbedding("a vector holds a number that is not finite")
    if (_norms(matrix) < SMALLEST_NORM).any():
        raise BadEmbedding("a vector is all zero")
    return matrix


def unit_rows(matrix: Matrix) -> Matrix:
    """Scale each row of a checked matrix to unit length; shape (n, width) in and out."""
    scaled: Matrix = (matrix / _norms(matrix)[:, np.newaxis]).astype(np.float32)
    return scaled


def pooled(rows: Matrix, weights: Sequence[float]) -> Matrix:
    """Make one vector of unit length from those of a text's parts.

    Args:
        rows: The parts' vectors, of shape (parts, width).
        weights: How much each part counts, such as its length.

    Returns:
        The weighted mean, scaled, of shape (width,).

    Raises:
        BadEmbedding: The parts cancel each other out.
    """
    mean = np.average(rows, axis=0, weights=weights).astype(np.float32)
    checked = check_vectors(mean[np.newaxis], expected=1, dimensions=rows.shape[1])
    vector: Matrix = unit_rows(checked)[0]
    return vector


def _norms(matrix: Matrix) -> npt.NDArray[np.float64]:
    # In float64, since the square of a small float32 is zero and that of a large one infinite.
    norms: npt.NDArray[np.float64] = np.linalg.norm(matrix.astype(np.float64), axis=1)
    return norms


def _same_words(one: str, other: str) -> bool:
    return _words(one) == _words(other)


def _words(text: str) -> list[str]:
    # Markup around and inside a heading is punctuation; a heading of nothing else stays itself.
    return re.findall(r"[^\W_]+", text.casefold()) or text.split()


def _opens_with(content: str, heading: str) -> bool:
    lines = (line.strip() for line in content.splitlines())
    # A line without letters above a heading is an over-line, as reStructuredText draws them.
    first = next((line for line in lines if re.search(r"[^\W_]", line)), "")
    return _same_words(first, heading)
