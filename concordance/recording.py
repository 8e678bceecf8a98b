"""Questions that people recorded with the place that answers them, and their export as a set.

What belongs here: from a search and the hit that was right to a stored question, and from stored
questions and passages to a folder in BEIR form. The user's own questions are the only set that
speaks of the user's own index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

from concordance.adapters.beir import Entry, Question, write_set
from concordance.adapters.postgres import projects
from concordance.adapters.postgres.calibrations import (
    KeptPassage,
    Place,
    Recorded,
    forget_question,
    kept_passages,
    record_question,
    recorded_questions,
)
from concordance.citing import SESSION, turns_cited
from concordance.errors import BadRecord
from concordance.indexing.counting import counted
from concordance.models import (
    MAX_QUERY_CHARACTERS,
    MAX_TOP_K,
    FileOrigin,
    Hit,
    SearchRequest,
    stored_path,
)
from concordance.resources import Resources
from concordance.searching import search

_RANK = re.compile(r"[0-9]{1,9}")
_LINES = re.compile(
    r"(?P<path>.+):(?P<start>[0-9]{1,9})(?:-(?P<end>[0-9]{1,9}))?(?:@[0-9a-f]*)?", re.DOTALL
)
_NUMBERED = re.compile(r"(?P<form>|.*[^0-9.])(?P<number>[0-9]{1,20}(?:\.[0-9]{1,20})?)", re.DOTALL)
# What an id of a set can't hold: lines and columns end there, and each is stripped. The sign of the
# escape is escaped as well, and so is what would make a file's id one of a session.
_NO_ID = re.compile(r"\\|[^\S ]|^ |(?<=^session) ")


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written; `lost` are questions whose answer no stored passage holds any more."""

    passages: int
    questions: int
    lost: tuple[str, ...]


def record(resources: Resources, slug: str, question: str, right: str | int | Hit) -> Place:
    """Store a question with the place that answers it; one that is stored already stays.

    Args:
        resources: The installation.
        slug: The project that holds the answer.
        question: As a search would ask it.
        right: A hit; its rank in what `search` now finds for the question in this project, with
            default settings; or the place: `path:start-end` or `session ID#EVENT`.

    Raises:
        UnknownProject: The project is neither configured nor indexed.
        BadRecord: The question is blank, or the place is not in the index.
        BadRequest: The question can't be searched for.
    """
    project = _stored(resources, slug)
    text = question.replace("\0", " ").strip()
    if not text or len(text) > MAX_QUERY_CHARACTERS:
        raise BadRecord(f"a question has 1 to {MAX_QUERY_CHARACTERS:,} characters")
    text = text.encode(errors="replace").decode()
    places = _places(resources, slug, text, right)
    passages = _by_name(kept_passages(resources.database, project.id))
    found = (at for at in places if _holding(passages.get((at.kind, at.name), []), at))
    place = next(found, None)
    if place is None:
        raise BadRecord(
            f"project '{slug}' has no passage at {places[0]}",
            hint="Name it as a citation does: path:start-end, or session ID#EVENT",
        )
    now = resources.clock()
    text = resources.scrubber().text(text)
    record_question(resources.database, resources.tenant, project.id, text, place, now=now)
    return place


def recorded(resources: Resources, slug: str | None = None) -> list[Recorded]:
    """The recorded questions of a project, or of all."""
    found = None if slug is None else _stored(resources, slug).id
    return recorded_questions(resources.database, resources.tenant, found)


def forget(resources: Resources, number: int) -> bool:
    """Remove one recorded question by its number; tells whether it was there."""
    return forget_question(resources.database, resources.tenant, number)


def export(resources: Resources, slug: str, folder: Path) -> Exported:
    """Write a project's recorded questions, and all its passages as the corpus, in BEIR form.

    Each passage is a document: what is found and cited is what is measured.

    Raises:
        UnknownProject: The project is neither configured nor indexed.
        BadRecord: No recorded question is answered by a passage that is stored now.
        BadTestSet: The folder holds a set already, or can't be written.
    """
    project = _stored(resources, slug)
    passages = kept_passages(resources.database, project.id)
    rows = recorded_questions(resources.database, resources.tenant, project.id)
    relevant = _relevant(rows, passages)
    if not relevant:
        raise BadRecord(
            f"no recorded question of '{slug}' is answered by a passage in the index",
            hint="Record one: concordance questions add TEXT --project SLUG --right RANK",
        )
    texts = {f"q{number}": text for number, text in enumerate(relevant, start=1)}
    write_set(
        folder,
        [_entry(passage) for passage in passages],
        [Question(number, text) for number, text in texts.items()],
        {number: dict.fromkeys(relevant[text], 1) for number, text in texts.items()},
    )
    asked = dict.fromkeys(row.question for row in rows)
    return Exported(
        len(passages), len(relevant), tuple(text for text in asked if text not in relevant)
    )


def _stored(resources: Resources, slug: str) -> projects.StoredProject:
    found = projects.find_project(resources.database, resources.tenant, slug)
    if found is None:
        resources.project(slug)  # raises UnknownProject, with what there is
        raise BadRecord(f"project '{slug}' is not indexed yet", hint="Run 'concordance reindex'")
    return found


def _places(resources: Resources, slug: str, text: str, right: str | int | Hit) -> list[Place]:
    """What `right` may name: one place, or each reading of a text, the likeliest first."""
    match right:
        case Hit():
            return [_place_of(right)]
        case int():
            return [_place_of(_hit(resources, slug, text, right))]
        case str() if _RANK.fullmatch(right.strip()):
            return [_place_of(_hit(resources, slug, text, int(right)))]
        case _:
            whole = stored_path(right.strip())
            return _read_places(whole.removeprefix(f"{slug}:")) or _none(whole)


def _hit(resources: Resources, slug: str, text: str, rank: int) -> Hit:
    """The hit that stood at a rank: the same question gives the same order again."""
    if not 1 <= rank <= MAX_TOP_K:
        raise BadRecord(f"a rank is 1 to {MAX_TOP_K}, not {rank}")
    request = SearchRequest(text=text, projects=(slug,), top_k=max(rank, 10), deadline_seconds=30)
    hits = search(resources, request).hits
    if rank > len(hits):
        raise BadRecord(
            f"the search finds {counted(len(hits), 'passage')}, so none at rank {rank}",
            hint="Give the place itself: path:start-end",
        )
    return hits[rank - 1]


def _place_of(hit: Hit) -> Place:
    match hit.origin:
        case FileOrigin() as at:
            return Place("file", at.path, at.start_line, at.end_line)
        case at:
            return Place("session", at.session_id, event_id=at.event_id)


def _read_places(text: str) -> list[Place]:
    """The places that a citation, without the project, may mean; files may be called anything."""
    turn = text.removeprefix(SESSION)
    turns = turns_cited(turn) if turn != text else []
    places = [Place("session", name, event_id=event) for name, event in turns if name and event]
    lines = _LINES.fullmatch(text)
    if lines is not None:
        start, end = int(lines["start"]), int(lines["end"] or lines["start"])
        if start <= end:
            places.append(Place("file", lines["path"], start, end))
    return places


def _none(text: str) -> NoReturn:
    raise BadRecord(
        f"'{text[:200]}' names no place",
        hint="Give a rank, path:start-end (lines), or session ID#EVENT",
    )


def _holding(passages: Sequence[KeptPassage], place: Place) -> list[KeptPassage]:
    """Those of a document's passages, in their order, that have a line of a place, or its turn."""
    if place.kind == "session":
        named = [p for p in passages if place.event_id in {p.event_id, p.last_event_id}]
        return named or _between(passages, place.event_id or "")
    start, end = place.start_line or 0, place.end_line or 0
    return [p for p in passages if (p.start_line or 0) <= end and start <= (p.end_line or 0)]


def _between(passages: Sequence[KeptPassage], event_id: str) -> list[KeptPassage]:
    """The passages of a session that begin before an event and end after it.

    A passage keeps the ids of its first and last turn. Which ones stand between is known where the
    ids of the session count up, as lines and times do; other ids say nothing of their order.
    """
    asked = _numbered(event_id)
    ends = [_numbered(one or "") for p in passages for one in (p.event_id, p.last_event_id)]
    if asked is None or {asked[0]} != {None if end is None else end[0] for end in ends}:
        return []
    numbers = [end[1] for end in ends if end is not None]
    if numbers != sorted(numbers):
        return []
    firsts, lasts = numbers[::2], numbers[1::2]
    spans = zip(passages, firsts, lasts, strict=True)
    return [p for p, first, last in spans if first < asked[1] < last]


def _numbered(event_id: str) -> tuple[str, Decimal] | None:
    """What stands before the number at the end of an id, and the number."""
    found = _NUMBERED.fullmatch(event_id)
    return None if found is None else (found["form"], Decimal(found["number"]))


def _by_name(passages: Sequence[KeptPassage]) -> dict[tuple[str, str], list[KeptPassage]]:
    by_name: dict[tuple[str, str], list[KeptPassage]] = {}
    for passage in passages:
        by_name.setdefault((passage.kind, passage.name), []).append(passage)
    return by_name


def _relevant(rows: Sequence[Recorded], passages: Sequence[KeptPassage]) -> Mapping[str, list[str]]:
    """The passages that answer each question, where there are any."""
    by_name = _by_name(passages)
    found: dict[str, list[str]] = {}
    for row in rows:
        for passage in _holding(by_name.get((row.kind, row.name), []), row.place):
            found.setdefault(row.question, []).append(_id(passage))
    return {question: list(dict.fromkeys(ids)) for question, ids in found.items()}


def _entry(passage: KeptPassage) -> Entry:
    """A passage as a document: its title and headings above it, as they are indexed with it."""
    own = [passage.title] if passage.titled and passage.title else []
    if passage.heading_path[:1] == own:
        own = []
    return Entry(_id(passage), " > ".join([*own, *passage.heading_path]), passage.content)


def _id(passage: KeptPassage) -> str:
    """The id of a passage in a set; no two are alike, and each can be read back to its name."""
    name = _NO_ID.sub(lambda found: f"\\u{ord(found[0]):04x}", passage.name)
    prefix = SESSION if passage.kind == "session" else ""
    return f"{prefix}{name}#{passage.ordinal}"
