"""Commands that ask the index: they call the front door and start nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from cyclopts import App, Parameter
from pydantic import ValidationError
from rich.console import Console

from concordance.adapters.environment import process_environment, read_configuration
from concordance.cli.printing import (
    print_answer,
    print_cited,
    print_coverage,
    print_explanation,
    print_json,
)
from concordance.cli.running import Json
from concordance.errors import BadRequest
from concordance.index import Index
from concordance.models import AdrStatus, CoverageState, Fusion, Scope, SearchRequest

app = App()
OUT = Console()
Scopes = Annotated[
    tuple[Scope, ...],
    Parameter(negative=(), show_default=False, help="Only these kinds of source."),
]
Projects = Annotated[
    tuple[str, ...], Parameter(negative=(), show_default=False, help="Only these projects.")
]
States = Annotated[
    tuple[AdrStatus, ...],
    Parameter(negative=(), show_default=False, help="Only decision records of these states."),
]
# What the request's fields are called here.
OPTIONS = {
    "text": "the question",
    "projects": "--project",
    "scopes": "--scope",
    "path_prefix": "--path",
    "since": "--since",
    "adr_status": "--adr-status",
    "top_k": "--top-k",
    "threshold": "--threshold",
    "deadline_seconds": "--deadline",
}


@app.command
def search(  # noqa: PLR0913 - one parameter an option
    text: str,
    *,
    project: Projects = (),
    scope: Scopes = (),
    path: Annotated[str | None, Parameter(help="Only files whose path starts with this.")] = None,
    since: Annotated[
        datetime | None, Parameter(help="Only session turns at or after this time.")
    ] = None,
    adr_status: States = (),
    top_k: Annotated[int, Parameter(help="How many passages, 100 at most.")] = 10,
    fusion: Annotated[
        Fusion, Parameter(help="How words and vectors are combined.")
    ] = Fusion.CONVEX,
    threshold: Annotated[
        float | None,
        Parameter(help="Least confidence of a hit, 0 to 1; by default the project's own, or 0.1."),
    ] = None,
    full: Annotated[bool, Parameter(negative=(), help="Show each passage whole.")] = False,
    deadline: Annotated[float, Parameter(help="Seconds for the whole answer.")] = 5.0,
    json: Json = False,
) -> int:
    """Find the passages that answer a question, each with a citation that can be checked.

    Ends with 0 when something was found, 1 when nothing was.
    """
    try:
        request = SearchRequest(
            text=text,
            projects=project or None,
            scopes=scope or None,
            path_prefix=path,
            since=_with_zone(since),
            adr_status=adr_status or None,
            top_k=top_k,
            fusion=fusion,
            threshold=threshold,
            deadline_seconds=deadline,
        )
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = str(fault["loc"][0]) if fault["loc"] else "text"
        raise BadRequest(f"{OPTIONS.get(field, field)}: {fault['msg']}") from None
    with _open() as index:
        answer = index.search(request)
    if json:
        print_json(answer)
    else:
        print_answer(OUT, answer, full=full)
    return 0 if answer.hits else 1


@app.command
def coverage(
    *projects: str,
    check: Annotated[
        bool,
        Parameter(negative=(), help="End with 1 unless every scope is complete or absent."),
    ] = False,
    json: Json = False,
) -> int:
    """Show what is indexed and how far it can be trusted."""
    with _open() as index:
        covered = index.coverage(list(projects) or None)
        if json:
            print_json(covered)
        else:
            print_coverage(OUT, covered, now=index.now())
    settled = (CoverageState.COMPLETE, CoverageState.ABSENT)
    unsettled = not covered or any(c.state not in settled for c in covered)
    return 1 if check and unsettled else 0


@app.command
def explain(project: str, path: str, *, json: Json = False) -> int:
    """Say why a file or session is, or is not, in the index."""
    with _open() as index:
        explanation = index.explain(project, path)
    if json:
        print_json(explanation)
    else:
        print_explanation(OUT, explanation)
    return 0 if explanation.in_index else 1


@app.command
def cite(
    citation: str,
    *,
    around: Annotated[
        int | None,
        Parameter(help="Lines before and after, 5 by default; of a session turns, 1 by default."),
    ] = None,
    json: Json = False,
) -> int:
    """Show the lines or the turn that a citation names, with what is around them, as stored."""
    with _open() as index:
        cited = index.read_citation(citation, around=around)
    if json:
        print_json(cited)
    else:
        print_cited(OUT, cited)
    return 0


def _with_zone(moment: datetime | None) -> datetime | None:
    """A time without an offset is this machine's own."""
    if moment is None or moment.tzinfo is not None:
        return moment
    try:
        return moment.astimezone()
    except (OverflowError, ValueError, OSError):
        raise BadRequest(f"--since: {moment:%Y-%m-%d} is outside the calendar of zones") from None


def _open() -> Index:
    environ = process_environment()
    return Index.open(read_configuration(environ, need_projects=False), environment=environ)
