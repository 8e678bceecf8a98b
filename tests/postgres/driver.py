"""One project's run as the flow makes it, without Prefect; and a picture of all rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from concordance.embedding import Embedded
from concordance.errors import ConcordanceError, ProviderError, RunSuperseded
from concordance.index import Index
from concordance.models import Scope, ScopeCoverage
from concordance.settings import ALL_SCOPES
from concordance.surveying import FILE_SCOPES
from concordance.writing import Written
from tests.fake_ollama import FakeOllama
from tests.soak.observing import look

Rows = list[dict[str, Any]]


def reindex(
    index: Index,
    slug: str = "p",
    *,
    scopes: Sequence[Scope] = ALL_SCOPES,
    full: bool = False,
    embed: bool = True,
) -> list[Written]:
    """Bring one project up to date; what was written, of files and then of sessions."""
    done: list[Written] = []
    started = index.now()
    with index.hold(slug, uuid.uuid4(), on_wait=lambda: None) as held:
        files = [scope for scope in FILE_SCOPES if scope in scopes]
        with _recorded(index, slug, files):
            if files:
                fetched = index.fetch(slug)
                source = index.plan_files(held, slug, fetched.commit, scopes=files, full=full)
                done.append(index.write(held, slug, source))
                index.close_attempt(held, slug, source, branch=fetched.branch)
        with _recorded(index, slug, [Scope.SESSION]):
            if Scope.SESSION in scopes:
                source = index.plan_sessions(held, slug, full=full)
                done.append(index.write(held, slug, source))
                index.close_attempt(held, slug, source)
    if embed:
        fill(index, slug, started=started)
    return done


def fill(index: Index, slug: str = "p", *, started: Any = None) -> Embedded | None:
    """Embed what is pending, as the flow does: a provider that is down costs the vectors alone."""
    # A breaker that remembers for a minute would make a test wait for one.
    index._resources.breaker.reset()
    error: str | None = None
    embedded = None
    try:
        embedded = index.fill_vectors([slug], started=started or index.now())
    except ProviderError as failure:
        error = str(failure)
    index.note_embedding([slug], error)
    return embedded


def needs(index: Index, slug: str = "p") -> str:
    """What the survey says that a project needs."""
    (found,) = index.survey([slug])
    return found.action


def covered(index: Index, scope: Scope = Scope.DOCS, slug: str = "p") -> ScopeCoverage:
    return next(c for c in index.coverage([slug]) if c.scope is scope)


@contextmanager
def _recorded(index: Index, slug: str, scopes: Sequence[Scope]) -> Iterator[None]:
    try:
        yield
    except RunSuperseded:
        raise
    except ConcordanceError as error:
        index.fail_attempt(slug, scopes, str(error))


def ask(url: str, query: Any, parameters: Any = None) -> Rows:
    with psycopg.connect(
        url, row_factory=dict_row, options="-c search_path=concordance,public"
    ) as c:
        return c.execute(query, parameters).fetchall()


def documents_of(url: str, slug: str = "p") -> Rows:
    return ask(
        url,
        """
        select d.scope, d.kind, d.name, d.source, d.title, d.content_id, d.bytes, d.status,
               d.reason, d.chunker, d.commit, d.language, d.secrets,
               d.directory, d.branch, d.turns
        from documents d join projects p on p.id = d.project_id
        where p.slug = %s order by d.kind, d.name
        """,
        [slug],
    )


def passages_of(url: str, slug: str = "p") -> Rows:
    """Every passage with its words and its vector in the active space, without row numbers."""
    return ask(
        url,
        """
        select d.scope, d.kind, d.name, k.ordinal, k.heading_path, k.start_line, k.end_line,
               k.start_char, k.end_char, k.event_id, k.last_event_id, k.speaker, k.occurred_at,
               k.titled, k.content, k.content_hash, d.commit, l.scope as lexical_scope,
               l.ordinal as lexical_ordinal, l.document_id = d.id as lexical_document,
               l.language, l.length, l.weights::text as weights,
               l.lexemes @@ quote_literal(w.place)::tsquery as placed,
               ts_delete(l.lexemes, w.place)::text as lexemes,
               e.scope as vector_scope, e.embedding::text as vector
        from documents d
        join projects p on p.id = d.project_id
        join chunks k on k.document_id = d.id
        left join lexical l on l.chunk_id = k.id
        cross join lateral (select format('§%%s.%%s', p.id, d.scope) as place) w
        left join embedding_models m on m.tenant_id = d.tenant_id and m.state = 'active'
        left join embeddings e on e.chunk_id = k.id and e.model_id = m.id
            and e.content_hash = k.content_hash
        where p.slug = %s order by d.kind, d.name, k.ordinal
        """,
        [slug],
    )


def statistics_of(url: str, slug: str = "p") -> tuple[Rows, dict[tuple[str, str], float]]:
    """What is counted of each word and each language; and the largest weight of each word."""
    terms = ask(
        url,
        """
        select t.language, t.lexeme, t.passages, t.largest
        from term_stats t join projects p on p.id = t.project_id
        where p.slug = %s and t.passages <> 0 order by t.language, t.lexeme
        """,
        [slug],
    )
    totals = ask(
        url,
        """
        select s.language, s.passages, s.length, s.average
        from project_stats s join projects p on p.id = s.project_id
        where p.slug = %s and s.passages <> 0 order by s.language
        """,
        [slug],
    )
    largest = {(t["language"], t["lexeme"]): t.pop("largest") for t in terms}
    return terms + totals, largest


def embedded(provider: FakeOllama) -> list[str]:
    """The passages that were sent to the provider, without what it is tried out with."""
    return [text for text in provider.inputs if text.startswith("search_document: ")]


def names_of(url: str, slug: str = "p") -> dict[str, str]:
    """Scope and status of each document, by name."""
    return {d["name"]: f"{d['scope']} {d['status']}" for d in documents_of(url, slug)}


def better_than_the_truth(index: Index, url: str, slug: str = "p") -> list[str]:
    """Where coverage says more than the tables hold, at one moment; empty when it is honest."""
    return [wrong for wrong in look(index._resources, url) if wrong.startswith(f"{slug} ")]
