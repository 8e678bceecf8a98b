"""Which login reads which tenant: granting, revoking, listing, and checking the protection.

What belongs here: the steps behind `concordance tenants`. They need the database alone, so neither
a provider nor a repository is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from concordance.adapters.clock import utc_now
from concordance.adapters.postgres import tenants
from concordance.adapters.postgres.database import Database
from concordance.adapters.postgres.schema import migrate
from concordance.adapters.postgres.tenants import Access
from concordance.errors import DatabaseUnsuitable
from concordance.resources import open_server
from concordance.settings import Settings


class Tenants:
    """The logins of one database, as its indexer sees them."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock

    def grant(self, login: str, tenant: str) -> bool:
        """Let a login read a tenant; tells whether the login had to be made.

        Raises:
            UsageError: There is no such tenant, or the login reads everything anyway.
            DatabaseUnsuitable: The indexer's login may not do it; the hint has the commands.
        """
        return tenants.grant(self._database, login, tenant, now=self._clock())

    def revoke(self, login: str) -> bool:
        """Take a login's tenant; tells whether it had one. The login itself stays."""
        return tenants.revoke(self._database, login)

    def logins(self) -> list[Access]:
        """Every login that reads a tenant."""
        return tenants.list_access(self._database)

    def faults(self) -> list[str]:
        """What of the protection is not as it was set up; empty when it is whole."""
        return tenants.find_faults(self._database)


@contextmanager
def open_tenants(settings: Settings, clock: Callable[[], datetime] = utc_now) -> Iterator[Tenants]:
    """The logins of the settings' database, with its schema brought up to date.

    Raises:
        DatabaseError: Postgres can't be reached, or this is a reader's login.
    """
    server, conninfo = open_server(settings)
    try:
        database = Database(conninfo, pool_size=1)
        try:
            database.open()
            if tenants.find_reader(database) is not None:
                raise DatabaseUnsuitable(
                    "this login is a reader's",
                    hint="Set CONCORDANCE_DATABASE_URL to the indexer's login",
                )
            migrate(database)
            yield Tenants(database, clock)
        finally:
            database.close()
    finally:
        if server is not None:
            server.stop()
