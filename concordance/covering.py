"""Coverage as it stands by today's settings and today's program, not by those of the last run.

What belongs here: comparing what is written beside the rows with what a run would write now. What
was counted is the tables' account; what may be said of it, `concordance.indexing.coverage`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concordance.adapters.postgres import coverage, embeddings, projects
from concordance.adapters.postgres.coverage import MadeBy, Outdated, StoredCoverage
from concordance.indexing.coverage import Verdict, by_todays_model, by_todays_rules, is_outdated
from concordance.indexing.model_families import known_prefixes
from concordance.indexing.plan import skipped_by
from concordance.indexing.vector_space import CHUNK_TEXT_VERSION
from concordance.models import Scope, ScopeCoverage
from concordance.resources import Resources
from concordance.settings import SLUG, Project
from concordance.surveying import (
    log_fingerprint,
    row_fingerprint,
    session_fingerprint,
    todays_rules,
)


def cover(resources: Resources, slugs: Sequence[str] | None) -> list[ScopeCoverage]:
    """The coverage of some projects, or of all, by slug and scope; nothing is written.

    Raises:
        UnknownProject: A project is neither configured nor indexed.
    """
    for slug in slugs or ():
        configured = resources.configuration.project(slug) is not None
        # No text of another shape is asked of Postgres.
        if SLUG.fullmatch(slug) is None or not (configured or _is_stored(resources, slug)):
            resources.project(slug)  # raises UnknownProject, with what there is
    stored = coverage.list_coverage(resources.database, resources.tenant, slugs)
    rules = todays_rules(resources, (said.project for said in stored))
    model = _other_model(resources)
    counts: dict[str, Mapping[str, Outdated]] = {}
    covered = []
    for said in stored:
        verdict = Verdict(said.state, said.reason)
        if model is not None and said.chunks and said.model is not None:
            verdict = by_todays_model(verdict, said.model, model)
        if is_outdated(said.last_success, said.fingerprint, rules.get((said.project, said.scope))):
            if said.project not in counts:
                counts[said.project] = _outdated(resources, said.project)
            again = counts[said.project].get(said.scope, Outdated(said.scope, 0, 0))
            verdict = by_todays_rules(
                verdict, said.scope, documents=again.documents, logs=again.logs
            )
        covered.append(_as_judged(said, verdict))
    return covered


def _is_stored(resources: Resources, slug: str) -> bool:
    if resources.database.reader:
        return bool(coverage.list_coverage(resources.database, resources.tenant, [slug]))
    return projects.find_project(resources.database, resources.tenant, slug) is not None


def _as_judged(said: StoredCoverage, verdict: Verdict) -> ScopeCoverage:
    fields = said.model_dump(exclude={"fingerprint"})
    return ScopeCoverage(**fields | {"state": verdict.state, "reason": verdict.reason})


def _other_model(resources: Resources) -> str | None:
    """The model that questions are embedded with now, where the vectors can't be of its space.

    What only the provider knows, such as the version of its model, is not asked for here.
    """
    space = embeddings.active_space(resources.database, resources.tenant)
    if space is None:
        return None
    model = resources.embedder.model
    wanted = (model, *known_prefixes(model), CHUNK_TEXT_VERSION)
    held = (space.name, space.document_prefix, space.query_prefix, space.chunk_text_version)
    return None if held == wanted else model


def _outdated(resources: Resources, slug: str) -> Mapping[str, Outdated]:
    project = resources.configuration.project(slug)
    if project is None or resources.database.reader:
        return {}  # a reader is not told what is written beside each document
    found = coverage.count_outdated(
        resources.database, resources.tenant, slug, _made_by(resources, project)
    )
    if not project.sessions:  # what is stored of some goes, and is not read
        found.pop(Scope.SESSION, None)
    return found


def _made_by(resources: Resources, project: Project) -> MadeBy:
    files, sessions = row_fingerprint(project), session_fingerprint(project)
    return MadeBy(
        files=(files, skipped_by(files)),
        sessions=(sessions, skipped_by(sessions)),
        readers=[log_fingerprint(project, s, resources.readers) for s in project.sessions],
    )
