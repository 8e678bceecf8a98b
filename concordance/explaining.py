"""Why one file or session is, or is not, in the index."""

from __future__ import annotations

from concordance.adapters.git import TreeEntry
from concordance.adapters.postgres import coverage, documents, projects
from concordance.errors import SourceError
from concordance.indexing.documents import Kind
from concordance.indexing.plan import skipped_by
from concordance.indexing.scopes import Placed, place
from concordance.models import DocumentStatus, Explanation, Scope
from concordance.reading import read_adr_folder, readable_name
from concordance.resources import Resources
from concordance.settings import Project
from concordance.surveying import FILE_SCOPES, row_fingerprint, session_fingerprint
from concordance.text.scrubbing import has_mark

KINDS: tuple[Kind, ...] = ("file", "session")


def explain(resources: Resources, slug: str, path: str) -> Explanation:
    """What is known of a path, in the rows, in the rules and at the commit on this machine.

    Raises:
        UnknownProject: `projects.toml` has no project of that slug.
    """
    project = resources.project(slug)
    asked = _as_stored(path.removeprefix("./"))
    name, detail = asked, _stored_as(resources, slug, asked)
    if detail is None:
        name = resources.scrubber(project).name(asked)
        detail = None if name == asked else _stored_as(resources, slug, name)
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
        details.append(f"{detail.chunks_refused} chunks refused by the model: {detail.refusal}")
    elif detail.chunks_with_vector < detail.chunks:
        details.append(f"{detail.chunks - detail.chunks_with_vector} chunks wait for a vector")
    verdict = {
        DocumentStatus.INDEXED: f"indexed: {detail.chunks} chunks, "
        f"{detail.chunks_with_vector} with a vector",
        DocumentStatus.EMPTY: "seen, and empty",
        DocumentStatus.FAILED: f"found, and not indexed: {detail.reason}",
        DocumentStatus.SKIPPED: f"found, and skipped by rule: {detail.reason}",
    }[status]
    return Explanation(
        project=project.slug,
        path=name,
        in_index=status is DocumentStatus.INDEXED,
        verdict=verdict,
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
    """A path as the rows have it: bytes that are not UTF-8 are escaped, and no row holds a NUL."""
    data = path.encode("utf-8", errors="surrogateescape")
    return data.decode("utf-8", errors="backslashreplace").replace("\0", "\ufffd")


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
