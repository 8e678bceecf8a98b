"""How many texts go into one request.

What belongs here: the cut of a row of texts into consecutive batches, and of one text into halves.
Sending them, and what to do when one is refused, is the adapters' work.
"""

from __future__ import annotations

from collections.abc import Sequence


def batch_ranges(lengths: Sequence[int], *, max_texts: int, max_characters: int) -> list[range]:
    """Cut a row of texts into consecutive batches that keep both limits.

    Args:
        lengths: The length of each text, in characters.
        max_texts: The most texts in one batch, at least 1.
        max_characters: The most characters in one batch; a longer text stands alone.

    Returns:
        Ranges of positions, in order, which together cover every position exactly once.

    Raises:
        ValueError: A limit is below 1.
    """
    if max_texts < 1 or max_characters < 1:
        raise ValueError("a batch must have room for a text of one character")
    ranges: list[range] = []
    start = characters = 0
    for position, length in enumerate(lengths):
        full = position - start >= max_texts or characters + length > max_characters
        if full and position > start:
            ranges.append(range(start, position))
            start, characters = position, 0
        characters += length
    if start < len(lengths):
        ranges.append(range(start, len(lengths)))
    return ranges


def halves(text: str) -> tuple[str, str]:
    """Cut a text at the white space nearest its middle, or in the middle where none is near."""
    middle = len(text) // 2
    near = (middle + side for step in range(len(text) // 6) for side in (step, -step))
    cut = next((place for place in near if text[place].isspace()), middle)
    return text[:cut], text[cut:]
