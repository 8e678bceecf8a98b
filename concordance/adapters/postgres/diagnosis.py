"""Errors of Postgres and its driver as ours: sorted by type and SQLSTATE, never by what they say.

What belongs here: which of our types an error is, and what to do about it. Who tries again, or goes
on without a document, decides by that type.
"""

from __future__ import annotations

import psycopg
from psycopg import errors as pg

from concordance.errors import (
    ConcordanceError,
    DatabaseConflict,
    DatabaseError,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnavailable,
    DatabaseUnsuitable,
    RowRefused,
)
from concordance.text.scrubbing import Scrubber

MOST_SAID = 300
# The first two characters of a SQLSTATE are its class; this one is of limits of a single value.
_LIMITS = "54"
# Resources, objects in use, the system beneath.
_OF_THE_SERVER = frozenset({"53", "55", "58"})


def translate(  # noqa: PLR0911 - one case a kind of error
    error: psycopg.Error, target: str
) -> ConcordanceError:
    """The driver's error as one of ours, with the server's own first line and nothing secret."""
    said = _said(error)
    match error:
        case pg.DeadlockDetected() | pg.SerializationFailure():
            return DatabaseConflict(f"Postgres could not run two transactions at once: {said}")
        case pg.ReadOnlySqlTransaction():
            return DatabaseReadOnly(
                f"Postgres at {target} takes no writes: {said}",
                hint="It is a replica, or was set to be read only. Searches work there; for what "
                "writes, set CONCORDANCE_DATABASE_URL to the primary",
            )
        case pg.DiskFull() | pg.ConfigurationLimitExceeded():
            return DatabaseFull(
                f"Postgres at {target} has no room left: {said}",
                hint="Free disk space there, or raise the limit that it names; then run again",
            )
        case psycopg.DataError() | psycopg.IntegrityError() | pg.InternalError_():
            return RowRefused(f"Postgres at {target} refused a value: {said}")
        case psycopg.OperationalError() if (error.sqlstate or "").startswith(_LIMITS):
            return RowRefused(f"Postgres at {target} can't hold so much in one value: {said}")
        case psycopg.OperationalError() | psycopg.InterfaceError() | psycopg.InternalError():
            return _unavailable(error, said, target)
        case _:
            return _unsuitable(error, said, target)


def _said(error: psycopg.Error) -> str:
    said = (error.diag.message_primary or str(error).strip().split("\n")[0]).strip()
    # A server may quote the text that it could not take; half a secret is not known as one.
    return Scrubber().text(said)[:MOST_SAID]


def _unavailable(  # noqa: PLR0911 - likewise
    error: psycopg.Error, said: str, target: str
) -> DatabaseError:
    """What may be gone in a moment, though it may also need somebody to see to it."""
    match error:
        case pg.QueryCanceled() | pg.TransactionTimeout():
            return DatabaseUnavailable(
                f"Postgres at {target} did not answer in time: {said}",
                hint="If that was its own statement_timeout or transaction_timeout, raise it for "
                "this login: 'alter role … set statement_timeout = …'",
            )
        case pg.LockNotAvailable():
            return DatabaseUnavailable(
                f"Postgres at {target} waited too long for a lock that another session holds: "
                f"{said}",
                hint="Try again when that session is done, or raise lock_timeout for this login",
            )
        case pg.IdleInTransactionSessionTimeout() | pg.IdleSessionTimeout():
            return DatabaseUnavailable(
                f"Postgres at {target} ended a session that waited: {said}",
                hint="Raise that time-out for this login",
            )
        case pg.OutOfMemory():
            return DatabaseUnavailable(
                f"Postgres at {target} has no memory left: {said}",
                hint="Give the server more, or let fewer runs work at once",
            )
        case pg.InvalidPassword() | pg.InvalidAuthorizationSpecification():
            return DatabaseUnsuitable(
                f"Postgres at {target} did not accept the login: {said}",
                hint="Check the user and password in CONCORDANCE_DATABASE_URL",
            )
        case psycopg.InternalError():
            return DatabaseError(f"Postgres at {target} failed: {said}")
        case _ if (error.sqlstate or "")[:2] in _OF_THE_SERVER:
            return DatabaseUnavailable(
                f"Postgres at {target} could not do that now: {said}",
                hint="Its log may say more",
            )
        case _:
            return DatabaseUnavailable(
                f"Postgres at {target} can't be reached: {said}",
                hint="Is it up, does it take one more connection, and are address and login in "
                "CONCORDANCE_DATABASE_URL right?",
            )


def _unsuitable(error: psycopg.Error, said: str, target: str) -> DatabaseError:
    """What stays as it is until somebody changes the database, or the program."""
    match error:
        case pg.InvalidCatalogName():
            return DatabaseUnsuitable(
                f"there is no such database at {target}: {said}", hint="Create it, then try again"
            )
        case pg.InsufficientPrivilege():
            return DatabaseUnsuitable(
                f"the login at {target} lacks a right: {said}",
                hint="A reader's login may search and show coverage; see docs/tenants.md",
            )
        case pg.UndefinedTable() | pg.InvalidSchemaName():
            return DatabaseUnsuitable(
                f"the schema is not there or not whole at {target}: {said}",
                hint="Run 'concordance reindex' once, which makes it",
            )
        case _:
            return DatabaseError(f"Postgres at {target} refused a statement: {said}")
