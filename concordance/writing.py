"""From a source to lexical rows: fetch, plan, chunk, write, and close the attempt.

What belongs here: the steps of one project's run up to the point where everything is searchable by
words. Each step says what it found; nothing is called done before it is counted.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

from concordance.adapters.git_environment import Credential
from concordance.adapters.postgres import coverage, documents, projects
from concordance.adapters.postgres.database import run_again
from concordance.adapters.postgres.planner import look_anew_if_much_changed
from concordance.adapters.postgres.records import settle_successions
from concordance.adapters.postgres.session_logs import save_logs
from concordance.adapters.postgres.words import settle_weights
from concordance.deciding import settle_scopes
from concordance.errors import RowRefused, SourceError
from concordance.following import Followed, follow, read_sessions
from concordance.indexing.build import found_documents
from concordance.indexing.documents import Document
from concordance.indexing.logs import found_sessions, problem_documents
from concordance.indexing.plan import Plan, make_plan
from concordance.models import DocumentStatus, Scope
from concordance.reading import list_files, read_files
from concordance.resources import Resources, scrubs_errors
from concordance.settings import Project
from concordance.surveying import (
    FILE_SCOPES,
    row_fingerprint,
    rules_fingerprint,
    session_fingerprint,
)
from concordance.tracking import fetch_history, store_history

# A transaction's worth: large enough that its commit costs little, small enough for memory.
BATCH_CHUNKS = 500
BATCH_DOCUMENTS = 200
# Batches that are chunked ahead of the one that Postgres is writing.
BATCHES_AHEAD = 2
# Batches that Postgres analyses side by side; their words are counted one after the other.
WRITERS = 2

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The state of a project's repository as it lies on this machine."""

    commit: str | None
    branch: str | None


@dataclass(frozen=True, slots=True)
class Written:
    """What a run changed in the rows."""

    plan: str
    written: int
    renamed: int
    deleted: int
    unchanged: int
    chunks: int


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A plan with what is needed to carry it out."""

    marker: str | None
    scopes: tuple[Scope, ...]
    plan: Plan
    sessions: Followed | None = None


@scrubs_errors
def fetch_source(resources: Resources, project: Project, credential: Credential | None) -> Fetched:
    """Bring the newest commit of a project's branch to this machine.

    Raises:
        SourceError: The remote refuses, is not there, or lost its branch or all its commits.
    """
    head = resources.mirror.remote_head(project.location, project.branch, credential)
    named = resources.scrubber(project).optional(head.branch)
    if head.commit is None:
        _refuse_sudden_emptiness(resources, project)
        return Fetched(None, named)
    if project.sessions:
        fetch_history(resources, project, head, credential)
    if resources.mirror.has_commit(project.slug, head.commit):
        return Fetched(head.commit, named)
    commit = resources.mirror.fetch(project.slug, project.location, head, credential)
    return Fetched(commit, named)


def plan_files(  # noqa: PLR0913 - what may be chosen of a plan
    resources: Resources,
    project: Project,
    held: projects.Hold,
    commit: str | None,
    *,
    scopes: Sequence[Scope],
    full: bool,
) -> SourcePlan:
    """Compare the files of a commit with the stored documents, and open the attempt."""
    wanted = tuple(scope for scope in FILE_SCOPES if scope in scopes)
    projects.check_language(resources.database, project)
    listed = [] if commit is None else list_files(resources, project, commit)
    known = documents.stored_documents(resources.database, held.project_id, FILE_SCOPES)
    settled = settle_scopes(resources, project, listed, known)
    names = {f.name for f in settled if f.scope in wanted}
    if any(s.name in names and s.scope not in wanted for s in known):
        # A file comes from a scope that was not asked for. That one would hold neither the old
        # commit nor the new, and still be called complete.
        wanted = FILE_SCOPES
    found = [f for f in settled if f.scope in wanted]
    stored = [s for s in known if s.scope in wanted]
    plan = make_plan(stored, found, chunker=row_fingerprint(project), full=full)
    _open(resources, held, wanted, commit)
    return SourcePlan(commit, wanted, plan)


def plan_sessions(
    resources: Resources, project: Project, held: projects.Hold, *, full: bool
) -> SourcePlan:
    """Look at a project's logs, compare their sessions with the stored ones, and open the attempt.

    Raises:
        LogsUnreadable: A log folder or file can't be read; nothing is deleted then.
    """
    projects.check_language(resources.database, project)
    followed = follow(resources, project, held.project_id, full=full)
    chunker = session_fingerprint(project)
    problems = problem_documents(followed.states, chunker=chunker)
    found = [*found_sessions(followed.states), *found_documents(problems)]
    stored = documents.stored_documents(resources.database, held.project_id, [Scope.SESSION])
    plan = make_plan(stored, found, chunker=chunker, full=full)
    _open(resources, held, (Scope.SESSION,), followed.marker)
    return SourcePlan(followed.marker, (Scope.SESSION,), plan, sessions=followed)


def write_rows(
    resources: Resources,
    project: Project,
    held: projects.Hold,
    source: SourcePlan,
    progress: Progress | None = None,
) -> Written:
    """Carry a plan out: renames, then documents in batches, deletions last."""
    plan = source.plan
    if plan.renames:
        documents.rename_documents(
            resources.database,
            resources.tenant,
            held,
            [(r.id, r.name, r.scope) for r in plan.renames],
            commit=None if Scope.SESSION in source.scopes else source.marker,
        )
    # Closed at once where a write fails, so that the thread and its git end too.
    with closing(_ahead(_batches(_read(resources, project, source)))) as batches:
        done, chunks = _write_batches(resources, held, batches, len(plan.writes), progress)
    if plan.deletes:
        documents.delete_documents(resources.database, held, plan.deletes)
    return Written(
        plan=str(plan),
        written=done,
        renamed=len(plan.renames),
        deleted=len(plan.deletes),
        unchanged=plan.unchanged,
        chunks=chunks,
    )


def _write_batches(
    resources: Resources,
    held: projects.Hold,
    batches: Iterator[list[Document]],
    total: int,
    progress: Progress | None,
) -> tuple[int, int]:
    """Write batches, `WRITERS` at a time; returns how many documents and chunks were written."""
    done = chunks = 0
    at_work: deque[tuple[list[Document], Future[None]]] = deque()

    def finish_one() -> None:
        nonlocal done, chunks
        batch, future = at_work.popleft()
        future.result()
        done += len(batch)
        chunks += sum(len(document.passages) for document in batch)
        if progress is not None:
            progress(done, total)

    with ThreadPoolExecutor(WRITERS, thread_name_prefix="write-rows") as pool:
        for batch in batches:
            if len(at_work) == WRITERS:
                finish_one()
            at_work.append((batch, pool.submit(write_batch, resources, held, batch)))
        while at_work:
            finish_one()
    return done, chunks


def write_batch(resources: Resources, held: projects.Hold, batch: Sequence[Document]) -> None:
    """Write a batch; a document that Postgres can't take becomes a row with the reason.

    Everything else, such as a full disk or a lost connection, is not the documents' fault and is
    raised: a document that was called failed is not read again before it changes.
    """
    try:
        documents.write_documents(resources.database, resources.tenant, held, batch)
    except RowRefused as error:
        if len(batch) > 1:
            for document in batch:
                write_batch(resources, held, [document])
            return
        failed = replace(
            batch[0],
            status=DocumentStatus.FAILED,
            reason=f"could not be stored: {error.message}",
            passages=(),
            record=None,
        )
        # Where this fails as well, it was not the document.
        documents.write_documents(resources.database, resources.tenant, held, [failed])


def close_attempt(
    resources: Resources,
    project: Project,
    held: projects.Hold,
    source: SourcePlan,
    *,
    branch: str | None,
) -> None:
    """Count, and say that the rows show the source: in one transaction."""
    if project.sessions and source.sessions is None and source.marker and branch:
        store_history(resources, project, held, source.marker, branch)
    of = Scope.DOCS if source.sessions is None else Scope.SESSION
    with resources.database.transaction() as connection:
        projects.check_hold(connection, held)
        if source.marker is not None and Scope.SESSION not in source.scopes:
            documents.stamp_commit(connection, held.project_id, source.scopes, source.marker)
            projects.set_branch(connection, held.project_id, branch)
            settle_successions(connection, resources.tenant, held.project_id)
        if source.sessions is not None:
            save_logs(connection, resources.tenant, held.project_id, source.sessions.states)
        settle_weights(connection, held.project_id)
        coverage.close_attempt(
            connection,
            held.project_id,
            source.scopes,
            marker=source.marker,
            fingerprint=rules_fingerprint(project, of, resources.settings, resources.readers),
            now=resources.clock(),
        )
    look_anew_if_much_changed(resources.database)


def fail_attempt(
    resources: Resources, project_id: int, scopes: Sequence[Scope], error: str
) -> None:
    """Note why some scopes could not be brought up to date; what is stored stays."""
    error = resources.scrubber().text(error)

    def note() -> None:
        with resources.database.transaction() as connection:
            coverage.ensure_scopes(connection, resources.tenant, project_id, scopes)
            coverage.fail_attempt(
                connection, project_id, scopes, error=error, now=resources.clock()
            )

    run_again(note)


def _refuse_sudden_emptiness(resources: Resources, project: Project) -> None:
    markers = coverage.list_markers(resources.database, resources.tenant, [project.slug])
    if any(m.indexed_marker for m in markers if m.scope in FILE_SCOPES):
        raise SourceError(
            f"the repository of '{project.slug}' has no commit any more",
            hint="Its rows were kept. If it was emptied on purpose: 'concordance projects forget'",
        )


def _open(
    resources: Resources, held: projects.Hold, scopes: Sequence[Scope], marker: str | None
) -> None:
    with resources.database.transaction() as connection:
        projects.check_hold(connection, held)
        coverage.ensure_scopes(connection, resources.tenant, held.project_id, scopes)
        coverage.open_attempt(
            connection, held.project_id, scopes, marker=marker, now=resources.clock()
        )


def _read(resources: Resources, project: Project, source: SourcePlan) -> Iterator[Document]:
    """The documents that a plan writes."""
    if source.sessions is None:
        return read_files(resources, project, source.marker or "", source.plan.writes)
    return read_sessions(resources, project, source.sessions, source.plan.writes)


def _batches(read: Iterator[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    chunks = 0
    for document in read:
        batch.append(document)
        chunks += len(document.passages)
        if chunks >= BATCH_CHUNKS or len(batch) >= BATCH_DOCUMENTS:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def _ahead(batches: Iterator[list[Document]]) -> Generator[list[Document]]:
    """The same batches, made in a thread of their own while Postgres writes the ones before."""
    made: queue.Queue[list[Document] | BaseException | None] = queue.Queue(BATCHES_AHEAD)
    stop = threading.Event()

    def produce() -> None:
        last: BaseException | None = None
        try:
            for batch in batches:
                if not _put(made, batch, stop):
                    return
        except BaseException as error:  # noqa: BLE001 - raised again where the batches are used
            last = error
        _put(made, last, stop)

    thread = threading.Thread(target=produce, name="chunker", daemon=True)
    thread.start()
    try:
        while (item := made.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        thread.join()


def _put(
    made: queue.Queue[list[Document] | BaseException | None],
    item: list[Document] | BaseException | None,
    stop: threading.Event,
) -> bool:
    """Put an item unless nobody wants it any more."""
    while not stop.is_set():
        try:
            made.put(item, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False
