"""Every error that Concordance raises on purpose, in one tree.

What belongs here: types, and nothing else. A caller decides by type whether to try again
(`Retryable`), to stop (`ConcordanceError`), or to write a row with a reason (`TextRefused`).
Messages say what was wrong; `hint` says what to do. Neither may hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# Line ends of any kind; then what a terminal obeys: control characters, and turns of the writing
# direction. A name in a message may hold both, and messages go into logs, which terminals show.
_LINE_ENDS = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_OBEYED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class ConcordanceError(Exception):
    """The root of the tree: something went wrong that a person can act on."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        # A name that a caller gave may hold what no terminal, log or database takes.
        self.message = _writable(message)
        self.hint = None if hint is None else _writable(hint)
        super().__init__(self.message, self.hint)

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message

    def scrub(self, scrubbed: Callable[[str], str]) -> None:
        """Say the same without the secrets that `scrubbed` replaces."""
        self.message = scrubbed(self.message)
        self.hint = None if self.hint is None else scrubbed(self.hint)
        self.args = (self.message, self.hint)


def _writable(text: str) -> str:
    encodable = text.encode(errors="backslashreplace").decode()
    return _OBEYED.sub("\ufffd", _LINE_ENDS.sub(" ", encodable))


class Retryable(ConcordanceError):
    """A fault that may be gone in a moment; the same call may be made again."""


# --- input -----------------------------------------------------------------------------------


class UsageError(ConcordanceError):
    """The caller asked for something that can't be; trying again changes nothing."""


class SettingsError(UsageError):
    """A setting or an environment variable has a value that can't be used."""


class ProjectsFileError(UsageError):
    """`projects.toml` is missing, malformed or contradicts itself."""


class UnknownProject(UsageError):
    """No project of that slug is configured or indexed."""


class NothingIndexed(ConcordanceError):
    """The index is empty, so no question can be answered."""


class BadRequest(UsageError):
    """A search request that can't be answered as it stands."""


class UnknownCitation(BadRequest):
    """What a citation names is not stored, or is another tenant's."""


class OutdatedCitation(BadRequest):
    """What a citation names is stored as of another commit than the one cited."""


class BadTestSet(UsageError):
    """A folder of questions with known answers that can't be used."""


class BadRecord(UsageError):
    """A question can't be recorded with the place that was named as its answer."""


# --- sources ---------------------------------------------------------------------------------


class SourceError(ConcordanceError):
    """A repository or a session log could not be read."""


class SourceRefused(SourceError):
    """A URL, a ref or a file that policy does not let us touch; refused before git runs."""


class SourceUnavailable(SourceError, Retryable):
    """The remote did not answer, or the answer broke off."""


class SourceTimeout(SourceUnavailable):
    """The remote did not finish within its deadline."""


class SourceDenied(SourceError):
    """The remote asked for credentials, or did not accept those given."""


class SourceNotFound(SourceError):
    """The remote says that there is no such repository."""


class BranchGone(SourceError):
    """The configured branch does not exist at the remote."""


class DiskFull(SourceError):
    """There was no room to store what was fetched."""


class LogsUnreadable(SourceError):
    """A session-log folder or file can't be read; this is not the same as having no sessions."""


class LogsUnavailable(SourceUnavailable, LogsUnreadable):
    """The database with session logs did not answer, or the answer broke off."""


# --- embedding providers ---------------------------------------------------------------------


class ProviderError(ConcordanceError):
    """The embedding provider did not give what was asked of it."""


class ProviderUnavailable(ProviderError, Retryable):
    """Refused, reset, timed out or answered 5xx."""


class ProviderTimeout(ProviderUnavailable):
    """The provider did not answer within its deadline."""


class ProviderBusy(ProviderUnavailable):
    """The provider answered 429; `retry_after` is in seconds, or None where it gave none."""

    def __init__(
        self, message: str, *, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class ProviderPaused(ProviderError):
    """The provider failed and is left alone for now; the message is that of its failure."""


class ModelMissing(ProviderError):
    """The provider is there, the model is not."""


class ModelChanged(ProviderUnavailable):
    """Another model took the name while it was used; the same call then uses that one."""


class ModelsDiffer(ProviderError):
    """Two servers have other models under one name; vectors of both would not be comparable."""


class ProviderRefused(ProviderError):
    """The provider answered 4xx to the whole request; the same request will fail again."""


class BadEmbedding(ProviderError):
    """The provider's answer is no usable set of vectors: wrong count, width, NaN or zero."""


class TextRefused(ProviderError):
    """One text can't be embedded by this model; its neighbours can."""


class DimensionsUnsupported(ProviderError):
    """The model's vectors are wider than the index can hold."""


# --- Postgres --------------------------------------------------------------------------------


class DatabaseError(ConcordanceError):
    """Postgres refused, or is not what this program needs."""


class DatabaseUnavailable(DatabaseError, Retryable):
    """Postgres can't be reached, or the connection broke."""


class DatabaseConflict(DatabaseError, Retryable):
    """A deadlock or a serialisation failure; the transaction may be run again."""


class DatabaseFull(DatabaseError):
    """Postgres has no room left for data or for its own work, or met a limit that was set on it."""


class RowRefused(DatabaseError):
    """Postgres can't hold a value as it is; other rows are not affected."""


class DatabaseUnsuitable(DatabaseError):
    """Too old a Postgres, no pgvector, or a login that lacks a right."""


class DatabaseReadOnly(DatabaseUnsuitable):
    """A replica, or a database that was set to be read only: nothing can be written there."""


class SchemaMismatch(DatabaseError):
    """The schema is newer than this program, or an applied migration was changed."""


class EmbeddedPostgresError(DatabaseError):
    """The Postgres server that Concordance runs itself could not be started or stopped."""


class ProjectBusy(DatabaseError, Retryable):
    """Another run holds this project."""


class RunSuperseded(DatabaseError):
    """This run lost its hold on the project and another one took over; nothing more is written."""


# --- orchestration ---------------------------------------------------------------------------


class OrchestrationError(ConcordanceError):
    """The Prefect server could not be started, reached or used."""


class ServerLost(OrchestrationError):
    """The Prefect server went away while it was used."""


# --- HTTP ------------------------------------------------------------------------------------


class RequestRefused(UsageError):
    """A key that may not do what was asked."""


class TooManyRequests(Retryable):
    """As many requests are answered at once as may be."""


class RequestTimeout(Retryable):
    """A request was not answered within the time that one may take."""
