"""How good the search is on a set of questions with known answers, as artifacts to look at."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.parameters import Language, SetFolder, Vectors, check_folder
from tasks.evaluation import evaluate_set
from tasks.presenting import show_evaluation


@flow(name="evaluate", flow_run_name="evaluate {data}", log_prints=False, persist_result=True)
def evaluate(
    data: SetFolder, language: Language = "auto", vectors: Vectors = True
) -> dict[str, Any]:
    """Measure every ranking and fusion; the result is the evaluation as JSON.

    Args:
        data: Folder on the worker's machine with corpus.jsonl, queries.jsonl and qrels.tsv.
        language: A Postgres text-search configuration, or auto to detect each document's.
        vectors: Embed the set; if off, its words alone are measured.
    """
    check_folder("data", data)
    found = evaluate_set(data, language, vectors)
    show_evaluation(found)
    plain: dict[str, Any] = found.model_dump(mode="json")
    return plain
