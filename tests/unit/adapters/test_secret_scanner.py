"""The scanner adds issuers' formats, at the right places, in any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest

from concordance.adapters.secret_scanner import SCANNER_VERSION, kingfisher
from concordance.text.scrubbing import Scrubber
from concordance.text.secret_rules import find_secrets
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
