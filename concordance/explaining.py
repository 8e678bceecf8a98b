"""Why one file or session is, or is not, in the index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from concordance.adapters.git import TreeEntry
from concordance.adapters.postgres import coverage, documents, projects
from concordance.adapters.postgres.citations import CitedDocument, open_shelf
from concordance.adapters.postgres.session_logs import stored_logs
from concordance.citing import SESSION, turns_cited
from concordance.errors import ConcordanceError, SourceError, UnknownProject
from concordance.following import log_path
from concordance.indexing.build import storable_name
from concordance.indexing.counting import agreeing, counted
from concordance.indexing.documents import Kind
from concordance.indexing.logs import LogState
from concordance.indexing.plan import skipped_by
from concordance.indexing.scopes import Placed, place
from concordance.listing import list_sources
from concordance.models import DocumentStatus, Explanation, Scope, stored_path
from concordance.reading import read_adr_folder, readable_name
from concordance.resources import Resources
from concordance.settings import SLUG, Project
from concordance.surveying import FILE_SCOPES, row_fingerprint, session_fingerprint
from concordance.text.scrubbing import has_mark

# The path of a citation, with the lines and the commit behind it, or as a web page links to lines.
_LINES_OF = re.compile(
    r"(?P<path>.*[^:#@])(?::\d{1,9}(?:-\d{1,9})?|#L\d{1,9}(?:-L?\d{1,9})?)(?:@[0-9A-Fa-f]{7,64})?",
    re.DOTALL,
)
MOST_DETAILS = 20

KINDS: tuple[Kind, ...] = ("file", "session")


def explain(resources: Resources, slug: str, path: str) -> Explanation:
    """What is known of a path, in the rows, in the rules and at the commit on this machine.

    The path may also be a session's id, that of a session log, or a citation as an answer has it.
    A reader is told of the rows alone: what is configured here is of all tenants.

    Raises:
        UnknownProject: `projects.toml` has no project of that slug, or a reader's tenant none.
    """
    if resources.database.reader:
        return _explain_to_reader(resources, slug, _as_stored(path.removeprefix("./")))
    project = resources.project(slug)
    asked, name, detail = _find(resources, project, _as_stored(path.removeprefix("./")))
    if detail is None and (log := _explain_log(resources, project, asked)) is not None:
        return log
    commit = _indexed_commit(resources, slug)
    entry, adr_dir, looked = _at_commit(resources, project, name, commit)
    placed = place(asked, project.scopes, adr_dir)
    if detail is not None:
        return _stored(project, name, detail, placed)
    return Explanation(
        project=slug,
        path=name,
        in_index=False,
        verdict=_absent(placed, entry, commit, looked=looked),
        scope=placed.scope,
        rule=placed.rule,
        status=None,
        reason=None,
        commit=commit,
        chunks=0,
        chunks_with_vector=0,
        chunks_refused=0,
    )


def _explain_to_reader(resources: Resources, slug: str, text: str) -> Explanation:
    """What the rows say of a path, a session or a citation."""
    if SLUG.fullmatch(slug) is None:
        raise UnknownProject("there is no project of the name given, and none can have it")
    readings = list(dict.fromkeys([text, *_cited(slug, text)]))
    with open_shelf(resources.database, resources.tenant, slug) as shelf:
        named = ((name, shelf.document(kind, name)) for name in readings for kind in KINDS)
        found = next(((name, detail) for name, detail in named if detail is not None), None)
    if found is not None:
        name, detail = found
        return Explanation(
            project=slug,
            path=name,
            in_index=detail.status == DocumentStatus.INDEXED,
            verdict=_verdict(detail),
            scope=Scope(detail.scope),
            rule=None,
            status=DocumentStatus(detail.status),
            reason=detail.reason,
            commit=detail.commit,
            chunks=detail.chunks,
            chunks_with_vector=detail.chunks_with_vector,
            chunks_refused=None,
        )
    if not coverage.list_coverage(resources.database, resources.tenant, [slug]):
        raise UnknownProject(f"there is no project '{slug}'")
    return Explanation(
        project=slug,
        path=readings[-1],
        in_index=False,
        verdict="not in the index by this name; what is taken is decided where it is indexed",
        scope=None,
        rule=None,
        status=None,
        reason=None,
        commit=None,
        chunks=0,
        chunks_with_vector=0,
        chunks_refused=None,
    )


def _find(
    resources: Resources, project: Project, text: str
) -> tuple[str, str, documents.DocumentDetail | None]:
    """What a text names, under which name it is stored, and what is stored.

    The text as it stands comes first, as a file may be called anything.
    """
    scrub = resources.scrubber(project).name
    readings = list(dict.fromkeys([text, *_cited(project.slug, text)]))
    for asked in readings:
        for name in dict.fromkeys([asked, scrub(asked)]):
            detail = _stored_as(resources, project.slug, name)
            if detail is not None:
                return asked, name, detail
    return readings[-1], scrub(readings[-1]), None


def _cited(slug: str, text: str) -> list[str]:
    """The names that a citation may be of: `path:1-9@commit`, or `session ID#EVENT`."""
    place = text.removeprefix(f"{slug}:")
    session = place.startswith(SESSION)
    turn = place.removeprefix(SESSION) if session else place
    sessions = [turn, *(name for name, _ in turns_cited(turn))]
    if session:
        return sessions
    found = _LINES_OF.fullmatch(place)
    return [*sessions, place if found is None else found["path"]]


def _explain_log(resources: Resources, project: Project, asked: str) -> Explanation | None:
    """What became of a session log, by its path; None where no source of the project has it."""
    if not project.sessions:
        return None
    # Beside projects.toml, as it writes paths, and from where the caller stands.
    scrub = resources.scrubber(project).name
    beside = resources.settings.projects_file.parent / asked
    paths = {storable_name(scrub(str(path))) for path in (beside, Path(asked).absolute())}
    stored = projects.find_project(resources.database, resources.tenant, project.slug)
    states = {} if stored is None else stored_logs(resources.database, stored.id)
    known = next((states[path] for path in sorted(paths) if path in states), None)
    if known is not None and stored is not None:
        return _log(resources, project, stored.id, known)
    try:
        listed = list_sources(resources, project).files
    except ConcordanceError:
        return None  # a source that can't be looked at is told of by coverage
    for log in listed:
        path = log_path(log, resources.scrubber(project))
        if path in paths:
            verdict = "not in the index yet: a session log that the next run reads"
            return _of_log(project, path, verdict, in_index=False)
    return None


def _log(resources: Resources, project: Project, project_id: int, log: LogState) -> Explanation:
    kept = [part.session_id for part in log.parts if part.turns]
    found = {
        name: documents.find_document(
            resources.database, project_id, "session", storable_name(name)
        )
        for name in kept
    }
    details = [
        f"session {name}: " + ("not stored" if one is None else counted(one.chunks, "chunk"))
        for name, one in found.items()
    ]
    details += [f"left out: {counted(n, 'line')} of {kind}" for kind, n in log.left_out.items()]
    refused = log.refused or log.beside
    if refused is not None:
        verdict = f"a session log that is not read: {refused}"
    elif not kept:
        verdict = "a session log in which nobody said anything"
    else:
        turns, sessions = counted(log.turns, "turn"), counted(len(kept), "session")
        verdict = f"a session log: {turns} of {sessions}, indexed under the id of each session"
    return _of_log(
        project,
        log.path,
        verdict,
        in_index=any(one is not None and one.chunks for one in found.values()),
        chunks=[one for one in found.values() if one is not None],
        details=details[:MOST_DETAILS],
    )


def _of_log(  # noqa: PLR0913 - what is told of a log
    project: Project,
    path: str,
    verdict: str,
    *,
    in_index: bool,
    chunks: Sequence[documents.DocumentDetail] = (),
    details: Sequence[str] = (),
) -> Explanation:
    return Explanation(
        project=project.slug,
        path=path,
        in_index=in_index,
        verdict=verdict,
        scope=Scope.SESSION,
        rule="session log",
        status=None,
        reason=None,
        commit=None,
        chunks=sum(one.chunks for one in chunks),
        chunks_with_vector=sum(one.chunks_with_vector for one in chunks),
        chunks_refused=sum(one.chunks_refused for one in chunks),
        details=tuple(details),
    )


def _stored_as(resources: Resources, slug: str, name: str) -> documents.DocumentDetail | None:
    """What is stored under a name, of a file or else of a session."""
    stored = projects.find_project(resources.database, resources.tenant, slug)
    detail = None
    if stored is not None:
        for kind in KINDS:
            detail = detail or documents.find_document(resources.database, stored.id, kind, name)
    return detail


def _stored(
    project: Project, name: str, detail: documents.DocumentDetail, placed: Placed
) -> Explanation:
    status = DocumentStatus(detail.status)
    scope = Scope(detail.scope)
    details = []
    made_by = (row_fingerprint if scope in FILE_SCOPES else session_fingerprint)(project)
    if scope is Scope.DOCS and placed.scope is Scope.ADR:
        details.append("it stands among decision records and has not the form of one")
    if detail.chunker not in (made_by, skipped_by(made_by)):
        details.append("it was chunked by an older version; the next run chunks it anew")
    if detail.chunks_refused:
        refused = counted(detail.chunks_refused, "chunk")
        details.append(f"{refused} refused by the model: {detail.refusal}")
    elif detail.chunks_with_vector < detail.chunks:
        waiting = detail.chunks - detail.chunks_with_vector
        verb = agreeing(waiting, "waits", "wait")
        details.append(f"{counted(waiting, 'chunk')} {verb} for a vector")
    return Explanation(
        project=project.slug,
        path=name,
        in_index=status is DocumentStatus.INDEXED,
        verdict=_verdict(detail),
        scope=scope,
        rule=placed.rule if scope in FILE_SCOPES else "session log",
        status=status,
        reason=detail.reason,
        commit=detail.commit,
        chunks=detail.chunks,
        chunks_with_vector=detail.chunks_with_vector,
        chunks_refused=detail.chunks_refused,
        details=tuple(details),
    )


def _verdict(detail: documents.DocumentDetail | CitedDocument) -> str:
    return {
        DocumentStatus.INDEXED: f"indexed: {counted(detail.chunks, 'chunk')}, "
        f"{detail.chunks_with_vector} with a vector",
        DocumentStatus.EMPTY: "seen, and empty",
        DocumentStatus.FAILED: f"found, and not indexed: {detail.reason}",
        DocumentStatus.SKIPPED: f"found, and skipped by rule: {detail.reason}",
    }[DocumentStatus(detail.status)]


def _absent(placed: Placed, entry: TreeEntry | None, commit: str | None, *, looked: bool) -> str:
    if commit is None:
        return "not in the index: the project has no indexed commit"
    if looked and entry is None:
        return f"not in the index: there is no such file at the indexed commit {commit[:12]}"
    if placed.scope is None:
        return f"not in the index: {placed.rule}"
    if not looked:
        return f"not in the index, though its {placed.rule} belongs to {placed.scope.value}"
    return (
        f"not in the index yet: it belongs to {placed.scope.value} by its {placed.rule}, and the "
        "next run will read it"
    )


def _as_stored(path: str) -> str:
    """A path as the rows have it: none holds a NUL."""
    return stored_path(path).replace("\0", "\ufffd")


def _indexed_commit(resources: Resources, slug: str) -> str | None:
    markers = coverage.list_markers(resources.database, resources.tenant, [slug])
    files = (m.indexed_marker for m in markers if m.scope in FILE_SCOPES)
    return next((marker for marker in files if marker is not None), None)


def _at_commit(
    resources: Resources, project: Project, name: str, commit: str | None
) -> tuple[TreeEntry | None, str | None, bool]:
    """The entry of a path, the folder that .adr-dir names, and whether the tree could be read."""
    if commit is None:
        return None, None, False
    try:
        entries = resources.mirror.list_tree(project.slug, commit)
        adr_dir = read_adr_folder(resources, project, entries)
    except SourceError:
        # The repository lies on another machine, or was removed; the rows still tell.
        return None, None, False
    wanted = name.encode()
    found = next((e for e in entries if e.path == wanted), None)
    if found is None and has_mark(name):
        scrub = resources.scrubber(project).name
        found = next((e for e in entries if scrub(readable_name(e.path)[0]) == name), None)
    return found, adr_dir, True
