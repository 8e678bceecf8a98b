"""Commands of the HTTP interface: serving it, and making keys for it."""

from __future__ import annotations

import re
from dataclasses import asdict
from importlib.metadata import version
from typing import Annotated

from cyclopts import App, Parameter
from pydantic import SecretStr, ValidationError
from rich.console import Console
from rich.text import Text

from concordance.adapters.environment import process_environment, read_configuration
from concordance.adapters.http_keys import digest_of, entry_of, new_key, read_keys, read_login
from concordance.cli import orchestration
from concordance.errors import UsageError
from concordance.http.loopback import is_loopback
from concordance.settings import SLUG, Configuration, HttpKey, LoginSource

app = App()
keys = App(name="keys", help="Make keys for the HTTP interface.")
OUT = Console()
ERR = Console(stderr=True)


@app.command
def http(
    *,
    host: Annotated[str, Parameter(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port; 0 takes a free one.")] = 8000,
) -> int:
    """Serve questions over HTTP, and a search page, until interrupted.

    Without CONCORDANCE_HTTP_KEYS_FILE, for this machine alone.
    """
    environ = process_environment()
    configuration = read_configuration(environ, need_projects=False)
    path = configuration.settings.http_keys_file
    if path is None and not is_loopback(host):
        raise UsageError(
            f"without keys, '{host}' may not be listened at: everybody there could ask",
            hint="Set CONCORDANCE_HTTP_KEYS_FILE, see docs/http.md, or listen at 127.0.0.1",
        )
    known = () if path is None else read_keys(path)
    logins = {key.name: _login(configuration, key) for key in known}
    from concordance.http.bodies import StartedRun  # noqa: PLC0415 - loading takes its time
    from concordance.http.callers import open_callers  # noqa: PLC0415 - likewise
    from concordance.http.serving import serve  # noqa: PLC0415 - likewise

    serve(
        lambda: open_callers(configuration, environ, known, logins),
        configuration.settings,
        lambda projects, scopes, full: StartedRun(
            **asdict(orchestration.start_reindex(configuration, projects, scopes, full))
        ),
        host=host,
        port=port,
        version=version("concordance"),
        on_start=lambda address: ERR.print(Text(address, style="bold")),
    )
    return 0


@keys.command(name="new")
def new(
    name: Annotated[str, Parameter(help="Whose key it is: a slug.")],
    *,
    env: Annotated[
        str | None, Parameter(help="The variable that holds the database URL of its login.")
    ] = None,
    secret_block: Annotated[
        str | None, Parameter(help="The Prefect Secret block that does, instead.")
    ] = None,
) -> int:
    """Print a new key, once, and the entry for the keys file, which holds its hash alone."""
    if SLUG.fullmatch(name) is None:
        raise UsageError(
            "a key's name is a slug: 1 to 64 of a-z, 0-9, dot, dash and underscore, with a letter "
            "or digit at both ends"
        )
    if env is None and secret_block is None:
        env = f"{re.sub('[^A-Z0-9]', '_', name.upper())}_DATABASE_URL"
        env = f"KEY_{env}" if env[0].isdecimal() else env
    try:
        login = LoginSource(env=env, secret_block=secret_block)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in fault["loc"]) or "login"
        raise UsageError(f"{field}: {fault['msg'].removeprefix('Value error, ')}") from None
    key = new_key()
    ERR.print(Text("The key, which is shown this once:", style="bold"))
    OUT.print(Text(key), soft_wrap=True)
    ERR.print(Text("\nFor the file that CONCORDANCE_HTTP_KEYS_FILE names:", style="bold"))
    OUT.print(Text(entry_of(name, digest_of(key), login)), soft_wrap=True)
    return 0


def _login(configuration: Configuration, key: HttpKey) -> SecretStr:
    if key.login.secret_block is None:
        return read_login(process_environment(), key)
    purpose = f"the login of the key '{key.name}'"
    return orchestration.secret_of_block(configuration, key.login.secret_block, purpose)
