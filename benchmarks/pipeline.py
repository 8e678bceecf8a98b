"""What the pipeline costs beside what it is made of, both measured in this run.

python -m benchmarks.pipeline [lexical] [embedding] [night] [memory]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from benchmarks.corpus import TREES, documents, make_project
from benchmarks.night import measure_night
from benchmarks.setup import configuration, opened, scratch, write_project
from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.adapters.embedding import open_embedder
from concordance.indexing.vector_space import passage_text
from concordance.settings import Configuration
from concordance.text.chunking import chunk_markdown
from concordance.text.markdown import parse_markdown

EMBEDDED_TEXTS = 320
MEMORY_FILES = 5_000
REPEATS = 3


def say(name: str, figure: str, reference: str, ratio: float | None) -> None:
    """One line of the report."""
    end = "" if ratio is None else f"   ratio {ratio:.2f}"
    print(f"{name:<34} {figure:<26} {reference:<46}{end}", flush=True)


def lexical() -> None:
    """Blobs to committed lexical rows, against chunking plus a bare COPY of the same chunks."""
    texts = documents()
    with scratch() as folder:
        conf = configuration(folder, [make_project(folder / "texts", texts)])
        with opened(conf) as index:
            rates = []
            for _ in range(REPEATS):
                index.forget("texts")
                began = time.perf_counter()
                chunks = write_project(index, "texts")
                rates.append(chunks / (time.perf_counter() - began))
            bare = max(_bare_copy(conf, texts) for _ in range(REPEATS))
    best = max(rates)
    say(
        "lexical rows",
        f"{best:,.0f} chunks/s of {chunks:,}",
        f"chunk + COPY, no index, no words: {bare:,.0f}/s",
        best / bare,
    )


def _bare_copy(conf: Configuration, texts: list[str]) -> float:
    """The same texts chunked, and their chunks copied into a table without any index."""
    server = EmbeddedPostgres(conf.settings.home)
    try:
        with psycopg.connect(server.start()) as connection:
            connection.execute("create temporary table bare (content text, lines int)")
            began = time.perf_counter()
            chunks = 0
            with connection.cursor().copy("copy bare from stdin") as copy:
                for text in texts:
                    clean = text.replace("\0", "\ufffd")
                    for chunk in chunk_markdown(clean, parse_markdown(clean)):
                        copy.write_row((chunk.content, chunk.start_line))
                        chunks += 1
            connection.commit()
            return chunks / (time.perf_counter() - began)
    finally:
        server.stop()


def embedding() -> None:
    """Filling vectors, against the model alone on the same texts."""
    texts = documents()
    chosen: list[str] = []
    count = 0
    for text in texts:
        chosen.append(text)
        count += len(chunk_markdown(text, parse_markdown(text)))
        if count >= EMBEDDED_TEXTS:
            break
    with scratch() as folder:
        conf = configuration(folder, [make_project(folder / "texts", chosen)])
        with opened(conf) as index:
            write_project(index, "texts")
            index.prepare_space()
            bare = _model_alone(conf, chosen)
            began = time.perf_counter()
            done = index.fill_vectors(["texts"], started=index.now())
            rate = done.embedded / (time.perf_counter() - began)
    say(
        "vectors, local model",
        f"{rate:,.1f} texts/s of {done.embedded}",
        f"the model alone: {bare:,.1f}/s",
        rate / bare,
    )


def _model_alone(conf: Configuration, texts: list[str]) -> float:
    wanted = []
    for text in texts:
        parsed = parse_markdown(text)
        wanted += [
            passage_text(parsed.title, chunk.heading_path, chunk.content)
            for chunk in chunk_markdown(text, parsed)
        ]
    unique = list(dict.fromkeys(wanted))
    embedder = open_embedder(conf.settings.embedding_model, conf.settings)
    try:
        embedder.embed_documents(unique[:4])
        began = time.perf_counter()
        embedder.embed_documents(unique)
        return len(unique) / (time.perf_counter() - began)
    finally:
        embedder.close()


def night() -> None:
    """A night with no change over 50 projects, against a flow that does nothing."""
    texts = documents()[:3]
    with scratch() as folder:
        paths = [make_project(folder / f"project-{n:02d}", texts) for n in range(50)]
        seconds, empty = measure_night(folder, paths)
    say(
        "a night with no change",
        f"{seconds:.1f} s for 50 projects",
        f"a flow that does nothing: {empty:.1f} s",
        None,
    )


def memory() -> None:
    """The most memory that a run takes on a tree of many files."""
    texts = documents()
    many = [f"{texts[n % len(texts)]}\n\nPage {n}.\n" for n in range(MEMORY_FILES)]
    with scratch() as folder:
        path = make_project(folder / "texts", many)
        del many
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _child(folder, path, writing)
        os.close(writing)
        with os.fdopen(reading) as answers:
            chunks = answers.read()
        _, status, usage = os.wait4(child, 0)
    assert status == 0
    say(
        "memory, 5,000 files",
        f"{usage.ru_maxrss / 1024:,.0f} MB at the most",
        f"{int(chunks):,} chunks written",
        None,
    )


def _child(folder: Path, path: Path, writing: int) -> None:
    """A process of its own, so that its peak is its own."""
    code = 1
    try:
        with opened(configuration(folder, [path])) as index:
            os.write(writing, str(write_project(index, "texts")).encode())
        code = 0
    finally:
        os._exit(code)


PARTS: dict[str, Callable[[], None]] = {
    "lexical": lexical,
    "embedding": embedding,
    "night": night,
    "memory": memory,
}


def main() -> None:
    """Run the parts named on the command line, or all."""
    where = "public Markdown trees" if TREES.is_dir() else "this project's own Markdown"
    print(f"{os.cpu_count()} cores, {where}", flush=True)
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
