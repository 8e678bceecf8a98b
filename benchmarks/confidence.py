"""Whether confidence tells that an answer is there, on sets that its model was not fitted to.

    python -m benchmarks.confidence SET SET [SET …]

Each argument is a set in BEIR form, as `concordance evaluate` reads it. Each question is asked as
it is, and once more with its relevant documents taken away; the area under the curve says how well
a model tells the two forms apart. The model of each set is fitted on the others, with equally many
questions of each.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from concordance.adapters.beir import QuestionSet, read_set
from concordance.adapters.environment import process_environment, read_configuration
from concordance.asking import Asked, ask_all
from concordance.index import Index
from concordance.loading import load
from concordance.ranking.confidence import DEFAULT, Features, Logistic, confidence
from concordance.ranking.logistic import fit
from concordance.ranking.metrics import area_under_curve
from concordance.resources import Resources

SEED = 7
MOST_OF_A_SET = 300
NOTHING = Features(share=0.0, cosine=0.0, lead=0.0)
# What a model may look at: all of it, and what is left without a part.
PARTS = {
    "share, cosine, lead": ("share", "cosine", "lead"),
    "share, cosine": ("share", "cosine"),
    "share": ("share",),
    "cosine": ("cosine",),
}


@dataclass(frozen=True, slots=True)
class Case:
    """The best passage of a question in one form."""

    features: Features
    present: bool

    def row(self, parts: Sequence[str]) -> tuple[float, ...]:
        """The chosen features; what a leg has nothing to say of counts as nothing."""
        values: list[float | None] = [getattr(self.features, part) for part in parts]
        return tuple(value or 0.0 for value in values)


def main() -> None:
    """Ask every set, then judge each by the others."""
    folders = [Path(argument) for argument in sys.argv[1:]]
    if len(folders) < 2:
        sys.exit(__doc__)
    environ = process_environment()
    configuration = read_configuration(environ, need_projects=False)
    with Index.open(configuration, environment=environ) as index:
        resources = index._resources  # noqa: SLF001 - a benchmark looks inside
        cases = {folder.name: ask(resources, folder) for folder in folders}
    print(f"{'AUC':<16}" + "".join(f"{name:>22}" for name in [*PARTS, "default"]))
    for name, own in cases.items():
        others = [case for other in cases if other != name for case in sample(cases[other])]
        aucs = [judged(own, others, parts) for parts in PARTS.values()]
        aucs.append(auc(own, [confidence(DEFAULT, case.features) for case in own]))
        print(f"{name:<16}" + "".join(f"{value:>22.3f}" for value in aucs))


def ask(resources: Resources, folder: Path) -> list[Case]:
    """Both forms of every question of a set, in the order of the set."""
    questions = read_set(folder)
    loaded = load(resources, questions)
    asked = ask_all(loaded, questions, vectors=True, compare=False)
    return [case for one in asked for case in forms(one, questions)]


def forms(asked: Asked, questions: QuestionSet) -> list[Case]:
    """A question as it is, and with its relevant documents taken away."""
    gone = questions.relevant[asked.question.id]
    return [
        Case(next(iter(asked.assessed(without=without).by_chunk.values()), NOTHING), present)
        for present, without in ((True, None), (False, gone))
    ]


def sample(cases: Sequence[Case]) -> list[Case]:
    """Both forms of so many questions of a set that no large set outweighs the others."""
    pairs = [(cases[place], cases[place + 1]) for place in range(0, len(cases), 2)]
    dice = random.Random(SEED)  # noqa: S311 - the same questions in every run
    chosen = dice.sample(pairs, min(MOST_OF_A_SET, len(pairs)))
    return [case for pair in chosen for case in pair]


def judged(own: Sequence[Case], others: Sequence[Case], parts: Sequence[str]) -> float:
    """The AUC on a set of a model that was fitted on others."""
    model: Logistic = fit([case.row(parts) for case in others], [case.present for case in others])
    return auc(own, [model.probability(case.row(parts)) for case in own])


def auc(cases: Sequence[Case], scores: Sequence[float]) -> float:
    """How often a question with its answer scores above one without."""
    found = area_under_curve(
        [score for case, score in zip(cases, scores, strict=True) if case.present],
        [score for case, score in zip(cases, scores, strict=True) if not case.present],
    )
    assert found is not None
    return found


if __name__ == "__main__":
    main()
