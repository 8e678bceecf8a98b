"""One count of a word over all languages that are searched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from concordance.ranking.collection import Form, document_frequencies

PASSAGES = {"english": 1_000, "simple": 50}


def test_a_word_is_counted_in_every_form_that_it_has() -> None:
    held = {"english": {"connect": 40}, "simple": {"connecting": 3, "connect": 1}}
    forms = [
        Form("connecting", "english", "connect"),
        Form("connecting", "simple", "connecting"),
    ]
    found = document_frequencies(PASSAGES, held, forms)
    assert found["english"]["connect"] == 40 + 3
    assert found["simple"]["connecting"] == 3 + 40


def test_of_several_words_with_one_stem_the_most_frequent_counts() -> None:
    held = {"english": {"connect": 40}, "simple": {"connecting": 3, "connected": 7}}
    forms = [
        Form(word, language, "connect" if language == "english" else word)
        for word in ("connecting", "connected")
        for language in ("english", "simple")
    ]
    assert document_frequencies(PASSAGES, held, forms)["english"]["connect"] == 40 + 7


def test_a_stop_word_is_in_every_passage_of_its_language() -> None:
    held = {"english": {"soup": 2}, "simple": {"the": 20, "soup": 1}}
    forms = [
        Form("the", "english", None),
        Form("the", "simple", "the"),
        Form("soup", "english", "soup"),
        Form("soup", "simple", "soup"),
    ]
    found = document_frequencies(PASSAGES, held, forms)
    assert found["simple"] == {"the": 20 + 1_000, "soup": 3}
    assert found["english"] == {"soup": 3}


def test_what_has_no_form_of_its_own_is_the_same_where_it_is_written_alike() -> None:
    held = {"english": {"client/server": 4}, "simple": {"client/server": 1}, "german": {}}
    found = document_frequencies(PASSAGES | {"german": 9}, held, [])
    assert found == {"english": {"client/server": 5}, "simple": {"client/server": 5}, "german": {}}


def test_one_language_counts_for_itself() -> None:
    assert document_frequencies({"english": 9}, {"english": {"tea": 4}}, []) == {
        "english": {"tea": 4}
    }


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
    forms = [
        Form(word, language, data.draw(st.sampled_from([None, "x", "y", "z"])))
        for word in data.draw(st.lists(st.sampled_from("uvw"), unique=True))
        for language in languages
    ]
    found = document_frequencies(passages, held, forms)
    assert found.keys() == held.keys()
    for language, own in held.items():
        assert found[language].keys() == own.keys()
        for lexeme, count in own.items():
            assert count <= found[language][lexeme] <= sum(passages.values())
