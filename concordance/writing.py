"""From a source to lexical rows: fetch, plan, chunk, write, and close the attempt.

What belongs here: the steps of one project's run up to the point where everything is searchable by
words. Each step says what it found; nothing is called done before it is counted.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from concordance.adapters import log_folder
from concordance.adapters.git import TreeEntry
from concordance.adapters.git_environment import Credential
from concordance.adapters.postgres import coverage, documents, projects
from concordance.errors import SourceError
from concordance.indexing.build import (
    file_document,
    found_documents,
    problem_document,
    session_document,
    skipped_document,
    storable_name,
)
from concordance.indexing.documents import Document
from concordance.indexing.plan import Found, Plan, make_plan
from concordance.indexing.scopes import place, read_adr_dir
from concordance.models import Scope
from concordance.resources import Resources
from concordance.sessions.events import Event, group_sessions
from concordance.sessions.jsonl import read_jsonl
from concordance.settings import Project
from concordance.surveying import FILE_SCOPES, row_fingerprint, rules_fingerprint
from concordance.text.cutting import ChunkSizes

# A transaction's worth: large enough that its commit costs little, small enough for memory.
BATCH_CHUNKS = 500
BATCH_DOCUMENTS = 200
# Batches that are chunked ahead of the one that Postgres is writing.
BATCHES_AHEAD = 2
# A .adr-dir holds one path; what is larger is something else.
MOST_ADR_DIR_BYTES = 4_096

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
    blobs: tuple[Found, ...] = ()
    sessions: tuple[Document, ...] = ()


def fetch_source(resources: Resources, project: Project, credential: Credential | None) -> Fetched:
    """Bring the newest commit of a project's branch to this machine.

    Raises:
        SourceError: The remote refuses, is not there, or lost its branch or all its commits.
    """
    head = resources.mirror.remote_head(project.location, project.branch, credential)
    if head.commit is None:
        _refuse_sudden_emptiness(resources, project)
        return Fetched(None, head.branch)
    if resources.mirror.has_commit(project.slug, head.commit):
        return Fetched(head.commit, head.branch)
    commit = resources.mirror.fetch(project.slug, project.location, head, credential)
    return Fetched(commit, head.branch)


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
    found = [f for f in listed if f.scope in wanted]
    names = {f.name for f in found}
    # A file that came from a scope that was not asked for is known by its name all the same.
    stored = [
        s
        for s in documents.stored_documents(resources.database, held.project_id, FILE_SCOPES)
        if s.scope in wanted or s.name in names
    ]
    plan = make_plan(stored, found, chunker=row_fingerprint(project), full=full)
    _open(resources, held, wanted, commit)
    return SourcePlan(commit, wanted, plan)


def plan_sessions(
    resources: Resources, project: Project, held: projects.Hold, *, full: bool
) -> SourcePlan:
    """Read a project's logs, compare their sessions with the stored ones, and open the attempt.

    Raises:
        LogsUnreadable: A log folder or file can't be read; nothing is deleted then.
    """
    logs = log_folder.list_logs(project.sessions)
    projects.check_language(resources.database, project)
    read = _read_sessions(project, logs)
    stored = documents.stored_documents(resources.database, held.project_id, [Scope.SESSION])
    plan = make_plan(stored, found_documents(read), chunker=row_fingerprint(project), full=full)
    marker = log_folder.marker(logs)
    _open(resources, held, (Scope.SESSION,), marker)
    return SourcePlan(marker, (Scope.SESSION,), plan, sessions=tuple(read))


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
            held,
            [(r.id, r.name, r.scope) for r in plan.renames],
            commit=None if Scope.SESSION in source.scopes else source.marker,
        )
    done = chunks = 0
    # Closed at once where a write fails, so that the thread and its git end too.
    with closing(_ahead(_batches(_read(resources, project, source)))) as batches:
        for batch in batches:
            documents.write_documents(resources.database, resources.tenant, held, batch)
            done += len(batch)
            chunks += sum(len(document.passages) for document in batch)
            if progress is not None:
                progress(done, len(plan.writes))
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


def close_attempt(
    resources: Resources,
    project: Project,
    held: projects.Hold,
    source: SourcePlan,
    *,
    branch: str | None,
) -> None:
    """Count, and say that the rows show the source: in one transaction."""
    with resources.database.transaction() as connection:
        projects.check_hold(connection, held)
        if source.marker is not None and Scope.SESSION not in source.scopes:
            documents.stamp_commit(connection, held.project_id, source.scopes, source.marker)
            projects.set_branch(connection, held.project_id, branch)
        coverage.close_attempt(
            connection,
            held.project_id,
            source.scopes,
            marker=source.marker,
            fingerprint=rules_fingerprint(project),
            now=resources.clock(),
        )


def fail_attempt(
    resources: Resources, project_id: int, scopes: Sequence[Scope], error: str
) -> None:
    """Note why some scopes could not be brought up to date; what is stored stays."""
    with resources.database.transaction() as connection:
        coverage.ensure_scopes(connection, resources.tenant, project_id, scopes)
        coverage.fail_attempt(connection, project_id, scopes, error=error, now=resources.clock())


def list_files(resources: Resources, project: Project, commit: str) -> list[Found]:
    """The files of a commit that a scope names; those that are not read carry the reason.

    Raises:
        SourceRefused: The tree has more files than `max_files` allows.
    """
    entries = resources.mirror.list_tree(project.slug, commit)
    if len(entries) > resources.settings.max_files:
        raise SourceError(
            f"the tree of '{project.slug}' has {len(entries):,} files, over the limit of "
            f"{resources.settings.max_files:,}",
            hint="Raise CONCORDANCE_MAX_FILES if this is meant",
        )
    adr_dir = read_adr_folder(resources, project, entries)
    found: dict[str, Found] = {}
    for entry in entries:
        name, skip = _readable_name(entry.path)
        placed = place(name, project.scopes, adr_dir)
        if placed.scope is None:
            continue
        if name in found:
            # Two names that differ in bytes only can look alike once they are escaped.
            name = f"{name} ({entry.blob_id[:12]})"
        skip = skip or _skip_reason(entry, resources.settings.max_file_bytes)
        found[name] = Found(placed.scope, "file", name, entry.blob_id, entry.size or 0, skip)
    return list(found.values())


def read_adr_folder(
    resources: Resources, project: Project, entries: Sequence[TreeEntry]
) -> str | None:
    """The folder that a `.adr-dir` file at the root names, if the project's rules heed it."""
    if not project.scopes.adr_dir_file:
        return None
    for entry in entries:
        if (
            entry.path == b".adr-dir"
            and entry.kind == "file"
            and (entry.size or 0) < MOST_ADR_DIR_BYTES
        ):
            for _, data in resources.mirror.read_blobs(project.slug, [entry.blob_id]):
                return read_adr_dir(data)
    return None


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


def _readable_name(path: bytes) -> tuple[str, str | None]:
    try:
        name = path.decode("utf-8")
    except UnicodeDecodeError:
        escaped = path.decode("utf-8", errors="backslashreplace")
        return storable_name(escaped), "the file's name is not UTF-8"
    stored = storable_name(name)
    return stored, None if stored == name else "the file's path is too long to be stored"


def _skip_reason(entry: TreeEntry, largest: int) -> str | None:
    if entry.kind == "symlink":
        return "a symbolic link; it is not followed"
    if entry.kind == "submodule":
        return "a submodule; index it as a project of its own"
    if entry.size is not None and entry.size > largest:
        return f"{entry.size:,} bytes, over the limit of {largest:,} (CONCORDANCE_MAX_FILE_BYTES)"
    return None


def _read_sessions(project: Project, logs: Sequence[log_folder.LogFile]) -> list[Document]:
    """Every session of the logs, whichever files its events lie in, and every unreadable line."""
    events: list[Event] = []
    first_file: dict[str, log_folder.LogFile] = {}
    read: list[Document] = []
    for log in logs:
        content = read_jsonl(log_folder.read_log(log))
        for event in content.events:
            if event.project in (None, project.slug):
                events.append(event)
                first_file.setdefault(event.session_id, log)
        read += [
            problem_document(p, log.path, chunker=row_fingerprint(project))
            for p in content.problems
        ]
    read += [
        session_document(
            session,
            first_file[session.session_id].path,
            chunker=row_fingerprint(project),
            sizes=ChunkSizes(),
        )
        for session in group_sessions(events)
    ]
    return read


def _read(resources: Resources, project: Project, source: SourcePlan) -> Iterator[Document]:
    """The documents that a plan writes, each read and chunked as it is asked for."""
    if source.sessions:
        wanted = {found.name for found in source.plan.writes}
        yield from (document for document in source.sessions if document.name in wanted)
        return
    commit = source.marker or ""
    for found in source.plan.writes:
        if found.skip is not None:
            yield skipped_document(found, commit=commit, chunker=row_fingerprint(project))
    wanted_files = [found for found in source.plan.writes if found.skip is None]
    if not wanted_files:
        return  # an empty repository has nothing on this machine that could be asked
    blobs = resources.mirror.read_blobs(project.slug, [f.content_id for f in wanted_files])
    for found, (_, data) in zip(wanted_files, blobs, strict=True):
        yield file_document(
            found, data, commit=commit, chunker=row_fingerprint(project), sizes=ChunkSizes()
        )


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
