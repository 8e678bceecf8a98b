"""Commands that measure the search, and fit it to a project, on questions with known answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from concordance.adapters.environment import process_environment, read_configuration
from concordance.cli.printing import print_json
from concordance.cli.progress_bars import bars
from concordance.cli.running import Json
from concordance.errors import BadRequest
from concordance.escaping import safe
from concordance.figures import CalibrationReport, Evaluation, Figure
from concordance.index import Index
from concordance.indexing.counting import counted
from concordance.progress import announcer
from concordance.ranking.calibration import Part
from concordance.reporting import interval

app = App()
OUT = Console()
ERR = Console(stderr=True)

Data = Annotated[
    Path, Parameter(help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv (BEIR form).")
]


@app.command
def evaluate(
    *,
    data: Data,
    language: Annotated[
        str, Parameter(help="A Postgres text-search configuration; auto detects each document's.")
    ] = "auto",
    vectors: Annotated[
        bool, Parameter(help="Embed the set; without, its words alone are measured.")
    ] = True,
    json: Json = False,
) -> int:
    """Measure every ranking on a set of questions with known answers.

    The set becomes a project apart from all others, which no search sees; a second evaluation of an
    unchanged set uses the same rows and vectors.
    """
    with _open() as index, bars(ERR):
        found = index.evaluate(data, language=language, vectors=vectors, progress=_news(data.name))
    if json:
        print_json(found)
    else:
        print_evaluation(OUT, found)
    return 0


@app.command
def calibrate(
    *,
    project: Annotated[str, Parameter(help="Slug of the project that the numbers are for.")],
    data: Annotated[
        Path | None,
        Parameter(help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv (BEIR form)."),
    ] = None,
    undo: Annotated[
        bool, Parameter(negative=(), help="Go back to the defaults instead of fitting.")
    ] = False,
    json: Json = False,
) -> int:
    """Fit a project's vector weight, confidence and threshold, and keep what is better.

    Half of the questions are fitted on, the other half judges. Ends with 0 when something was kept
    or undone, 1 when nothing was.
    """
    if undo == (data is not None):
        raise BadRequest("give either --data DIR, to fit, or --undo")
    with _open() as index, bars(ERR):
        if data is None:
            gone = index.undo_calibration(project)
        else:
            report = index.calibrate(project, data, progress=_news(data.name))
    if data is None:
        said = "uses the defaults again" if gone else "was not calibrated"
        if json:
            print_json({"project": project, "undone": gone})
        else:
            OUT.print(Text(f"'{project}' {said}."))
        return 0 if gone else 1
    if json:
        print_json(report)
    else:
        print_calibration(OUT, report)
    return 0 if report.stored else 1


def print_evaluation(console: Console, found: Evaluation) -> None:
    """One row a ranking, then what each is worth against the others, confidence and times."""
    # As text: a folder's name may look like markup.
    title = Text(
        f"{safe(found.name)}: {counted(found.questions, 'question')}, "
        f"{counted(found.documents, 'document')}"
    )
    table = Table("Ranking", title=title, title_justify="left")
    for name in ("nDCG@10", "Recall@100", "MRR@10", f"nDCG@10 less {found.baseline}"):
        table.add_column(name, justify="right")
    for ranked in found.rankings:
        figures = (ranked.ndcg_10, ranked.recall_100, ranked.mrr_10)
        means = [f"{figure.mean:.3f}" for figure in figures]
        table.add_row(ranked.ranking.value, *means, _against(ranked.ndcg_10))
    console.print(table)
    if found.flaw is not None:
        console.print(Text(found.flaw, style="yellow"))
    if found.against_better_leg is not None and found.better_leg is not None:
        console.print(
            f"{found.baseline} against its better leg, {found.better_leg}: "
            f"{interval(found.against_better_leg)}"
        )
    c = found.confidence
    auc = "unknown" if c.auc is None else f"{c.auc:.3f}"
    kept = "unknown" if c.right_kept is None else f"{c.right_kept:.0%}"
    console.print(
        f"Confidence: AUC {auc}, Brier score {c.brier:.3f}; the threshold {c.threshold:g} keeps "
        f"{kept} of the right passages and refuses {c.absent_refused:.0%} of the questions whose "
        "answer was taken away"
    )
    times = Table("Part", title="Milliseconds", title_justify="left")
    times.add_column("p50", justify="right")
    times.add_column("p95", justify="right")
    for latency in found.latency:
        times.add_row(latency.part, f"{latency.p50:.1f}", f"{latency.p95:.1f}")
    console.print(times)


def print_calibration(console: Console, report: CalibrationReport) -> None:
    """One row a part: what was fitted, and how it did on the questions that it did not see."""
    c = report.calibration
    table = Table("Part", "Measure", title=Text(f"{report.project}, by {safe(c.set_name)}"))
    for name in ("Fitted to", "Default", "Fitted", "Gain"):
        table.add_column(name, justify="right")
    table.add_column("Kept")
    for check in c.figures:
        gain = f"{check.gain.difference:+.4f} ({check.gain.low:+.4f} to {check.gain.high:+.4f})"
        value = "" if check.value is None else f"{check.value:.4g}"
        figures = (value, f"{check.default:.4f}", f"{check.fitted:.4f}", gain)
        kept = Text("yes", style="green") if check.kept else Text("no", style="yellow")
        table.add_row(check.part.value, check.measure, *figures, kept)
    console.print(table)
    for check in c.figures:
        console.print(Text(f"{check.part.value}: {check.reason}"))
    if report.auc_default is not None and report.auc_fitted is not None:
        name = Part.CONFIDENCE.value
        console.print(f"AUC of {name}: {report.auc_default:.3f}, {report.auc_fitted:.3f} fitted")
    if report.stored:
        console.print(Text(f"Kept for '{report.project}': {safe(c.summary)}", style="green"))
        console.print(Text(f"Undo: concordance calibrate --project {report.project} --undo"))
    else:
        console.print(Text("Nothing was kept: the defaults stay.", style="yellow"))


def _against(figure: Figure) -> str:
    return "" if figure.against_baseline is None else interval(figure.against_baseline)


def _news(name: str) -> Callable[[str, int, int], None]:
    """Progress of a stage, handed on to the bars."""
    return lambda stage, done, total: announcer(stage, name)(done, total)


def _open() -> Index:
    environ = process_environment()
    return Index.open(read_configuration(environ, need_projects=False), environment=environ)
