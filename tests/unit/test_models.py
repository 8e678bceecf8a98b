"""What crosses the front door: a request takes any text that a person can type or cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from concordance.errors import SourceRefused, UnknownProject
from concordance.models import SearchRequest, stored_path

ANY_TEXT = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None))


@given(ANY_TEXT.filter(bool))
def test_half_a_character_is_replaced_and_all_else_stays(text: str) -> None:
    asked = SearchRequest(text=text)
    assert asked.text == "".join("?" if "\ud800" <= c <= "\udfff" else c for c in text)
    assert SearchRequest.model_validate_json(asked.model_dump_json()) == asked


@given(st.binary())
def test_a_path_is_written_as_a_repository_s_names_are(name: bytes) -> None:
    """An argument's bytes come as lone surrogates where they are not UTF-8."""
    assert stored_path(name.decode(errors="surrogateescape")) == name.decode(
        errors="backslashreplace"
    )


@given(ANY_TEXT)
def test_every_path_can_be_stored(path: str) -> None:
    assert len(stored_path(path).encode()) >= len(path)
    assert SearchRequest(text="a", path_prefix=path[:100]).path_prefix == stored_path(path[:100])


def test_a_path_with_half_a_character_is_escaped() -> None:
    assert stored_path("docs/\udcff\ud800.md") == "docs/\\xff\\ud800.md"


def test_an_error_can_be_written_whatever_it_names() -> None:
    error = UnknownProject("there is no project '\ud800'", hint="'\udcff' neither")
    assert str(error) == "there is no project '\\ud800'. '\\udcff' neither"
    assert error.args == ("there is no project '\\ud800'", "'\\udcff' neither")


def test_an_error_is_one_line_that_no_terminal_obeys() -> None:
    """It goes into the logs of runs, which `concordance serve` shows."""
    name = "docs/a\x1b[2J\x9d0;t\x07\u202e.md\n12:00 | INFO | all is well\r\n\u2028\x85b"
    error = SourceRefused(f"'{name}' is the first", hint=f"Raise it for {name}")
    shown = "docs/a\ufffd[2J\ufffd0;t\ufffd\ufffd.md 12:00 | INFO | all is well b"
    assert str(error) == f"'{shown}' is the first. Raise it for {shown}"
    assert SourceRefused("a\tb — “é” 中").message == "a\tb — “é” 中"
