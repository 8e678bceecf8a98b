"""What a passage, a question and a project cost: the units that docs/capacity.md counts with.

    python -m benchmarks.capacity [passages]

Room of each table and index, time to build the approximate index at two widths, questions a second
by how many ask at once with the processor time behind each, and what each project adds to a night
without changes. Vectors are made up, so that none has to be embedded; texts are real.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.corpus import make_project
from benchmarks.passages import WIDTH, questions
from benchmarks.search import _Known, _question_vector, fill, load
from benchmarks.setup import configuration, opened, scratch
from concordance.adapters.embedding import open_embedder
from concordance.index import Index
from concordance.metrics import index_metrics
from concordance.models import SearchRequest
from concordance.resources import Resources
from concordance.settings import Configuration, Project, Settings

WIDER = 768
QUESTIONS = 115
SECONDS = 8.0
PROJECTS = 200
MANY_PROJECTS = 2_000
LEAST = 20
TICKS = os.sysconf("SC_CLK_TCK")

SIZES = """
    select c.relname, case c.relkind when 'r' then pg_table_size(c.oid)
           else pg_relation_size(c.oid) end as bytes
    from pg_class c
    where c.relnamespace = 'concordance'::regnamespace and c.relkind in ('r', 'i')
    order by bytes desc
    """
ADD_PROJECTS = """
    with made as (
        insert into projects (tenant_id, slug, location, language)
        select %(tenant)s, 'many-' || n, 'https://example.org/many-' || n, 'english'
        from generate_series(1, %(count)s) n
        returning id
    )
    insert into coverage (project_id, tenant_id, scope, state, reason)
    select id, %(tenant)s, s, 'complete', 'benchmark'
    from made cross join unnest(array['docs', 'adr', 'session']) s
    """


def main() -> None:
    """Measure all of it."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with scratch() as folder:
        conf = Configuration(
            settings=Settings(
                home=folder / "home", projects_file=folder / "projects.toml", database_pool=20
            ),
            projects=tuple(Project(slug=slug, path=folder / slug) for slug in ("big", "small")),
        )
        with Index.open(conf, environment={"PATH": os.environ["PATH"]}) as index:
            resources = index._resources  # noqa: SLF001 - a benchmark looks inside
            texts = load(resources, most)
            print(f"{np.mean([len(text) for text in texts]):,.0f} characters each")
            fill(resources, WIDER)
            wider = measure_room(resources, len(texts), WIDER)
            with resources.database.session() as session:
                session.execute("delete from embedding_models")
                session.execute("drop index embeddings_hnsw_1")
                session.execute("vacuum full embeddings")
            space = fill(resources, WIDTH)
            measure_room(resources, len(texts), WIDTH, before=wider)
            measure_building(resources, space.id)
            random = np.random.default_rng(11)
            asked = questions(texts, QUESTIONS)
            vectors = {text: _question_vector(random) for text in asked}
            resources.embedder = _Known(space, vectors)
            for threads in (1, 2, 4, 8):
                measure_questions(index, asked, threads)
            measure_coverage(index, resources)
    measure_embedding(texts, asked)
    measure_projects()


def measure_room(
    resources: Resources, passages: int, width: int, before: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Bytes for each passage, of every relation that has some; the names of those told."""
    with resources.database.session() as session:
        session.execute("delete from embedding_backlog")  # as when all of it is embedded
        session.execute("vacuum full embedding_backlog")
        session.execute("vacuum analyze")
        found = session.execute(SIZES.encode()).fetchall()
    total = sum(int(size) for _, size in found) / passages
    print(f"room with vectors of {width} numbers: {total:,.0f} bytes a passage, of these")
    told = {
        str(name): int(size) / passages for name, size in found if int(size) >= LEAST * passages
    }
    for name, size in told.items():
        if name not in before or name.startswith("embeddings"):
            print(f"  {name:<44} {size:8,.0f}")
    return frozenset(told)


def measure_building(resources: Resources, model: int) -> None:
    """The approximate index built anew where it fits into the memory for it, and where not."""
    for memory in ("1GB", "8MB"):
        with resources.database.session() as session:
            session.execute(f"set maintenance_work_mem = '{memory}'".encode())
            rebuild = f"reindex index embeddings_hnsw_{model}".encode()
            seconds = _seconds(lambda: session.execute(rebuild))  # noqa: B023 - at once
        print(f"the index built with {memory} of memory: {seconds:.0f} s")


def measure_questions(index: Index, asked: list[str], threads: int) -> None:
    """Whole answers without embedding, from so many threads of one process for some seconds."""
    spent: list[float] = []
    lock = threading.Lock()
    until = time.perf_counter() + SECONDS

    def ask(first: int) -> None:
        mine = []
        number = first
        while time.perf_counter() < until:
            began = time.perf_counter()
            index.search(SearchRequest(text=asked[number % len(asked)], threshold=0.0))
            mine.append((time.perf_counter() - began) * 1_000)
            number += 1
        with lock:
            spent.extend(mine)

    index.search(SearchRequest(text=asked[0]))
    before, began = processor_seconds(), time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(ask, range(0, threads * 7, 7)))
    seconds = time.perf_counter() - began
    used = [now - then for now, then in zip(processor_seconds(), before, strict=True)]
    mine, postgres = (1_000 * part / len(spent) for part in used)
    p50, p95 = (float(np.percentile(spent, at)) for at in (50, 95))
    print(
        f"{threads} at once: {len(spent) / seconds:6.1f} questions/s, p50 {p50:6.1f} ms, "
        f"p95 {p95:6.1f} ms; processor {mine:.1f} ms here and {postgres:.1f} ms in Postgres"
    )


def processor_seconds() -> tuple[float, float]:
    """Of this process, and of the backends of Postgres that it is connected to."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime, sum(_ticks()) / TICKS


def _ticks() -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if command.startswith(b"postgres: ") and b"concordance" in command:
            yield int(fields[11]) + int(fields[12])


def measure_coverage(index: Index, resources: Resources) -> None:
    """The account of many projects, and a scrape of it."""
    with resources.database.session() as session:
        session.execute(ADD_PROJECTS.encode(), {"tenant": resources.tenant, "count": MANY_PROJECTS})
    for name, work in (
        ("coverage", index.coverage),
        ("a scrape", lambda: index_metrics(index)),
    ):
        best = min(_seconds(work) for _ in range(3))
        print(f"{name} of {MANY_PROJECTS:,} projects: {best * 1_000:.0f} ms")


def measure_embedding(texts: list[str], asked: list[str]) -> None:
    """The local model on two threads, and on one question."""
    with scratch() as folder:
        embedder = open_embedder("local/all-minilm-l6-v2", Settings(home=folder))
        embedder.embed_query("warm", deadline_seconds=30)
        some = texts[:: max(1, len(texts) // 128)][:128]
        rate = len(some) / _seconds(lambda: embedder.embed_documents(some))
        each = []
        for text in asked:
            began = time.perf_counter()
            embedder.embed_query(text, deadline_seconds=30)
            each.append(time.perf_counter() - began)
        embedder.close()
    print(f"the local model: {rate:.1f} passages/s, a question {np.median(each) * 1_000:.1f} ms")


def measure_projects() -> None:
    """What a project without changes adds to a survey, from repositories on this machine."""
    with scratch() as folder:
        paths = [
            make_project(folder / f"p{n}", [f"# Page {n}\n\nText.\n"]) for n in range(PROJECTS)
        ]
        with opened(configuration(folder, paths)) as index:
            slugs = [path.name for path in paths]
            seconds = _seconds(lambda: index.survey(slugs))
    print(
        f"a survey of {PROJECTS} projects on this machine: {1_000 * seconds / PROJECTS:.1f} ms each"
    )


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
