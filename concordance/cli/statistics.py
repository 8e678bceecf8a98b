"""The command that compares the statistics of words with the rows they speak of."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from concordance.adapters.environment import process_environment, read_configuration
from concordance.cli.printing import print_json
from concordance.cli.progress_bars import bars
from concordance.cli.running import Json
from concordance.escaping import safe
from concordance.index import Index
from concordance.indexing.counting import counted
from concordance.progress import announcer

app = App()
OUT = Console()
ERR = Console(stderr=True)
# More of them tell nothing new.
SHOWN = 50


@app.command
def statistics(
    *,
    project: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="Only these; by default every project."),
    ] = (),
    rebuild: Annotated[
        bool, Parameter(negative=(), help="Make the statistics anew from the rows.")
    ] = False,
    json: Json = False,
) -> int:
    """Compare the statistics that words are ranked by with the rows, and report any difference.

    There must be none: every write keeps them right. Ends with 0 when there is none and with 1 when
    there was one, also where `--rebuild` has put it right.
    """
    environ = process_environment()
    configuration = read_configuration(environ, need_projects=False)
    with Index.open(configuration, environment=environ) as index, bars(ERR):
        found = index.check_statistics(
            project or None, rebuild=rebuild, progress=announcer("check", "statistics")
        )
    if json:
        print_json({"rebuilt": rebuild, "differences": [asdict(one) for one in found]})
        return 1 if found else 0
    if not found:
        OUT.print("No difference.")
        return 0
    table = Table("Project", "Language", "Word", title=counted(len(found), "difference"))
    for name in ("Stored", "Counted"):
        table.add_column(name, justify="right")
    for one in found[:SHOWN]:
        row = (one.project, one.language, one.lexeme or "all words")
        numbers = ("" if n is None else f"{n:g}" for n in (one.stored, one.counted))
        table.add_row(*(Text(safe(cell)) for cell in row), *numbers)
    OUT.print(table)
    said = "They were made anew." if rebuild else "Make them anew: concordance statistics --rebuild"
    OUT.print(Text(said))
    return 1
