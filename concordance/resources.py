"""What the steps of the pipeline work with: one installation's outside things, opened once.

What belongs here: opening and closing. What is done with them is in the modules named by verbs
beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from concordance.adapters.breaker import Breaker
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
from concordance.errors import SettingsError, SourceError, UnknownProject
from concordance.sessions.reader import Reader
from concordance.settings import SLUG, Configuration, Project, Settings
from concordance.text.scrubbing import Scrubber

EMBEDDED_DATABASE = "concordance"

P = ParamSpec("P")
R = TypeVar("R")
CredentialSource = Callable[[Project], Credential | None]


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
