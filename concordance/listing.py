"""Which session logs a project has, and a short text that changes when any of them does.

What belongs here: looking, without reading what is in a log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from concordance.adapters import log_folder
from concordance.adapters.environment import read_session_url
from concordance.adapters.log_folder import LogFile
from concordance.adapters.session_query import SessionQuery
from concordance.adapters.session_readers import check_format
from concordance.resources import Resources, scrubs_errors
from concordance.settings import Project, SessionSource


@dataclass(frozen=True, slots=True)
class ListedQuery:
    """A query on session logs; `marker` is None where only reading it tells what changed."""

    name: str
    source: SessionSource
    query: SessionQuery
    marker: str | None


@dataclass(frozen=True, slots=True)
class Listed:
    """All logs of a project, as they are now, and links below its sources."""

    files: Sequence[LogFile]
    queries: Sequence[ListedQuery]
    links: Sequence[Path] = ()

    def marker(self, contents: Sequence[str | None] | None = None) -> str | None:
        """A text that changes when a log does; None where a query has to be read to know.

        Args:
            contents: What tells the rows of each query from others, once they were read.
        """
        files = log_folder.marker(self.files, self.links)
        if not self.queries:
            return files
        known = contents or [query.marker for query in self.queries]
        if any(marker is None for marker in known):
            return None
        parts = [f"{q.name}\0{m}" for q, m in zip(self.queries, known, strict=True)]
        text = "\n".join([files, *parts])
        return f"logs-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


@scrubs_errors
def list_sources(resources: Resources, project: Project) -> Listed:
    """The logs that a project's sources name.

    Raises:
        SettingsError: A format has no reader, or the variable of a database's address is not set.
        LogsUnreadable: A source is missing or can't be looked at.
    """
    for source in project.sessions:
        if source.format is not None:
            check_format(source.format, resources.readers)
    found = log_folder.look_for_logs(project.sessions, resources.readers)
    queries = [_query(resources, s) for s in project.sessions if s.query is not None]
    return Listed(found.logs, queries, found.links)


def _query(resources: Resources, source: SessionSource) -> ListedQuery:
    variable = source.url_env or ""
    query = SessionQuery(source, read_session_url(resources.environment, variable))
    # Two queries may be asked of one database.
    short = hashlib.sha256((source.query or "").encode()).hexdigest()[:8]
    return ListedQuery(f"query on {variable} ({short})", source, query, query.marker())
