"""Decision records in the shapes that people write them, against a reading of each by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from concordance.models import AdrStatus
from concordance.text.formats import parse
from concordance.text.records import read_record

SHAPES = Path(__file__).parent / "shapes"
ACCEPTED, PROPOSED, REJECTED = AdrStatus.ACCEPTED, AdrStatus.PROPOSED, AdrStatus.REJECTED
SUPERSEDED, DEPRECATED, UNKNOWN = AdrStatus.SUPERSEDED, AdrStatus.DEPRECATED, AdrStatus.UNKNOWN
BOTH = ("Ada", "Grace")


@dataclass(frozen=True)
class Said:
    """What a careful reader says of a record: references are targets, or words without one."""

    status: AdrStatus
    day: date | None = None
    deciders: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    of: tuple[str, ...] = ()


BY_HAND = {
    "adr-tools.md": Said(ACCEPTED, date(2017, 2, 14), of=("0003-use-short-options.md",)),
    "arc42-table.adoc": Said(SUPERSEDED, date(2022, 8, 10), BOTH, by=("adr-011.adoc",)),
    "arc42-terms.adoc": Said(PROPOSED, date(2022, 8, 11)),
    "arc42.adoc": Said(ACCEPTED, date(2022, 8, 9)),
    "backstage-plain.md": Said(UNKNOWN),
    "backstage.md": Said(ACCEPTED, date(2020, 5, 27)),
    "chinese-replaced.md": Said(SUPERSEDED, date(2021, 3, 4), by=("0005-queue.md",)),
    "chinese.md": Said(ACCEPTED, date(2024, 1, 5), ("张三", "李四")),
    "french.md": Said(SUPERSEDED, date(2023, 1, 5), BOTH, by=("0006-kafka.md",)),
    "future.md": Said(ACCEPTED, date(2022, 5, 5)),
    "german-open.md": Said(UNKNOWN, date(2023, 4, 1)),
    "german-replaced.md": Said(SUPERSEDED, date(2021, 3, 3), by=("0007-warteschlange.md",)),
    "german.md": Said(ACCEPTED, date(2023, 1, 5), BOTH),
    "html-terms.md": Said(PROPOSED, date(2023, 1, 5)),
    "japanese.md": Said(ACCEPTED, date(2024, 1, 5)),
    "kep.md": Said(
        ACCEPTED, date(2018, 12, 17), ("@grace", "@linus"), of=("/keps/sig-node/0001-old.md",)
    ),
    "korean.md": Said(ACCEPTED, date(2024, 1, 5)),
    "later-prose.md": Said(ACCEPTED),
    "log-table.md": Said(DEPRECATED, date(2021, 12, 1)),
    "log4brains-draft.md": Said(PROPOSED, date(2020, 10, 2)),
    "log4brains.md": Said(
        SUPERSEDED,
        date(2020, 12, 8),
        ("Thomas",),
        by=("20210113-distribute-as-a-package.md",),
    ),
    "madr2.md": Said(
        SUPERSEDED,
        date(2021, 3, 4),
        ("Ada Lovelace", "Grace Hopper"),
        by=("0012-use-cockroach.md",),
        of=("0003-use-mysql.md",),
    ),
    "madr3.md": Said(ACCEPTED, date(2022, 11, 30), BOTH),
    "madr4-template.md": Said(UNKNOWN),
    "madr4.md": Said(SUPERSEDED, date(2024, 9, 17), BOTH, by=("0123-example.md",)),
    "negated.md": Said(UNKNOWN, date(2020, 9, 1)),
    "nygard-history.md": Said(ACCEPTED, date(2023, 2, 1)),
    "nygard-superseded-see.md": Said(
        SUPERSEDED, date(2019, 6, 1), by=("0009-write-events-to-kafka.md",)
    ),
    "nygard-template-prose.md": Said(UNKNOWN),
    "pep-final.rst": Said(ACCEPTED, date(2004, 3, 12), of=("9001",)),
    "pep.rst": Said(SUPERSEDED, date(2001, 7, 5), by=("9002",)),
    "pseudo-headings.md": Said(ACCEPTED, date(2021, 8, 1)),
    "reopened.md": Said(PROPOSED, date(2023, 5, 1)),
    "rfc-header.md": Said(REJECTED, date(2022, 2, 2)),
    "rfc.md": Said(PROPOSED, date(2014, 6, 21)),
    "rst-definitions.rst": Said(SUPERSEDED, date(2018, 5, 4), by=("0009-containers.rst",)),
    "rst-list-table.rst": Said(ACCEPTED, date(2020, 2, 3), of=("0002-machines.rst",)),
    "spanish.md": Said(ACCEPTED, date(2023, 1, 5)),
    "tyree-akerman-sections.md": Said(PROPOSED),
    "tyree-akerman.md": Said(ACCEPTED),
    "tyree-html.md": Said(ACCEPTED, date(2021, 5, 12), BOTH, of=("0002-monolith.md",)),
    "y-statement-labelled.md": Said(ACCEPTED, date(2020, 7, 1)),
    "y-statement.md": Said(UNKNOWN),
}


def test_every_shape_was_read_by_hand() -> None:
    assert {path.name for path in SHAPES.iterdir()} == set(BY_HAND)


@pytest.mark.parametrize("name", BY_HAND)
def test_a_record_says_what_its_reader_says(name: str) -> None:
    text = (SHAPES / name).read_text(encoding="utf-8")
    record = read_record(text, parse(name, text))
    assert BY_HAND[name] == Said(
        record.status,
        record.date,
        record.deciders,
        tuple(one.target or one.text for one in record.superseded_by),
        tuple(one.target or one.text for one in record.supersedes),
    )
