"""The coverage of every project as a page of Markdown, and as rows of one table a scope.

What belongs here: rendering for pages, such as those of the Prefect UI, within a size that these
show. What is left out is counted and named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from concordance.escaping import linked, one_line, verbatim
from concordance.indexing.counting import agreeing, counted, moment
from concordance.indexing.outcome import Verdict
from concordance.models import CoverageState, Scope, ScopeCoverage
from concordance.problems import Account

# The API takes more; a browser needs seconds to show it.
PAGE_BYTES = 256 * 1024
TABLE_BYTES = 1024 * 1024
_NAMED_BYTES = 16 * 1024
_SHARES = {"behind": PAGE_BYTES // 2, "files": PAGE_BYTES // 8, "fresh": PAGE_BYTES // 8}
_WORST_FIRST = (
    CoverageState.FAILED,
    CoverageState.STALE,
    CoverageState.PARTIAL,
    CoverageState.LEXICAL_ONLY,
    CoverageState.COMPLETE,
    CoverageState.ABSENT,
)
_FRESH = (CoverageState.COMPLETE, CoverageState.ABSENT)


def coverage_page(account: Account, verdict: Verdict) -> str:
    """What is fresh, what is not and why, and how old it is, as of now and in UTC."""
    behind = [c for c in account.covered if c.state not in _FRESH]
    fresh = [c for c in account.covered if c.state is CoverageState.COMPLETE]
    return "\n".join(
        [
            "# Coverage",
            "",
            (
                f"As of **{account.now:%Y-%m-%d %H:%M} UTC**. This run came to "
                f"**{verdict.outcome.value}**:"
            ),
            "",
            verbatim(verdict.message, most=4_000),
            "",
            *_degraded(account),
            *_overdue(account),
            *_counts(account),
            *_behind(account, behind),
            *_files(account),
            *_fresh(account, fresh),
            (
                "Every scope stands in the tables "
                f"{', '.join(f'`{table_key(scope)}`' for scope in Scope)}."
            ),
            "",
        ]
    )


def table_key(scope: Scope) -> str:
    """The key of a scope's table among the artifacts."""
    return f"coverage-{scope.value}"


def table_rows(account: Account, scope: Scope) -> tuple[list[dict[str, str | int]], str]:
    """A row for each project, the worst first, and a sentence on what is left out."""
    of_scope = _worst_first(c for c in account.covered if c.scope is scope)
    rows: list[dict[str, str | int]] = []
    left = TABLE_BYTES
    for covered in of_scope:
        row = _row(covered, account)
        left -= sum(4 + len(f"{name}{value}".encode()) + 8 for name, value in row.items())
        if left < 0:
            break
        rows.append(row)
    missing = of_scope[len(rows) :]
    told = f"{counted(len(rows), 'project')}, as of {account.now:%Y-%m-%d %H:%M} UTC"
    if missing:
        told += f"; {_left_out(missing)}"
    return rows, told


def _row(c: ScopeCoverage, account: Account) -> dict[str, str | int]:
    return {
        "project": one_line(c.project),
        "state": c.state.value,
        "checked": moment(c.last_success, account.now),
        "why": one_line(c.reason),
        "complete": moment(c.last_complete, account.now),
        "documents": f"{c.indexed}/{c.found}",
        "failed": c.failed,
        "passages": c.chunks,
        "vectors": c.chunks_with_vector,
        "commit": _commit(c),
    }


def _degraded(account: Account) -> list[str]:
    errors = account.provider_errors
    if not errors:
        return []
    shown = [f"> {verbatim(error)}" for error in errors[:5]]
    more = [f"> and {counted(len(errors) - 5, 'other reason')}"] if len(errors) > len(shown) else []
    head = "> **Degraded**: the embedding provider fails, so questions are answered by words alone."
    return [head, ">", *shown, *more, ""]


def _overdue(account: Account) -> list[str]:
    if not account.overdue:
        return []
    named = [f"{o.project} {o.scope.value}" for o in account.overdue]
    return [
        (
            f"> **Overdue**: {counted(len(named), 'scope')} not brought up to date for longer than "
            f"allowed: {_named(named, 'scope')}."
        ),
        "",
    ]


def _counts(account: Account) -> list[str]:
    """How many projects are in which state, by scope."""
    found = Counter((c.state, c.scope) for c in account.covered)
    lines = [f"| state | {' | '.join(scope.value for scope in Scope)} |", "|---|---:|---:|---:|"]
    for state in _WORST_FIRST:
        numbers = [found[state, scope] for scope in Scope]
        if any(numbers):
            lines.append(f"| {state.value} | {' | '.join(f'{n:,}' for n in numbers)} |")
    never = account.never
    told = []
    if never:
        told = [f"{counted(len(never), 'project')} never indexed: {_named(never)}.", ""]
    return [*lines, "", *told] if account.covered else [*told, "Nothing is indexed.", ""]


def _behind(account: Account, behind: Sequence[ScopeCoverage]) -> list[str]:
    if not behind:
        return ["## Not up to date", "", "Nothing.", ""]
    lines = [
        f"* `{c.scope.value}` of {verbatim(c.project)}: **{c.state.value}**, last up to date "
        f"{moment(c.last_success, account.now)}, {c.indexed:,} of {counted(c.found, 'document')}, "
        f"{c.chunks_with_vector:,} of {counted(c.chunks, 'passage')} with a vector: "
        f"{verbatim(c.reason)}"
        for c in _worst_first(behind)
    ]
    head = [f"## Not up to date: {counted(len(behind), 'scope')}", ""]
    kept = _within(lines, _SHARES["behind"])
    return [*head, *lines[:kept], "", *_and_more(_worst_first(behind)[kept:])]


def _files(account: Account) -> list[str]:
    if not account.failed and not account.failed_elsewhere:
        return []
    lines = [
        f"* {linked(f.name, f.link)} ({f.scope} of {verbatim(f.project)}): {verbatim(f.reason)}"
        for f in account.failed
    ]
    kept = _within(lines, _SHARES["files"])
    left = account.failed_elsewhere + len(lines) - kept
    more = [
        f"{counted(left, 'more file')} failed; `concordance explain PROJECT PATH` says why.",
        "",
    ]
    return ["## Files that failed", "", *lines[:kept], "", *(more if left else [])]


def _fresh(account: Account, fresh: Sequence[ScopeCoverage]) -> list[str]:
    lines = [
        f"| {verbatim(c.project)} | {c.scope.value} | {moment(c.last_success, account.now)} "
        f"| {verbatim(_commit(c))} | {c.indexed:,}/{c.found:,} | {c.chunks:,} |"
        for c in fresh
    ]
    head = [
        f"## Up to date: {counted(len(fresh), 'scope')}",
        "",
        "| project | scope | checked | commit | documents | passages |",
        "|---|---|---|---|---:|---:|",
    ]
    kept = _within(lines, _SHARES["fresh"])
    return [*head, *lines[:kept], "", *_and_more(fresh[kept:])] if fresh else []


def _and_more(left: Sequence[ScopeCoverage]) -> list[str]:
    return [f"{_left_out(left)}.", ""] if left else []


def _left_out(left: Sequence[ScopeCoverage]) -> str:
    """How many scopes are not shown, of which states, in which projects."""
    states = Counter(c.state for c in left)
    of = ", ".join(f"{states[state]:,} {state.value}" for state in _WORST_FIRST if states[state])
    names = sorted({c.project for c in left})
    said = f"{counted(len(left), 'more scope')} {agreeing(len(left), 'is', 'are')} not shown"
    return f"{said}: {of}, in {_named(names)}"


def _named(slugs: Sequence[str], noun: str = "project") -> str:
    """As many names as there is room for, and how many more there are."""
    marked = [verbatim(slug) for slug in slugs]
    kept = _within(marked, _NAMED_BYTES)
    more = f" and {counted(len(slugs) - kept, f'more {noun}')}" if kept < len(slugs) else ""
    return f"{', '.join(marked[:kept])}{more}"


def _within(lines: Sequence[str], most: int) -> int:
    """How many of these lines have room in so many bytes."""
    for number, line in enumerate(lines):
        most -= len(line.encode()) + 2
        if most < 0:
            return number
    return len(lines)


def _commit(c: ScopeCoverage) -> str:
    shows_commit = c.scope is not Scope.SESSION and c.indexed_commit
    return one_line(c.indexed_commit or "", most=13)[:12] if shows_commit else ""


def _worst_first(covered: Iterable[ScopeCoverage]) -> list[ScopeCoverage]:
    return sorted(covered, key=lambda c: (_WORST_FIRST.index(c.state), c.project, c.scope.value))
