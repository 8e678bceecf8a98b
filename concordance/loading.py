"""A set of questions with known answers, brought into the index as a project of its own.

What belongs here: from a set to rows and vectors, by the same chunker, analysis and model as any
project. What is asked of it is `concordance.evaluating`'s matter.

Such projects belong to a tenant of their own, whose name no installation can be set to: searches,
coverage and runs are limited to the installation's tenant, so they never see these. The rows stay
until they are forgotten: a set that has not changed is neither analysed nor embedded again.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from concordance import embedding
from concordance.adapters.beir import Entry, Question, QuestionSet
from concordance.adapters.postgres import coverage, documents, projects
from concordance.adapters.postgres.planner import look_anew_if_much_changed
from concordance.adapters.postgres.words import settle_weights
from concordance.errors import SettingsError
from concordance.indexing.build import LanguageChooser, session_document, storable_name
from concordance.indexing.documents import Document, Passage
from concordance.indexing.plan import Found, make_plan
from concordance.indexing.turns import session_passages
from concordance.indexing.vector_space import content_hash
from concordance.models import DocumentStatus, Scope, stored_path
from concordance.reading import language_chooser
from concordance.resources import Resources
from concordance.sessions.events import Event, Session
from concordance.settings import LANGUAGE, Project
from concordance.surveying import row_fingerprint, rules_fingerprint, session_fingerprint
from concordance.text.chunking import chunk_plain
from concordance.text.cutting import ChunkSizes
from concordance.text.language import AUTO

TENANT = "_evaluation"  # a tenant of settings begins with a letter or digit
SCOPES = (Scope.DOCS,)
# Goes up when an entry of a set becomes other rows.
FORM_VERSION = 1
BATCH_DOCUMENTS = 200
_NO_SLUG = re.compile(r"[^a-z0-9._-]+")
_LONGEST_SLUG = 64

Progress = Callable[[str, int, int], None]
"""Told the stage, and how much of it is done of how much."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A set in the index: `resources` are those of the tenant that holds it."""

    resources: Resources
    slug: str
    names: dict[str, str]
    written: int
    embedded: int
    turns: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def document(self, name: str, ordinal: int) -> str:
        """The set's id of what a stored passage is a part of: a document, or a turn."""
        return self.turns[name][ordinal] if name in self.turns else self.names[name]


def load(
    resources: Resources,
    questions: QuestionSet,
    *,
    language: str = AUTO,
    vectors: bool = True,
    progress: Progress | None = None,
) -> Loaded:
    """Make the rows of a set, and its vectors, those of its folder.

    Raises:
        SettingsError: Postgres has no text-search configuration named `language`.
        ProjectBusy: Another evaluation of this set is under way.
        ProviderError: `vectors` are wanted, and the provider is down or lacks the model.
    """
    check_language_name(language)
    tenant = projects.ensure_tenant(resources.database, TENANT)
    apart = replace(resources, tenant=tenant)
    # What is measured is the set as it was given; its texts are their owner's own.
    project = Project(
        slug=slug_of(questions.name),
        path=Path(stored_path(str(questions.folder))),
        language=language,
        scrub=False,
    )
    projects.check_language(apart.database, project)
    if vectors:
        embedding.prepare_space(apart)  # a provider that is down is noticed before any work
    started = apart.clock()
    names = {name_of(entry, questions): entry.id for entry in questions.corpus}
    turns = turns_of(questions) if questions.conversational else {}
    written = _write(apart, project, questions, progress)
    embedded = 0
    if vectors:
        done = embedding.fill_vectors(
            apart, [project.slug], started=started, progress=_stage(progress, "embed")
        )
        embedding.note_outcome(apart, [project.slug], None)
        embedded = done.embedded
    return Loaded(apart, project.slug, names, written, embedded, turns)


def list_sets(resources: Resources) -> list[str]:
    """The slugs of the sets that are kept in the index."""
    tenant = projects.ensure_tenant(resources.database, TENANT)
    return [one.slug for one in projects.list_projects(resources.database, tenant)]


def forget_set(resources: Resources, slug: str) -> bool:
    """Remove the rows and vectors of a set; tells whether it was there."""
    tenant = projects.ensure_tenant(resources.database, TENANT)
    return projects.forget_project(resources.database, tenant, slug)


def check_language_name(language: str) -> None:
    """Make sure that a name can be that of a text-search configuration.

    Raises:
        SettingsError: It can't.
    """
    if re.fullmatch(LANGUAGE, language) is None:
        raise SettingsError(
            f"'{language[:60]}' is no name of a text-search configuration",
            hint="Use one that 'select cfgname from pg_ts_config' lists, or auto",
        )


def slug_of(name: str) -> str:
    """The project of a set, by the name of its folder."""
    plain = _NO_SLUG.sub("-", f"evaluation-{name.lower()}")
    if plain == f"evaluation-{name}" and len(plain) <= _LONGEST_SLUG and plain[-1].isalnum():
        return plain
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: _LONGEST_SLUG - 9].rstrip('._-')}-{digest}"


def name_of(entry: Entry, questions: QuestionSet) -> str:
    """The name that a document is stored under, in its scope's folder where there are scopes."""
    folder = folder_of(entry.scope, questions) or ""
    return storable_name(f"{folder}{entry.id}")


def folder_of(scope: str | None, questions: QuestionSet) -> str | None:
    """The path prefix that a scope's documents share; None where the set has no scopes."""
    if not questions.scoped:
        return None
    return f"{quote(scope or '', safe='', errors='backslashreplace')}/"


def document_of(
    entry: Entry, name: str, *, chunker: str, sizes: ChunkSizes, language: LanguageChooser
) -> Document:
    """An entry as a document: its title is the heading above each of its passages.

    Its id is no text, so neither words nor vectors are made of it.
    """
    text, headings = entry.text, tuple(filter(None, [" ".join(entry.title.split())]))
    if not text.strip():
        text, headings = entry.title, ()
    passages = tuple(
        Passage(
            ordinal=chunk.ordinal,
            heading_path=chunk.heading_path,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            start_char=chunk.start,
            end_char=chunk.end,
            content=chunk.content,
            content_hash=content_hash(None, chunk.heading_path, chunk.content),
            titled=False,
        )
        for chunk in chunk_plain(text, sizes, headings)
    )
    return Document(
        scope=Scope.DOCS,
        kind="file",
        name=name,
        content_id=_digest((entry,)),
        bytes=len(text.encode()),
        status=DocumentStatus.INDEXED if passages else DocumentStatus.EMPTY,
        reason=None if passages else "no text",
        title=entry.title or None,
        chunker=chunker,
        commit=None,
        language=language(f"{entry.title}\n{entry.text}") if passages else None,
        passages=passages,
    )


def session_of(turns: Sequence[Entry]) -> Session:
    """The turns of one session of a set as real ones are: each is an event."""
    return Session(
        turns[0].session or "",
        None,
        tuple(
            Event(turn.session or "", turn.id, "human", turn.text, turn.date, author=turn.speaker)
            for turn in turns
        ),
    )


def session_name(entry: Entry, questions: QuestionSet) -> str:
    """The name that the session of a turn is stored under."""
    folder = folder_of(entry.scope, questions) or ""
    return storable_name(f"{folder}{entry.session}")


def turns_of(questions: QuestionSet) -> dict[str, list[str]]:
    """The turn that each passage of a session is of, by the session's name."""
    return {
        name: [p.event_id or "" for p in session_passages(session_of(group), ChunkSizes(), None)]
        for name, group in _grouped(questions).items()
    }


def sessions_document(
    turns: Sequence[Entry], name: str, *, chunker: str, sizes: ChunkSizes, language: LanguageChooser
) -> Document:
    """A session of a set as a document; its name is no text, as an entry's id is none."""
    made = session_document(
        session_of(turns),
        name,
        chunker=chunker,
        sizes=sizes,
        language=language,
        content_id=_digest(turns),
    )
    passages = tuple(replace(passage, titled=False) for passage in made.passages)
    # A question's scope is a path: sessions of a set are told apart as its other documents are.
    return replace(made, scope=Scope.DOCS, kind="file", name=name, passages=passages)


def path_prefix(question: Question, questions: QuestionSet) -> str | None:
    """Where the answer of a question may lie; None means anywhere."""
    return None if question.scope is None else folder_of(question.scope, questions)


def _write(
    resources: Resources, project: Project, questions: QuestionSet, progress: Progress | None
) -> int:
    """Bring the rows up to date under a hold; how many documents were written."""
    stored = projects.ensure_project(resources.database, resources.tenant, project)
    wait = resources.settings.project_lock_seconds
    with projects.hold(
        resources.database, stored, uuid.uuid4(), wait_seconds=wait, on_wait=lambda: None
    ) as held:
        chunker = f"{_fingerprint(project, questions)}/set{FORM_VERSION}"
        entries = _grouped(questions)
        plan = make_plan(
            documents.stored_documents(resources.database, held.project_id, SCOPES),
            [_found(group, name) for name, group in entries.items()],
            chunker=chunker,
        )
        _open(resources, held)
        if plan.renames:
            documents.rename_documents(
                resources.database,
                resources.tenant,
                held,
                [(rename.id, rename.name, rename.scope) for rename in plan.renames],
            )
        wanted = [(found.name, entries[found.name]) for found in plan.writes]
        done = 0
        for batch in _batches(resources, project, wanted, chunker):
            documents.write_documents(resources.database, resources.tenant, held, batch)
            done += len(batch)
            if progress is not None:
                progress("write", done, len(wanted))
        if plan.deletes:
            documents.delete_documents(resources.database, held, plan.deletes)
        _close(resources, project, held, questions)
    return done


def _batches(
    resources: Resources,
    project: Project,
    wanted: Sequence[tuple[str, Sequence[Entry]]],
    chunker: str,
) -> Iterator[list[Document]]:
    choose = language_chooser(resources, project)

    def made(name: str, group: Sequence[Entry]) -> Document:
        if group[0].session is not None:
            return sessions_document(
                group, name, chunker=chunker, sizes=ChunkSizes(), language=choose
            )
        return document_of(group[0], name, chunker=chunker, sizes=ChunkSizes(), language=choose)

    for start in range(0, len(wanted), BATCH_DOCUMENTS):
        yield [made(name, group) for name, group in wanted[start : start + BATCH_DOCUMENTS]]


def _open(resources: Resources, held: projects.Hold) -> None:
    with resources.database.transaction() as connection:
        projects.check_hold(connection, held)
        coverage.ensure_scopes(connection, resources.tenant, held.project_id, SCOPES)
        now = resources.clock()
        coverage.open_attempt(connection, held.project_id, SCOPES, marker=None, now=now)


def _close(
    resources: Resources, project: Project, held: projects.Hold, questions: QuestionSet
) -> None:
    with resources.database.transaction() as connection:
        projects.check_hold(connection, held)
        settle_weights(connection, held.project_id)
        coverage.close_attempt(
            connection,
            held.project_id,
            SCOPES,
            marker=questions.name,
            fingerprint=rules_fingerprint(
                project, Scope.DOCS, resources.settings, resources.readers
            ),
            now=resources.clock(),
        )
    look_anew_if_much_changed(resources.database)


def _grouped(questions: QuestionSet) -> dict[str, Sequence[Entry]]:
    """What becomes one document each, by its name: an entry, or the turns of a session."""
    if not questions.conversational:
        return {name_of(entry, questions): (entry,) for entry in questions.corpus}
    found: dict[str, list[Entry]] = {}
    for entry in questions.corpus:
        found.setdefault(session_name(entry, questions), []).append(entry)
    return dict(found)


def _fingerprint(project: Project, questions: QuestionSet) -> str:
    made_by = session_fingerprint if questions.conversational else row_fingerprint
    return made_by(project)


def _found(group: Sequence[Entry], name: str) -> Found:
    size = sum(len(entry.text.encode()) for entry in group)
    return Found(Scope.DOCS, "file", name, _digest(group), size)


def _digest(group: Sequence[Entry]) -> str:
    turns = [f"\0{e.id}\0{e.date}\0{e.speaker}" if e.session else "" for e in group]
    text = "\0".join(f"{e.title}\0{e.text}{turn}" for e, turn in zip(group, turns, strict=True))
    return hashlib.sha256(text.encode()).hexdigest()


def _stage(progress: Progress | None, stage: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(stage, done, total)
