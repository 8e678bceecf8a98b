"""The command that takes secrets out of what is stored."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from concordance.adapters.environment import process_environment, read_configuration
from concordance.cli.printing import print_json
from concordance.cli.progress_bars import bars
from concordance.cli.running import Json
from concordance.errors import BadRequest
from concordance.escaping import in_a_line
from concordance.index import Index
from concordance.indexing.counting import counted
from concordance.progress import announcer
from concordance.purging import Purged

app = App()
OUT = Console()
ERR = Console(stderr=True)
OLD_ROWS = (
    "Old versions of rows stay in Postgres's files until they are written anew: "
    "'concordance purge --secrets --rewrite'. Backups, replicas and archived WAL keep theirs."
)
REWRITTEN = (
    "The tables' files were written anew, without old versions of rows. Backups, replicas and "
    "archived WAL keep theirs."
)


@app.command
def purge(
    *projects: str,
    secrets: Annotated[
        bool, Parameter(negative=(), help="Take secrets out: what there is to purge.")
    ] = False,
    rewrite: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Then write the tables' files anew, without old versions of rows; this locks the "
            "tables and needs as much free disk as they take.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Apply today's rules to what is stored of all projects, or of those named.

    Ends with 0 when every project was gone through, 1 when one was left alone.
    """
    if not secrets:
        raise BadRequest("say what to purge", hint="Write: concordance purge --secrets")
    configuration = read_configuration(process_environment(), need_projects=False)

    def tell(project: str, done: int, total: int) -> None:
        announcer("purge", project)(done, total)

    with Index.open(configuration) as index, bars(ERR):
        done = index.purge_secrets(list(projects) or None, progress=tell, rewrite=rewrite)
    if json:
        print_json({"projects": [asdict(one) for one in done], "rewritten": rewrite})
    else:
        _print(done, rewrite=rewrite)
    return 1 if any(one.left for one in done) else 0


def _print(done: list[Purged], *, rewrite: bool) -> None:
    for one in done:
        if one.left is not None:
            OUT.print(Text(f"{one.project}: left alone: {in_a_line(one.left)}", style="yellow"))
            continue
        kinds = ", ".join(f"{number:,} {in_a_line(kind)}" for kind, number in one.secrets.items())
        OUT.print(
            Text(
                f"{one.project}: {one.changed:,} of {counted(one.documents, 'document')} changed"
                + (f", {kinds}" if kinds else "")
            )
        )
    if any(one.changed for one in done):
        OUT.print(Text("Changed passages wait for vectors: concordance backfill", style="dim"))
        if not rewrite:
            OUT.print(Text(OLD_ROWS, style="yellow"))
    if rewrite:
        OUT.print(Text(REWRITTEN, style="dim"))
