"""Session logs: what they hold now, beside what is stored of them, and their sessions as documents.

What belongs here: reading logs one at a time. A log that has not changed is not read; of the others
only a few words are kept, and the sessions that are to be written are read once more. So neither
many logs nor long ones are held at once.
"""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from concordance.adapters import log_folder
from concordance.adapters.log_folder import LogFile
from concordance.adapters.postgres.session_logs import stored_logs
from concordance.adapters.unpacking import SUFFIX, Damaged
from concordance.errors import SettingsError
from concordance.indexing.build import session_document, storable_name
from concordance.indexing.counting import counted
from concordance.indexing.documents import Document
from concordance.indexing.logs import (
    LogState,
    Part,
    holds_less,
    problem_documents,
    state_of,
    told,
    without_secrets,
)
from concordance.indexing.plan import Found
from concordance.listing import Listed, ListedQuery, list_sources
from concordance.reading import language_chooser
from concordance.resources import Resources
from concordance.sessions.events import (
    Event,
    LineProblem,
    LogContent,
    SessionNote,
    by_session,
    join_session,
)
from concordance.sessions.reader import LogContext, NotThisFormat
from concordance.sessions.registry import read as read_format
from concordance.sessions.rows import read_rows
from concordance.settings import Project, SessionSource
from concordance.surveying import log_fingerprint, session_fingerprint
from concordance.text.cutting import ChunkSizes
from concordance.text.scrubbing import Scrubber, has_mark

# Of logs that share sessions so much is kept while those are put together, in bytes as they lie.
KEPT_BYTES = 32 * 1024 * 1024
SESSIONS_AT_ONCE = 200
QUERY_FORMAT = "query"
BREAKS_OFF = "the compressed file breaks off; it is read again when it changes"
LINKED = "a link, which is not followed below a source; name what it leads to as a source"

Parts = Mapping[str, tuple[Sequence[Event], Sequence[SessionNote]]]


@dataclass(frozen=True, slots=True)
class Followed:
    """What a project's logs hold now: `states` are in the order in which their events stand."""

    listed: Listed
    states: tuple[LogState, ...]
    marker: str


def follow(resources: Resources, project: Project, project_id: int, *, full: bool) -> Followed:
    """Look at all logs of a project, and read those that have changed, or with `full` all.

    Raises:
        LogsUnreadable: A source, a file or a database can't be read.
        SettingsError: The reader of a log that was read before is not installed.
    """
    listed = list_sources(resources, project)
    stored = stored_logs(resources.database, project_id)
    _check_readers(resources, project, stored.values())
    states = [_file_state(resources, project, log, stored, full=full) for log in listed.files]
    states += [_link_state(resources, project, link) for link in listed.links]
    known = {} if full else stored
    asked = [_query_state(resources, project, query, known) for query in listed.queries]
    marker = listed.marker([_content_of(state) for state in asked])
    return Followed(listed, (*states, *asked), marker or "")


def _check_readers(resources: Resources, project: Project, stored: Iterable[LogState]) -> None:
    """Make sure that logs are not taken for gone because the package that read them is.

    Its names are not looked for without it. A log that was deleted, or that its source does not
    name any more, by its pattern or format, wants no reader.

    Raises:
        SettingsError: A log is still there, and its reader is not.
    """
    gone = {
        state.path: state.format
        for state in stored
        if state.parts and state.format not in (None, QUERY_FORMAT, *resources.readers)
    }
    if not gone:
        return
    everything = [
        source.model_copy(update={"pattern": source.pattern or "**/*"})
        for source in project.sessions
        if source.path is not None and source.format is None
    ]
    scrubber = resources.scrubber(project)
    there = (log_path(log, scrubber) for log in log_folder.list_logs(everything, {}))
    orphans = Counter(gone[path] for path in there if path in gone)
    if orphans:
        raise SettingsError(
            "; ".join(
                f"there is no session reader '{name}', which read {counted(number, 'log')}"
                for name, number in sorted(orphans.items(), key=str)
            ),
            hint="Nothing was deleted. Install the package that brings it, or leave its logs out "
            "with 'pattern' or 'format'",
        )


def read_sessions(
    resources: Resources, project: Project, followed: Followed, wanted: Sequence[Found]
) -> Iterator[Document]:
    """The documents of sessions and problems that a plan writes, each read as it is asked for."""
    names = {found.name: found for found in wanted}
    chunker = session_fingerprint(project)
    for problem in problem_documents(followed.states, chunker=chunker):
        if problem.name in names:
            yield problem
    choose = language_chooser(resources, project)
    for session_id, found, parts in _wanted_parts(resources, project, followed, names):
        events = [event for part in parts for event in part[0]]
        notes = [note for part in parts for note in part[1]]
        yield session_document(
            join_session(session_id, events, notes),
            found.source or "",
            chunker=chunker,
            sizes=ChunkSizes(),
            language=choose,
            content_id=found.content_id,
            scrubber=resources.scrubber(project),
        )


def _wanted_parts(
    resources: Resources, project: Project, followed: Followed, names: Mapping[str, Found]
) -> Iterator[tuple[str, Found, list[tuple[Sequence[Event], Sequence[SessionNote]]]]]:
    """Each wanted session with what its logs hold of it, in the order of its first log."""
    scrubber = resources.scrubber(project)
    files = {log_path(log, scrubber): log for log in followed.listed.files}
    queries = {query.name: query for query in followed.listed.queries}
    places: dict[str, list[str]] = {}
    refused = {state.path for state in followed.states if state.refused is not None}
    for state in followed.states:
        for part in state.parts:
            if storable_name(part.session_id) in names:
                places.setdefault(part.session_id, []).append(state.path)
    # What a log held that can't be read now is not known any more: its sessions stay as they are.
    places = {name: paths for name, paths in places.items() if refused.isdisjoint(paths)}
    reader = _PartsReader(resources, project, files, queries, places)
    for session_id, paths in places.items():
        parts = [reader.read(path).get(session_id, ((), ())) for path in paths]
        yield session_id, names[storable_name(session_id)], parts


@dataclass(slots=True)
class _PartsReader:
    """Reads logs by their paths, and keeps those that sessions still to come lie in as well."""

    resources: Resources
    project: Project
    files: Mapping[str, LogFile]
    queries: Mapping[str, ListedQuery]
    places: Mapping[str, Sequence[str]]
    _left: Counter[str] = field(default_factory=Counter)
    _kept: OrderedDict[str, tuple[int, Parts]] = field(default_factory=OrderedDict)
    _asked: dict[str, _Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Count how many sessions lie in each log."""
        for paths in self.places.values():
            self._left.update(paths)

    def read(self, path: str) -> Parts:
        """What a log holds of each session; asked once for each of them."""
        if path in self.queries:
            if path not in self._asked:
                wanted = [s for s, paths in self.places.items() if path in paths]
                self._asked[path] = _Rows(
                    self.queries[path], sorted(wanted), self.project.slug, self._scrubber
                )
            return self._asked[path]
        self._left[path] -= 1
        if path in self._kept:
            found = self._kept[path][1]
        else:
            _, content, _ = read_file(self.resources, self.files[path])
            found = {
                self._scrubber.name(session_id): part
                for session_id, part in by_session(content, self.project.slug).items()
            }
        self._keep(path, found)
        return found

    @property
    def _scrubber(self) -> Scrubber:
        return self.resources.scrubber(self.project)

    def _keep(self, path: str, found: Parts) -> None:
        if not self._left[path]:
            self._kept.pop(path, None)
            return
        self._kept[path] = (self.files[path].size, found)
        self._kept.move_to_end(path)
        while len(self._kept) > 1 and sum(size for size, _ in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)


class _Rows(Mapping[str, tuple[Sequence[Event], Sequence[SessionNote]]]):
    """The wanted sessions of a query, asked for as many at once as fit."""

    def __init__(
        self, listed: ListedQuery, wanted: list[str], slug: str, scrubber: Scrubber
    ) -> None:
        self._listed = listed
        self._scrubber = scrubber
        self._wanted = wanted
        self._slug = slug
        self._kept: dict[str, tuple[Sequence[Event], Sequence[SessionNote]]] = {}

    def __getitem__(self, session_id: str) -> tuple[Sequence[Event], Sequence[SessionNote]]:
        if session_id not in self._kept:
            start = self._wanted.index(session_id)
            batch = self._wanted[start : start + SESSIONS_AT_ONCE]
            # Under a name that lost a secret the database knows none: it is asked for all of them.
            asked = None if any(map(has_mark, batch)) else batch
            self._kept = {
                named: by_session(read_rows(rows), self._slug).get(name, ((), ()))
                for name, rows in self._listed.query.sessions(asked)
                for named in [self._scrubber.name(name)]
                if named in batch
            }
        return self._kept.get(session_id, ((), ()))

    def __iter__(self) -> Iterator[str]:
        return iter(self._wanted)

    def __len__(self) -> int:
        return len(self._wanted)


def read_file(resources: Resources, log: LogFile) -> tuple[str | None, LogContent, str | None]:
    """The format of a log file, what it holds, and why it could not be read where that is so.

    Raises:
        LogsUnreadable: The file went away, or may not be read.
    """
    source = log.source or SessionSource(path=log.path)
    try:
        found = log_folder.read_log(log)
        reader = None if source.format is None else resources.readers[source.format]
        wanted = {b for r in ([reader] if reader else resources.readers.values()) for b in r.beside}
        beside = log_folder.read_beside(log, sorted(wanted)) if wanted else {}
        name = log.name.removesuffix(SUFFIX)
        context = LogContext(name, beside, source.subagents, log.export)
        named, content = read_format(found.data, context, resources.readers, source.format)
    except (NotThisFormat, Damaged) as error:
        return source.format, LogContent(()), str(error)
    return named, _cut_short(content, found.data) if found.cut else content, None


def _cut_short(content: LogContent, data: bytes) -> LogContent:
    """What a packed log holds that breaks off, with its last line as one that is to come."""
    last = data.count(b"\n") + 1
    if any(problem.line == last for problem in content.problems):
        return replace(content, cut=True)
    to_come = LineProblem(last, BREAKS_OFF, unfinished=True)
    return replace(content, cut=True, problems=(*content.problems, to_come))


def log_path(log: LogFile, scrubber: Scrubber) -> str:
    """A log's path as it is stored."""
    return storable_name(scrubber.name(str(log.path)))


def _file_state(
    resources: Resources,
    project: Project,
    log: LogFile,
    stored: Mapping[str, LogState],
    *,
    full: bool,
) -> LogState:
    """What a log file holds; where it can't be read, what it held when it could."""
    beside = hashlib.sha256(log.around.encode()).hexdigest()[:8] if log.around else ""
    scrubber = resources.scrubber(project)
    path, stamp = log_path(log, scrubber), f"{log.size}-{log.modified_ns}-{beside}"
    reader = log_fingerprint(project, log.source, resources.readers)
    known = stored.get(path)
    if known is not None and not full and (known.stamp, known.reader) == (stamp, reader):
        return known
    named, content, refused = read_file(resources, log)
    state = state_of(
        content, path=path, stamp=stamp, reader=reader, named=named, project=project.slug
    )
    if refused is None:
        state = without_secrets(state, scrubber)
        if known is None or not content.cut or not holds_less(state, known):
            return state
        refused = content.problems[-1].reason if content.problems else "the file breaks off"
    if known is not None and known.parts:
        # It may be half written; that is no reason to delete what was said.
        kept = told(refused, scrubber, "; what was read of it before stays")
        return replace(known, stamp=stamp, reader=reader, refused=kept)
    return without_secrets(replace(state, refused=refused), scrubber)


def _link_state(resources: Resources, project: Project, link: Path) -> LogState:
    """A link below a source: it may lead anywhere, also to what another project's logs are."""
    path = log_path(LogFile(link, 0, 0), resources.scrubber(project))
    reader = log_fingerprint(project, None, resources.readers)
    return LogState(path, "link", reader, beside=LINKED)


def _query_state(
    resources: Resources, project: Project, listed: ListedQuery, stored: Mapping[str, LogState]
) -> LogState:
    """What a query gives, read session by session."""
    scrubber = resources.scrubber(project)
    stamp = listed.marker or ""
    known = stored.get(listed.name)
    reader = log_fingerprint(project, listed.source, resources.readers)
    if stamp and known is not None and (known.stamp, known.reader) == (stamp, reader):
        return known
    total = LogState(listed.name, stamp, reader, QUERY_FORMAT)
    rows_before = 0
    sessions = listed.query.sessions()
    while batch := list(islice(sessions, SESSIONS_AT_ONCE)):
        for _, rows in batch:
            content = read_rows(rows, rows_before)
            rows_before += len(rows)
            one = state_of(
                content,
                path=listed.name,
                stamp=stamp,
                reader=reader,
                named=QUERY_FORMAT,
                project=project.slug,
            )
            total = _together(total, without_secrets(one, scrubber))
    return total


def _together(one: LogState, other: LogState) -> LogState:
    times = [time for time in (one.last_event, other.last_event) if time is not None]
    kinds = sorted(one.left_out.keys() | other.left_out.keys())
    return replace(
        one,
        parts=one.parts + other.parts,
        problems=one.problems + other.problems,
        left_out={k: one.left_out.get(k, 0) + other.left_out.get(k, 0) for k in kinds},
        last_event=max(times, default=None),
    )


def _content_of(state: LogState) -> str:
    """What tells the rows of a query from others."""
    if state.stamp:
        return state.stamp
    parts: Sequence[Part] = state.parts
    text = "\n".join(
        [*(f"{part.session_id}\0{part.digest}" for part in parts), str(state.problems)]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:24]
