"""From what was read to what is written: files and sessions as documents with passages.

What belongs here: joining the pure rooms. A file that can't be used becomes a document with a
reason; nothing is raised for what a source may hold.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from concordance.indexing.documents import Document, Passage
from concordance.indexing.plan import Found, skipped_by
from concordance.indexing.turns import session_passages
from concordance.indexing.vector_space import content_hash
from concordance.models import DocumentStatus, Scope
from concordance.sessions.events import LineProblem, Session
from concordance.text.chunking import Chunk, chunk_markdown
from concordance.text.cutting import ChunkSizes
from concordance.text.decoding import Unreadable, decode
from concordance.text.formats import parse
from concordance.text.markdown import MarkdownDocument
from concordance.text.records import Record, read_record
from concordance.text.scrubbing import Scrubber

# A heading longer than this is a paragraph by mistake; Postgres refuses a tsvector over 1 MB.
MOST_HEADING_CHARACTERS = 500
# A name is part of an index entry, which Postgres holds to about 2,700 bytes.
MOST_NAME_BYTES = 2_000
_COMMIT = re.compile(r"[0-9A-Fa-f]{7,64}")
# The rules of this program alone; an index adds those of a scanner.
SCRUBBER = Scrubber()


LanguageChooser = Callable[[str], str]


def english(_text: str) -> str:
    """The default of a project that says nothing about its language."""
    return "english"


def file_document(  # noqa: PLR0913 - what a document is made of
    found: Found,
    data: bytes,
    *,
    commit: str,
    chunker: str,
    sizes: ChunkSizes,
    language: LanguageChooser = english,
    scrubber: Scrubber = SCRUBBER,
) -> Document:
    """A text file as a document; `language` names the analysis of its text.

    All is made of the text without its secrets; its lines are those of the file.
    """
    source = decode(data)
    if isinstance(source, Unreadable):
        return _without_passages(
            found, DocumentStatus(source.status), source.reason, commit, chunker
        )
    scrubbed = scrubber.scrub(source.text)
    source = replace(source, text=scrubbed.text)
    parsed = parse(found.name, source.text)
    title = _shorten(parsed.title) if parsed.title else None
    body = _end_of_front_matter(parsed)
    passages = tuple(
        _file_passage(chunk, title, titled=chunk.start >= body)
        for chunk in chunk_markdown(source.text, parsed, sizes)
    )
    if not passages:
        return _without_passages(found, DocumentStatus.EMPTY, "no text", commit, chunker)
    return Document(
        scope=found.scope,
        kind="file",
        name=found.name,
        content_id=found.content_id,
        bytes=found.bytes,
        status=DocumentStatus.INDEXED,
        reason="; ".join(source.notes) or None,
        title=title,
        chunker=chunker,
        commit=commit,
        language=language(source.text),
        passages=passages,
        secrets=scrubbed.counts,
        record=_record(source.text, parsed),
    )


def skipped_document(found: Found, *, commit: str | None, chunker: str) -> Document:
    """A file that is not read, with the reason."""
    return _without_passages(
        found, DocumentStatus.SKIPPED, found.skip or "", commit, skipped_by(chunker)
    )


def session_document(  # noqa: PLR0913 - what a document is made of
    session: Session,
    source: Path | str,
    *,
    chunker: str,
    sizes: ChunkSizes,
    language: LanguageChooser = english,
    content_id: str | None = None,
    scrubber: Scrubber = SCRUBBER,
) -> Document:
    """A session as a document; see `turns` for its passages."""
    content_id = content_id or _digest(session.content_id, str(source))
    session, secrets = _without_secrets(session, scrubber)
    title = _shorten(session.title) if session.title else None
    passages = session_passages(session, sizes, title)
    place = session.workplace
    return Document(
        scope=Scope.SESSION,
        kind="session",
        name=storable_name(session.session_id),
        source=storable_name(scrubber.name(str(source))),
        content_id=content_id,
        bytes=session.bytes,
        status=DocumentStatus.INDEXED if passages else DocumentStatus.EMPTY,
        reason=None if passages else "nobody said anything in it",
        title=title,
        chunker=chunker,
        commit=place.commit,
        language=language("\n".join(e.text for e in session.events)) if passages else None,
        secrets=secrets,
        directory=place.directory,
        branch=place.branch,
        turns=len(session.events),
        passages=passages,
    )


def _without_secrets(session: Session, scrubber: Scrubber) -> tuple[Session, dict[str, int]]:
    """The session with marks in what was said and in all that names it, and what was replaced."""
    counts: Counter[str] = Counter()
    events = []
    for event in session.events:
        said = scrubber.scrub(event.text)
        counts.update(said.counts)
        events.append(
            replace(
                event,
                text=said.text,
                event_id=scrubber.name(event.event_id),
                author=scrubber.optional(event.author),
            )
        )
    place = session.workplace
    return (
        replace(
            session,
            session_id=scrubber.name(session.session_id),
            title=scrubber.optional(session.title),
            events=tuple(events),
            workplace=replace(
                place,
                directory=scrubber.optional(place.directory),
                branch=scrubber.optional(place.branch),
                # Anything may stand in a log as a commit.
                commit=place.commit if _COMMIT.fullmatch(place.commit or "") else None,
            ),
        ),
        dict(counts),
    )


def problem_document(
    problem: LineProblem, source: Path | str, *, chunker: str, scrubber: Scrubber = SCRUBBER
) -> Document:
    """A line of a log that could not be read, with its number and the reason."""
    place = f"{problem.unit} {problem.line}"
    named = scrubber.name(str(source))
    return Document(
        scope=Scope.SESSION,
        kind="session",
        name=storable_name(f"{named}#{place}"),
        source=storable_name(named),
        content_id=_digest(place, problem.reason),
        bytes=0,
        status=DocumentStatus.SKIPPED if problem.unfinished else DocumentStatus.FAILED,
        reason=f"{place}: {scrubber.text(problem.reason)}",
        chunker=skipped_by(chunker) if problem.unfinished else chunker,
    )


def refused_document(
    source: Path | str, reason: str, status: DocumentStatus, *, chunker: str
) -> Document:
    """A whole file among the logs that is not read, with the reason."""
    return Document(
        scope=Scope.SESSION,
        kind="session",
        name=storable_name(str(source)),
        source=storable_name(str(source)),
        content_id=_digest(reason),
        bytes=0,
        status=status,
        reason=reason,
        chunker=skipped_by(chunker) if status is DocumentStatus.SKIPPED else chunker,
    )


def found_documents(documents: Sequence[Document]) -> list[Found]:
    """Sessions as the planner compares them."""
    return [
        Found(
            scope=d.scope,
            kind=d.kind,
            name=d.name,
            content_id=d.content_id,
            bytes=d.bytes,
            skip=d.reason if d.status is DocumentStatus.SKIPPED else None,
            source=d.source,
        )
        for d in documents
    ]


def storable_name(name: str) -> str:
    """A name that an index entry can hold: a long one is cut, and told apart by a hash."""
    name = name.replace("\0", "\ufffd")
    data = name.encode(errors="backslashreplace")
    if len(data) <= MOST_NAME_BYTES:
        return data.decode()
    digest = hashlib.sha256(data).hexdigest()[:16]
    return f"{data[: MOST_NAME_BYTES - 32].decode(errors='ignore')}…{digest}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


def _record(text: str, parsed: MarkdownDocument) -> Record | None:
    record = read_record(text, parsed)
    return None if record.silent else record


def _end_of_front_matter(parsed: MarkdownDocument) -> int:
    first = parsed.sections[0].blocks[:1] if parsed.sections else ()
    return next((block.end for block in first if block.kind == "front_matter"), 0)


def _file_passage(chunk: Chunk, title: str | None, *, titled: bool) -> Passage:
    headings = tuple(_shorten(heading) for heading in chunk.heading_path)
    return Passage(
        ordinal=chunk.ordinal,
        heading_path=headings,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        start_char=chunk.start,
        end_char=chunk.end,
        content=chunk.content,
        content_hash=content_hash(title if titled else None, headings, chunk.content),
        titled=titled,
    )


def _without_passages(
    found: Found, status: DocumentStatus, reason: str, commit: str | None, chunker: str
) -> Document:
    return Document(
        scope=found.scope,
        kind=found.kind,
        name=found.name,
        source=found.source,
        content_id=found.content_id,
        bytes=found.bytes,
        status=status,
        reason=reason,
        chunker=chunker,
        commit=commit if found.kind == "file" else None,
    )


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    if len(flat) <= MOST_HEADING_CHARACTERS:
        return flat
    return flat[: MOST_HEADING_CHARACTERS - 1] + "…"
