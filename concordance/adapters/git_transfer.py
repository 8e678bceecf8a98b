"""What one fetch is to bring and from where, and what becomes of one that reaches a limit.

What belongs here: the address with what opens it, the refspec, and errors that name the limit.
What doesn't belong here: running git.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from concordance.adapters.git_folder import mark_damaged
from concordance.adapters.git_process import (
    Deadline,
    DeadlinePassed,
    OutputTooLong,
    Quota,
    QuotaExceeded,
)
from concordance.adapters.git_refs import HEADS
from concordance.errors import SourceRefused, SourceTimeout

FETCHED: Final = "refs/concordance/head"

_SHA1_DIGITS: Final = 40


@dataclass(frozen=True, slots=True)
class Remote:
    """An address that has passed, and what git is told so that it may read there."""

    url: str
    environment: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Transfer:
    """What one fetch is to bring, and from where."""

    remote: Remote
    branch: str | None
    commit: str

    @property
    def refspec(self) -> str:
        """What git is asked for, and under which name it is kept."""
        # HEAD where it is detached: asking for a commit by its id is not allowed everywhere.
        source = "HEAD" if self.branch is None else HEADS + self.branch
        return f"+{source}:{FETCHED}"

    @property
    def object_format(self) -> str:
        """How objects are named, by the length of the commit's name."""
        return "sha1" if len(self.commit) == _SHA1_DIGITS else "sha256"


@contextmanager
def ended_in_time(what: str, deadline: Deadline) -> Iterator[None]:
    """Turn a deadline that passed, or an output without end, into an error of ours.

    Raises:
        SourceTimeout: The time was up.
        SourceRefused: There was too much output.
    """
    try:
        yield
    except DeadlinePassed:
        raise SourceTimeout(
            f"{what} timed out after {deadline.seconds:g} s",
            hint="That is the limit of CONCORDANCE_GIT_TIMEOUT_SECONDS",
        ) from None
    except OutputTooLong:
        raise SourceRefused(f"{what} gave far too much output") from None


@contextmanager
def within_quota(repository: Path, url: str, most: int | None) -> Iterator[Quota | None]:
    """What one fetch may add to a repository's objects.

    Raises:
        SourceRefused: It brought more; the repository has to be made anew.
    """
    try:
        yield None if most is None else Quota.of(repository / "objects", most)
    except QuotaExceeded:
        # It may have come to its end all the same, and must not pass the next time.
        mark_damaged(repository)
        raise SourceRefused(
            f"git fetch of {url} brings more than {most:,} bytes",
            hint="That is the limit of CONCORDANCE_MAX_FETCH_BYTES; raise it if this is meant",
        ) from None


def too_many_files(slug: str, most: int) -> SourceRefused:
    """The error for a tree whose listing has no end."""
    return SourceRefused(
        f"the tree of '{slug}' has far more than {most:,} files, or names of hundreds of bytes",
        hint="That is the limit of CONCORDANCE_MAX_FILES; raise it if this is meant",
    )
