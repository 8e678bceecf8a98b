"""From a command to a flow: prepares Prefect's environment, and only then loads the flows.

What belongs here: everything that must happen before Prefect is imported, since it reads its
settings at that moment. This is the one place of the package that reaches for `flows`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from concordance.adapters.environment import (
    PROXY_VARIABLES,
    force_process_variables,
    process_environment,
    program_environment,
    set_process_variables,
)
from concordance.adapters.prefect_server import (
    PREFECT_VARIABLES,
    STOP_SECONDS,
    PrefectServer,
    is_healthy,
)
from concordance.cli.watching import (
    LOOK_SECONDS,
    PATIENCE_SECONDS,
    Absence,
    Connection,
    Watched,
    lost,
)
from concordance.errors import OrchestrationError, ServerLost, SettingsError
from concordance.models import Scope
from concordance.settings import Configuration

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State

    from tasks.deployments import Started

WORK_POOL = "concordance"
_PLACES = ("CONCORDANCE_ROOT", "CONCORDANCE_HOME", "CONCORDANCE_PROJECTS_FILE")
DEPLOYMENTS = Path("deployments") / "prefect.yaml"
AUTOMATIONS = Path("deployments") / "automations.yaml"


def connect(
    configuration: Configuration, *, verbose: bool, on_start: Callable[[], None]
) -> Connection:
    """Make Prefect reachable and quiet; returns where it is.

    With `PREFECT_API_URL` set that server is used; else this user's own, started where needed. That
    is also meant where the variable holds its last address.

    Raises:
        OrchestrationError: The server given does not answer, or ours does not start.
        SettingsError: The address given holds user information.
    """
    environ = process_environment()
    server = PrefectServer(configuration.settings.home, environ)
    given = _given_to(server, environ)
    if given:
        found = Connection(given, lambda: is_healthy(given), PATIENCE_SECONDS)
    else:
        running = server.ensure(on_start=on_start)
        force_process_variables({"PREFECT_API_URL": running.api_url})
        found = Connection(running.api_url, lambda: server.lives(running))
    _set_up(configuration, found, given=given is not None, verbose=verbose)
    return found


def attach(configuration: Configuration) -> Connection:
    """Make a Prefect server that runs already reachable; starts none.

    Raises:
        OrchestrationError: None runs, or the server given does not answer.
        SettingsError: The address given holds user information.
    """
    environ = process_environment()
    server = PrefectServer(configuration.settings.home, environ)
    given = _given_to(server, environ)
    running = None if given else server.find()
    if given is None and running is None:
        raise OrchestrationError(
            "no Prefect server runs", hint="Start 'concordance serve', or set PREFECT_API_URL"
        )
    url = given if running is None else running.api_url
    force_process_variables({"PREFECT_API_URL": str(url)})
    found = Connection(str(url), lambda: is_healthy(str(url)), PATIENCE_SECONDS)
    _set_up(configuration, found, given=given is not None, verbose=False)
    return found


def _given_to(server: PrefectServer, environ: Mapping[str, str]) -> str | None:
    """The API that was given, if it is not that of this user's own server."""
    given = given_api(environ)
    if not given or server.owns(given):
        return None
    if not is_healthy(given):
        raise OrchestrationError(
            f"the Prefect API at {given} does not answer",
            hint="Start it, or unset PREFECT_API_URL to use one of this user's own",
        )
    return given


def _set_up(configuration: Configuration, found: Connection, *, given: bool, verbose: bool) -> None:
    """Set what Prefect reads when it is imported."""
    variables = PREFECT_VARIABLES | {"PREFECT_API_URL": found.url}
    if not given:
        variables["PREFECT_HOME"] = str(configuration.settings.home / "prefect")
    if not verbose:
        # What failed is told by our own report, in one line a project.
        variables["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
    set_process_variables(variables)


def given_api(environ: Mapping[str, str]) -> str | None:
    """The address in `PREFECT_API_URL`, which is shown, logged and written to files.

    Raises:
        SettingsError: It holds user information.
    """
    given = environ.get("PREFECT_API_URL")
    if given and "@" in re.split(r"[/?#\\]", given.partition("://")[2], maxsplit=1)[0]:
        raise SettingsError(
            "PREFECT_API_URL holds user information, which would be shown and stored with it",
            hint="Take it out, and set PREFECT_API_AUTH_STRING to user:password instead",
        )
    return given


def run_reindex(
    connection: Connection, slugs: Sequence[str], scopes: Sequence[Scope], *, full: bool
) -> State[Any]:
    """Run the `reindex` flow in this process, to its final state.

    Raises:
        ServerLost: Its Prefect server went away.
    """
    with _closed_if_lost(), Watched(connection, _give_up):
        from flows.reindex import reindex  # noqa: PLC0415 - Prefect reads its settings on import

        return reindex(
            projects=list(slugs) or None, scopes=list(scopes) or None, full=full, return_state=True
        )


def run_backfill(
    connection: Connection, slugs: Sequence[str], *, retry_refused: bool
) -> State[Any]:
    """Run the `backfill-vectors` flow in this process, to its final state.

    Raises:
        ServerLost: Its Prefect server went away.
    """
    with _closed_if_lost(), Watched(connection, _give_up):
        from flows.backfill_vectors import backfill_vectors  # noqa: PLC0415 - likewise

        return backfill_vectors(
            projects=list(slugs) or None, retry_refused=retry_refused, return_state=True
        )


def start_reindex(
    configuration: Configuration,
    projects: Sequence[str] | None,
    scopes: Sequence[Scope] | None,
    full: bool,
) -> Started:
    """Start the deployment of `reindex`, on whatever Prefect server runs now.

    Raises:
        OrchestrationError: None runs, or it has no such deployment.
    """
    attach(configuration)
    from tasks.deployments import start_reindex as start  # noqa: PLC0415 - likewise

    return start(projects, scopes, full)


def secret_of_block(configuration: Configuration, block: str, purpose: str) -> SecretStr:
    """The value of a Prefect Secret block.

    Raises:
        OrchestrationError: No Prefect server runs.
        SettingsError: There is no such block.
    """
    attach(configuration)
    from tasks.shared import load_secret  # noqa: PLC0415 - likewise

    return load_secret(block, purpose)


@contextmanager
def _closed_if_lost() -> Iterator[None]:
    """Close the index of a run that lost its server: its process ends without the usual end."""
    try:
        yield
    except ServerLost:
        from tasks.shared import close_shared  # noqa: PLC0415 - likewise

        close_shared()
        raise


def _give_up() -> None:
    """End this process now: what is at work waits for a server that is gone."""
    from tasks.shared import close_shared  # noqa: PLC0415 - likewise

    sys.stderr.write(f"concordance: {lost()}\n")
    sys.stderr.flush()
    close_shared()
    os._exit(1)


def serve_deployments(connection: Connection, configuration: Configuration, root: Path) -> int:
    """Deploy everything in `deployments/prefect.yaml`, then work on it until interrupted.

    Runs start in `root`, whatever folder this was called from, so paths are made absolute first.

    Raises:
        OrchestrationError: Prefect refused the work pool or a deployment.
        ServerLost: The Prefect server went away.
    """
    settings = configuration.settings
    force_process_variables(
        {
            "CONCORDANCE_ROOT": str(root),
            "CONCORDANCE_HOME": str(settings.home),
            "CONCORDANCE_PROJECTS_FILE": str(settings.projects_file),
        }
    )
    _prefect(root, "work-pool", "create", WORK_POOL, "--type", "process", "--overwrite")
    _prefect(root, "--no-prompt", "deploy", "--all", "--prefect-file", str(DEPLOYMENTS))
    deploy_automations(configuration, root)
    worker = [sys.executable, "-m", "concordance.cli.worker", "--pool", WORK_POOL]
    absence = Absence(connection)
    # Nothing is ever written to the pipe: that it ends tells the worker that this process did.
    with subprocess.Popen(  # noqa: S603 - our own program
        worker, cwd=root, env=process_environment(), stdin=subprocess.PIPE
    ) as process:
        # A worker ends its runs first; it must not be left behind when this process is ended.
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        while True:
            try:
                return process.wait(LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if absence.lasts():
                    _end(process)
                    raise lost() from None
            except KeyboardInterrupt:
                continue  # a terminal has sent it to the worker, too


def deploy_automations(configuration: Configuration, root: Path) -> dict[str, str]:
    """Make the server's automations those of the file; returns what became of each, by name.

    Raises:
        OrchestrationError: Prefect refused one, or there is no such notification block.
    """
    block = configuration.settings.notification_block
    given = [str(AUTOMATIONS), *([] if block is None else [block])]
    # In a process of its own: Prefect need not stay loaded in one that waits for a worker.
    told = _run(root, "-m", "flows.automations", *given)
    done: dict[str, str] = json.loads(told.splitlines()[-1])
    return done


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a worker; one that waits for a server that is gone is not waited for long."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def project_root() -> Path:
    """The folder that holds `flows` and `deployments`.

    Raises:
        OrchestrationError: The program was installed without them.
    """
    import flows  # noqa: PLC0415 - an empty package; its modules would load Prefect

    root = Path(str(flows.__file__)).parent.parent
    if not (root / DEPLOYMENTS).is_file():
        raise OrchestrationError(
            f"there is no {DEPLOYMENTS} beside the flows in {root}",
            hint="Run this from a checkout of Concordance, installed with 'pip install -e .'",
        )
    return root


def _prefect(root: Path, *arguments: str) -> None:
    _run(root, "-m", "prefect", *arguments)


def _run(root: Path, *arguments: str) -> str:
    """What a program of ours or of Prefect's prints; it sees no setting of ours but places."""
    done = subprocess.run(  # noqa: S603 - our own program, no shell
        [sys.executable, *arguments],
        cwd=root,
        env=program_environment(process_environment(), *PROXY_VARIABLES, *_PLACES),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise OrchestrationError(
            f"'{' '.join(arguments[1:])}' failed: {said[-1].strip() if said else 'no word'}"
        )
    return done.stdout
