"""The one place that reads environment variables and `projects.toml`.

What belongs here: turning both into checked values, with messages that name the variable, or the
file, table and key. What the values mean is `concordance.settings`' matter.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import SecretStr, ValidationError

from concordance.errors import ProjectsFileError, SettingsError
from concordance.settings import Configuration, Credentials, Project, Settings

PREFIX = "CONCORDANCE_"
# What git and ssh need of the caller's environment; nothing else reaches them.
GIT_VARIABLES = (
    *("PATH", "TMPDIR", "LD_LIBRARY_PATH", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "http_proxy", "https_proxy"),
    *("HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
)
# What Prefect's own program needs of it: none of our settings, addresses and tokens is among it.
PROGRAM_VARIABLES = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TEMP",
        "TMP",
    ),
    *("TERM", "COLUMNS", "NO_COLOR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("DO_NOT_TRACK", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
)
PROGRAM_PREFIXES = ("LC_", "PYTHON", "PREFECT_", "XDG_", "OPENBLAS_")
PROXY_VARIABLES = (
    *("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
    *("no_proxy", "NO_PROXY"),
)


def process_environment() -> dict[str, str]:
    """A copy of this process's environment."""
    return dict(os.environ)


def set_process_variables(values: Mapping[str, str]) -> None:
    """Set variables of this process where they are not set yet; for libraries that read them."""
    for name, value in values.items():
        os.environ.setdefault(name, value)


@contextmanager
def process_variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process for a moment; for libraries that read them on import."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def force_process_variables(values: Mapping[str, str]) -> None:
    """Set variables of this process, whatever they were."""
    os.environ.update(values)


def silence_onnxruntime() -> None:
    """Keep onnxruntime from collecting what it would send to its makers.

    It reads the variable when it is first imported, and by then has written an identity of this
    machine and a first event into the home folder: `disable_telemetry_events` comes too late.
    """
    force_process_variables({"ORT_DISABLE_TELEMETRY": "1"})


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of the environment that git may see."""
    return {name: environ[name] for name in GIT_VARIABLES if name in environ}


def program_environment(environ: Mapping[str, str], *more: str) -> dict[str, str]:
    """The part of the environment that Prefect's own program may see.

    Args:
        environ: This process's environment.
        more: Names of further variables that it needs.
    """
    return {
        name: value
        for name, value in environ.items()
        if name in PROGRAM_VARIABLES or name in more or name.startswith(PROGRAM_PREFIXES)
    }


def read_configuration(environ: Mapping[str, str], *, need_projects: bool = True) -> Configuration:
    """Settings and projects, from the environment over the file over the defaults.

    Raises:
        SettingsError: A variable or a key of `[settings]` can't be used.
        ProjectsFileError: The file is missing (with `need_projects`), malformed or contradictory.
    """
    path = Path(environ.get(f"{PREFIX}PROJECTS_FILE") or "projects.toml")
    tables = _read_file(path, required=need_projects)
    unknown = sorted(tables.keys() - {"settings", "projects"})
    if unknown:
        raise ProjectsFileError(
            f"{path}: unknown table or key '{unknown[0]}'",
            hint="The tables are [settings] and [[projects]]",
        )
    settings = _read_settings(environ, tables.get("settings", {}), path)
    projects = _read_projects(tables.get("projects", []), path)
    return Configuration(settings=settings, projects=projects)


def write_projects_file(environ: Mapping[str, str], table: str) -> Path:
    """Append a table to `projects.toml`, made where it is missing; a bad result is not written.

    Raises:
        ProjectsFileError: The file would not be valid with the table, or can't be written.
    """
    path = Path(environ.get(f"{PREFIX}PROJECTS_FILE") or "projects.toml").absolute()
    try:
        before = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
        after = f"{before.rstrip()}\n\n{table}".lstrip()
        tables = tomllib.loads(after)
        _read_projects(tables.get("projects", []), path)
        _replace(path.resolve(), after)
    except (tomllib.TOMLDecodeError, UnicodeError) as error:
        raise ProjectsFileError(f"{path} is not TOML: {error}") from error
    except OSError as error:
        raise ProjectsFileError(f"{path} can't be written: {error.strerror}") from error
    return path


def read_secret(environ: Mapping[str, str], credentials: Credentials) -> SecretStr:
    """The token that a project's credentials name, from its environment variable.

    Raises:
        SettingsError: The variable is not set.
    """
    name = credentials.env or ""
    value = environ.get(name)
    if not value:
        raise SettingsError(
            f"the environment variable {name}, which holds a project's token, is not set",
            hint="Set it where the run starts, or name another one under 'credentials'",
        )
    return SecretStr(value)


def read_session_url(environ: Mapping[str, str], name: str) -> SecretStr:
    """The address of the database that a query on session logs is asked of.

    Raises:
        SettingsError: The variable is not set.
    """
    value = environ.get(name)
    if not value:
        raise SettingsError(
            f"the environment variable {name}, which holds the address of a database with session "
            "logs, is not set",
            hint="Set it where the run starts, or name another one under 'url_env'",
        )
    return SecretStr(value)


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all, with the rights that it had: it may hold a password."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor is no path
            if path.exists():
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.write(text.encode())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _read_file(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        if not required:
            return {}
        raise ProjectsFileError(
            f"there is no {path}",
            hint=f"Make one with 'concordance projects add', or set {PREFIX}PROJECTS_FILE",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProjectsFileError(f"{path} is not TOML: {error}") from error
    except OSError as error:
        raise ProjectsFileError(f"{path} can't be read: {error.strerror}") from error


def _read_settings(environ: Mapping[str, str], table: Any, path: Path) -> Settings:
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: 'settings' is no table", hint="Write [settings]")
    values: dict[str, Any] = {"home": platformdirs.user_state_path("concordance")}
    values |= table
    if isinstance(table.get("home"), str):
        values["home"] = _beside(path, Path(table["home"]))
    sources = dict.fromkeys(table, f"{path}, [settings]")
    for name in Settings.model_fields:
        variable = f"{PREFIX}{name.upper()}"
        given = environ.get(variable)
        if given:
            values[name] = _names(given) if name == "allowed_schemes" else given
            sources[name] = f"variable {variable}"
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(
            _first(error, lambda key: sources.get(key, f"setting '{key}'"))
        ) from None
    return settings.model_copy(
        update={"home": _own_home(settings.home).absolute(), "projects_file": path.absolute()}
    )


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _read_projects(entries: Any, path: Path) -> tuple[Project, ...]:
    if not isinstance(entries, list):
        raise ProjectsFileError(
            f"{path}: 'projects' is no list of tables", hint="Write [[projects]], once a project"
        )
    projects = [_read_project(entry, number, path) for number, entry in enumerate(entries, 1)]
    seen: dict[str, int] = {}
    for number, project in enumerate(projects, 1):
        first = seen.setdefault(project.slug, number)
        if first != number:
            raise ProjectsFileError(
                f"{path}: [[projects]] number {number}, key 'slug': '{project.slug}' is taken by "
                f"number {first}",
                hint="Give each project a slug of its own",
            )
    return tuple(projects)


def _read_project(entry: Any, number: int, path: Path) -> Project:
    if not isinstance(entry, dict):
        raise ProjectsFileError(f"{path}: [[projects]] number {number} is no table")
    slug = entry.get("slug")
    where = f"{path}: [[projects]] number {number}" + (
        f" ('{slug}')" if isinstance(slug, str) else ""
    )
    try:
        project = Project.model_validate(entry)
    except ValidationError as error:
        raise ProjectsFileError(_first(error, lambda _: where)) from None
    sessions = tuple(
        source
        if source.path is None
        else source.model_copy(update={"path": _beside(path, source.path)})
        for source in project.sessions
    )
    update: dict[str, Any] = {"sessions": sessions}
    if project.path is not None:
        update["path"] = _beside(path, project.path)
    return project.model_copy(update=update)


def _beside(file: Path, named: Path) -> Path:
    """A path that a file names, from the file's own folder."""
    return file.absolute().parent / _own_home(named)


def _own_home(named: Path) -> Path:
    try:
        return named.expanduser()
    except RuntimeError:
        raise SettingsError(
            f"the path '{named}' starts at a home folder that this machine does not know"
        ) from None


def _first(error: ValidationError, where: Callable[[str], str]) -> str:
    """The first fault, with its place; the value itself stays out, as it may be a secret."""
    fault = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in fault["loc"])
    message = "there is no such key" if fault["type"] == "extra_forbidden" else fault["msg"]
    message = message.removeprefix("Value error, ")
    top = str(fault["loc"][0]) if fault["loc"] else ""
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where(top)}{f', key {key!r}' if key else ''}: {message}{more}"
