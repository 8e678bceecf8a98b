"""The one place that reads environment variables and `projects.toml`.

What belongs here: turning both into checked values, with messages that name the variable, or the
file, table and key. What the values mean is `concordance.settings`' matter.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import SecretStr, ValidationError

from concordance.errors import ProjectsFileError, SettingsError
from concordance.settings import Configuration, Credentials, Project, Settings

PREFIX = "CONCORDANCE_"
# What git and ssh need of the caller's environment; nothing else reaches them.
GIT_VARIABLES = ("PATH", "SSH_AUTH_SOCK", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY")


def process_environment() -> dict[str, str]:
    """A copy of this process's environment."""
    return dict(os.environ)


def set_process_variables(values: Mapping[str, str]) -> None:
    """Set variables of this process where they are not set yet; for libraries that read them."""
    for name, value in values.items():
        os.environ.setdefault(name, value)


def force_process_variables(values: Mapping[str, str]) -> None:
    """Set variables of this process, whatever they were."""
    os.environ.update(values)


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of the environment that git may see."""
    return {name: environ[name] for name in GIT_VARIABLES if name in environ}


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
    before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    after = f"{before.rstrip()}\n\n{table}".lstrip()
    try:
        tables = tomllib.loads(after)
        _read_projects(tables.get("projects", []), path)
        draft = path.with_name(f".{path.name}.new")
        draft.write_text(after, encoding="utf-8")
        draft.replace(path)
    except tomllib.TOMLDecodeError as error:
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


def _read_settings(environ: Mapping[str, str], table: Mapping[str, Any], path: Path) -> Settings:
    values: dict[str, Any] = {"home": platformdirs.user_state_path("concordance")}
    values |= table
    sources = dict.fromkeys(table, f"{path}, [settings]")
    for name in Settings.model_fields:
        variable = f"{PREFIX}{name.upper()}"
        given = environ.get(variable)
        if given:
            values[name] = given.split(",") if name == "allowed_schemes" else given
            sources[name] = f"variable {variable}"
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(
            _first(error, lambda key: sources.get(key, f"setting '{key}'"))
        ) from None
    return settings.model_copy(
        update={"home": settings.home.expanduser().absolute(), "projects_file": path.absolute()}
    )


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
    base = path.absolute().parent
    sessions = tuple(
        source.model_copy(update={"path": base / source.path.expanduser()})
        for source in project.sessions
    )
    update: dict[str, Any] = {"sessions": sessions}
    if project.path is not None:
        update["path"] = base / project.path.expanduser()
    return project.model_copy(update=update)


def _first(error: ValidationError, where: Any) -> str:
    """The first fault, with its place; the value itself stays out, as it may be a secret."""
    fault = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in fault["loc"]) or "the whole table"
    message = fault["msg"].removeprefix("Value error, ")
    top = str(fault["loc"][0]) if fault["loc"] else ""
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where(top)}, key '{key}': {message}{more}"
