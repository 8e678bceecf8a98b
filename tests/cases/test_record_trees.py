"""The decision records of public repositories, against a reading of each file by hand."""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path

import pytest

from concordance.deciding import read_form, records_among
from concordance.indexing.scopes import place, read_adr_dir
from concordance.indexing.succession import Entry, trace
from concordance.models import AdrStatus, Scope
from concordance.settings import ScopeRules
from concordance.text.decoding import SourceText, decode
from concordance.text.formats import parse
from concordance.text.records import Record, read_record

TREES = Path(__file__).parents[3] / "shared" / "corpora"
# Of each tree: how many records, and those whose status is not the usual one of that tree.
BY_HAND: dict[str, tuple[int, str, dict[str, str]]] = {
    "adr-tools": (9, "accepted", {}),
    "ha-architecture": (22, "accepted", {"superseded": "0002", "deprecated": "0014 0016"}),
    "edx-enterprise": (
        17,
        "accepted",
        {"proposed": "0002 0006-transmit 0007 0008 0009 0015"},
    ),
    "jabref": (70, "unknown", {"accepted": "0042 0047 0049 0057 0061", "superseded": "0045"}),
    "semantic-kernel": (
        77,
        "accepted",
        {
            "superseded": "0006 0010 0015",
            "unknown": "0018 0024 0032 0049",
            "proposed": "0021 0022 0023-kernel 0026 0030 0034 0037 0046-java 0046-kernel 0048 0050 "
            "0051 0053 0057 0058 0059 0062 0063 0065 0066 0068 0070 0071",
        },
    ),
    "free-programming-books": (0, "unknown", {}),
    "rclone": (0, "unknown", {}),
    "vertx-zero": (0, "unknown", {}),
}
REPLACED = {
    "ha-architecture": {"0002": "0020"},
    "jabref": {"0045": "0057"},
    "semantic-kernel": {"0006": "0062", "0010": "0042", "0015": "0038"},
}

pytestmark = pytest.mark.skipif(not TREES.exists(), reason="the trees are not beside this checkout")


def records_of(tree: str) -> dict[str, tuple[str | None, Record]]:
    """Title and record of each file that is a decision record, by its path."""
    found: dict[str, tuple[str | None, Record]] = {}
    with tarfile.open(TREES / f"{tree}.tar.gz") as archive:
        files = {
            member.name.removeprefix("./"): stream.read()
            for member in archive
            if member.isfile() and (stream := archive.extractfile(member)) is not None
        }
    adr_dir = read_adr_dir(files[".adr-dir"]) if ".adr-dir" in files else None
    among = {
        name: data
        for name, data in files.items()
        if place(name, ScopeRules(), adr_dir).scope is Scope.ADR
    }
    for name in records_among({name: read_form(name, data) for name, data in among.items()}):
        source = decode(among[name])
        assert isinstance(source, SourceText)
        document = parse(name, source.text)
        found[name] = (document.title, read_record(source.text, document))
    return found


def statuses(tree: str, names: list[str]) -> dict[str, AdrStatus]:
    """The status of each record as read by hand."""
    _, usual, others = BY_HAND[tree]
    wanted = dict.fromkeys(names, AdrStatus(usual))
    for status, starts in others.items():
        for start in starts.split():
            hits = [name for name in names if name.rsplit("/", 1)[-1].startswith(start)]
            assert hits, (tree, start)
            wanted |= dict.fromkeys(hits, AdrStatus(status))
    return wanted


@pytest.mark.parametrize("tree", BY_HAND)
def test_number_and_status_of_every_record(tree: str) -> None:
    found = records_of(tree)
    assert len(found) == BY_HAND[tree][0]
    assert {name: record.status for name, (_, record) in found.items()} == statuses(
        tree, list(found)
    )


@pytest.mark.parametrize("tree", BY_HAND)
def test_what_replaced_what(tree: str) -> None:
    found = records_of(tree)
    traced = trace(
        [
            Entry(name, title, record.status, record.supersedes, record.superseded_by)
            for name, (title, record) in found.items()
        ]
    )
    numbers = {
        older.rsplit("/", 1)[-1][:4]: newer.rsplit("/", 1)[-1][:4] for older, newer in traced.pairs
    }
    assert numbers == REPLACED.get(tree, {})
    assert traced.doubts == ()


def test_dates_and_deciders_that_were_looked_up() -> None:
    kernel = {
        name.rsplit("/", 1)[-1][:4]: r for name, (_, r) in records_of("semantic-kernel").items()
    }
    assert str(kernel["0054"].date) == "2024-09-20"
    assert str(kernel["0008"].date) == "2023-09-15"
    assert kernel["0036"].date is None
    assert kernel["0044"].deciders == ("Stephen Toub", "Ben Thomas")
    assert kernel["0009"].deciders == ("shawncal", "hario90")
    house = {
        name.rsplit("/", 1)[-1][:4]: r for name, (_, r) in records_of("ha-architecture").items()
    }
    assert Counter(record.date is None for record in house.values()) == {False: 22}
    assert str(house["0002"].date) == "2019-05-13"
