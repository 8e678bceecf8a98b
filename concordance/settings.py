"""What an installation and its projects are set to, as checked values.

What belongs here: the shape, bounds and defaults. Reading the environment and `projects.toml`
is `concordance.adapters.environment`'s work.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from concordance.addresses import GitUrl, LocalPath, PageUrl, PageUrls
from concordance.models import Scope

# A name of a Postgres text-search configuration, or `auto`.
LANGUAGE = r"^[a-z_]{1,63}$"
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")

DEFAULT_DOCS = ("docs/", "doc/")
DEFAULT_ADR = (
    "docs/adr/",
    "docs/adrs/",
    "docs/decisions/",
    "docs/architecture/decisions/",
    "docs/architecture/adr/",
    "docs/architecture-decisions/",
    "doc/adr/",
    "doc/architecture/decisions/",
    "adr/",
    "adrs/",
)
MARKDOWN_SUFFIXES = (".md", ".mdx", ".markdown")
RST_SUFFIXES = (".rst",)
ASCIIDOC_SUFFIXES = (".adoc", ".asciidoc")
TEXT_SUFFIXES = MARKDOWN_SUFFIXES + RST_SUFFIXES + ASCIIDOC_SUFFIXES


class Checked(BaseModel):
    """A value that can't be changed and takes no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _check_slug(slug: str) -> str:
    if not SLUG.fullmatch(slug):
        raise ValueError(
            "a slug has 1 to 64 of a-z, 0-9, dot, dash and underscore, with a letter or digit at "
            "both ends"
        )
    return slug


def _check_folder(folder: str) -> str:
    parts = folder.strip("/").split("/")
    if folder.startswith("/") or ".." in parts or "." in parts or "\0" in folder:
        raise ValueError("a folder is named from the repository's root, without '..' or '.'")
    named = "/".join(part for part in parts if part)
    return f"{named}/" if named else ""


Slug = Annotated[str, AfterValidator(_check_slug)]
Folder = Annotated[str, AfterValidator(_check_folder)]


class Credentials(Checked):
    """Where a project's token is kept; never the token itself."""

    env: str | None = Field(
        default=None, min_length=1, max_length=200, description="The variable that holds it."
    )
    secret_block: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="The Prefect Secret block that does.",
    )
    username: str = Field(
        default="x-access-token", min_length=1, max_length=200, description="Sent with the token."
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.env is None) == (self.secret_block is None):
            raise ValueError("give exactly one of 'env' (a variable) and 'secret_block' (Prefect)")
        return self


class ScopeRules(Checked):
    """Which files belong to which scope; the longest matching folder wins."""

    docs: tuple[Folder, ...] = Field(
        default=DEFAULT_DOCS, description="Folders of documentation; '' is the whole repository."
    )
    adr: tuple[Folder, ...] = Field(default=DEFAULT_ADR, description="Folders of decision records.")
    exclude: tuple[Folder, ...] = Field(default=(), description="Folders to leave out.")
    root_readme: bool = Field(
        default=True, description="Whether a README at the root belongs to docs."
    )
    adr_dir_file: bool = Field(
        default=True, description="Whether a .adr-dir file at the root names a decision folder."
    )


class SessionSource(Checked):
    """Where session logs are: a folder, a file, or a query on a Postgres database.

    The database's address is a secret: `url_env` names the environment variable that holds it.
    """

    path: LocalPath | None = Field(default=None, description="A folder or a file of logs.")
    pattern: str | None = Field(
        default=None, min_length=1, description="Which files; none: the names that readers know."
    )
    format: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9-]{0,62}$",
        description="The reader of these logs; none: told by what the files hold.",
    )
    subagents: bool = Field(
        default=False, description="Whether to keep what agents said to each other."
    )
    query: str | None = Field(
        default=None,
        min_length=1,
        max_length=100_000,
        description="A query on Postgres, instead of a path.",
    )
    url_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$",
        description="The variable that holds the address of its database.",
    )
    marker: str | None = Field(
        default=None,
        min_length=1,
        max_length=10_000,
        description="A query of one value that changes whenever the rows of `query` do.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.path is None) == (self.query is None):
            raise ValueError("give exactly one of 'path' and 'query'")
        if self.query is not None and self.url_env is None:
            raise ValueError(
                "a query needs 'url_env', the variable that holds the address of its database"
            )
        if self.query is None and (self.url_env is not None or self.marker is not None):
            raise ValueError("'url_env' and 'marker' belong to a 'query'")
        if self.query is not None and (self.pattern is not None or self.format is not None):
            raise ValueError("'pattern' and 'format' belong to a 'path'")
        return self


class Project(Checked):
    """One git project, as `projects.toml` describes it."""

    slug: Slug = Field(description="Its name in answers and commands.")
    url: GitUrl | None = Field(
        default=None, description="Address of the repository; no token in it."
    )
    path: LocalPath | None = Field(
        default=None, description="A repository on this machine, instead of an address."
    )
    branch: str | None = Field(default=None, description="Unset: the remote's default branch.")
    language: str = Field(
        default="english",
        pattern=LANGUAGE,
        description="A Postgres text-search configuration, or auto: of each document.",
    )
    web_url: PageUrl | None = Field(
        default=None, description="Address of the repository's pages, for links in citations."
    )
    credentials: Credentials | None = Field(default=None, description="Where its token is kept.")
    scopes: ScopeRules = Field(default=ScopeRules(), description="Which files belong to what.")
    scrub: bool = Field(default=True, description="Whether secrets are replaced by marks.")
    sessions: tuple[SessionSource, ...] = Field(default=(), description="Where its logs are.")
    overdue_after_hours: float | None = Field(
        default=None, gt=0, le=100_000, description="As the setting, for this project."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.url is None) == (self.path is None):
            raise ValueError("give exactly one of 'url' and 'path'")
        return self

    @property
    def location(self) -> str:
        """The address that git is given; holds no credentials."""
        return self.url if self.url is not None else str(self.path)


class Settings(Checked):
    """The installation's settings; each can be set by `CONCORDANCE_<NAME>`."""

    home: Path = Field(
        description="State directory: repositories, Prefect's files, the embedded database; "
        "not set: the user's own, as ~/.local/state/concordance on Linux."
    )
    projects_file: Path = Field(
        default=Path("projects.toml"), description="Where projects are listed; a variable only."
    )
    database_url: SecretStr | None = Field(
        default=None, description="PostgreSQL 16+ with pgvector 0.8+; unset: the embedded server."
    )
    database_pool: int = Field(
        default=10, ge=1, le=200, description="Most pooled connections of one process."
    )
    tenant: Slug = Field(
        default="default", description="A label on every row; a search sees rows of its own."
    )
    embedding_model: str = Field(
        default="local/all-minilm-l6-v2",
        pattern=r"^[a-z0-9]+/\S+$",
        description="Provider and model: local/all-minilm-l6-v2 or ollama/NAME.",
    )
    ollama_url: PageUrls = Field(
        default="http://127.0.0.1:11434",
        description="Address of Ollama, or of several servers with commas between them.",
    )
    embedding_timeout_seconds: float = Field(
        default=120.0, gt=0, le=3_600, description="For one request that embeds passages."
    )
    embedding_attempts: int = Field(
        default=5, ge=1, le=100, description="Runs in which a refused text is tried again."
    )
    embedding_concurrency: int | None = Field(
        default=None,
        ge=1,
        le=1_000,
        description="How many workers, of all processes, send passages to a provider at a time.",
    )
    allowed_schemes: tuple[str, ...] = Field(
        default=("https", "ssh"), description="Schemes of addresses that git may use."
    )
    git_timeout_seconds: float = Field(
        default=600.0, gt=0, le=86_400, description="For one call to a remote."
    )
    max_file_bytes: int = Field(
        default=16 * 1024 * 1024, ge=1_024, description="Larger files are skipped, with a reason."
    )
    max_files: int = Field(
        default=200_000, ge=1, description="A project whose tree has more files fails."
    )
    max_text_bytes: int = Field(
        default=1 << 30, ge=1_024, description="Of all files of a project that are indexed."
    )
    max_fetch_bytes: int = Field(
        default=4 << 30, ge=1_024, description="What one fetch may add to the disk."
    )
    git_memory_bytes: int = Field(
        default=2 << 30, ge=64 << 20, description="What each process of git may hold in memory."
    )
    max_parallel_projects: int = Field(
        default=4, ge=1, le=64, description="Projects that one reindex runs at a time."
    )
    project_lock_seconds: float = Field(
        default=600.0, ge=0, description="How long a second run waits for the first, per project."
    )
    reranker: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9]+/\S.*$",
        description="local/DIRECTORY (an ONNX cross-encoder) or cohere/MODEL; unset: none.",
    )
    reranker_url: PageUrl = Field(
        default="https://api.cohere.com", description="Address of that API."
    )
    reranker_key: SecretStr | None = Field(default=None, description="The key of that API.")
    reranker_secret_block: str | None = Field(
        default=None, description="Prefect Secret block that holds the key, for flows and tasks."
    )
    overdue_after_hours: float = Field(
        default=48.0,
        gt=0,
        le=100_000,
        description="How long a scope may be without success.",
    )
    notification_block: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9-]+/[A-Za-z0-9-]+$",
        description="Prefect block that automations notify by, as slack-webhook/ops.",
    )
    work_pool: bool = Field(
        default=False, description="Start reindex-project through its deployment, not in process."
    )
    http_keys_file: Path | None = Field(
        default=None, description="Keys of the HTTP interface; unset: loopback alone, without keys."
    )
    http_max_body_bytes: int = Field(
        default=2 * 1024**2, ge=1_024, description="A request whose body is larger is refused."
    )
    http_request_seconds: float = Field(
        default=30.0, gt=0, le=600, description="The most time that a request may take."
    )
    http_max_requests: int = Field(
        default=16, ge=1, le=200, description="Requests answered at once; the next are refused."
    )

    @property
    def ollama_urls(self) -> tuple[str, ...]:
        """The addresses of `ollama_url`."""
        return tuple(self.ollama_url.split(","))


class LoginSource(Checked):
    """Where the database URL of a login is kept; never the URL itself."""

    env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$",
        description="The variable that holds it.",
    )
    secret_block: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="The Prefect Secret block that does.",
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.env is None) == (self.secret_block is None):
            raise ValueError("give exactly one of 'env' (a variable) and 'secret_block' (Prefect)")
        return self


class HttpKey(Checked):
    """A key of the HTTP interface, known by its hash, and the login that it asks by."""

    name: Slug = Field(description="Whose it is, as logs tell it.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of the key, in hexadecimal.")
    login: LoginSource = Field(description="Where the database URL of its login is kept.")
    reindex: bool = Field(default=False, description="Whether it may start runs.")
    metrics: bool = Field(default=False, description="Whether it may read /metrics.")


class Configuration(Checked):
    """Settings and projects together: everything that one run needs to know."""

    settings: Settings
    projects: tuple[Project, ...] = ()

    def project(self, slug: str) -> Project | None:
        """The project of that slug, or None."""
        return next((p for p in self.projects if p.slug == slug), None)


ALL_SCOPES: tuple[Scope, ...] = (Scope.DOCS, Scope.ADR, Scope.SESSION)
