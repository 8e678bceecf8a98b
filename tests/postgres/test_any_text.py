"""Analysis takes any text that Postgres can store: one odd passage must not fail its batch."""

from __future__ import annotations

import random

import pytest

from concordance.adapters.postgres.database import Database

LANGUAGES = ("english", "german", "simple", "hindi")
# Where the odd ones live: accents by themselves, half widths, presentation forms, other planes.
RANGES = (
    (0x20, 0x7E),
    (0xA0, 0x24F),
    (0x300, 0x36F),
    (0x370, 0x1FFF),
    (0x2000, 0x2BFF),
    (0x2E80, 0x9FFF),
    (0xA000, 0xD7FF),
    (0xE000, 0xFFFD),
    (0x10000, 0x10FFFD),
)


def odd_text(dice: random.Random) -> str:
    def letter() -> str:
        low, high = dice.choice(RANGES)
        return chr(dice.randint(low, high))

    words = ["".join(letter() for _ in range(dice.randint(1, 6))) for _ in range(12)]
    return dice.choice([" ", ".", "/", "_", "-", ""]).join(words)


@pytest.mark.parametrize("seed", range(4))
def test_any_text_can_be_analysed_and_weighed(database: Database, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - the same texts in every run
    texts = [odd_text(dice) for _ in range(400)]
    with database.transaction() as connection:
        for language in LANGUAGES:
            row = connection.execute(
                "select count(bm25_weights(passage_lexemes(%s::regconfig, 1, 'docs', t, t,"
                " array[t], t), 10, 10)) from unnest(%s::text[]) as t",
                (language, texts),
            ).fetchone()
            assert row == (len(texts),)


@pytest.mark.parametrize(
    "text", ["\u0301", "a \u0301 b", "x_\u0301", "\u0301.\u0301", "a\u0301\u0301"]
)
def test_a_lone_accent_is_no_word(database: Database, text: str) -> None:
    with database.transaction() as connection:
        row = connection.execute(
            "select array_position(tsvector_to_array(text_lexemes('english', %s)), '') is null",
            (text,),
        ).fetchone()
    assert row == (True,)
