"""How good the search is on a set of questions with known answers, as artifacts to look at."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact, create_table_artifact

from concordance.reporting import page, plain_name, rows
from flows.parameters import Language, SetFolder, Vectors, check_folder
from tasks.evaluation import evaluate_set


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
    # A key takes letters, digits and dashes only.
    key = "".join(c if c.isalnum() else "-" for c in found.project)
    create_table_artifact(rows(found), key=key, description=f"Rankings on {plain_name(found.name)}")
    create_markdown_artifact(page(found), key=f"{key}-page")
    plain: dict[str, Any] = found.model_dump(mode="json")
    return plain
