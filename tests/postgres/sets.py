"""A made-up set of questions with known answers, in BEIR form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

NAMES = (
    "amber",
    "birch",
    "cedar",
    "dahlia",
    "elder",
    "fennel",
    "ginger",
    "hazel",
    "iris",
    "juniper",
)
PARTS = ("valve", "pump", "filter", "sensor", "gauge", "hose", "lamp", "motor", "relay", "switch")


def write_set(
    folder: Path,
    corpus: Sequence[Mapping[str, object]],
    questions: Sequence[Mapping[str, object]],
    relevant: Sequence[tuple[str, str]],
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", corpus), ("queries", questions)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    lines = ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t1" for q, d in relevant)]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n")
    return folder


def manuals(folder: Path, questions: int = 60) -> Path:
    """A hundred machines' parts, each with one text, and questions that hold most of its words."""
    corpus = [
        {
            "_id": f"{name}-{part}",
            "title": f"The {part}",
            "text": f"Clean the {part} of the {name} machine in week {n} and note it in the book.",
        }
        for n, (name, part) in enumerate((n, p) for n in NAMES for p in PARTS)
    ]
    asked = [(f"q{n}", str(corpus[n]["_id"])) for n in range(questions)]
    rows = [
        {"_id": q, "text": f"please tell, who cleans the {part} of {name}?"}
        for q, place in asked
        for name, part in [place.split("-")]
    ]
    return write_set(folder, corpus, [*rows, {"_id": "open", "text": "who pays?"}], asked)


def misleading(folder: Path, questions: int = 80) -> Path:
    """A set on which the vectors of a bag of words lead astray, and one rare word is enough.

    For each question there are texts that hold all its frequent words and little else.
    """
    talk = "the weekly report about our regular machine maintenance schedule"
    corpus = [
        {
            "_id": f"right{n}",
            "title": "",
            "text": f"Part zx{n}q was found broken, so somebody ordered another from far away.",
        }
        for n in range(questions)
    ]
    corpus += [{"_id": f"talk{n}", "title": "", "text": f"{talk} {n}"} for n in range(200)]
    rows = [{"_id": f"q{n}", "text": f"{talk} zx{n}q"} for n in range(questions)]
    return write_set(folder, corpus, rows, [(f"q{n}", f"right{n}") for n in range(questions)])
