"""Which login reads which tenant: granting, revoking, and whether the protection is whole.

What belongs here: the rows of `tenant_access` and the rights that go with them. What a reader asks
is in `sql/queries/readers.sql`; the functions and policies, in `sql/migrations/0009_readers.sql`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg import errors as pg
from psycopg import sql as pgsql

from concordance.adapters.postgres.database import Connection, Database, fetch_all, fetch_rows
from concordance.errors import DatabaseUnsuitable, SchemaMismatch, UsageError
from sql import migrations, queries


@dataclass(frozen=True, slots=True)
class Whose:
    """The tenant of a reader's login, and the newest migration of its database."""

    id: int
    slug: str
    migration: int


@dataclass(frozen=True, slots=True)
class Access:
    """A login that reads a tenant; not `there` where the server has no such login any more."""

    login: str
    tenant: str
    granted_at: datetime
    there: bool


@dataclass(frozen=True, slots=True)
class _Own:
    """This process's login: a reader's, or one from which the policies hide every row."""

    reader: bool
    hidden: bool
    login: str
    owner: str | None


@dataclass(frozen=True, slots=True)
class _Login:
    there: bool
    may_log_in: bool
    above_rows: bool
    member: bool
    me: str
    functions_there: bool


def find_reader(database: Database) -> Whose | None:
    """The tenant of this login where it is a reader's, and from here on it is treated as one.

    Raises:
        DatabaseUnsuitable: The login has a reader's functions and no tenant any more, or it has
            the tables, and would see none of their rows.
        SchemaMismatch: The schema is not the one that this program knows; a reader can't change it.
    """
    ask = queries("readers")
    with database.transaction() as connection:
        own = fetch_all(connection, ask["login"], {}, _Own)[0]
        if own.hidden and own.owner is not None:
            asked = _asked(connection, _named("join_owner", owner=own.owner, login=own.login))
            raise DatabaseUnsuitable(
                f"the login '{own.login}' has rights on the tables, and row level security "
                "shows it none of their rows",
                hint=f"Use a login that may act as their owner. {asked}",
            )
        if not own.reader:
            return None
        whose = fetch_all(connection, ask["whose"], {}, Whose)[0]
    newest = migrations()[-1].number
    if whose.migration != newest:
        older = whose.migration < newest
        raise SchemaMismatch(
            f"the database has migrations up to {whose.migration:04d}, this program knows those up "
            f"to {newest:04d}",
            hint="Run 'concordance reindex' with the indexer's login, which brings it up to date"
            if older
            else "Install the newer version of Concordance that made it",
        )
    database.reader = True
    return whose


def grant(database: Database, login: str, tenant: str, *, now: datetime) -> bool:
    """Let a login read a tenant by functions; tells whether the login had to be made.

    A login reads one tenant: it gives up the one that it had before.

    Raises:
        UsageError: There is no such tenant, or the login reads everything whatever it is granted.
        DatabaseUnsuitable: This login may not make what is missing; the hint has the commands.
    """
    ask = queries("tenants")
    with database.transaction() as connection:
        known = [row[0] for row in connection.execute(ask["tenants"]).fetchall()]
        if tenant not in known:
            raise UsageError(
                f"there is no tenant '{tenant}'",
                hint=f"A run with CONCORDANCE_TENANT makes one; there are: {', '.join(known)}",
            )
        facts = fetch_all(connection, ask["login_facts"], {"login": login}, _Login)[0]
        _check_login(login, facts)
        if not facts.there:
            _make_login(connection, login)
        _arrange(connection, facts)
        connection.execute(ask["bind"], {"login": login, "tenant": tenant, "now": now})
        connection.execute(ask["admit"], {"login": login})
    return not facts.there


def revoke(database: Database, login: str) -> bool:
    """Take a login's tenant and its functions; tells whether it had any. The login stays."""
    ask = queries("tenants")
    with database.transaction() as connection:
        gone = connection.execute(ask["unbind"], {"login": login}).rowcount > 0
        if gone:
            connection.execute(ask["dismiss"], {"login": login})
    return gone


def list_access(database: Database) -> list[Access]:
    """Every login that reads a tenant, by name."""
    with database.transaction() as connection:
        return fetch_all(connection, queries("tenants")["list"], {}, Access)


def find_faults(database: Database) -> list[str]:
    """What of the protection is not as it was set up; empty when it is whole."""
    with database.transaction() as connection:
        return faults_in(connection)


def faults_in(connection: Connection) -> list[str]:
    """The same, inside a transaction of the caller's."""
    return [row[0] for row in fetch_rows(connection, queries("tenants")["faults"], {})]


def _check_login(login: str, facts: _Login) -> None:
    if facts.above_rows or facts.member:
        why = "is above row level security" if facts.above_rows else "may act as the tables' owner"
        raise UsageError(
            f"the login '{login}' {why}: it reads every tenant whatever it is granted",
            hint="Name a login of its own, which is no superuser and no member of the owner's role",
        )
    if facts.there and not facts.may_log_in:
        raise UsageError(
            f"the role '{login}' may not log in", hint="Tenants are read by logins, not by groups"
        )


def _make_login(connection: Connection, login: str) -> None:
    make = _named("make_login", login=login)
    asked = _asked(connection, make)
    try:
        connection.execute(make)
    except pg.InsufficientPrivilege as error:
        raise DatabaseUnsuitable(
            f"there is no login '{login}', and this one may not make it", hint=asked
        ) from error


def _arrange(connection: Connection, facts: _Login) -> None:
    missing = [] if facts.functions_there else [_named("make_functions")]
    asked = _asked(connection, *missing, _named("join_functions", me=facts.me))
    try:
        connection.execute(queries("tenants")["arrange"])
    except pg.InsufficientPrivilege as error:
        raise DatabaseUnsuitable(
            "readers' functions can't be handed to the role that they run as: "
            f"{error.diag.message_primary}",
            hint=asked,
        ) from error


def _named(name: str, **names: str) -> pgsql.Composed:
    identifiers = {key: pgsql.Identifier(value) for key, value in names.items()}
    return pgsql.SQL(queries("tenants")[name]).format(**identifiers)


def _asked(connection: Connection, *statements: pgsql.Composed) -> str:
    """What to ask the server's administrator for."""
    texts = "; ".join(statement.as_string(connection) for statement in statements)
    return f"Have the server's administrator run: {texts};"
