"""An evaluation as rows of a table and as a page of Markdown with a plot of bars.

What belongs here: rendering for pages, such as those of the Prefect UI. The terminal's tables are
the command line's matter.
"""

from __future__ import annotations

from concordance.figures import Evaluation, Figure
from concordance.indexing.counting import counted
from concordance.ranking.bootstrap import Interval

_BAR_WIDTH = 40
_EIGHTHS = " ▏▎▍▌▋▊▉"


def rows(found: Evaluation) -> list[dict[str, str | float]]:
    """One row a ranking, by column name."""
    return [
        {
            "ranking": ranked.ranking.value,
            "nDCG@10": round(ranked.ndcg_10.mean, 4),
            "Recall@100": round(ranked.recall_100.mean, 4),
            "MRR@10": round(ranked.mrr_10.mean, 4),
            f"nDCG@10 less {found.baseline.value} (95 %)": _against(ranked.ndcg_10),
        }
        for ranked in found.rankings
    ]


def page(found: Evaluation) -> str:
    """What was measured, on what, how the rankings compare, and how long a search took."""
    table = rows(found)
    head = list(table[0])
    lines = [
        f"# {plain_name(found.name)}",
        "",
        (
            f"{counted(found.questions, 'question')} with a known answer, "
            f"{counted(found.documents, 'document')} in {counted(found.passages, 'passage')}, "
            f"language `{_code(found.language)}`, model `{_code(found.model or 'none')}`, "
            f"{found.as_of:%Y-%m-%d %H:%M} UTC."
        ),
        "",
        "```text",
        *_bars(found),
        "```",
        "",
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(str(row[name]) for name in head)} |" for row in table),
        "",
        *_judged(found),
        "| milliseconds | p50 | p95 |",
        "|---|---|---|",
        *(f"| {part.part} | {part.p50:.1f} | {part.p95:.1f} |" for part in found.latency),
        "",
    ]
    return "\n".join(lines)


def interval(found: Interval) -> str:
    """A difference and where it may lie, as `+0.012 (-0.003 to +0.027)`."""
    return f"{found.difference:+.3f} ({found.low:+.3f} to {found.high:+.3f})"


def _against(figure: Figure) -> str:
    return "" if figure.against_baseline is None else interval(figure.against_baseline)


def _bars(found: Evaluation) -> list[str]:
    """nDCG@10 of each ranking as a bar; the full width is 1."""
    width = max(len(ranked.ranking.value) for ranked in found.rankings)
    lines = ["nDCG@10"]
    for ranked in found.rankings:
        eighths = round(ranked.ndcg_10.mean * _BAR_WIDTH * 8)
        bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
        lines.append(
            f"{ranked.ranking.value:<{width}} {ranked.ndcg_10.mean:.3f} {bar:<{_BAR_WIDTH}}|"
        )
    return lines


def _judged(found: Evaluation) -> list[str]:
    lines = [] if found.flaw is None else [f"{found.flaw}.", ""]
    if found.better_leg is not None and found.against_better_leg is not None:
        lines += [
            (
                f"{found.baseline.value} against its better leg, {found.better_leg.value}: "
                f"{interval(found.against_better_leg)}."
            ),
            "",
        ]
    confidence = found.confidence
    if confidence.auc is not None:
        lines += [
            (
                "Confidence tells questions from the same ones without their answer with an AUC "
                f"of {confidence.auc:.3f} (Brier score {confidence.brier:.3f})."
            ),
            "",
        ]
    return lines


def plain_name(name: str) -> str:
    """A folder's name without what Markdown or a page would obey."""
    return "".join(c if c.isalnum() or c in " ._-" else "-" for c in name)


def _code(name: str) -> str:
    """A name between backticks, which nothing in it may end."""
    return "".join(c if c.isprintable() and c != "`" else "-" for c in name)
