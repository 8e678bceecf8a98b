"""Commands about projects.toml."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from concordance.adapters.environment import (
    process_environment,
    read_configuration,
    write_projects_file,
)
from concordance.cli.printing import print_json
from concordance.cli.running import Json
from concordance.errors import ConcordanceError, ProjectsFileError
from concordance.escaping import safe
from concordance.index import Index
from concordance.indexing.counting import counted
from concordance.settings import Project

app = App(name="projects", help="List, add, check and forget projects.")
OUT = Console()


@app.command(name="list")
def list_projects(*, json: Json = False) -> int:
    """Show the projects of projects.toml, and those that only the index knows."""
    configuration = read_configuration(process_environment(), need_projects=False)
    with Index.open(configuration) as index:
        stored = index.stored_slugs()
        sets = index.evaluation_sets()
    configured = {project.slug for project in configuration.projects}
    rows: list[dict[str, Any]] = [
        {
            "slug": project.slug,
            "location": project.location,
            "branch": project.branch,
            "language": project.language,
            "configured": True,
            "indexed": project.slug in stored,
        }
        for project in configuration.projects
    ]
    rows += [
        {"slug": slug, "location": None, "configured": False, "indexed": True}
        for slug in stored
        if slug not in configured
    ]
    if json:
        print_json({"projects": rows, "sets": sets})
        return 0
    table = Table()
    for name in ("Project", "Location", "Branch", "Language", "In the index"):
        table.add_column(name, overflow="fold")  # what is cut off can't be typed again
    for row in rows:
        table.add_row(
            row["slug"],
            Text(row["location"] or "not in projects.toml"),
            row.get("branch") or "(default)",
            row.get("language") or "",
            "yes" if row["indexed"] else "not yet",
        )
    OUT.print(table)
    if sets:
        said = f"Sets that were evaluated: {', '.join(sets)}; 'projects forget' removes one."
        OUT.print(Text(said, style="dim"), soft_wrap=True)
    return 0


@app.command
def add(  # noqa: PLR0913 - one parameter an option
    slug: str,
    location: str,
    *,
    branch: Annotated[str | None, Parameter(help="A branch other than the default one.")] = None,
    language: Annotated[str, Parameter(help="A Postgres text-search configuration.")] = "english",
    token_env: Annotated[
        str | None, Parameter(help="Name of the variable that holds the token.")
    ] = None,
    secret_block: Annotated[
        str | None, Parameter(help="Name of the Prefect Secret block that holds the token.")
    ] = None,
    sessions: Annotated[Path | None, Parameter(help="Folder or file of session logs.")] = None,
) -> int:
    """Add a git project, by URL or by path, to projects.toml."""
    if token_env and secret_block:
        raise ProjectsFileError("a token lies in one place: give --token-env or --secret-block")
    entry: dict[str, Any] = {"slug": slug}
    is_path = "://" not in location and not _looks_like_ssh(location)
    entry["path" if is_path else "url"] = location
    if branch:
        entry["branch"] = branch
    if language != "english":
        entry["language"] = language
    # First of all, as what is refused here may hold a token, and is not repeated.
    try:
        Project.model_validate(entry)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        message = fault["msg"].removeprefix("Value error, ")
        raise ProjectsFileError(f"{'.'.join(map(str, fault['loc']))}: {message}") from None
    if is_path and "file" not in _allowed_schemes():
        raise ProjectsFileError(
            f"'{location}' lies on this machine, and projects there are not allowed yet",
            hint="Write this into projects.toml first: [settings] and, below it, "
            'allowed_schemes = ["https", "ssh", "file"]',
        )
    lines = ["[[projects]]", *(f"{key} = {_toml(value)}" for key, value in entry.items())]
    if token_env or secret_block:
        name, value = ("env", token_env) if token_env else ("secret_block", secret_block)
        lines.append(f"credentials = {{ {name} = {_toml(value or '')} }}")
    if sessions is not None:
        lines.append(f"sessions = [{{ path = {_toml(str(sessions))} }}]")
    path = write_projects_file(process_environment(), "\n".join(lines) + "\n")
    OUT.print(Text(f"Added '{slug}' to {path}. Next: concordance projects check {slug}"))
    return 0


@app.command
def check(*projects: str, json: Json = False) -> int:
    """Ask each project's remote, and look at its session logs, without indexing anything."""
    configuration = read_configuration(process_environment())
    slugs = list(projects) or [project.slug for project in configuration.projects]
    with Index.open(configuration) as index:
        rows = [_check(index, index.project(slug)) for slug in slugs]
    if json:
        print_json({"projects": rows})
    else:
        table = Table("Project", "Good", "Found")
        for row in rows:
            table.add_row(row["slug"], "yes" if row["good"] else "NO", Text(safe(row["found"])))
        OUT.print(table)
    return 0 if all(row["good"] for row in rows) else 1


@app.command
def forget(slug: str) -> int:
    """Remove a project's rows, vectors and mirror, or an evaluated set; projects.toml stays."""
    with Index.open(read_configuration(process_environment(), need_projects=False)) as index:
        gone = index.forget(slug)
    OUT.print(Text(f"'{slug}' was removed." if gone else f"The index has no '{slug}'."))
    return 0 if gone else 1


def _check(index: Index, project: Project) -> dict[str, Any]:
    try:
        index.check_language(project.slug)
        head = index.remote_head(project.slug)
        logs = index.session_logs(project.slug)
    except ConcordanceError as error:
        return {"slug": project.slug, "good": False, "found": str(error)}
    found = f"{head.branch or 'HEAD'} at {(head.commit or 'no commit')[:12]}"
    if project.sessions:
        found += f", {counted(logs, 'session log')}"
    return {"slug": project.slug, "good": True, "found": found}


def _allowed_schemes() -> tuple[str, ...]:
    configuration = read_configuration(process_environment(), need_projects=False)
    return configuration.settings.allowed_schemes


def _looks_like_ssh(location: str) -> bool:
    host, colon, _ = location.partition(":")
    return bool(colon) and "@" in host and "/" not in host


def _toml(value: str) -> str:
    """A TOML basic string; JSON's escapes are a part of TOML's."""
    return jsonlib.dumps(value, ensure_ascii=False)
