"""The front door: one installation's index, as an object.

Everything that a flow, a downstream job or the command line does goes through `Index`. Its methods
are the steps of the pipeline and the questions that can be asked; each is a few lines that call
the module named by its verb.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from concordance import (
    calibrating,
    checking,
    covering,
    embedding,
    evaluating,
    explaining,
    loading,
    purging,
    quoting,
    recording,
    searching,
    surveying,
    writing,
)
from concordance.adapters.clock import utc_now
from concordance.adapters.environment import process_environment, read_configuration
from concordance.adapters.git import RemoteHead
from concordance.adapters.git_environment import Credential
from concordance.adapters.postgres import calibrations, documents, embeddings, projects
from concordance.adapters.postgres.words import Difference
from concordance.decisions import DecisionRecords, decision_records
from concordance.figures import CalibrationReport, Evaluation
from concordance.listing import list_sources
from concordance.models import Answer, Explanation, Hit, Scope, ScopeCoverage, SearchRequest
from concordance.ranking.calibration import Calibration
from concordance.resources import CredentialSource, Resources, configured_project, open_resources
from concordance.settings import ALL_SCOPES, Configuration, Project
from concordance.text.language import AUTO

Progress = Callable[[int, int], None]


class Index:
    """An opened index; close it, or use it in a `with` statement."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    @classmethod
    def open(
        cls,
        configuration: Configuration | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> Self:
        """Open the index that the environment and `projects.toml` describe, or the one given.

        Raises:
            UsageError: A setting or the projects file can't be used.
            DatabaseError: Postgres can't be reached, or is not what is needed.
        """
        environ = process_environment() if environment is None else environment
        if configuration is None:
            configuration = read_configuration(environ)
        return cls(open_resources(configuration, environ, clock=clock))

    def close(self) -> None:
        """Close connections; the embedded Postgres stops with its last user."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def configuration(self) -> Configuration:
        """Settings and projects that this index was opened with."""
        return self._resources.configuration

    @property
    def reads_one_tenant(self) -> bool:
        """Whether its login is a reader's, bound to one tenant by the database."""
        return self._resources.database.reader

    def now(self) -> datetime:
        """The present moment by the index's own clock."""
        return self._resources.clock()

    # --- questions ---------------------------------------------------------------------------

    def search(self, request: SearchRequest | str) -> Answer:
        """The passages that answer a question; see `concordance.searching.search` for errors."""
        return searching.search(self._resources, searching.as_request(request))

    def coverage(self, slugs: Sequence[str] | None = None) -> list[ScopeCoverage]:
        """What is indexed and how far it can be trusted, by project and scope."""
        return covering.cover(self._resources, slugs)

    def explain(self, slug: str, path: str) -> Explanation:
        """Why a file or session is, or is not, in the index."""
        return explaining.explain(self._resources, slug, path)

    def read_citation(self, citation: str, *, around: int | None = None) -> quoting.CitedText:
        """The text of a citation, and what is around it; see `concordance.quoting`."""
        return quoting.read_citation(self._resources, citation, around=around)

    def decision_records(self, slug: str) -> DecisionRecords:
        """A project's decision records: their status, what replaced what, and what is in doubt."""
        return decision_records(self._resources, slug)

    def problems(self, slug: str, *, most: int = 100) -> list[documents.Problem]:
        """Documents of a project that failed or were skipped, with reasons."""
        at = self._resources
        found = projects.find_project(at.database, at.tenant, slug)
        return documents.problem_documents(at.database, found.id, most=most) if found else []

    def project(self, slug: str) -> Project:
        """A configured project; raises UnknownProject with what there is."""
        return self._resources.project(slug)

    def credential(self, project: Project) -> Credential | None:
        """A project's token from its environment variable; None where it needs none.

        Raises:
            SettingsError: The variable is not set, or the token is in a Secret block.
        """
        return self._resources.credential(project)

    def remote_head(self, slug: str) -> RemoteHead:
        """The branch, without its secrets, and the commit that a project's remote is at now."""
        return surveying.remote_head(self._resources, self._resources.project(slug))

    def check_language(self, slug: str) -> None:
        """Raise SettingsError unless the server can analyse the project's language."""
        projects.check_language(self._resources.database, self._resources.project(slug))

    @staticmethod
    def check_slug(configuration: Configuration, slug: str) -> None:
        """Raise UnknownProject, with what there is, unless the project is configured."""
        configured_project(configuration, slug)

    def is_stored(self, slug: str) -> bool:
        """Whether the database knows a project, configured or not."""
        return slug in self.stored_slugs()

    def stored_slugs(self) -> list[str]:
        """Every project that the database knows."""
        found = projects.list_projects(self._resources.database, self._resources.tenant)
        return [project.slug for project in found]

    def forget(self, slug: str) -> bool:
        """Remove a project's rows and its repository on this machine; tells if there were any."""
        at = self._resources
        at.mirror.remove(slug)
        return projects.forget_project(at.database, at.tenant, slug) or loading.forget_set(at, slug)

    def evaluation_sets(self) -> list[str]:
        """The slugs under which sets that were evaluated are kept; `forget` removes one."""
        return loading.list_sets(self._resources)

    def purge_secrets(
        self,
        slugs: Sequence[str] | None = None,
        *,
        progress: purging.Progress | None = None,
        rewrite: bool = False,
    ) -> list[purging.Purged]:
        """Apply today's rules to what is stored; see `concordance.purging.purge_secrets`."""
        return purging.purge_secrets(self._resources, slugs, progress=progress, rewrite=rewrite)

    def check_statistics(
        self,
        slugs: Sequence[str] | None = None,
        *,
        rebuild: bool = False,
        progress: writing.Progress | None = None,
    ) -> list[Difference]:
        """Compare statistics of words with the rows; see `concordance.checking`."""
        return checking.check_statistics(self._resources, slugs, rebuild=rebuild, progress=progress)

    # --- questions with known answers ----------------------------------------------------------

    def evaluate(
        self,
        folder: Path,
        *,
        language: str = AUTO,
        vectors: bool = True,
        progress: loading.Progress | None = None,
    ) -> Evaluation:
        """Measure the search on a set in BEIR form; see `concordance.evaluating.evaluate`."""
        return evaluating.evaluate(
            self._resources, folder, language=language, vectors=vectors, progress=progress
        )

    def calibrate(
        self, slug: str, folder: Path, *, progress: loading.Progress | None = None
    ) -> CalibrationReport:
        """Fit a project's own numbers on a set; see `concordance.calibrating.calibrate`."""
        return calibrating.calibrate(self._resources, folder, slug, progress=progress)

    def undo_calibration(self, slug: str) -> bool:
        """Go back to the default numbers; tells whether there was anything to undo."""
        return calibrating.undo(self._resources, slug)

    def stored_calibrations(self) -> list[Calibration]:
        """What was fitted for projects and is in use."""
        return calibrations.list_calibrations(
            self._resources.database, self.configuration.settings.tenant
        )

    def record_question(
        self, slug: str, question: str, right: str | int | Hit
    ) -> calibrations.Place:
        """Keep a question with the hit, rank or place that answers it; returns the place."""
        return recording.record(self._resources, slug, question, right)

    def recorded_questions(self, slug: str | None = None) -> list[calibrations.Recorded]:
        """The questions that were recorded for a project, or for all."""
        return recording.recorded(self._resources, slug)

    def forget_question(self, number: int) -> bool:
        """Remove one recorded question; tells whether it was there."""
        return recording.forget(self._resources, number)

    def export_questions(self, slug: str, folder: Path) -> recording.Exported:
        """Write a project's recorded questions and its passages in BEIR form."""
        return recording.export(self._resources, slug, folder)

    # --- steps of indexing -------------------------------------------------------------------

    def survey(
        self,
        slugs: Sequence[str],
        *,
        scopes: Sequence[Scope] = ALL_SCOPES,
        full: bool = False,
        credential: CredentialSource | None = None,
        progress: Progress | None = None,
    ) -> list[surveying.Surveyed]:
        """Which of these projects have something to do, at one `ls-remote` each."""
        return surveying.survey(
            self._resources,
            slugs,
            scopes=scopes,
            full=full,
            credential=credential or self._resources.credential,
            progress=progress,
        )

    @contextmanager
    def hold(
        self, slug: str, run_id: uuid.UUID, *, on_wait: Callable[[], None]
    ) -> Iterator[projects.Hold]:
        """Keep other runs off a project; raises ProjectBusy after `project_lock_seconds`."""
        project = self._resources.project(slug)
        stored = projects.ensure_project(self._resources.database, self._resources.tenant, project)
        with projects.hold(
            self._resources.database,
            stored,
            run_id,
            wait_seconds=self.configuration.settings.project_lock_seconds,
            on_wait=on_wait,
        ) as held:
            yield held

    def fetch(self, slug: str, credential: Credential | None = None) -> writing.Fetched:
        """Bring the newest commit of a project to this machine."""
        project = self._resources.project(slug)
        given = credential or self._resources.credential(project)
        return writing.fetch_source(self._resources, project, given)

    def plan_files(
        self,
        held: projects.Hold,
        slug: str,
        commit: str | None,
        *,
        scopes: Sequence[Scope] = ALL_SCOPES,
        full: bool = False,
    ) -> writing.SourcePlan:
        """What has to be done so that the rows show a commit."""
        project = self._resources.project(slug)
        return writing.plan_files(self._resources, project, held, commit, scopes=scopes, full=full)

    def plan_sessions(
        self, held: projects.Hold, slug: str, *, full: bool = False
    ) -> writing.SourcePlan:
        """What has to be done so that the rows show the session logs."""
        project = self._resources.project(slug)
        return writing.plan_sessions(self._resources, project, held, full=full)

    def session_logs(self, slug: str) -> int:
        """How many session logs a project has now, each query counted as one.

        Raises:
            LogsUnreadable: A source can't be looked at.
        """
        listed = list_sources(self._resources, self._resources.project(slug))
        return len(listed.files) + len(listed.queries)

    def write(
        self,
        held: projects.Hold,
        slug: str,
        source: writing.SourcePlan,
        progress: Progress | None = None,
    ) -> writing.Written:
        """Carry a plan out: from here on the new text is found by its words."""
        project = self._resources.project(slug)
        return writing.write_rows(self._resources, project, held, source, progress)

    def close_attempt(
        self,
        held: projects.Hold,
        slug: str,
        source: writing.SourcePlan,
        *,
        branch: str | None = None,
    ) -> None:
        """Count, and say that the rows show the source."""
        project = self._resources.project(slug)
        writing.close_attempt(self._resources, project, held, source, branch=branch)

    def fail_attempt(self, slug: str, scopes: Sequence[Scope], error: str) -> None:
        """Note why some scopes could not be brought up to date."""
        project = self._resources.project(slug)
        stored = projects.ensure_project(self._resources.database, self._resources.tenant, project)
        writing.fail_attempt(self._resources, stored.id, scopes, error)

    def prepare_space(self) -> str:
        """Ask the provider for its vector space and make it the active one; returns its name."""
        return embedding.prepare_space(self._resources).name

    def provider_servers(self) -> tuple[int, tuple[str, ...]]:
        """How many the embedding provider has, and what is said by those that are left out."""
        return self._resources.embedder.parallel, self._resources.embedder.troubles()

    def fill_vectors(
        self,
        slugs: Sequence[str] | None = None,
        *,
        started: datetime,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> embedding.Embedded:
        """Embed what is pending; several workers may do so at once."""
        return embedding.fill_vectors(
            self._resources, slugs, started=started, limit=limit, progress=progress
        )

    def note_embedding(self, slugs: Sequence[str] | None, error: str | None) -> None:
        """Count the vectors anew, and keep the provider's words where it failed."""
        embedding.note_outcome(self._resources, slugs, error)

    def reset_breaker(self) -> None:
        """Ask the provider again at once, though it was down a moment ago."""
        self._resources.breaker.reset()

    def forgive_refused(self) -> int:
        """Let texts that the model refused too often be tried again; returns how many."""
        space = embeddings.active_space(self._resources.database, self._resources.tenant)
        return 0 if space is None else embeddings.forgive(self._resources.database, space)

    # --- runs --------------------------------------------------------------------------------

    def start_run(self, run_id: uuid.UUID, kind: str) -> None:
        """Note that a run began."""
        projects.start_run(
            self._resources.database,
            self._resources.tenant,
            run_id,
            kind=kind,
            now=self._resources.clock(),
        )

    def finish_run(self, run_id: uuid.UUID, summary: dict[str, Any]) -> None:
        """Note that a run ended, and with what."""
        projects.finish_run(
            self._resources.database, run_id, summary=summary, now=self._resources.clock()
        )
