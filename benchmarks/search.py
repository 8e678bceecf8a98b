"""Search beside what it is made of: the lexical leg, the hybrid answer, the approximate index.

    python -m benchmarks.search [passages]

Every reference is measured in the same run on the same rows: `ts_rank_cd` over any word, scoring
every match, and both legs' statements sent by hand.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.passages import WIDTH, passages, questions
from benchmarks.setup import scratch
from concordance.adapters.embedding import TextFailure, Vector
from concordance.adapters.postgres import documents as rows
from concordance.adapters.postgres import embeddings, lexical, projects, words
from concordance.adapters.postgres import search as legs
from concordance.adapters.postgres.database import Database
from concordance.index import Index
from concordance.indexing.documents import Document, Passage
from concordance.indexing.vector_space import VectorSpace, content_hash
from concordance.models import (
    POOL,
    Answer,
    DocumentStatus,
    Fusion,
    LexicalRanking,
    Scope,
    SearchRequest,
)
from concordance.ranking.threshold import any_of
from concordance.resources import Resources
from concordance.settings import Configuration, Project, Settings

T = TypeVar("T")

QUESTIONS = 115
PER_FILE = 40


def main() -> None:
    """Load the passages, then measure."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with scratch() as folder:
        slugs = ["big", "small"]
        conf = Configuration(
            settings=Settings(home=folder / "home", projects_file=folder / "projects.toml"),
            projects=tuple(Project(slug=slug, path=folder / slug) for slug in slugs),
        )
        with Index.open(conf, environment={"PATH": os.environ["PATH"]}) as index:
            resources = index._resources  # noqa: SLF001 - a benchmark looks inside
            texts = load(resources, most)
            asked = questions(texts, QUESTIONS)
            space = fill(resources)
            measure_lexical(resources.database, asked)
            measure_hybrid(index, resources, space, asked)
            measure_recall(resources.database, space)


def load(resources: Resources, most: int) -> list[str]:
    """Write the passages as documents of two projects, one of them a hundredth of the other."""
    texts: list[str] = []
    batches: dict[str, list[Document]] = {"big": [], "small": []}
    began = time.perf_counter()
    held = {slug: _hold(resources, slug) for slug in batches}
    group: list[str] = []
    for number, (_, text) in enumerate(passages(most)):
        texts.append(text)
        group.append(text)
        if len(group) == PER_FILE or number == most - 1:
            slug = "small" if (number // PER_FILE) % 100 == 0 else "big"
            batches[slug].append(_document(f"docs/{number:07d}.md", group))
            group = []
            if len(batches[slug]) * PER_FILE >= 400:
                rows.write_documents(
                    resources.database, resources.tenant, held[slug], batches[slug]
                )
                batches[slug] = []
    for slug, rest in batches.items():
        if rest:
            rows.write_documents(resources.database, resources.tenant, held[slug], rest)
    with resources.database.transaction() as connection:
        for hold in held.values():
            words.settle_weights(connection, hold.project_id)  # as a run does at its end
    seconds = time.perf_counter() - began
    print(f"{len(texts):,} passages written in {seconds:.0f} s, {len(texts) / seconds:,.0f}/s")
    return texts


def _hold(resources: Resources, slug: str) -> projects.Hold:
    stored = projects.ensure_project(resources.database, resources.tenant, resources.project(slug))
    run = uuid.uuid4()
    with resources.database.transaction() as connection:
        connection.execute("update projects set run_id = %s where id = %s", (run, stored.id))
        connection.execute(
            "insert into coverage (project_id, tenant_id, scope, state, reason)"
            " values (%s, %s, 'docs', 'complete', 'benchmark')",
            (stored.id, resources.tenant),
        )
    return projects.Hold(stored.id, run)


def _document(name: str, texts: list[str]) -> Document:
    made = tuple(
        Passage(
            ordinal=n,
            heading_path=(),
            start_char=0,
            end_char=len(text),
            content=text,
            content_hash=content_hash(None, (), f"{name} {n} {text}"),
            start_line=1,
            end_line=1,
        )
        for n, text in enumerate(texts)
    )
    return Document(
        scope=Scope.DOCS,
        kind="file",
        name=name,
        content_id=name,
        bytes=0,
        status=DocumentStatus.INDEXED,
        chunker="benchmark",
        commit="0" * 40,
        language="english",
        passages=made,
    )


def fill(resources: Resources, width: int = WIDTH) -> embeddings.StoredSpace:
    """A vector for each passage: points around some hundred centres, as texts gather by subject."""
    space = VectorSpace(
        provider="bench",
        model="clusters",
        digest="1",
        dimensions=width,
        document_prefix="",
        query_prefix="",
        chunk_text_version=1,
    )
    stored = embeddings.activate_space(
        resources.database, resources.tenant, space, now=resources.clock()
    )
    began = time.perf_counter()
    random = np.random.default_rng(7)
    centres = _centres(width)
    with resources.database.transaction() as connection:
        found = connection.execute(
            "select id, tenant_id, project_id, content_hash from chunks where tenant_id = %s"
            " order by id",
            (resources.tenant,),
        ).fetchall()
        with connection.cursor().copy(
            "copy embeddings (model_id, chunk_id, tenant_id, project_id, scope, content_hash,"
            " embedding) from stdin"
        ) as copy:
            for chunk, tenant, project, hashed in found:
                point = centres[random.integers(len(centres))] + random.normal(size=width)
                point /= np.linalg.norm(point)
                text = embeddings.vector_as_text(point.astype(np.float32))
                copy.write_row((stored.id, chunk, tenant, project, "docs", hashed, text))
        connection.execute(
            "update coverage set (chunks, chunks_with_vector) = (n, n) from"
            " (select project_id, count(*) as n from chunks group by 1) c"
            " where c.project_id = coverage.project_id"
        )
    written = time.perf_counter()
    embeddings.ensure_vector_index(resources.database, stored)
    print(
        f"vectors of {width} numbers in {written - began:.0f} s, "
        f"their index in {time.perf_counter() - written:.0f} s"
    )
    return stored


def _centres(width: int = WIDTH) -> npt.NDArray[np.float64]:
    return np.random.default_rng(5).normal(size=(400, width))


def _question_vector(random: np.random.Generator) -> npt.NDArray[np.float32]:
    """A question lies where passages lie."""
    centres = _centres()
    point = centres[random.integers(len(centres))] + random.normal(size=WIDTH)
    unit: npt.NDArray[np.float32] = (point / np.linalg.norm(point)).astype(np.float32)
    return unit


def percentiles(
    work: Callable[[str], T], asked: list[str], without: Callable[[T], float] = lambda _: 0.0
) -> tuple[float, float]:
    """Milliseconds, p50 and p95 over the questions; each counts by the median of three calls.

    `without` tells from what a call gave how many of its milliseconds are not to count.
    """
    work(asked[0])
    spent = []
    for text in asked:
        calls = []
        for _ in range(3):
            began = time.perf_counter()
            done = work(text)
            spent_now = (time.perf_counter() - began) * 1_000
            calls.append(spent_now - without(done))
        spent.append(sorted(calls)[1])
    return float(np.percentile(spent, 50)), float(np.percentile(spent, 95))


def measure_lexical(database: Database, asked: list[str]) -> None:
    """Threshold queries against scoring every match, and against ts_rank_cd over any word.

    `ts_rank_cd` is measured as the named ranking of this index, over the same rows and filters, and
    as plain SQL over a narrow table that holds nothing but the words.
    """
    with database.transaction() as connection:
        ids = [row[0] for row in connection.execute("select id from projects").fetchall()]
        connection.execute("set local plan_cache_mode = force_custom_plan")
        connection.execute(
            "create temporary table reference on commit drop as"
            " select l.chunk_id, to_tsvector('english', k.content) as words"
            " from lexical l join chunks k on k.id = l.chunk_id"
        )
        connection.execute("create index on reference using gin (words)")
        connection.execute("analyze reference")
        filters = legs.Filters(tuple(ids), ("docs",), None, None).parameters()

        def bm25(text: str) -> list[tuple[int, float]]:
            read = lexical.read_questions(connection, text, ids)
            found = lexical.find(connection, read, filters, [], ranking=LexicalRanking.BM25)
            return [(hit.chunk_id, hit.score) for hit in found]

        def every_match(text: str) -> list[tuple[int, float]]:
            (read,) = lexical.read_questions(connection, text, ids)
            asked_all = lexical._Asked(connection, filters, [])  # noqa: SLF001 - the same statement
            found = asked_all.rows("top", [(read, any_of(read.lexemes))])
            return [(hit.chunk_id, hit.score) for hit in found]

        def own_ts_rank_cd(text: str) -> object:
            read = lexical.read_questions(connection, text, ids)
            return lexical.find(connection, read, filters, [], ranking=LexicalRanking.TS_RANK_CD)

        def ts_rank_cd(text: str) -> object:
            return connection.execute(
                "select chunk_id, ts_rank_cd(words, q) as score from reference,"
                " (select replace(plainto_tsquery('english', %s)::text, '&', '|')::tsquery as q) x"
                " where words @@ q order by score desc, chunk_id limit %s",
                (text, POOL),
            ).fetchall()

        same = sum(bm25(text) == every_match(text) for text in asked)
        ours, full, own, theirs = (
            percentiles(work, asked) for work in (bm25, every_match, own_ts_rank_cd, ts_rank_cd)
        )
    print(f"same passages and scores as scoring every match: {same} of {len(asked)}")
    for name, (p50, p95) in (
        ("BM25, threshold queries", ours),
        ("BM25, every match scored", full),
        ("ts_rank_cd, same rows", own),
        ("ts_rank_cd, words alone", theirs),
    ):
        print(f"{name:<28} p50 {p50:8.1f} ms   p95 {p95:8.1f} ms")
    for name, (p50, p95) in (("same rows", own), ("words alone", theirs)):
        print(f"ratio to ts_rank_cd, {name}: p50 1/{p50 / ours[0]:.1f}, p95 1/{p95 / ours[1]:.1f}")


def measure_hybrid(
    index: Index, resources: Resources, space: embeddings.StoredSpace, asked: list[str]
) -> None:
    """A whole answer without embedding, against statements sent by hand.

    Once both legs alone, once with what scores their finds on the other leg and reads the texts.
    """
    random = np.random.default_rng(11)
    vectors = {text: _question_vector(random) for text in asked}
    resources.embedder = _Known(space, vectors)

    def whole(text: str) -> Answer:
        return index.search(SearchRequest(text=text, fusion=Fusion.CONVEX, threshold=0.0))

    def by_hand(text: str, *, known: bool = False) -> None:
        with legs.open_snapshot(resources.database, timeout_seconds=30) as snapshot:
            targets = snapshot.targets(resources.tenant, None, list(Scope))
            filters = legs.Filters(
                tuple(sorted({t.project_id for t in targets})), ("docs",), None, None
            )
            read = snapshot.questions(text, filters)
            found = snapshot.lexical_leg(read, filters, LexicalRanking.BM25)
            held = sum(t.chunks for t in targets)
            near = snapshot.vector_leg(space, vectors[text], filters, held=held, in_all=held)
            if known:
                ids = sorted({one.chunk_id for one in (*found, *near)})
                nearest = legs.Nearest(space, vectors[text], near)
                snapshot.candidates(ids, read, LexicalRanking.BM25, nearest)
                snapshot.passages(resources.tenant, ids[:10])

    a50, a95 = percentiles(whole, asked, lambda answer: answer.milliseconds["embedding"])
    print(f"{'hybrid answer':<28} p50 {a50:8.1f} ms   p95 {a95:8.1f} ms")
    for name, known in (("both legs by hand", False), ("all its statements by hand", True)):
        b50, b95 = percentiles(functools.partial(by_hand, known=known), asked)
        print(f"{name:<28} p50 {b50:8.1f} ms   p95 {b95:8.1f} ms")
        print(f"ratio to {name}: p50 {a50 / b50:.2f}, p95 {a95 / b95:.2f}")


class _Known:
    """Vectors of questions that are known before, so that embedding costs nothing."""

    name = model = "bench/clusters"
    parallel = 1

    def __init__(
        self, space: embeddings.StoredSpace, vectors: dict[str, npt.NDArray[np.float32]]
    ) -> None:
        self._space = space
        self._vectors = vectors

    def space(self, *, anew: bool = False) -> VectorSpace:
        del anew
        s = self._space
        return VectorSpace(
            s.provider,
            s.model,
            s.digest,
            s.dimensions,
            s.document_prefix,
            s.query_prefix,
            s.chunk_text_version,
        )

    def troubles(self) -> tuple[str, ...]:
        return ()

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | TextFailure]:
        raise AssertionError(texts)

    def embed_query(self, text: str, *, deadline_seconds: float) -> Vector:
        del deadline_seconds
        return self._vectors[text]

    def close(self) -> None:
        """Nothing is held."""


def measure_recall(database: Database, space: embeddings.StoredSpace) -> None:
    """The ten nearest as a search at its default setting finds them, against an exact scan."""
    random = np.random.default_rng(13)
    with database.transaction() as connection:
        rows = connection.execute(
            "select p.slug, p.id, c.chunks from projects p join coverage c on c.project_id = p.id"
        ).fetchall()
    number = {slug: project for slug, project, _ in rows}
    count = {slug: chunks for slug, _, chunks in rows}
    both, in_all = tuple(sorted(number.values())), sum(count.values())
    cases = (
        ("unfiltered", legs.Filters(both, ("docs",), None, None), in_all),
        ("1 %, a project", legs.Filters((number["small"],), ("docs",), None, None), count["small"]),
        ("1 %, a path", legs.Filters(both, ("docs",), "docs/0000", None), in_all),
        ("10 %, a path", legs.Filters(both, ("docs",), "docs/000", None), in_all),
    )
    for name, filters, held in cases:
        hits = total = 0
        spent = []
        for _ in range(50):
            vector = _question_vector(random)
            with legs.open_snapshot(database, timeout_seconds=60) as snapshot:
                began = time.perf_counter()
                near = snapshot.vector_leg(space, vector, filters, held=held, in_all=in_all)[:10]
                spent.append((time.perf_counter() - began) * 1_000)
                exact = snapshot.vector_leg(space, vector, filters, held=0, in_all=in_all)[:10]
            hits += len({h.chunk_id for h in near} & {h.chunk_id for h in exact})
            total += len(exact)
        print(
            f"recall@10 against an exact scan, {name}: {hits / total:.3f} of {total}, "
            f"p50 {np.percentile(spent, 50):.1f} ms"
        )


if __name__ == "__main__":
    main()
