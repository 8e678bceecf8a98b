"""One count of a word over all languages that are searched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from concordance.ranking.collection import Form, document_frequencies

PASSAGES = {"english": 1_000, "simple": 50}


def frequencies(
    passages: dict[str, int], held: dict[str, dict[str, int]], *words: dict[str, str]
) -> dict[str, dict[str, int]]:
    """A question's words as each language has them; none where it is a stop word."""
    forms = [
        Form(language, lexeme, [place])
        for place, word in enumerate(words, start=1)
        for language, lexeme in word.items()
    ]
    unstemmed = [Form("simple", word["simple"], [n]) for n, word in enumerate(words, start=1)]
    return document_frequencies(passages, held, forms, unstemmed)


def test_a_word_is_counted_in_every_form_that_it_has() -> None:
    held = {"english": {"connect": 40}, "simple": {"connecting": 3, "connect": 1}}
    found = frequencies(PASSAGES, held, {"english": "connect", "simple": "connecting"})
    assert found["english"]["connect"] == 40 + 3
    assert found["simple"]["connecting"] == 3 + 40


def test_of_several_words_with_one_stem_the_most_frequent_counts() -> None:
    held = {"english": {"connect": 40}, "simple": {"connecting": 3, "connected": 7}}
    words = [{"english": "connect", "simple": word} for word in ("connecting", "connected")]
    assert frequencies(PASSAGES, held, *words)["english"]["connect"] == 40 + 7


def test_a_stop_word_is_in_every_passage_of_its_language() -> None:
    held = {"english": {"soup": 2}, "simple": {"the": 20, "soup": 1}}
    found = frequencies(PASSAGES, held, {"simple": "the"}, {"english": "soup", "simple": "soup"})
    assert found["simple"] == {"the": 20 + 1_000, "soup": 3}
    assert found["english"] == {"soup": 3}


def test_a_word_counts_by_any_of_its_places() -> None:
    """A lexeme has few places in a tsvector, however often its words stand there."""
    forms = [
        Form("english", "tea", [1, 5]),
        Form("simple", "tea", [1]),
        Form("simple", "teas", [5]),
    ]
    held = {"english": {"tea": 4}, "simple": {"tea": 1, "teas": 2}}
    found = document_frequencies(PASSAGES, held, forms, forms[1:])
    assert found == {"english": {"tea": 6}, "simple": {"tea": 5, "teas": 6}}


def test_what_has_no_form_of_its_own_is_the_same_where_it_is_written_alike() -> None:
    held = {"english": {"client/server": 4}, "simple": {"client/server": 1}, "german": {}}
    found = frequencies(PASSAGES | {"german": 9}, held)
    assert found == {"english": {"client/server": 5}, "simple": {"client/server": 5}, "german": {}}


def test_one_language_counts_for_itself() -> None:
    assert frequencies({"english": 9}, {"english": {"tea": 4}}) == {"english": {"tea": 4}}


@given(st.data())
def test_no_count_is_below_its_own_language_or_above_all_passages(data: st.DataObject) -> None:
    languages = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))
    passages = {language: data.draw(st.integers(1, 30)) for language in languages}
    held = {
        language: data.draw(
            st.dictionaries(st.sampled_from("xyz"), st.integers(0, passages[language]), min_size=1)
        )
        for language in languages
    }
    words = [
        {"simple": word}
        | {
            language: lexeme
            for language in languages
            if (lexeme := data.draw(st.sampled_from([None, "x", "y", "z"])))
        }
        for word in data.draw(st.lists(st.sampled_from("uvw"), unique=True))
    ]
    found = frequencies(passages, held, *words)
    assert found.keys() == held.keys()
    for language, own in held.items():
        assert found[language].keys() == own.keys()
        for lexeme, count in own.items():
            assert count <= found[language][lexeme] <= sum(passages.values())
