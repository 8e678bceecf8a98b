"""What the steps of the pipeline work with: one installation's outside things, opened once.

What belongs here: opening and closing. What is done with them is in the modules named by verbs
beside this one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from concordance.adapters.clock import utc_now
from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.adapters.embedding import Embedder, open_embedder
from concordance.adapters.environment import git_environment, read_secret
from concordance.adapters.git_environment import Credential
from concordance.adapters.git_history import HistoryMirror
from concordance.adapters.git_policy import GitPolicy
from concordance.adapters.postgres.database import Database, create_database
from concordance.adapters.postgres.projects import ensure_tenant
from concordance.adapters.postgres.schema import migrate
from concordance.adapters.postgres.tenants import find_reader
from concordance.adapters.reranking import Reranker, open_reranker
from concordance.adapters.secret_scanner import kingfisher
from concordance.adapters.session_readers import known_readers
from concordance.errors import (
    ProviderBusy,
    ProviderError,
    ProviderPaused,
    ProviderTimeout,
    ProviderUnavailable,
    SettingsError,
    SourceError,
    UnknownProject,
)
from concordance.sessions.reader import Reader
from concordance.settings import SLUG, Configuration, Project, Settings
from concordance.text.scrubbing import Scrubber

EMBEDDED_DATABASE = "concordance"
# Seconds for which a provider that failed that many times in a row is not asked again. The first
# two are shorter than what a task waits before its tries; the last spares the run's next projects.
PAUSES = (1.0, 4.0, 60.0)
# What a provider may ask for by Retry-After, in seconds: a process may live longer than its word.
LONGEST_PAUSE = 3_600.0

P = ParamSpec("P")
R = TypeVar("R")
CredentialSource = Callable[[Project], Credential | None]


@dataclass(slots=True)
class Breaker:
    """Remembers that the provider is down, so that it is noticed once.

    A failure that may pass is remembered for a moment first, so that the next try of the same step
    reaches the provider; one that lasts, for a minute. A provider that lets its deadline pass is
    left alone for a minute at once: each try would cost as long again. One that says when to come
    back is left alone until then. After a pause one of those who ask is let through, and the others
    wait for what comes of it: else each of them would wait for a provider that hangs.
    """

    monotonic: Callable[[], float] = time.monotonic
    _until: float = 0.0
    _tried_until: float = 0.0
    _failures: int = 0
    _lasts: bool = False
    _error: ProviderError | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def trip(self, error: ProviderError) -> None:
        """Note that the provider just failed."""
        if isinstance(error, ProviderPaused):
            return  # it was not asked
        with self._lock:
            now = self.monotonic()
            if self._error is None or now >= self._until:
                # What was under way when it failed fails for the same reason, and counts once.
                self._failures += 1
            pause = self._pause(error)
            self._error, self._tried_until = error, 0.0
            self._until = max(self._until, now + pause)
            self._lasts = self._until - now >= PAUSES[-1]

    def reset(self) -> None:
        """Note that the provider embeds."""
        with self._lock:
            self._error, self._failures, self._lasts = None, 0, False
            self._until = self._tried_until = 0.0

    def answered(self) -> None:
        """Note that the provider answers, though nothing was embedded yet: failures still count."""
        with self._lock:
            self._tried_until = 0.0

    def check(self) -> None:
        """Raise the last failure again while it is fresh, or while another one tries.

        Raises:
            ProviderError: The failure itself, while the next try of the same step may find it over.
            ProviderPaused: It lasts, so that trying again soon is of no use.
        """
        with self._lock:
            now = self.monotonic()
            if self._error is None:
                return
            if now >= max(self._until, self._tried_until):
                self._tried_until = now + PAUSES[-1]
            elif self._lasts:
                raise ProviderPaused(self._error.message, hint=self._error.hint)
            else:
                raise self._error

    def _pause(self, error: ProviderError) -> float:
        passing = isinstance(error, ProviderUnavailable) and not isinstance(error, ProviderTimeout)
        pause = PAUSES[(min(self._failures, len(PAUSES)) if passing else len(PAUSES)) - 1]
        if isinstance(error, ProviderBusy) and error.retry_after is not None:
            return min(max(pause, error.retry_after), LONGEST_PAUSE)
        return pause


@dataclass(slots=True)
class Resources:
    """One installation, opened: settings, database, repositories, embedding provider, clock."""

    configuration: Configuration
    environment: Mapping[str, str]
    database: Database
    tenant: int
    mirror: HistoryMirror
    embedder: Embedder
    reranker: Reranker | None = None
    clock: Callable[[], datetime] = utc_now
    breaker: Breaker = field(default_factory=Breaker)
    server: EmbeddedPostgres | None = None
    readers: Mapping[str, Reader] = field(default_factory=known_readers)

    @property
    def settings(self) -> Settings:
        """The installation's settings."""
        return self.configuration.settings

    def project(self, slug: str) -> Project:
        """A configured project; see `configured_project`."""
        return configured_project(self.configuration, slug)

    def scrubber(self, project: Project | None = None) -> Scrubber:
        """What replaces secrets in a project's texts, or with None in any that are stored."""
        on = project is None or project.scrub
        return Scrubber((kingfisher(self.settings.home / "secret-rules"),), on=on)

    def credential(self, project: Project) -> Credential | None:
        """A project's token from the environment; tokens in Secret blocks come from the flows.

        Raises:
            SettingsError: The variable is not set, or the token is in a block.
        """
        if project.credentials is None:
            return None
        if project.credentials.secret_block is not None:
            raise SettingsError(
                f"project '{project.slug}' keeps its token in a Prefect Secret block",
                hint="Reach it through the flows: 'concordance reindex'",
            )
        token = read_secret(self.environment, project.credentials)
        return Credential(project.credentials.username, token)

    def close(self) -> None:
        """Close all of it; the embedded server stops with its last user."""
        self.embedder.close()
        if self.reranker is not None:
            self.reranker.close()
        self.database.close()
        if self.server is not None:
            self.server.stop()


def configured_project(configuration: Configuration, slug: str) -> Project:
    """A project of `projects.toml`.

    Raises:
        UnknownProject: There is none of that slug.
    """
    project = configuration.project(slug)
    if project is None:
        if not SLUG.fullmatch(slug):
            # It is not repeated: it may be an address, with a token in it.
            raise UnknownProject(
                "there is no project of the name given, and none can have it",
                hint="Give a slug, such as 'concordance projects list' shows; an address belongs "
                f"into {configuration.settings.projects_file}",
            )
        known = ", ".join(p.slug for p in configuration.projects[:10]) or "none"
        raise UnknownProject(
            f"there is no project '{slug}'",
            hint=f"{configuration.settings.projects_file} has: {known}",
        )
    return project


def open_resources(
    configuration: Configuration,
    environment: Mapping[str, str],
    *,
    clock: Callable[[], datetime] = utc_now,
) -> Resources:
    """Open the database (the embedded one where no URL is set) and bring its schema up to date.

    Raises:
        DatabaseError: Postgres can't be reached, or is not what is needed.
        SettingsError: There is no such embedding provider.
    """
    settings = configuration.settings
    embedder = open_embedder(settings.embedding_model, settings)
    reranker = open_reranker(settings.reranker, settings) if settings.reranker else None
    server, conninfo = open_server(settings)
    database = Database(conninfo, pool_size=settings.database_pool)
    try:
        database.open()
        tenant = _tenant(database, settings)
    except BaseException:
        database.close()
        if server is not None:
            server.stop()
        raise
    mirror = HistoryMirror(
        settings.home / "repositories",
        policy=GitPolicy(
            settings.allowed_schemes,
            settings.git_timeout_seconds,
            fetch_bytes=settings.max_fetch_bytes,
            memory_bytes=settings.git_memory_bytes,
        ),
        environment=git_environment(environment),
    )
    return Resources(
        configuration,
        environment,
        database,
        tenant,
        mirror,
        embedder,
        reranker,
        clock,
        server=server,
    )


def _tenant(database: Database, settings: Settings) -> int:
    """The tenant's number; a reader's is that of its login, and the schema is not its to change."""
    reader = find_reader(database)
    if reader is None:
        migrate(database)
        return ensure_tenant(database, settings.tenant)
    if "tenant" in settings.model_fields_set and settings.tenant != reader.slug:
        raise SettingsError(
            f"this login reads the tenant '{reader.slug}', and '{settings.tenant}' is set",
            hint="Unset CONCORDANCE_TENANT: a reader's tenant is that of its login",
        )
    return reader.id


def open_server(settings: Settings) -> tuple[EmbeddedPostgres | None, str]:
    """The connection string of the database, and the embedded server if that is what it is on."""
    if settings.database_url is not None:
        return None, settings.database_url.get_secret_value()
    server = EmbeddedPostgres(settings.home)
    try:
        return server, create_database(server.start(), EMBEDDED_DATABASE)
    except BaseException:
        server.stop()
        raise


def scrubs_errors(
    step: Callable[Concatenate[Resources, Project, P], R],
) -> Callable[Concatenate[Resources, Project, P], R]:
    """A step whose errors name no secret, where a branch or a folder is named by one."""

    @wraps(step)
    def told(resources: Resources, project: Project, /, *args: P.args, **more: P.kwargs) -> R:
        try:
            return step(resources, project, *args, **more)
        except SourceError as error:
            error.scrub(resources.scrubber(project).text)
            raise

    return told
