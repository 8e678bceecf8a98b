"""Decision records from git to rows, and from rows to answers and lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concordance.cli import asking as cli_asking
from concordance.cli import records as cli_records
from concordance.cli import run
from concordance.errors import BadRequest, UnknownProject
from concordance.index import Index
from concordance.models import AdrStatus, FileOrigin, Fusion, Hit, Scope, SearchRequest
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.postgres.driver import ask, documents_of, names_of, needs, reindex
from tests.postgres.library import shared_index
from tests.sources import GitSource

RABBIT = """\
# 3. Use RabbitMQ as the broker

Date: 2024-02-01

## Status

Accepted

Superseded by [9. Use Kafka](0009-use-kafka.md)

## Decision

The broker of orders is RabbitMQ. RabbitMQ keeps orders, and a broker was wanted.
"""
KAFKA = """\
---
status: accepted
date: 2026-01-05
deciders: [Ada, Grace]
---
# 9. Use Kafka

## Context

RabbitMQ lost orders.

## Decision

Kafka it is.
"""
FILES: dict[str, str | bytes] = {
    "README.rst": "Shop\n====\n\nSells tea.\n",
    "docs/brewing.rst": "Brewing\n=======\n\nBoil it.\n\nWater\n-----\n\nSoft water alone.\n",
    "docs/adr/README.md": "# Decisions\n\n## Status\n\nAccepted ones are kept here.\n",
    "docs/adr/template.md": "# Title\n\n## Status\n\nAccepted\n",
    "docs/adr/0000-how.md": "# ADR-NNNN: Title\n\nDate: YYYY-MM-DD\n\n## Status\n\nproposed\n",
    "docs/adr/overview.md": "# All\n\n* [3](0003-rabbit.md)\n* [9](0009-use-kafka.md)\n* [x](x.md)",
    "docs/adr/0003-rabbit.md": RABBIT,
    "docs/adr/0009-use-kafka.md": KAFKA,
    "docs/adr/0009-tea-names.rst": "Names\n=====\n\n:Status: Rejected\n\nNo broker of names.\n",
    "docs/adr/2025-03-04-cups/README.md": "# Cups\n\n## Status\n\nProposed\n\n## Context\n\nTea.\n",
    "docs/adr/2025-03-04-cups/sizes.md": "# Sizes\n\nOf cups.\n",
    "docs/adr/2025-03-04-cups/notes/README.md": "# Notes\n\nWords on cups.\n",
    "docs/adr/queue.md": "# Queue\n\nWe use a queue for the broker.\n",
    "docs/adr/0042-diagram.png": b"\x89PNG",
}


@pytest.fixture
def source(tmp_path: Path) -> GitSource:
    return GitSource.make(tmp_path / "source", FILES)


@pytest.fixture
def index(make_index: IndexMaker, source: GitSource) -> Index:
    """For a test that changes something."""
    made = make_index(Project(slug="p", path=source.path))
    reindex(made)
    return made


@pytest.fixture(scope="module")
def asked(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """The same for tests that ask."""
    folder = tmp_path_factory.mktemp("asked")
    source = GitSource.make(folder / "source", FILES)
    with shared_index(server_url, "records_asked", folder / "home") as make:
        made = make(Project(slug="p", path=source.path))
        reindex(made)
        yield made


def rows(url: str) -> list[dict[str, Any]]:
    """What is stored of all files, and what replaced what, without row numbers."""
    said = ask(
        url,
        "select d.name, r.status, r.status_text, r.decided_on, r.deciders, r.supersedes, "
        "r.superseded_by from records r join documents d on d.id = r.document_id order by d.name",
    )
    return said + ask(
        url,
        "select o.name as older, n.name as newer from successions s "
        "join documents o on o.id = s.older_id join documents n on n.id = s.newer_id order by 1, 2",
    )


def hits(index: Index, text: str, **more: object) -> list[Hit]:
    request = {"text": text, "threshold": 0.0, "fusion": "lexical"} | more
    return list(index.search(SearchRequest.model_validate(request)).hits)


def paths(found: list[Hit]) -> list[str]:
    return [hit.origin.path for hit in found if isinstance(hit.origin, FileOrigin)]


def test_records_are_told_from_what_stands_beside_them(index: Index, database_url: str) -> None:
    assert names_of(database_url) == {
        "README.rst": "docs indexed",
        "docs/brewing.rst": "docs indexed",
        "docs/adr/README.md": "docs indexed",
        "docs/adr/template.md": "docs indexed",
        "docs/adr/0000-how.md": "docs indexed",
        "docs/adr/overview.md": "docs indexed",
        "docs/adr/0003-rabbit.md": "adr indexed",
        "docs/adr/0009-use-kafka.md": "adr indexed",
        "docs/adr/0009-tea-names.rst": "adr indexed",
        "docs/adr/2025-03-04-cups/README.md": "adr indexed",
        "docs/adr/2025-03-04-cups/sizes.md": "docs indexed",
        "docs/adr/2025-03-04-cups/notes/README.md": "docs indexed",
        "docs/adr/queue.md": "adr indexed",
    }
    told = index.explain("p", "docs/adr/overview.md")
    assert told.details == ("it stands among decision records and has not the form of one",)


def test_rst_is_cited_by_its_lines(index: Index, source: GitSource) -> None:
    (hit,) = hits(index, "soft water", scopes=["docs"])
    at = hit.origin
    assert isinstance(at, FileOrigin)
    assert (at.path, at.title, at.heading_path) == (
        "docs/brewing.rst", "Brewing", ("Brewing", "Water")
    )  # fmt: skip
    shown = source.git("show", f"{at.commit}:{at.path}").split("\n")
    assert "\n".join(shown[at.start_line - 1 : at.end_line]) == hit.content
    assert at.record is None


def test_the_list_of_records(asked: Index) -> None:
    found = asked.decision_records("p")
    shown = {
        record.path.removeprefix("docs/adr/"): (
            record.number,
            record.status.value,
            record.date and record.date.isoformat(),
            record.supersedes + record.superseded_by,
        )
        for record in found.records
    }
    assert shown == {
        "0003-rabbit.md": (3, "superseded", "2024-02-01", ("docs/adr/0009-use-kafka.md",)),
        "0009-tea-names.rst": (9, "rejected", None, ()),
        "0009-use-kafka.md": (9, "accepted", "2026-01-05", ("docs/adr/0003-rabbit.md",)),
        "2025-03-04-cups/README.md": (None, "proposed", "2025-03-04", ()),
        "queue.md": (None, "unknown", None, ()),
    }
    assert found.doubts == ()
    assert found.records[2].deciders == ("Ada", "Grace")


def test_a_citation_says_what_became_of_the_record(asked: Index) -> None:
    old = next(h for h in hits(asked, "broker of orders") if "rabbit" in h.citation)
    assert isinstance(old.origin, FileOrigin)
    state = old.origin.record
    assert state is not None
    assert (state.status, str(state.date)) == (AdrStatus.SUPERSEDED, "2024-02-01")
    assert [(r.path, r.title) for r in state.superseded_by] == [
        ("docs/adr/0009-use-kafka.md", "9. Use Kafka")
    ]


@pytest.mark.parametrize("fusion", list(Fusion))
def test_a_superseded_record_comes_after_its_successor(asked: Index, fusion: Fusion) -> None:
    whole_request = {"scopes": ["adr"], "fusion": fusion.value, "top_k": 100}
    whole = hits(asked, "RabbitMQ broker of orders", **whole_request)
    order = paths(whole)
    assert order.index("docs/adr/0009-use-kafka.md") < order.index("docs/adr/0003-rabbit.md")
    for top_k in range(1, len(whole)):
        fewer = hits(asked, "RabbitMQ broker of orders", **whole_request | {"top_k": top_k})
        assert [(h.citation, h.score) for h in fewer] == [
            (h.citation, h.score) for h in whole[:top_k]
        ]
    assert [hit.rank for hit in whole] == list(range(1, len(whole) + 1))


def test_the_older_record_would_stand_first_by_its_score(asked: Index) -> None:
    found = {p: h.score for h in hits(asked, "RabbitMQ broker of orders") for p in paths([h])}
    assert found["docs/adr/0003-rabbit.md"] > found["docs/adr/0009-use-kafka.md"]


def test_a_superseded_record_is_found_where_its_successor_does_not_match(asked: Index) -> None:
    assert paths(hits(asked, "keeps wanted", scopes=["adr"])) == ["docs/adr/0003-rabbit.md"]


@pytest.mark.parametrize("fusion", list(Fusion))
def test_every_hit_has_a_status_that_was_asked_for(asked: Index, fusion: Fusion) -> None:
    wanted = {
        "accepted": {"docs/adr/0009-use-kafka.md"},
        "rejected": {"docs/adr/0009-tea-names.rst"},
        "proposed": {"docs/adr/2025-03-04-cups/README.md"},
        "superseded": {"docs/adr/0003-rabbit.md"},
        "unknown": {"docs/adr/queue.md"},
        "deprecated": set(),
    }
    for status, names in wanted.items():
        found = hits(
            asked, "broker names cups kafka", adr_status=[status], fusion=fusion.value, top_k=100
        )
        assert set(paths(found)) == names
        assert {hit.scope for hit in found} <= {Scope.ADR}
    both = hits(asked, "broker", adr_status=["rejected", "unknown"], fusion=fusion.value)
    assert set(paths(both)) >= {"docs/adr/0009-tea-names.rst", "docs/adr/queue.md"}


def test_a_filter_that_nothing_meets_says_so(asked: Index) -> None:
    request = SearchRequest(
        text="broker", adr_status=(AdrStatus.DEPRECATED,), fusion=Fusion.LEXICAL
    )
    assert asked.search(request).empty_reason == "no decision record of that status matches"
    elsewhere = asked.search(request.model_copy(update={"scopes": (Scope.DOCS,)}))
    assert elsewhere.empty_reason is not None
    assert "the scopes leave those out" in elsewhere.empty_reason
    with pytest.raises(BadRequest, match="empty list of states"):
        asked.search(SearchRequest(text="broker", adr_status=()))


def test_the_same_source_gives_the_same_rows_by_any_way(
    make_index: IndexMaker, index: Index, source: GitSource, tmp_path: Path, database_url: str
) -> None:
    source.git("mv", "docs/adr/0009-use-kafka.md", "docs/adr/0010-use-kafka.md")
    source.git("mv", "docs/adr/2025-03-04-cups", "docs/cups")
    source.git("mv", "docs/brewing.rst", "docs/adr/brewing.rst")
    source.commit({"docs/adr/0003-rabbit.md": RABBIT.replace("0009-use", "0010-use")})
    reindex(index)
    by_steps = rows(database_url), names_of(database_url)
    assert by_steps[1]["docs/cups/README.md"] == "docs indexed"
    assert by_steps[1]["docs/adr/brewing.rst"] == "adr indexed"
    assert {"older": "docs/adr/0003-rabbit.md", "newer": "docs/adr/0010-use-kafka.md"} in by_steps[
        0
    ]
    reindex(index, full=True)
    assert (rows(database_url), names_of(database_url)) == by_steps
    index.forget("p")
    assert rows(database_url) == []
    reindex(index)
    assert (rows(database_url), names_of(database_url)) == by_steps


def test_a_front_page_that_becomes_a_record_changes_what_lies_beside_it(
    index: Index, source: GitSource, database_url: str
) -> None:
    cups = str(FILES["docs/adr/2025-03-04-cups/README.md"])
    for text, beside in (("# Cups\n\nTea.\n", "adr indexed"), (cups, "docs indexed")):
        source.commit({"docs/adr/2025-03-04-cups/README.md": text})
        reindex(index)
        assert names_of(database_url)["docs/adr/2025-03-04-cups/sizes.md"] == beside


def test_a_record_that_goes_takes_its_claims_along(
    index: Index, source: GitSource, database_url: str
) -> None:
    source.commit({}, delete=["docs/adr/0009-use-kafka.md"])
    reindex(index)
    assert [row for row in rows(database_url) if "older" in row] == []
    (doubt,) = index.decision_records("p").doubts
    assert (doubt.fault.value, doubt.path) == ("broken", "docs/adr/0003-rabbit.md")
    hit = hits(index, "broker of orders", adr_status=["superseded"])[0]
    assert isinstance(hit.origin, FileOrigin)
    assert hit.origin.record is not None
    assert hit.origin.record.superseded_by == ()


def test_a_run_without_a_change_reads_and_writes_nothing(
    index: Index, database_url: str, source: GitSource
) -> None:
    assert needs(index) == "none"
    before = ask(database_url, "select xmin::text, document_id from records order by 2")
    source.commit({"src/x.py": "x = 1\n"})
    reindex(index)
    assert ask(database_url, "select xmin::text, document_id from records order by 2") == before


def test_rows_of_an_older_program_are_read_again(
    index: Index, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concordance.surveying.RECORDS_VERSION", 0)
    reindex(index)
    monkeypatch.undo()
    assert needs(index) == "index"
    reindex(index)
    assert len({d["chunker"] for d in documents_of(database_url)}) == 1
    assert needs(index) == "none"


def test_records_of_a_project_that_was_never_indexed(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    index = make_index(Project(slug="p", path=tmp_path / "none"))
    assert index.decision_records("p").records == ()
    for slug in ("q", "no slug\0"):
        with pytest.raises(UnknownProject):
            index.decision_records(slug)


@pytest.fixture
def shell(
    index: Index, source: GitSource, tmp_path: Path, database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The environment in which commands ask the index."""
    monkeypatch.setenv("CONCORDANCE_DATABASE_URL", database_url)
    monkeypatch.setenv("CONCORDANCE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONCORDANCE_PROJECTS_FILE", str(tmp_path / "projects.toml"))
    # They may have been made by an earlier test, in a terminal of another width.
    for room in (cli_asking, cli_records):
        monkeypatch.setattr(room.OUT, "width", 160)


def test_the_command_lists_records(shell: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["adr", "p"]) == 0
    page = capsys.readouterr().out
    assert "superseded by docs/adr/0009-use-kafka.md" in page
    assert "supersedes docs/adr/0003-rabbit.md" in page
    assert "5 records: 1 proposed, 1 accepted, 1 rejected, 1 superseded, 1 unknown" in page
    assert run(["adr", "p", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [record["status"] for record in shown["records"]] == [
        "superseded", "rejected", "accepted", "proposed", "unknown"
    ]  # fmt: skip
    assert run(["adr", "nobody"]) == 2


def test_the_command_reports_what_is_in_doubt(
    shell: None, index: Index, source: GitSource, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = "# {n}. Other\n\n## Status\n\nAccepted\n\nSupersedes [q](queue.md)\n"
    source.commit(
        {
            "docs/adr/0011-a.md": claim.replace("{n}", "11"),
            "docs/adr/0012-b.md": claim.replace("{n}", "12"),
            "docs/adr/0013-c.md": "# 13. C\n\n## Status\n\nSuperseded by [x](0099-x.md)\n",
            "docs/adr/0014-d.md": "# 14. D\n\n## Status\n\nSuperseded by ADR-9\n",
        }
    )
    reindex(index)
    assert run(["adr", "p"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert (
        "contested: docs/adr/queue.md: docs/adr/0011-a.md and docs/adr/0012-b.md claim to "
        "replace it" in page
    )
    assert "broken: docs/adr/0013-c.md: '0099-x.md' is no record" in page
    assert "ambiguous: docs/adr/0014-d.md: 'ADR-9' could be docs/adr/0009-tea-names.rst" in page


def test_a_search_is_narrowed_and_shown_with_states(
    shell: None, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["search", "broker", "--fusion", "lexical", "--threshold", "0"]
    assert run([*asked, "--adr-status", "superseded", "--adr-status", "rejected"]) == 0
    page = capsys.readouterr().out
    assert "superseded 2024-02-01, superseded by docs/adr/0009-use-kafka.md" in page
    assert "rejected" in page
    assert "queue.md" not in page
    assert run([*asked, "--adr-status", "retired"]) == 2
