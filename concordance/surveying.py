"""The survey: which projects have something to do, at the price of one `ls-remote` each.

What belongs here: deciding whether a project needs a run. Nothing is fetched, and of the rows only
the times of unchanged scopes move.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from concordance.adapters.git import RemoteHead
from concordance.adapters.postgres import coverage, projects
from concordance.errors import ConcordanceError
from concordance.indexing.turns import TURNS_VERSION
from concordance.listing import list_sources
from concordance.models import Scope
from concordance.resources import CredentialSource, Resources, scrubs_errors
from concordance.sessions.jsonl import READER as QUERY_READER
from concordance.sessions.reader import Reader
from concordance.settings import Project, SessionSource, Settings
from concordance.text.chunking import chunker_fingerprint
from concordance.text.cutting import ChunkSizes
from concordance.text.language import AUTO, DETECTION_VERSION
from concordance.text.records import RECORDS_VERSION
from concordance.text.scrubbing import Scrubber

# Goes up when the words of a passage are computed in another way.
LEXEMES_VERSION = 2
FILE_SCOPES = (Scope.DOCS, Scope.ADR)
SURVEY_THREADS = 8

# Keys of a project that decide nothing of what its rows hold; the slug is what they are stored by.
_DECIDES_NO_ROW = {"slug", "web_url", "credentials", "overdue_after_hours"}
_OF_FILES = {"url", "path", "branch", "scopes"}

Action = Literal["index", "embed", "none"]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What a project needs, and why."""

    slug: str
    action: Action
    reason: str


def chunker() -> str:
    """The fingerprint of how texts become chunks."""
    return chunker_fingerprint(ChunkSizes())


def row_fingerprint(project: Project) -> str:
    """How a text becomes rows: its chunks, the words they are found by, and its metadata."""
    language = project.language
    if language == AUTO:
        language = f"{AUTO}{DETECTION_VERSION}"
    scrubbed = Scrubber(on=project.scrub).fingerprint
    return f"{chunker()}/{language}/{LEXEMES_VERSION}/r{RECORDS_VERSION}/{scrubbed}"


def session_fingerprint(project: Project) -> str:
    """How a session of this project becomes rows."""
    return f"{row_fingerprint(project)}/turns{TURNS_VERSION}"


def log_fingerprint(
    project: Project, source: SessionSource | None, readers: Mapping[str, Reader]
) -> str:
    """What decides, besides its bytes, what is read from a log of a source."""
    scrubbed = Scrubber(on=project.scrub).fingerprint
    if source is not None and source.query is not None:
        return f"query-{QUERY_READER.version}-{scrubbed}"
    versions = sorted(f"{name}={reader.version}" for name, reader in readers.items())
    own = "" if source is None else f"{source.format}/{source.subagents}"
    text = "\0".join([*versions, own, project.slug, scrubbed])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def rules_fingerprint(
    project: Project, scope: Scope, settings: Settings, readers: Mapping[str, Reader]
) -> str:
    """A hash of all that decides which rows a scope has, besides what its source holds.

    Every key of a project counts that is not known to decide nothing, so a new one does.
    """
    if scope in FILE_SCOPES:
        keys = project.model_dump_json(exclude=_DECIDES_NO_ROW | {"sessions"})
        parts = [keys, row_fingerprint(project), str(settings.max_file_bytes)]
    else:
        keys = project.model_dump_json(exclude=_DECIDES_NO_ROW | _OF_FILES)
        logs = [log_fingerprint(project, source, readers) for source in project.sessions]
        parts = [keys, session_fingerprint(project), *logs]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def todays_rules(resources: Resources, slugs: Iterable[str]) -> dict[tuple[str, str], str]:
    """The rules of each scope of the configured ones among these projects, by slug and scope."""
    found = [resources.configuration.project(slug) for slug in sorted(set(slugs))]
    return {
        (project.slug, scope): rules_fingerprint(
            project, scope, resources.settings, resources.readers
        )
        for project in found
        if project is not None
        for scope in Scope
    }


def survey(  # noqa: PLR0913 - what may be chosen of a survey
    resources: Resources,
    slugs: Sequence[str],
    *,
    scopes: Sequence[Scope],
    full: bool,
    credential: CredentialSource,
    progress: Callable[[int, int], None] | None = None,
) -> list[Surveyed]:
    """What each project needs, in the order given; unchanged scopes are marked as checked."""
    chosen = [resources.project(slug) for slug in slugs]
    stored = _store(resources, chosen)
    markers = coverage.list_markers(resources.database, resources.tenant, slugs)
    by_project: dict[str, dict[str, coverage.Marker]] = {}
    for marker in markers:
        by_project.setdefault(marker.slug, {})[marker.scope] = marker

    def look(project: Project) -> Surveyed:
        known = by_project.get(project.slug, {})
        if full:
            return Surveyed(project.slug, "index", "a full run was asked for")
        return _look(resources, project, stored[project.slug].branch, known, scopes, credential)

    results: list[Surveyed] = []
    with ThreadPoolExecutor(SURVEY_THREADS, thread_name_prefix="survey") as pool:
        for result in pool.map(look, chosen):
            results.append(result)
            if progress is not None:
                progress(len(results), len(chosen))
    unchanged = [stored[r.slug].id for r in results if r.action != "index"]
    coverage.confirm(resources.database, unchanged, scopes, now=resources.clock())
    return results


def _store(resources: Resources, chosen: Sequence[Project]) -> dict[str, projects.StoredProject]:
    stored = projects.stored_slugs(projects.list_projects(resources.database, resources.tenant))
    for project in chosen:
        known = stored.get(project.slug)
        wanted = (project.location, project.web_url, project.language)
        if known is None or (known.location, known.web_url, known.language) != wanted:
            stored[project.slug] = projects.ensure_project(
                resources.database, resources.tenant, project
            )
    return stored


def _look(  # noqa: PLR0911, PLR0913, PLR0917 - one answer a reason; what is known of a project
    resources: Resources,
    project: Project,
    branch: str | None,
    known: dict[str, coverage.Marker],
    scopes: Sequence[Scope],
    credential: CredentialSource,
) -> Surveyed:
    rules = todays_rules(resources, [project.slug])
    for scope in scopes:
        marker = known.get(scope)
        if marker is None or marker.last_success is None:
            return Surveyed(project.slug, "index", f"{scope} was never indexed")
        if marker.attempt_open or marker.attempt_error is not None:
            return Surveyed(project.slug, "index", f"the last run of {scope} did not succeed")
        if marker.fingerprint != rules[project.slug, scope]:
            when = f"{marker.last_success:%Y-%m-%d %H:%M}"
            reason = (
                f"the rows of {when} were made by other rules: a setting or the version differs"
            )
            return Surveyed(project.slug, "index", reason)
    try:
        change = _source_change(resources, project, branch, known, scopes, credential)
    except ConcordanceError as error:
        # The project's own run asks again, with retries, and keeps the failure.
        return Surveyed(project.slug, "index", str(error))
    if change is not None:
        return Surveyed(project.slug, "index", change)
    if any(known[scope].chunks_with_vector < known[scope].chunks for scope in scopes):
        return Surveyed(project.slug, "embed", "some chunks have no vector")
    return Surveyed(project.slug, "none", "nothing changed")


@scrubs_errors
def _source_change(  # noqa: PLR0913, PLR0917 - likewise
    resources: Resources,
    project: Project,
    branch: str | None,
    known: dict[str, coverage.Marker],
    scopes: Sequence[Scope],
    credential: CredentialSource,
) -> str | None:
    files = [scope for scope in FILE_SCOPES if scope in scopes]
    if files:
        head = resources.mirror.remote_head(project.location, project.branch, credential(project))
        if any(known[scope].indexed_marker != head.commit for scope in files):
            return f"the source is at {(head.commit or 'no commit')[:12]}"
        # Sessions are linked to commits by the name of the branch.
        if head.commit and resources.scrubber(project).optional(head.branch) != branch:
            return "the branch has another name"
    if Scope.SESSION in scopes:
        now = list_sources(resources, project).marker()
        if now is None:
            return "a query on session logs has no marker, so it has to be read"
        if known[Scope.SESSION].indexed_marker != now:
            return "the session logs changed"
    return None


@scrubs_errors
def remote_head(resources: Resources, project: Project) -> RemoteHead:
    """The branch, without its secrets, and the commit that a project's remote is at now."""
    head = resources.mirror.remote_head(
        project.location, project.branch, resources.credential(project)
    )
    return replace(head, branch=resources.scrubber(project).optional(head.branch))
