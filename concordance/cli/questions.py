"""Commands about recorded questions: a set of one's own, collected search by search."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from concordance.adapters.environment import process_environment, read_configuration
from concordance.cli.printing import print_json
from concordance.cli.running import Json
from concordance.escaping import in_a_line
from concordance.index import Index
from concordance.indexing.counting import counted

app = App(name="questions", help="Record, list, remove and export questions with their answers.")
OUT = Console()

ProjectSlug = Annotated[str, Parameter(name="--project", help="Slug of the project.")]


@app.command
def add(
    text: str,
    *,
    project: ProjectSlug,
    right: Annotated[
        tuple[str, ...],
        Parameter(
            help="Rank of the right hit in the search of this project for the same text, or the "
            "place: path:start-end, or 'session ID#EVENT'. May be given repeatedly."
        ),
    ],
) -> int:
    """Record a question with the passage that answers it."""
    with _open() as index:
        places = [index.record_question(project, text, one) for one in right]
        count = len({row.question for row in index.recorded_questions(project)})
    for place in places:
        OUT.print(Text(f"Recorded with {in_a_line(str(place))}"))
    OUT.print(Text(f"'{project}' has {counted(count, 'question')} now."))
    return 0


@app.command(name="list")
def list_questions(
    *,
    project: Annotated[str | None, Parameter(help="Only this project's.")] = None,
    json: Json = False,
) -> int:
    """Show the recorded questions, each with the places that answer it."""
    with _open() as index:
        rows = index.recorded_questions(project)
    if json:
        print_json(
            {"questions": [asdict(r) | {"recorded_at": r.recorded_at.isoformat()} for r in rows]}
        )
        return 0
    table = Table()
    for name in ("Number", "Project", "Question", "Right place", "Recorded"):
        table.add_column(name, overflow="fold")  # what is cut off can't be typed again
    for row in rows:
        table.add_row(
            str(row.id),
            row.project,
            Text(in_a_line(row.question)),
            Text(in_a_line(str(row.place))),
            f"{row.recorded_at:%Y-%m-%d}",
        )
    OUT.print(table)
    return 0


@app.command
def remove(number: int) -> int:
    """Remove one recorded question, by the number that `list` shows."""
    with _open() as index:
        gone = index.forget_question(number)
    OUT.print(Text("It was removed." if gone else f"There is no question {number}."))
    return 0 if gone else 1


@app.command
def export(folder: Path, *, project: ProjectSlug) -> int:
    """Write a project's questions and passages in BEIR form, for evaluate and calibrate."""
    with _open() as index:
        done = index.export_questions(project, folder)
    OUT.print(
        Text(
            f"{counted(done.questions, 'question')} and {counted(done.passages, 'passage')} "
            f"are in {folder}."
        )
    )
    for question in done.lost:
        said = f"Left out, as no passage holds its answer any more: {in_a_line(question)}"
        OUT.print(Text(said, style="yellow"))
    return 0


def _open() -> Index:
    environ = process_environment()
    return Index.open(read_configuration(environ, need_projects=False), environment=environ)
