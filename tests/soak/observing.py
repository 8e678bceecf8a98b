"""Coverage as the product says it beside the tables, in one snapshot, while runs are at work.

What belongs here: looking, and what would be better than the truth. Whether the rows are the right
ones in the end is `tests.soak.comparing`'s matter.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Self

import psycopg
from psycopg.rows import dict_row

from concordance import covering
from concordance.adapters.postgres.database import Database
from concordance.models import CoverageState, Scope, ScopeCoverage
from concordance.resources import Resources
from concordance.settings import Project
from concordance.surveying import FILE_SCOPES, row_fingerprint, session_fingerprint

Rows = list[dict[str, Any]]

PAUSE_SECONDS = 0.01
# The rows of a scope with one of these are said to be those of `indexed_commit`.
SETTLED = {CoverageState.COMPLETE, CoverageState.LEXICAL_ONLY, CoverageState.ABSENT}
FINGERPRINTS = {Scope.SESSION: session_fingerprint}

TENANT = "select id from tenants where slug = %s"
COUNTED = """
    select p.slug, d.scope, count(distinct d.id) as documents,
           count(distinct d.id) filter (where d.status = 'indexed') as indexed,
           count(distinct d.id) filter (where d.status = 'failed') as failed,
           count(k.id) as chunks, count(e.chunk_id) as held,
           array_agg(distinct split_part(d.chunker, '/skipped', 1)) as made_by
    from documents d
    join projects p on p.id = d.project_id
    left join chunks k on k.document_id = d.id
    left join embedding_models m on m.tenant_id = d.tenant_id and m.state = 'active'
    left join embeddings e on e.chunk_id = k.id and e.model_id = m.id
        and e.content_hash = k.content_hash
    group by p.slug, d.scope
    """
FILES = """
    select p.slug, d.name, d.content_id, d.commit
    from documents d join projects p on p.id = d.project_id where d.kind = 'file'
    """
MARKERS = """
    select p.slug, c.scope, c.attempt_open, c.last_success is not null as known
    from coverage c join projects p on p.id = c.project_id
    """
NOTHING = {"documents": 0, "indexed": 0, "failed": 0, "chunks": 0, "held": 0, "made_by": []}

# The server was killed and is not back yet, or the first run is making the tables.
NOT_THERE = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.UndefinedTable,
    psycopg.errors.InvalidSchemaName,
)

Trees = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Of each project, the blob of each path of each commit that there ever was."""


class OneSnapshot(Database):
    """A database whose every transaction is the one that is given: the product sees one moment."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._given = connection

    @contextmanager
    def transaction(
        self, *, wait_seconds: float | None = None
    ) -> Iterator[psycopg.Connection[Any]]:
        del wait_seconds  # it is there
        yield self._given

    statement = transaction


@dataclass(frozen=True)
class Glance:
    """All that is looked at of one moment."""

    said: Sequence[ScopeCoverage]
    counted: Mapping[tuple[str, str], Mapping[str, Any]]
    files: Rows
    markers: Mapping[tuple[str, str], Mapping[str, Any]]


def connected(url: str) -> psycopg.Connection[Any]:
    """A connection whose every transaction is one snapshot, and changes nothing."""
    connection = psycopg.connect(url, options="-c search_path=concordance,public")
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    return connection


def glance(resources: Resources, connection: psycopg.Connection[Any]) -> Glance:
    """Look at a database in one repeatable-read snapshot."""
    with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
        tenant = cursor.execute(TENANT, [resources.settings.tenant]).fetchone()
        if tenant is None:
            return Glance((), {}, [], {})
        seen = replace(resources, database=OneSnapshot(connection), tenant=tenant["id"])
        said = covering.cover(seen, None)
        counted = cursor.execute(COUNTED).fetchall()
        files = cursor.execute(FILES).fetchall()
        markers = cursor.execute(MARKERS).fetchall()
    return Glance(
        said,
        {(row["slug"], row["scope"]): row for row in counted},
        files,
        {(row["slug"], row["scope"]): row for row in markers},
    )


def look(resources: Resources, url: str, trees: Trees = MappingProxyType({})) -> list[str]:
    """Where coverage says more than the tables hold at this moment; empty when it is honest."""
    with connected(url) as connection:
        return better_than_the_truth(glance(resources, connection), resources, trees)


def better_than_the_truth(seen: Glance, resources: Resources, trees: Trees) -> list[str]:
    """Where coverage says more than the tables held at one moment."""
    found = []
    for said in seen.said:
        held = seen.counted.get((said.project, said.scope.value), NOTHING)
        where = f"{said.project} {said.scope.value} ({said.state.value})"
        found += [f"{where}: {wrong}" for wrong in _figures(said, held)]
        found += [f"{where}: {wrong}" for wrong in _state(said, held, resources)]
        marker = seen.markers[said.project, said.scope.value]
        if said.state in SETTLED and marker["attempt_open"]:
            found.append(f"{where}: an attempt is open")
    for slug, known in trees.items():
        project = resources.configuration.project(slug)
        if project is not None:
            found += _files(project, seen, known)
    return found


def _figures(said: ScopeCoverage, held: Mapping[str, Any]) -> Iterator[str]:
    if said.chunks_with_vector > held["held"]:
        yield f"{said.chunks_with_vector} vectors said, {held['held']} held"
    missing, truly = said.chunks - said.chunks_with_vector, held["chunks"] - held["held"]
    if missing < truly:
        yield f"{missing} vectors said to be missing, {truly} are"
    if said.failed < held["failed"]:
        yield f"{said.failed} failures said, {held['failed']} held"
    if said.indexed > held["indexed"] or said.found > held["documents"]:
        told = f"{said.indexed} of {said.found} documents indexed"
        yield f"{told} said, {held['indexed']} of {held['documents']} held"


def _state(said: ScopeCoverage, held: Mapping[str, Any], resources: Resources) -> Iterator[str]:
    if said.state is not CoverageState.COMPLETE:
        return
    if held["held"] < held["chunks"] or held["failed"] or not held["documents"]:
        yield f"complete with {held['held']} of {held['chunks']} vectors, {held['failed']} failed"
    model = resources.embedder.model
    if said.chunks and said.model != model:
        yield f"complete with vectors of {said.model}, questions by {model}"
    project = resources.configuration.project(said.project)
    if project is not None:
        today = FINGERPRINTS.get(said.scope, row_fingerprint)(project)
        if set(held["made_by"]) - {today}:
            yield f"complete with rows made by {held['made_by']}, not {today}"


def _files(project: Project, seen: Glance, trees: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Scopes that are said to show a commit must show it: no file more, none less, none older."""
    slug = project.slug
    scopes = [s for s in seen.said if s.project == slug and s.scope in FILE_SCOPES]
    commits = {s.indexed_commit for s in scopes}
    settled = all(s.state in SETTLED and s.last_success is not None for s in scopes)
    commit = commits.pop() if len(commits) == 1 else None
    if not settled or commit is None or len(scopes) < len(FILE_SCOPES):
        return
    rows = [row for row in seen.files if row["slug"] == slug]
    stored = {row["name"]: row["content_id"] for row in rows}
    wanted = {
        name: blob
        for name, blob in trees[commit].items()
        if name == "README.md" or name.startswith(project.scopes.docs)
    }
    if stored != wanted:
        odd = sorted({n for n in {*stored, *wanted} if stored.get(n) != wanted.get(n)})
        yield f"{slug}: said to show {commit[:8]}, and {odd} are not as there"
    if {row["commit"] for row in rows} - {commit}:
        yield f"{slug}: cited at another commit than {commit[:8]}"


class Observer:
    """A thread that looks again and again, from `start` to `stop`.

    Attributes:
        looks: How often it has looked.
        found: What was better than the truth, each kind once, with how often it was seen.
    """

    def __init__(self, resources: Resources, url: str, trees: Callable[[], Trees]) -> None:
        self.looks = 0
        self.found: dict[str, int] = {}
        self.failure: BaseException | None = None
        self._resources = resources
        self._url = url
        self._trees = trees
        self._stop = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None
        self._thread = threading.Thread(target=self._look, name="observer", daemon=True)

    def look(self) -> list[str]:
        """Look once, in this thread."""
        if self._connection is None or self._connection.closed:
            self._connection = connected(self._url)
        seen = glance(self._resources, self._connection)
        self.looks += 1
        return better_than_the_truth(seen, self._resources, self._trees())

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.close()
        if self.failure is not None:
            raise self.failure

    def _look(self) -> None:
        while not self._stop.is_set():
            try:
                for wrong in self.look():
                    self.found[wrong] = self.found.get(wrong, 0) + 1
            except NOT_THERE:
                self.close()
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                self.failure = error
                return
            self._stop.wait(PAUSE_SECONDS)
