"""The scanner adds issuers' formats, at the right places, in any number of threads."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordance.adapters.secret_scanner import (
    OVERLAP,
    PIECE,
    SCANNER_VERSION,
    found_in_pieces,
    kingfisher,
)
from concordance.text.scrubbing import Scrubber
from concordance.text.secret_rules import Found, find_secrets
from tests.planted import Keys


@pytest.fixture(scope="module")
def scrubber(tmp_path_factory: pytest.TempPathFactory) -> Scrubber:
    return Scrubber((kingfisher(tmp_path_factory.mktemp("rules")),))


def test_the_rules_version_speaks_of_the_installed_release() -> None:
    assert version("kingfisher-secret-scanner") == SCANNER_VERSION


def test_a_format_that_our_rules_lack_is_found(scrubber: Scrubber) -> None:
    key = "pul" + "-" + Keys().of(40, "0123456789abcdef")
    text = f"Grüße, 漢字 😀: {key} — danach"
    assert list(find_secrets(text)) == []
    assert scrubber.text(text) == "Grüße, 漢字 😀: [secret: pulumi api token] — danach"


def test_our_rules_name_what_both_find(scrubber: Scrubber) -> None:
    key = "gh" + "p_" + Keys().of(36)
    assert scrubber.scrub(f"with {key}").counts == {"github token": 1}


def test_two_keys_far_apart_do_not_take_what_is_between(scrubber: Scrubber) -> None:
    edge = "-" * 5
    text = f"{edge}BEGIN PRIVATE KEY{edge}\n\n{'Prose. ' * 40}\n\n{edge}END PRIVATE KEY{edge}\n"
    assert scrubber.text(text) == text


def test_marks_and_lone_surrogates_are_left_alone(scrubber: Scrubber) -> None:
    for text in ("[secret: github token] and [secret: jwt]", "half \udc00 pair", ""):
        assert scrubber.text(text) == text


def test_threads_share_it(scrubber: Scrubber) -> None:
    key = "pul" + "-" + Keys().of(40, "0123456789abcdef")
    with ThreadPoolExecutor(8) as pool:
        done = set(pool.map(scrubber.text, [f"set {key}"] * 200))
    assert done == {"set [secret: pulumi api token]"}


def test_a_folder_that_cannot_be_written_costs_time_alone() -> None:
    assert kingfisher(Path("/proc/nowhere"))("nothing in it") == []


@pytest.mark.parametrize(
    "around", ["({})", "{},", "{}.", "| {}|", "<{}>", "[{}]", "**{}**", "{}\\n"]
)
def test_a_key_is_found_whatever_stands_after_it(scrubber: Scrubber, around: str) -> None:
    key = "pul" + "-" + Keys().of(40, "0123456789abcdef")
    mark = "[secret: pulumi api token]"
    assert scrubber.text(f"é {around.format(key)} then") == f"é {around.format(mark)} then"


def test_a_key_is_found_in_any_piece_of_a_long_text(scrubber: Scrubber) -> None:
    keys = ["pul" + "-" + Keys(n).of(40, "0123456789abcdef") for n in range(40)]
    for filler in ("漢 word of a line\n", "漢 word of one line "):
        text = "".join(f"{filler * 600}set {key} {filler}" for key in keys)
        assert len(text) > 5 * PIECE
        assert scrubber.scrub(text).counts == {"pulumi api token": len(keys)}


def test_a_block_longer_than_a_piece_is_taken_whole(scrubber: Scrubber) -> None:
    edge = "-" * 5
    body = "\n".join(Keys(n).of(64) for n in range(3_000))
    text = f"a\n{edge}BEGIN PRIVATE KEY{edge}\n{body}\n{edge}END PRIVATE KEY{edge}\nb"
    assert len(text) > 2 * PIECE
    done = scrubber.scrub(text)
    assert done.counts == {"private key": 1}
    assert [line for line in body.split("\n") if line in done.text] == []


@given(
    st.lists(
        st.tuples(st.integers(0, 2 * PIECE), st.sampled_from([1, 40, 900, OVERLAP]), st.booleans()),
        max_size=12,
    ),
    st.sampled_from(["", " ", "\n"]),
)
@settings(max_examples=60, deadline=None)
def test_pieces_are_bounded_and_find_what_the_whole_finds(
    runs: list[tuple[int, int, bool]], gap: str
) -> None:
    """Runs of a letter stand for secrets: half of one, at a piece's edge, would be a secret too."""
    text = "".join("." * before + gap + "k" * (long + many) for before, long, many in runs) + "."
    runs_of_k = re.compile(f"k{{1,{OVERLAP}}}")
    asked: list[int] = []

    def find(piece: str) -> list[Found]:
        asked.append(len(piece))
        return [Found(*match.span(), "k") for match in runs_of_k.finditer(piece)]

    whole = {at for match in runs_of_k.finditer(text) for at in range(*match.span())}
    found = [(span.start, span.end) for span in found_in_pieces(text, find)]
    assert {at for start, end in found for at in range(start, end)} == whole
    short = {m.span() for m in re.finditer("k+", text) if m.end() - m.start() <= OVERLAP}
    inside = {(s, e) for s, e in found if any(a <= s and e <= b for a, b in short)}
    assert inside == short
    assert max(asked) <= PIECE + OVERLAP
    assert sum(asked) <= len(text) + len(asked) * OVERLAP
    assert len(asked) <= len(text) // (PIECE - OVERLAP) + 1
