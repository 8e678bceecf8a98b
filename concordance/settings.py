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
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from concordance.models import Scope

# A name of a Postgres text-search configuration, or `auto`.
LANGUAGE = r"^[a-z_]{1,63}$"
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
# What could be `user:password@host:path`; a folder may well have an `@` in its name.
USER_AND_SECRET = re.compile(r"[^/:@]*:[^/@]*@[^/:]+:")
SCP_STYLE = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^:].*")
SSH_USER = re.compile(r"[A-Za-z0-9._-]+")
# A path drops one of the two slashes.
ADDRESS = re.compile(r"(?:https?|ssh|git):/", re.IGNORECASE)

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


def _check_git_url(url: str) -> str:
    """Refuse what could be a secret; whether the rest is an address is asked for each project.

    The address is taken apart by hand: a parser's own message would repeat what it can't read.
    """
    scheme, with_scheme, rest = url.partition("://")
    server = re.split(r"[/?#]", rest if with_scheme else url, maxsplit=1)[0]
    user, at, _ = server.rpartition("@")
    ssh = not with_scheme or scheme.lower() == "ssh"
    if at and not (ssh and SSH_USER.fullmatch(user)):
        raise ValueError(
            "it holds user information, which would be stored and shown with it; take it out and "
            "name the token in 'credentials' (an environment variable or a Secret block)"
        )
    if with_scheme and not server.strip(":") and scheme.lower() != "file":
        raise ValueError("it names no server")
    if "?" in rest or "#" in url:
        raise ValueError(
            "it holds a query or a fragment, where a token could stand; take it out and name the "
            "token in "
            "'credentials' (an environment variable or a Secret block)"
        )
    return url


def _check_page_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in ("http", "https") or not rest:
        raise ValueError("write an address that starts with https:// or http://")
    if "@" in re.split(r"[/?#\\]", rest, maxsplit=1)[0]:
        raise ValueError("it holds user information; leave it out, or put it into a proxy")
    if " " in rest or not rest.isprintable():
        raise ValueError("it holds a space or a control character")
    if "?" in rest or "#" in rest:
        raise ValueError(
            "it holds a query or a fragment, where a token could stand; leave it out, or put it "
            "into a proxy"
        )
    return url


def _written_together(given: object) -> object:
    """A list of addresses as one text, which the file may write as a list."""
    several = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
    return ",".join(given) if several else given  # type: ignore[arg-type]


def _check_page_urls(urls: str) -> str:
    found = [_check_page_url(url.strip()) for url in urls.split(",")]
    if len({url.rstrip("/") for url in found}) < len(found):
        raise ValueError("it names one address twice")
    return ",".join(found)


def _check_path(path: Path) -> Path:
    if "\0" in str(path):
        raise ValueError("a path holds no NUL")
    if ADDRESS.match(str(path)) or USER_AND_SECRET.match(str(path)):
        raise ValueError("it is an address; write it under 'url'")
    return path


Slug = Annotated[str, AfterValidator(_check_slug)]
Folder = Annotated[str, AfterValidator(_check_folder)]
GitUrl = Annotated[str, Field(min_length=1), AfterValidator(_check_git_url)]
PageUrl = Annotated[str, AfterValidator(_check_page_url)]
PageUrls = Annotated[str, BeforeValidator(_written_together), AfterValidator(_check_page_urls)]
LocalPath = Annotated[Path, AfterValidator(_check_path)]


class Credentials(Checked):
    """Where a project's token is kept; never the token itself."""

    env: str | None = Field(default=None, min_length=1, max_length=200)
    secret_block: str | None = Field(default=None, min_length=1, max_length=200)
    username: str = Field(default="x-access-token", min_length=1, max_length=200)

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.env is None) == (self.secret_block is None):
            raise ValueError("give exactly one of 'env' (a variable) and 'secret_block' (Prefect)")
        return self


class ScopeRules(Checked):
    """Which files belong to which scope; the longest matching folder wins."""

    docs: tuple[Folder, ...] = DEFAULT_DOCS
    adr: tuple[Folder, ...] = DEFAULT_ADR
    exclude: tuple[Folder, ...] = ()
    root_readme: bool = True
    adr_dir_file: bool = Field(
        default=True, description="Whether a .adr-dir file at the root names a decision folder."
    )


class SessionSource(Checked):
    """Where session logs are: a folder, a file, or a query on a Postgres database.

    The database's address is a secret: `url_env` names the environment variable that holds it.
    """

    path: LocalPath | None = None
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
    query: str | None = Field(default=None, min_length=1, max_length=100_000)
    url_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")
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

    slug: Slug
    url: GitUrl | None = None
    path: LocalPath | None = None
    branch: str | None = None
    language: str = Field(default="english", pattern=LANGUAGE)
    web_url: PageUrl | None = Field(
        default=None, description="Address of the repository's pages, for links in citations."
    )
    credentials: Credentials | None = None
    scopes: ScopeRules = ScopeRules()
    scrub: bool = Field(default=True, description="Whether secrets are replaced by marks.")
    sessions: tuple[SessionSource, ...] = ()
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

    home: Path = Field(description="State directory: repositories, Prefect's files, embedded data.")
    projects_file: Path = Field(default=Path("projects.toml"))
    database_url: SecretStr | None = Field(
        default=None, description="PostgreSQL 16+ with pgvector 0.8+; unset: the embedded server."
    )
    database_pool: int = Field(default=10, ge=1, le=200)
    tenant: Slug = "default"
    embedding_model: str = Field(default="local/all-minilm-l6-v2", pattern=r"^[a-z0-9]+/\S+$")
    ollama_url: PageUrls = Field(
        default="http://127.0.0.1:11434", description="Of one server, or of several with commas."
    )
    embedding_timeout_seconds: float = Field(default=120.0, gt=0, le=3_600)
    embedding_attempts: int = Field(
        default=5, ge=1, le=100, description="Runs in which a refused text is tried again."
    )
    embedding_concurrency: int | None = Field(
        default=None,
        ge=1,
        le=1_000,
        description="Workers, of all processes, whose passages a provider is sent at a time.",
    )
    allowed_schemes: tuple[str, ...] = ("https", "ssh")
    git_timeout_seconds: float = Field(default=600.0, gt=0, le=86_400)
    max_file_bytes: int = Field(default=16 * 1024 * 1024, ge=1_024)
    max_files: int = Field(default=200_000, ge=1)
    max_text_bytes: int = Field(
        default=1 << 30, ge=1_024, description="Of all files of a project that are indexed."
    )
    max_fetch_bytes: int = Field(
        default=4 << 30, ge=1_024, description="What one fetch may add to the disk."
    )
    git_memory_bytes: int = Field(
        default=2 << 30, ge=64 << 20, description="What each process of git may hold in memory."
    )
    max_parallel_projects: int = Field(default=4, ge=1, le=64)
    project_lock_seconds: float = Field(
        default=600.0, ge=0, description="How long a second run waits for the first, per project."
    )
    reranker: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9]+/\S.*$",
        description="local/DIRECTORY (an ONNX cross-encoder) or cohere/MODEL; unset: none.",
    )
    reranker_url: PageUrl = "https://api.cohere.com"
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

    env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")
    secret_block: str | None = Field(default=None, min_length=1, max_length=200)

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.env is None) == (self.secret_block is None):
            raise ValueError("give exactly one of 'env' (a variable) and 'secret_block' (Prefect)")
        return self


class HttpKey(Checked):
    """A key of the HTTP interface, known by its hash, and the login that it asks by."""

    name: Slug
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of the key, in hexadecimal.")
    login: LoginSource
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
