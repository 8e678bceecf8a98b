"""All rows of a project, and where they differ from those of another index of the same source.

What belongs here: pictures of tables at rest, without row numbers and times of runs. What may be
said while a run is at work is `tests.soak.observing`'s matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from concordance.models import CoverageState, ScopeCoverage
from tests.postgres.driver import Rows, ask, documents_of, passages_of, statistics_of

VECTOR = ("vector", "vector_scope")
MOMENTS = {"last_attempt", "last_success", "last_complete"}
OF_VECTORS = {"chunks_with_vector", "chunks_refused", "embedding_error", "state", "reason", "model"}
MOST_SHOWN = 300

OTHERS = {
    "records": """
        select d.name, r.status, r.status_text, r.decided_on, r.deciders, r.supersedes,
               r.superseded_by
        from records r join documents d on d.id = r.document_id
        join projects p on p.id = r.project_id
        where p.slug = %s order by d.name
        """,
    "successions": """
        select o.name as older, n.name as newer
        from successions s join documents o on o.id = s.older_id
        join documents n on n.id = s.newer_id join projects p on p.id = s.project_id
        where p.slug = %s order by 1, 2
        """,
    "session_logs": """
        select l.path, l.stamp, l.reader, l.format, l.turns, l.left_out, l.last_event, l.parts,
               l.problems, l.refused, l.beside
        from session_logs l join projects p on p.id = l.project_id
        where p.slug = %s order by l.path
        """,
    "project_commits": """
        select c.id, c.branch, c.committed_at
        from project_commits c join projects p on p.id = c.project_id
        where p.slug = %s order by c.id
        """,
    "projects": "select branch, language, location from projects where slug = %s",
}
# Texts that want a vector and that nobody would ever be asked for.
FORGOTTEN = """
    select k.id, k.content from chunks k
    join embedding_models m on m.tenant_id = k.tenant_id and m.state = 'active'
    where not exists (select from embeddings e where e.model_id = m.id and e.chunk_id = k.id)
      and not exists (select from embedding_backlog b
          where b.model_id = m.id and b.content_hash = k.content_hash)
    """
# Vectors of another text than that of their passage, which nobody would be asked for any more, or
# that are told to lie elsewhere.
MISPLACED = """
    select e.chunk_id, e.model_id from embeddings e
    join chunks k on k.id = e.chunk_id join documents d on d.id = k.document_id
    where e.scope <> d.scope or e.project_id <> d.project_id
      or (e.content_hash <> k.content_hash and (k.preceding is null or not exists (
            select from embedding_backlog b
            where b.model_id = e.model_id and b.content_hash = k.content_hash)))
    """
SPACE = "select fingerprint from embedding_models where state = 'active'"


@dataclass
class Comparison:
    """What was compared so far: how many rows, and what was found to differ."""

    rows: int = 0
    found: list[str] = field(default_factory=list)

    def same(self, what: str, mine: Sequence[Any], theirs: Sequence[Any]) -> None:
        """Compare two lists of rows."""
        self.rows += len(theirs)
        if list(mine) == list(theirs):
            return
        differ = [(m, t) for m, t in zip(mine, theirs, strict=False) if m != t]
        first = "" if not differ else _first(*differ[0])
        self.found.append(f"{what}: {len(mine)} rows, fresh {len(theirs)}{first}"[:MOST_SHOWN])


def _first(mine: Any, theirs: Any) -> str:
    if isinstance(mine, dict) and isinstance(theirs, dict):
        keys = [key for key in theirs if mine.get(key) != theirs[key]]
        mine, theirs = [[row.get(key) for key in keys] for row in (mine, theirs)]
        return f"; first in {keys}: {mine!r:.90}, fresh {theirs!r:.90}"
    return f"; first {mine!r:.90}, fresh {theirs!r:.90}"


def without_vectors(passages: Rows) -> Rows:
    """Passages with their words alone."""
    return [{k: v for k, v in p.items() if k not in VECTOR} for p in passages]


def compare(url: str, fresh_url: str, slug: str, *, whole: bool) -> Comparison:
    """Compare all rows of a project with those of a fresh index.

    Args:
        url: The database of the index that has a history.
        fresh_url: That of the fresh one, which is complete.
        slug: The project's name in both.
        whole: Whether every vector has to be there; else those that are there have to be right.
    """
    done = Comparison()
    done.same("documents", documents_of(url, slug), documents_of(fresh_url, slug))
    mine, theirs = passages_of(url, slug), passages_of(fresh_url, slug)
    done.same("passages", without_vectors(mine), without_vectors(theirs))
    spaces = [ask(u, SPACE) for u in (url, fresh_url)]
    if whole:
        done.same("active space", *spaces)
    if spaces[0] == spaces[1]:
        pairs = [
            [(one["name"], one["ordinal"], *(one[key] for key in VECTOR)) for one in both]
            for both in zip(mine, theirs, strict=False)
            if both[0]["vector"] is not None or whole
        ]
        done.same("vectors", [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    counts, largest = statistics_of(url, slug)
    true_counts, true_largest = statistics_of(fresh_url, slug)
    done.same("statistics", counts, true_counts)
    # What was the largest weight once may be gone: too large costs time, too small an answer.
    small = [word for word, weight in true_largest.items() if largest.get(word, 0.0) < weight]
    done.same("largest weights that are too small", small, [])
    for name, query in OTHERS.items():
        done.same(name, ask(url, query, [slug]), ask(fresh_url, query, [slug]))
    done.same("texts that nobody is asked for", ask(url, FORGOTTEN), [])
    done.same("misplaced vectors", ask(url, MISPLACED), [])
    return done


def compare_coverage(
    url: str, said: Sequence[ScopeCoverage], fresh: Sequence[ScopeCoverage], *, whole: bool
) -> Comparison:
    """Compare every figure of a project with a fresh index's, and with the tables themselves."""
    done = Comparison()
    left_out = MOMENTS if whole else MOMENTS | OF_VECTORS
    figures = [[c.model_dump(exclude=left_out) for c in both] for both in (said, fresh)]
    done.same("coverage", *figures)
    for one in said:
        passages = [p for p in passages_of(url, one.project) if p["scope"] == one.scope]
        held = sum(p["vector"] is not None for p in passages)
        done.same(
            f"counts of {one.scope}",
            [(one.chunks, one.chunks_with_vector)],
            [(len(passages), held)],
        )
        if one.state in {CoverageState.STALE, CoverageState.FAILED}:
            done.same(f"state of {one.scope}", [(one.state.value, one.reason)], [])
        if whole and one.chunks > held:
            done.same(f"vectors of {one.scope}", [held], [one.chunks])
    return done
