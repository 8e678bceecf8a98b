"""An answer as a page of Markdown: hits with links and scores, what limits it, why it is empty.

What belongs here: rendering for pages, such as those of the Prefect UI. Passages stand as blocks of
code, since they say whatever their source says.
"""

from __future__ import annotations

from collections.abc import Sequence

from concordance.escaping import block, linked, verbatim
from concordance.indexing.counting import counted, moment
from concordance.models import (
    Answer,
    CoverageState,
    FileOrigin,
    Hit,
    RecordState,
    ScopeFreshness,
    SessionOrigin,
)

PAGE_BYTES = 512 * 1024
QUESTION_CHARACTERS = 2_000
PASSAGE_CHARACTERS = 8_000
_SCOPES = 50
_RELIABLE = (CoverageState.COMPLETE, CoverageState.ABSENT)


def answer_page(answer: Answer) -> str:
    """The question, what was found, and how far to trust it."""
    head = [
        "# Answer",
        "",
        block(answer.request.text, most=QUESTION_CHARACTERS),
        "",
        _summary(answer),
        "",
        *_limits(answer),
    ]
    tail = _freshness(answer)
    room = PAGE_BYTES - _size([*head, *tail])
    shown: list[str] = []
    left: Sequence[Hit] = ()
    for number, hit in enumerate(answer.hits):
        lines = _hit(hit)
        room -= _size(lines)
        if room < 0:
            left = answer.hits[number:]
            break
        shown += lines
    return "\n".join([*head, *shown, *_left_out(left), *tail])


def _summary(answer: Answer) -> str:
    parts = [
        f"**{counted(len(answer.hits), 'hit')}** of {counted(answer.candidates, 'candidate')}",
        f"confidence **{answer.confidence:.2f}**",
        f"fusion `{answer.fusion.value}`",
        f"model {verbatim(answer.model or 'none')}",
        f"{answer.as_of:%Y-%m-%d %H:%M} UTC",
    ]
    if answer.reranker is not None:
        parts.insert(3, f"reranked by {verbatim(answer.reranker)}")
    return " · ".join(parts)


def _limits(answer: Answer) -> list[str]:
    """Banners: what was missing, why nothing was found, what else limits the answer."""
    lines: list[str] = []
    if answer.degraded:
        lines += [f"> **Degraded**: {verbatim(answer.degraded_reason or 'no reason given')}", ""]
    if answer.empty_reason is not None:
        lines += [f"> **Nothing was found**: {verbatim(answer.empty_reason)}", ""]
        if answer.cut_by_threshold:
            lines += [
                (
                    f"> {counted(answer.cut_by_threshold, 'passage')} below the threshold of "
                    f"{answer.fusion_parameters.get('threshold', 0.0):.2f}; a lower one shows them."
                ),
                "",
            ]
    old = [f for f in answer.freshness if f.state not in _RELIABLE]
    if old:
        lines += [f"> **Beware**: {counted(len(old), 'scope')} not up to date, see below.", ""]
    lines += [f"* {verbatim(note)}" for note in answer.notes[:20]]
    return [*lines, ""] if answer.notes else lines


def _hit(hit: Hit) -> list[str]:
    at = hit.origin
    address = at.link if isinstance(at, FileOrigin) else at.commit_link
    lines = [f"## {hit.rank}. {linked(hit.citation, address)}", ""]
    match at:
        case FileOrigin():
            above = " / ".join(at.heading_path) or at.title or ""
            lines += [verbatim(above), ""] if above else []
            lines += [_record(at.record), ""] if at.record is not None else []
        case SessionOrigin():
            when = f", {at.occurred_at:%Y-%m-%d %H:%M} UTC" if at.occurred_at else ""
            lines += [f"{verbatim(at.title or at.session_id)}, {verbatim(at.speaker)}{when}", ""]
    return [
        *lines,
        "| confidence | score | words | rank by words | vectors | rank by vectors |",
        "|---:|---:|---:|---:|---:|---:|",
        (
            f"| {hit.confidence:.2f} | {hit.score:.4f} | {_number(hit.lexical_score)} "
            f"| {hit.lexical_rank or '–'} | {_number(hit.vector_score)} "
            f"| {hit.vector_rank or '–'} |"
        ),
        "",
        block(hit.content, most=PASSAGE_CHARACTERS),
        "",
    ]


def _record(record: RecordState) -> str:
    said = f"decision record, **{record.status.value}**"
    if record.date is not None:
        said += f" {record.date.isoformat()}"
    if record.superseded_by:
        said += f", superseded by {', '.join(verbatim(r.path) for r in record.superseded_by[:5])}"
    return said


def _number(score: float | None) -> str:
    return "–" if score is None else f"{score:.4f}"


def _left_out(left: Sequence[Hit]) -> list[str]:
    if not left:
        return []
    named = [f"* {verbatim(hit.citation, most=120)}" for hit in left]
    return [f"## {counted(len(left), 'more hit')}, for which the page has no room", "", *named, ""]


def _freshness(answer: Answer) -> list[str]:
    """The scopes that were searched, those that are not up to date first."""
    if not answer.freshness:
        return []
    found = sorted(answer.freshness, key=lambda f: (f.state in _RELIABLE, f.project, f.scope.value))
    left = len(found) - _SCOPES
    more = [f"{counted(left, 'more scope')} searched.", ""] if left > 0 else []
    return [
        "## What was searched",
        "",
        *(_scope(f, answer) for f in found[:_SCOPES]),
        "",
        *more,
    ]


def _scope(f: ScopeFreshness, answer: Answer) -> str:
    return (
        f"* `{f.scope.value}` of {verbatim(f.project)}: **{f.state.value}**, last up to date "
        f"{moment(f.last_success, answer.as_of)}: {verbatim(f.reason)}"
    )


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
