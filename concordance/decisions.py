"""A project's decision records: their state, what replaced what, and what is in doubt.

What belongs here: the list of all records of one project, as callers see it.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import date

from pydantic import Field

from concordance.adapters.postgres import projects
from concordance.adapters.postgres.records import StoredRecord, stored_records
from concordance.indexing.succession import Fault, date_in_name, number_of, trace
from concordance.models import AdrStatus, Frozen
from concordance.resources import Resources
from concordance.settings import SLUG


class DecisionRecord(Frozen):
    """One decision record; other records are named by their paths."""

    path: str
    number: int | None = Field(description="From its name or title; it may repeat in a project.")
    title: str | None
    status: AdrStatus
    status_text: str | None = Field(description="The status as it is written in the record.")
    date: date | None
    deciders: tuple[str, ...]
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]
    commit: str | None


class RecordDoubt(Frozen):
    """Something that a record says of another and that is not followed."""

    fault: Fault
    path: str
    reason: str


class DecisionRecords(Frozen):
    """All decision records of a project, by path, and what is in doubt."""

    project: str
    records: tuple[DecisionRecord, ...]
    doubts: tuple[RecordDoubt, ...]


def decision_records(resources: Resources, slug: str) -> DecisionRecords:
    """The decision records that the index has of a project, and what replaced what.

    Raises:
        UnknownProject: The project is neither configured nor indexed.
    """
    stored = None
    if SLUG.fullmatch(slug) is not None:
        stored = projects.find_project(resources.database, resources.tenant, slug)
    if stored is None:
        resources.project(slug)  # raises UnknownProject, with what there is
        return DecisionRecords(project=slug, records=(), doubts=())
    found = stored_records(resources.database, stored.id)
    traced = trace([record.entry for record in found])
    older: dict[str, list[str]] = defaultdict(list)
    newer: dict[str, list[str]] = defaultdict(list)
    for one, other in traced.pairs:
        newer[one].append(other)
        older[other].append(one)
    return DecisionRecords(
        project=slug,
        records=tuple(_shown(record, older[record.name], newer[record.name]) for record in found),
        doubts=tuple(
            RecordDoubt(fault=doubt.fault, path=doubt.name, reason=doubt.reason)
            for doubt in traced.doubts
        ),
    )


def _shown(record: StoredRecord, older: list[str], newer: list[str]) -> DecisionRecord:
    return DecisionRecord(
        path=record.name,
        number=number_of(record.name, record.title),
        title=record.title,
        status=AdrStatus(record.status),
        status_text=record.status_text,
        date=record.decided_on or date_in_name(record.name),
        deciders=tuple(record.deciders),
        supersedes=tuple(sorted(older)),
        superseded_by=tuple(sorted(newer)),
        commit=record.commit,
    )
