"""What a failure of git means: the one place where its words are read.

What belongs here: the table from git's standard error (in the C locale, it gives nothing else) to
our error types, and the removal of secrets from it. What doesn't belong here: running git, and
deciding what to do about an error.

The table is read from the top and the first match counts. Words that a server sent
(`remote: …`) are matched too; a server can thereby only choose how its own refusal is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from concordance.errors import (
    BranchGone,
    DiskFull,
    SourceDenied,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceUnavailable,
)

_LONGEST_LINE: Final = 300
_USER_INFORMATION: Final = re.compile(r"(?<=://)[^/@\s]+@")


class _Rule(NamedTuple):
    words: str
    error: type[SourceError]
    hint: str | None


_RULES: Final = (
    _Rule(
        r"no space left on device|disk quota exceeded",
        DiskFull,
        "Make room in the state directory and run again",
    ),
    _Rule(
        r"out of memory|cannot allocate memory|unable to create thread",
        SourceRefused,
        "Reading it takes more than CONCORDANCE_GIT_MEMORY_BYTES allows; raise that if this is "
        "meant",
    ),
    _Rule(
        r"transport '[^']*' not allowed",
        SourceRefused,
        "The address or a redirect uses a scheme that 'allowed_schemes' does not name",
    ),
    _Rule(
        r"error: 30[12378]\b|unable to update url base from redirection",
        SourceNotFound,
        "The server redirects to another address, which is not followed; set 'url' to that one",
    ),
    _Rule(
        r"could not read (?:username|password)|authentication failed|error: 40[13]\b"
        r"|permission denied \(|terminal prompts disabled|access denied|invalid credentials"
        r"|permission to \S+ denied",
        SourceDenied,
        "Set 'credentials' for this project, or check that the token is valid and may read it",
    ),
    _Rule(
        r"host key verification failed",
        SourceDenied,
        "Add the host's key to ~/.ssh/known_hosts of the user that runs this",
    ),
    _Rule(
        r"repository .*not found|project .*not.* found|error: (?:404|410)\b"
        r"|does not appear to be a git repository|not a git repository|does not exist"
        r"|is this a git repository\?",
        SourceNotFound,
        "Check 'url'",
    ),
    _Rule(r"couldn't find remote ref", BranchGone, "It was there a moment ago; run again"),
    _Rule(
        r"certificate",
        SourceUnavailable,
        "If the server has a certificate of your own authority, set GIT_SSL_CAINFO",
    ),
    _Rule(
        r"could not resolve|connection (?:refused|reset|timed out|closed)|couldn't connect"
        r"|failed to connect|network is unreachable|no route to host|operation timed out"
        r"|name or service not known|temporary failure|error: (?:408|407|429|5\d\d)\b"
        r"|hung up unexpectedly|early eof|unexpected disconnect|rpc failed|empty reply"
        r"|transfer closed|unable to access|unexpected eof|protocol error|bad line length"
        r"|expected flush|invalid server response|kex_exchange_identification",
        SourceUnavailable,
        None,
    ),
)


def diagnose(action: str, url: str, code: int, stderr: str, secrets: Iterable[str]) -> SourceError:
    """The error that tells what git's exit and its words mean.

    The result is exactly a `SourceError`, none of its subclasses, where the words are unknown; but
    a git that somebody ended is worth another try.
    """
    text = scrub(stderr, secrets)
    lines = [line for line in map(_printable, text.splitlines()) if line]
    for rule in _RULES:
        for line in lines:
            if re.search(rule.words, line, re.IGNORECASE):
                return rule.error(f"git {action} of {url} failed: {line}", hint=rule.hint)
    error = SourceUnavailable if code < 0 else SourceError
    return error(f"git {action} of {url} failed: {_last_words(lines, code)}")


def scrub(text: str, secrets: Iterable[str]) -> str:
    """The text without those secrets and without user information in any address."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return _USER_INFORMATION.sub("***@", text)


def _last_words(lines: list[str], code: int) -> str:
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))]
    if telling or lines:
        return (telling or lines)[-1]
    return f"it was ended by signal {-code}" if code < 0 else f"exit code {code}, no message"


def _printable(line: str) -> str:
    # A server's message may hold control sequences for a terminal.
    visible = "".join(character if character.isprintable() else " " for character in line)
    return visible.strip()[:_LONGEST_LINE]
