"""The command that lists a project's decision records."""

from __future__ import annotations

from cyclopts import App
from rich.console import Console
from rich.table import Table
from rich.text import Text

from concordance.adapters.environment import process_environment, read_configuration
from concordance.cli.printing import print_json
from concordance.cli.running import Json
from concordance.decisions import DecisionRecord, DecisionRecords
from concordance.escaping import in_a_line
from concordance.index import Index
from concordance.indexing.counting import counted
from concordance.models import AdrStatus

app = App()
OUT = Console()
_STYLE = {
    AdrStatus.ACCEPTED: "green",
    AdrStatus.PROPOSED: "yellow",
    AdrStatus.REJECTED: "red",
    AdrStatus.DEPRECATED: "dim",
    AdrStatus.SUPERSEDED: "dim",
    AdrStatus.UNKNOWN: "",
}


@app.command
def adr(project: str, *, json: Json = False) -> int:
    """List a project's decision records with their status, and what replaced what.

    Broken links and contested claims stand below the list. Ends with 1 if there is no record.
    """
    environ = process_environment()
    configuration = read_configuration(environ, need_projects=False)
    with Index.open(configuration, environment=environ) as index:
        found = index.decision_records(project)
    if json:
        print_json(found)
    else:
        print_records(OUT, found)
    return 0 if found.records else 1


def print_records(console: Console, found: DecisionRecords) -> None:
    """A row a record, then what is in doubt, then the counts."""
    if not found.records:
        console.print(Text(f"'{found.project}' has no decision records in the index."))
        return
    table = Table()
    for name in ("Record", "Status", "Date", "Title"):
        table.add_column(name, overflow="fold")  # what is cut off can't be typed again
    for record in found.records:
        table.add_row(
            Text(in_a_line(record.path), overflow="fold"),
            Text(record.status.value, style=_STYLE[record.status]),
            "" if record.date is None else record.date.isoformat(),
            Text(_title(record)),
        )
    console.print(table)
    for doubt in found.doubts:
        head = Text(f"{doubt.fault.value}: ", style="yellow")
        console.print(head + Text(in_a_line(f"{doubt.path}: {doubt.reason}")), soft_wrap=True)
    counts = {status: sum(r.status is status for r in found.records) for status in AdrStatus}
    said = ", ".join(f"{n} {status.value}" for status, n in counts.items() if n)
    console.print(Text(f"{counted(len(found.records), 'record')}: {said}", style="dim"))


def _title(record: DecisionRecord) -> str:
    """The title, and below it what the record replaced and what replaced it."""
    lines = [in_a_line(record.title or "")]
    if record.superseded_by:
        lines.append(f"superseded by {in_a_line(', '.join(record.superseded_by))}")
    elif record.status is AdrStatus.UNKNOWN and record.status_text:
        lines.append(f"its status reads: {in_a_line(record.status_text)}")
    if record.supersedes:
        lines.append(f"supersedes {in_a_line(', '.join(record.supersedes))}")
    return "\n".join(line for line in lines if line)
