"""Where a passage stands, and how fresh what was searched is, as an answer shows them.

What belongs here: from stored rows to the typed origins that callers see, and back from a citation
of a turn.
"""

from __future__ import annotations

from datetime import datetime

from concordance.adapters.postgres import search as legs
from concordance.adapters.postgres.coverage import Rules
from concordance.indexing.coverage import Verdict, by_todays_rules, is_outdated
from concordance.indexing.links import belongs, commit_link, line_link, web_address
from concordance.models import (
    CoverageState,
    FileOrigin,
    RecordState,
    Scope,
    ScopeFreshness,
    SessionOrigin,
)
from concordance.text.scrubbing import has_mark

SESSION = "session "  # what a citation of a turn begins with, after the project
MOST_READINGS = 20


def turns_cited(turn: str) -> list[tuple[str, str]]:
    """What `ID#EVENT` may name, the longest id of a session first: each of the two may hold a #."""
    ends = [number for number, letter in enumerate(turn) if letter == "#"][:MOST_READINGS]
    return [(turn[:end], turn[end + 1 :]) for end in reversed(ends)]


def file_origin(p: legs.StoredPassage, record: RecordState | None = None) -> FileOrigin:
    """The lines of a file at a commit, with their address where the host is known."""
    start, end, commit = p.start_line or 1, p.end_line or 1, p.commit or ""
    # Under a name that lost a secret there is no page, and the link would hold it.
    web = None if has_mark(p.name) else web_address(p.location, p.web_url)
    return FileOrigin(
        path=p.name,
        title=p.title,
        heading_path=tuple(p.heading_path),
        start_line=start,
        end_line=end,
        commit=commit,
        link=line_link(web, path=p.name, commit=commit, start=start, end=end),
        record=record,
    )


def session_origin(p: legs.StoredPassage) -> SessionOrigin:
    """The event of a session, and the commit that was worked on where that is known."""
    linked = p.linked_commit if belongs(p.directory, p.location) else None
    commit = p.commit or linked
    web = web_address(p.location, p.web_url) if belongs(p.directory, p.location) else None
    return SessionOrigin(
        session_id=p.name,
        event_id=p.event_id or "",
        last_event_id=p.last_event_id or p.event_id or "",
        title=p.title,
        speaker=p.speaker or "",
        occurred_at=p.occurred_at,
        source=p.source or "",
        directory=p.directory,
        branch=p.branch,
        commit=commit,
        commit_by=None if commit is None else "log" if p.commit else "time",
        commit_link=commit_link(web, commit),
    )


def freshness(target: legs.Target, now: datetime, rules: Rules) -> ScopeFreshness:
    """How far one searched scope can be trusted; `rules` are today's."""
    scope = Scope(target.scope)
    judged = Verdict(CoverageState(target.state), target.reason)
    if is_outdated(target.last_success, target.fingerprint, rules.get((target.slug, scope))):
        judged = by_todays_rules(judged, scope)
    age = None if target.last_success is None else (now - target.last_success).total_seconds()
    return ScopeFreshness(
        project=target.slug,
        scope=scope,
        state=judged.state,
        reason=judged.reason,
        indexed_commit=target.indexed_commit,
        last_success=target.last_success,
        age_seconds=None if age is None else max(0.0, age),
        chunks=target.chunks,
        chunks_with_vector=target.chunks_with_vector,
    )
