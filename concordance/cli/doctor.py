"""`concordance doctor`: what is wrong with this installation, and the command that mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from cyclopts import App
from rich.console import Console
from rich.table import Table
from rich.text import Text

from concordance.adapters.embedded_postgres import EmbeddedPostgres
from concordance.adapters.embedding import open_embedder
from concordance.adapters.environment import process_environment, read_configuration
from concordance.adapters.git_version import git_version
from concordance.adapters.postgres.calibrations import list_calibrations
from concordance.adapters.postgres.database import Database, ServerFacts
from concordance.adapters.postgres.tenants import find_reader
from concordance.adapters.prefect_server import PrefectServer, is_healthy
from concordance.cli.orchestration import given_api
from concordance.cli.printing import print_json
from concordance.cli.running import Json
from concordance.errors import ConcordanceError
from concordance.escaping import safe
from concordance.ranking.calibration import Calibration
from concordance.resources import open_server
from concordance.settings import Configuration, Settings

app = App()
OUT = Console()
# GIT_CONFIG_COUNT, by which tokens reach git, came with this version.
OLDEST_GIT = (2, 31)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    name: str
    good: bool
    found: str
    mend: str | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """The model that is set, and its space where the provider told of it."""

    name: str
    fingerprint: str | None = None


@app.command
def doctor(*, json: Json = False) -> int:
    """Check Postgres, pgvector, git, the embedding provider and Prefect; say how to mend them."""
    findings = list(_examine())
    if json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        table = Table()
        for name in ("Part", "Good", "Found", "To mend"):
            table.add_column(name, overflow="fold")  # what is cut off can't be typed again
        for f in findings:
            mark = Text("yes", style="green") if f.good else Text("NO", style="bold red")
            table.add_row(f.name, mark, Text(safe(f.found)), Text(safe(f.mend or "")))
        OUT.print(table)
    return 0 if all(finding.good for finding in findings) else 1


def _examine() -> Iterator[Finding]:
    environ = process_environment()
    try:
        configuration = read_configuration(environ, need_projects=False)
    except ConcordanceError as error:
        yield Finding("settings", good=False, found=error.message, mend=error.hint)
        return
    yield _projects(configuration)
    yield _tried("git", lambda: _git(environ.get("PATH", "")))
    embedding, model = _embedding(configuration.settings)
    yield from _postgres(configuration.settings, model)
    yield embedding
    yield _tried("prefect", lambda: _prefect(configuration.settings, environ))


def _tried(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except ConcordanceError as error:
        return Finding(name, good=False, found=error.message, mend=error.hint)


def _projects(configuration: Configuration) -> Finding:
    count = len(configuration.projects)
    path = configuration.settings.projects_file
    if not count:
        return Finding(
            "projects",
            good=False,
            found=f"none in {path}",
            mend="concordance projects add SLUG LOCATION",
        )
    return Finding("projects", good=True, found=f"{count} in {path}")


def _git(path: str) -> Finding:
    version = git_version(path)
    good = version >= OLDEST_GIT
    return Finding(
        "git",
        good=good,
        found=".".join(map(str, version)),
        mend=None if good else "install git 2.31 or newer",
    )


def _postgres(settings: Settings, model: Model | None) -> Iterator[Finding]:
    where = (
        f"embedded in {EmbeddedPostgres(settings.home).status().location.base}"
        if settings.database_url is None
        else "CONCORDANCE_DATABASE_URL"
    )
    try:
        with _opened(settings) as (database, facts):
            major, minor = divmod(facts.version, 10_000)
            yield Finding("postgres", good=True, found=f"PostgreSQL {major}.{minor}, {where}")
            yield Finding("pgvector", good=True, found=facts.pgvector or "")
            reader = find_reader(database)
            if reader is not None:
                yield Finding("login", good=True, found=f"reads the tenant '{reader.slug}'")
                return
            for own in list_calibrations(database, settings.tenant):
                yield calibration_finding(own, model)
    except ConcordanceError as error:
        yield Finding("postgres", good=False, found=error.message, mend=error.hint)


def calibration_finding(own: Calibration, model: Model | None) -> Finding:
    """Whether a calibration speaks of today's model; searches use no other one."""
    good = model is None or (
        own.model_name == model.name and model.fingerprint in (None, own.model)
    )
    mend = (
        f"concordance calibrate --project {own.project} --data SET, or --undo: it was made with "
        "another model, and is not used"
    )
    return Finding(
        f"calibration of {own.project}",
        good=good,
        found=own.summary,
        mend=None if good else mend,
    )


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[Database, ServerFacts]]:
    server, conninfo = open_server(settings)
    try:
        database = Database(conninfo, pool_size=1)
        try:
            yield database, database.open()
        finally:
            database.close()
    finally:
        if server is not None:
            server.stop()


def _embedding(settings: Settings) -> tuple[Finding, Model | None]:
    """What is found of the provider, and the model that is set, where there is such a one."""
    model: Model | None = None
    try:
        embedder = open_embedder(settings.embedding_model, settings)
        model = Model(embedder.model)
        try:
            space = embedder.space()
            troubles = embedder.troubles()
        finally:
            embedder.close()
    except ConcordanceError as error:
        return Finding("embedding", good=False, found=error.message, mend=error.hint), model
    found = f"{space.provider}/{space.model}, {space.dimensions} wide, {space.digest[:12]}"
    if embedder.parallel > 1:
        found += f", on {embedder.parallel - len(troubles)} of {embedder.parallel} servers"
    told = Finding(
        "embedding",
        good=not troubles,
        found="; ".join([found, *troubles]),
        mend="mend that server, or take it out of ollama_url" if troubles else None,
    )
    return told, Model(embedder.model, space.fingerprint)


def _prefect(settings: Settings, environ: dict[str, str]) -> Finding:
    given = given_api(environ)
    own = PrefectServer(settings.home, environ)
    if given and not own.owns(given):
        good = is_healthy(given)
        mend = None if good else "start that server, or unset PREFECT_API_URL"
        return Finding("prefect", good=good, found=given, mend=mend)
    found = own.find()
    if found is None:
        return Finding("prefect", good=True, found="not running; started by the first run")
    return Finding("prefect", good=True, found=found.ui_url)
