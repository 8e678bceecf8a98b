"""Commands about which login reads which tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from concordance.adapters.environment import process_environment, read_configuration
from concordance.adapters.postgres.tenants import Access
from concordance.cli.printing import print_json
from concordance.cli.running import Json
from concordance.escaping import safe
from concordance.granting import Tenants, open_tenants

app = App(name="tenants", help="Let database logins read one tenant each, and check that they do.")
OUT = Console()


@app.command
def grant(
    login: str,
    *,
    tenant: Annotated[str, Parameter(help="The tenant that it reads; it gives up any other.")],
    json: Json = False,
) -> int:
    """Let a database login read one tenant, by functions and nothing else.

    A login that is not there is made, without a password.
    """
    with _open() as tenants:
        made = tenants.grant(login, tenant)
    if json:
        print_json({"login": login, "tenant": tenant, "made": made})
        return 0
    OUT.print(Text(f"{safe(login)} reads '{safe(tenant)}'."))
    if made:
        said = "The login was made and has no password yet: set one with \\password in psql."
        OUT.print(Text(said, style="yellow"))
    return 0


@app.command
def revoke(login: str, *, json: Json = False) -> int:
    """Take its tenant from a login; the login itself stays.

    Ends with 0 when it had one, 1 when it had none.
    """
    with _open() as tenants:
        gone = tenants.revoke(login)
    if json:
        print_json({"login": login, "revoked": gone})
    else:
        said = "reads nothing any more." if gone else "read no tenant."
        OUT.print(Text(f"{safe(login)} {said}"))
    return 0 if gone else 1


@app.command(name="list")
def list_tenants(*, json: Json = False) -> int:
    """Show which login reads which tenant."""
    with _open() as tenants:
        rows = tenants.logins()
    if json:
        print_json({"logins": [_plain(row) for row in rows]})
        return 0
    table = Table()
    for name in ("Login", "Tenant", "Since", "On the server"):
        table.add_column(name, overflow="fold")  # what is cut off can't be typed again
    for row in rows:
        there = "yes" if row.there else "no longer"
        cells = (row.login, row.tenant, f"{row.granted_at:%Y-%m-%d}", there)
        table.add_row(*(Text(safe(cell)) for cell in cells))
    OUT.print(table)
    return 0


@app.command
def check(*, json: Json = False) -> int:
    """Compare policies, functions and rights with what they were made as.

    Ends with 0 when all is as it should be, 1 when something is not.
    """
    with _open() as tenants:
        faults = tenants.faults()
    if json:
        print_json({"faults": faults})
    elif faults:
        for fault in faults:
            OUT.print(Text(safe(fault), style="red"))
    else:
        OUT.print("Every table is protected, and readers have functions alone.")
    return 1 if faults else 0


def _plain(row: Access) -> dict[str, object]:
    return asdict(row) | {"granted_at": row.granted_at.isoformat()}


@contextmanager
def _open() -> Iterator[Tenants]:
    configuration = read_configuration(process_environment(), need_projects=False)
    with open_tenants(configuration.settings) as tenants:
        yield tenants
