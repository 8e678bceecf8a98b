"""A reader's search beside the owner's: the same answers, and how long each takes.

    python -m benchmarks.readers [passages]

Two tenants hold the passages each. Owner and reader ask the same questions in turn, in the same
run on the same rows. The owner of the embedded server is a superuser, whom no policy concerns.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace

import numpy as np
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from benchmarks.passages import questions
from benchmarks.search import _Known, _question_vector, fill, load
from benchmarks.setup import scratch
from concordance.adapters.postgres.projects import ensure_tenant
from concordance.granting import Tenants
from concordance.index import Index
from concordance.models import Answer, Fusion, SearchRequest
from concordance.settings import Configuration, Project, Settings

QUESTIONS = 60
LOGIN = "bench_reader"


def main() -> None:
    """Load both tenants, then measure."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with scratch() as folder:
        conf = Configuration(
            settings=Settings(home=folder / "home", projects_file=folder / "projects.toml"),
            projects=tuple(Project(slug=slug, path=folder / slug) for slug in ("big", "small")),
        )
        environment = {"PATH": os.environ["PATH"]}
        with Index.open(conf, environment=environment) as owner:
            resources = owner._resources  # noqa: SLF001 - a benchmark looks inside
            texts = load(resources, most)
            space = fill(resources)
            other = replace(resources, tenant=ensure_tenant(resources.database, "other"))
            load(other, most)
            fill(other)
            with resources.database.session() as session:
                session.execute("vacuum analyze")
            Tenants(resources.database).grant(LOGIN, "default")
            url = make_conninfo(resources.database._conninfo, user=LOGIN)  # noqa: SLF001
            as_reader = conf.settings.model_copy(update={"database_url": SecretStr(url)})
            asked = questions(texts, QUESTIONS)
            random = np.random.default_rng(11)
            vectors = {text: _question_vector(random) for text in asked}
            with Index.open(
                conf.model_copy(update={"settings": as_reader}), environment=environment
            ) as reader:
                for index in (owner, reader):
                    index._resources.embedder = _Known(space, vectors)  # noqa: SLF001
                measure(owner, reader, asked)


def measure(owner: Index, reader: Index, asked: list[str]) -> None:
    """Each question of each login in turn, counted by the median of five calls."""
    for fusion in (Fusion.CONVEX, Fusion.LEXICAL, Fusion.VECTOR):
        same = 0
        spent: tuple[list[float], list[float]] = ([], [])
        for text in [asked[0], *asked]:
            request = SearchRequest(text=text, fusion=fusion, threshold=0.0, deadline_seconds=60)
            calls: tuple[list[float], list[float]] = ([], [])
            answers: list[Answer] = []
            for _ in range(5):
                answers = []
                for index, times in zip((owner, reader), calls, strict=True):
                    began = time.perf_counter()
                    answers.append(index.search(request))
                    times.append((time.perf_counter() - began) * 1_000)
            same += answers[0].hits == answers[1].hits
            for kept, times in zip(spent, calls, strict=True):
                kept.append(sorted(times)[2])
        print(f"{fusion.value}: same hits in {same} of {len(spent[0])}")
        by_login = [np.percentile(times, (50, 95)) for times in spent]
        for name, (p50, p95) in zip(("owner", "reader"), by_login, strict=True):
            print(f"{name:<28} p50 {p50:8.1f} ms   p95 {p95:8.1f} ms")
        print(
            f"ratio: p50 {by_login[1][0] / by_login[0][0]:.2f}, "
            f"p95 {by_login[1][1] / by_login[0][1]:.2f}"
        )


if __name__ == "__main__":
    main()
