"""An index for a benchmark: the embedded server, a folder that is thrown away, no environment."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from concordance.index import Index
from concordance.settings import Configuration, Project, Settings


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one benchmark."""
    with tempfile.TemporaryDirectory(prefix="concordance-bench-") as folder:
        yield Path(folder)


def configuration(folder: Path, projects: list[Path]) -> Configuration:
    """Settings that keep everything in `folder`, and projects named after their folders."""
    return Configuration(
        settings=Settings(
            home=folder / "home",
            projects_file=folder / "projects.toml",
            allowed_schemes=("https", "ssh", "file"),
        ),
        projects=tuple(Project(slug=path.name, path=path) for path in projects),
    )


@contextmanager
def opened(conf: Configuration) -> Iterator[Index]:
    """The index of a configuration."""
    with Index.open(conf, environment={"PATH": os.environ["PATH"]}) as index:
        yield index


def write_project(index: Index, slug: str) -> int:
    """Fetch, plan and write one project's rows; returns its chunks."""
    with index.hold(slug, uuid.uuid4(), on_wait=lambda: None) as held:
        fetched = index.fetch(slug)
        source = index.plan_files(held, slug, fetched.commit)
        written = index.write(held, slug, source)
        index.close_attempt(held, slug, source, branch=fetched.branch)
        sessions = index.plan_sessions(held, slug)
        index.write(held, slug, sessions)
        index.close_attempt(held, slug, sessions)
    return written.chunks
