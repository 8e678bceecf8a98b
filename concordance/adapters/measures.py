"""How good a ranking is: the measures of `ir-measures`, question by question.

What belongs here: calling that package, which computes nDCG and recall by trec_eval's own code.
Means and their intervals are `concordance.ranking`'s matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum


class Measure(StrEnum):
    """What is measured of a ranking, by the names that `ir-measures` gives."""

    NDCG_10 = "nDCG@10"
    RECALL_100 = "R@100"
    MRR_10 = "RR@10"


def measure(
    rankings: Mapping[str, Sequence[str]], relevant: Mapping[str, Mapping[str, int]]
) -> dict[Measure, dict[str, float]]:
    """Each measure of each question of `relevant`; one that is not ranked counts 0.

    Args:
        rankings: Ids of documents, best first, by question.
        relevant: How well documents answer, by question and document.

    Sources: Järvelin and Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques" (nDCG,
    with trec_eval's linear gains); MacAvaney, Macdonald, Ounis 2022, "Streamlining Evaluation with
    ir-measures".
    """
    import ir_measures  # noqa: PLC0415 - it brings scipy, which no search needs

    wanted = {kind: ir_measures.parse_measure(kind.value) for kind in Measure}
    names = {str(parsed): kind for kind, parsed in wanted.items()}
    qrels = [
        ir_measures.Qrel(question, document, score)
        for question, documents in relevant.items()
        for document, score in documents.items()
    ]
    # Scores that fall by one: the order is ours, also where two fused scores are the same.
    run = [
        ir_measures.ScoredDoc(question, document, float(-place))
        for question, ranked in rankings.items()
        for place, document in enumerate(ranked)
    ]
    found: dict[Measure, dict[str, float]] = {
        kind: dict.fromkeys(relevant, 0.0) for kind in Measure
    }
    if run:
        for metric in ir_measures.iter_calc(list(wanted.values()), qrels, run):
            found[names[str(metric.measure)]][metric.query_id] = float(metric.value)
    return found
