"""Commands that change the index: they start flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from concordance.adapters.embedding import open_embedder
from concordance.adapters.environment import process_environment, read_configuration
from concordance.adapters.prefect_server import PrefectServer, runs_at_work
from concordance.cli import orchestration
from concordance.cli.printing import print_coverage, print_json
from concordance.cli.progress_bars import bars
from concordance.cli.watching import Connection
from concordance.errors import ConcordanceError, OrchestrationError
from concordance.escaping import in_a_line
from concordance.index import Index
from concordance.indexing.counting import counted
from concordance.indexing.outcome import Outcome, Verdict, judge_run
from concordance.models import Scope, ScopeCoverage
from concordance.settings import Configuration

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State

app = App()
OUT = Console()
ERR = Console(stderr=True)

Json = Annotated[
    bool, Parameter(name="--json", negative=(), help="Print one JSON document instead of a table.")
]
Verbose = Annotated[bool, Parameter(negative=(), help="Show Prefect's log as well.")]


@app.command
def reindex(
    *projects: str,
    scope: Annotated[
        tuple[Scope, ...],
        Parameter(
            negative=(),
            show_default=False,
            help="Only these kinds of source; may be given repeatedly.",
        ),
    ] = (),
    full: Annotated[
        bool, Parameter(negative=(), help="Read and write every document anew.")
    ] = False,
    json: Json = False,
    verbose: Verbose = False,
) -> int:
    """Bring projects up to date: all of projects.toml, or those named.

    Ends with 0 when all that can be indexed is indexed, 1 when a project failed or vectors are
    missing, 2 when the command itself was wrong.
    """
    configuration = _configuration(projects)
    connection = connect(configuration, verbose=verbose)
    with bars(ERR):
        state = orchestration.run_reindex(connection, projects, scope, full=full)
    slugs = list(projects) or [project.slug for project in configuration.projects]
    with Index.open(configuration) as index:
        covered = [c for c in index.coverage(slugs) if not scope or c.scope in scope]
        verdict = _verdict(state, judge_run(slugs, covered))
        _report(index, covered, verdict, json=json)
    if not json:
        ERR.print(Text(f"Runs: {connection.url.removesuffix('/api')}", style="dim"))
    return 0 if verdict.good else 1


@app.command
def backfill(
    *projects: str,
    retry_refused: Annotated[
        bool, Parameter(negative=(), help="Also try texts that the model refused too often.")
    ] = False,
    json: Json = False,
    verbose: Verbose = False,
) -> int:
    """Embed whatever waits for a vector; several may run at once."""
    configuration = _configuration(projects)
    connection = connect(configuration, verbose=verbose)
    with bars(ERR):
        state = orchestration.run_backfill(connection, projects, retry_refused=retry_refused)
    with Index.open(configuration) as index:
        covered = index.coverage(list(projects) or None)
        slugs = sorted({c.project for c in covered})
        verdict = _verdict(state, judge_run(slugs, covered))
        _report(index, covered, verdict, json=json)
    return 0 if verdict.good else 1


@app.command
def serve(*, verbose: Verbose = True) -> int:
    """Deploy the flows of deployments/prefect.yaml and work on them, until interrupted."""
    configuration = _configuration(())
    connection = connect(configuration, verbose=verbose)
    ERR.print(Text(f"Prefect UI: {connection.url.removesuffix('/api')}", style="bold"))
    root = orchestration.project_root()
    return orchestration.serve_deployments(connection, configuration, root)


@app.command
def ui() -> int:
    """Print the address of the Prefect UI, starting this user's server where needed."""
    configuration = read_configuration(process_environment(), need_projects=False)
    connection = connect(configuration, verbose=False)
    print(connection.url.removesuffix("/api"))  # noqa: T201 - it is the output
    return 0


@app.command
def down(
    *,
    force: Annotated[
        bool, Parameter(negative=(), help="Stop it though runs are at work; they will fail.")
    ] = False,
) -> int:
    """Stop the Prefect server of this state directory (CONCORDANCE_HOME)."""
    configuration = read_configuration(process_environment(), need_projects=False)
    server = PrefectServer(configuration.settings.home, process_environment())
    found = server.find()
    working = runs_at_work(found) if found is not None else 0
    if working and not force:
        raise OrchestrationError(
            f"{counted(working, 'run')} at work on this Prefect server",
            hint="Wait for the end, or stop it with --force; a run that was killed counts, too",
        )
    stopped = server.stop()
    ERR.print("The Prefect server was stopped." if stopped else "No Prefect server was running.")
    return 0


def _configuration(slugs: Sequence[str]) -> Configuration:
    """The configuration, with every project named checked before anything is started."""
    configuration = read_configuration(process_environment())
    for slug in slugs:
        Index.check_slug(configuration, slug)
    settings = configuration.settings
    open_embedder(settings.embedding_model, settings).close()  # refuses a name that nobody knows
    return configuration


def connect(configuration: Configuration, *, verbose: bool) -> Connection:
    """Reach a Prefect server, starting this user's own where needed."""
    return orchestration.connect(
        configuration,
        verbose=verbose,
        on_start=lambda: ERR.print(Text("Starting a Prefect server …", style="dim")),
    )


def _verdict(state: State[Any], counted: Verdict) -> Verdict:
    """What the tables say; a run that broke off is never better than failed."""
    if state.is_completed():
        return counted
    error = state.result(raise_on_failure=False)
    if not isinstance(error, ConcordanceError):
        return Verdict(Outcome.FAILED, state.message or f"the run ended as {state.name}")
    also = f"; {counted.message}" if counted.outcome is Outcome.FAILED else ""
    return Verdict(Outcome.FAILED, f"{error}{also}")


def _report(
    index: Index, covered: Sequence[ScopeCoverage], verdict: Verdict, *, json: bool
) -> None:
    if json:
        print_json(
            {
                "outcome": verdict.outcome.value,
                "message": verdict.message,
                "coverage": [c.model_dump(mode="json") for c in covered],
            }
        )
        return
    print_coverage(OUT, covered, now=index.now())
    style = "green" if verdict.outcome is Outcome.COMPLETE else "yellow" if verdict.good else "red"
    OUT.print(Text(f"{verdict.outcome.value}: {in_a_line(verdict.message)}", style=f"bold {style}"))
