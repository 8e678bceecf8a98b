"""What a repository's address and branch may look like, decided before git is started.

What belongs here: pure checks of values that a person or a configuration file gave. A value that
passes can be handed to git as an argument. What doesn't belong here: running git, reading a
repository, resolving a name. A host name that resolves to a refused address is therefore not
caught; literal addresses are, in every notation that the C library and curl understand.
"""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from concordance.errors import SourceRefused

SCHEMES: Final = ("https", "ssh", "http", "git", "file")
OBJECT_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

_LONGEST_URL: Final = 2_000
_LONGEST_BRANCH: Final = 1_000
_HIGHEST_PORT: Final = 65_535
_REMOTE_HELPER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_WITH_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_USER: Final = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]*")
_HOST: Final = r"[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]"
_HOST_AND_PORT: Final = re.compile(rf"({_HOST})(?::([0-9]{{1,5}}))?")
_SCP_STYLE: Final = re.compile(rf"(?:([^/@:]*)@)?({_HOST}):(.+)")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_METADATA_ADDRESSES: Final = frozenset(
    # Amazon (IPv6), Alibaba and Oracle; the others are link-local.
    map(ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192"))
)
_METADATA_NAMES: Final = frozenset({"metadata.google.internal", "metadata.goog", "metadata"})
_FORBIDDEN_IN_BRANCH: Final = frozenset(" ~^:?*[\\")
_USER_INFORMATION: Final = (
    "url holds user information, which would be stored and shown with it",
    "Take it out and name the token in 'credentials' (an environment variable or a Secret block)",
)


@dataclass(frozen=True, slots=True)
class GitPolicy:
    """Which URL schemes are let through, and what one call to a remote may cost.

    `fetch_bytes` is what one fetch may add to the disk, `memory_bytes` what each process of git may
    hold of its own; None is no limit.
    """

    allowed_schemes: tuple[str, ...]
    timeout_seconds: float
    fetch_bytes: int | None = None
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        unknown = sorted(set(self.allowed_schemes) - set(SCHEMES))
        if unknown:
            raise SourceRefused(
                f"allowed_schemes names {', '.join(map(repr, unknown))}",
                hint=f"Those that can be allowed are {', '.join(SCHEMES)}",
            )


def check_url(url: str, allowed_schemes: Collection[str]) -> None:
    """Let a repository's address pass, or refuse it.

    Raises:
        SourceRefused: The address has a scheme that isn't allowed, would run a remote helper,
            looks like an option, holds user information or a query, or names an address that
            serves machine metadata. The message never repeats the address: it may hold a secret.
    """
    _check_characters("url", url, _LONGEST_URL)
    scheme = scheme_of(url)
    if scheme not in allowed_schemes or scheme not in SCHEMES:
        raise SourceRefused(
            f"url has the scheme {scheme!r}, which is not allowed here",
            hint=f"Allowed: {', '.join(allowed_schemes) or 'none'} (setting 'allowed_schemes')",
        )
    if scheme == "file":
        _check_local(url)
    elif _WITH_SCHEME.match(url):
        _check_network(url, scheme)
    else:
        _check_scp_style(url)


def scheme_of(url: str) -> str:
    """The transport that git would choose for this address.

    `git@host:path` is `ssh`, an absolute path is `file`.

    Raises:
        SourceRefused: It is an option, names a remote helper, or is no address at all.
    """
    if url.startswith("-"):
        raise SourceRefused("url begins with '-', which git could take for an option")
    if _REMOTE_HELPER.match(url):
        raise SourceRefused("url names a remote helper ('…::'), which can run any command")
    if match := _WITH_SCHEME.match(url):
        return match[1]
    if url.startswith("/"):
        return "file"
    if _SCP_STYLE.fullmatch(url):
        return "ssh"
    raise SourceRefused(
        "url is neither an address with a scheme, nor host:path, nor an absolute path",
        hint="Write it like https://host/owner/repository.git",
    )


def check_branch(branch: str) -> None:
    """Let a branch name pass, or refuse it, by the rules of `git check-ref-format`.

    Raises:
        SourceRefused: The name is not one that a branch can have.
    """
    _check_characters("branch", branch, _LONGEST_BRANCH)
    if branch.startswith("-"):
        raise SourceRefused("branch begins with '-', which git could take for an option")
    if found := sorted(_FORBIDDEN_IN_BRANCH.intersection(branch)):
        raise SourceRefused(f"branch holds {found[0]!r}, which no branch name may hold")
    for sequence in ("..", "@{", "//"):
        if sequence in branch:
            raise SourceRefused(f"branch holds {sequence!r}, which no branch name may hold")
    if branch in ("@", "HEAD") or branch.endswith((".", "/")) or branch.startswith("/"):
        raise SourceRefused("branch is no name that a branch can have")
    if any(part.startswith(".") or part.endswith(".lock") for part in branch.split("/")):
        raise SourceRefused("branch has a part that begins with '.' or ends with '.lock'")


def _check_characters(parameter: str, value: str, longest: int) -> None:
    if not value:
        raise SourceRefused(f"{parameter} is empty")
    if len(value) > longest:
        raise SourceRefused(f"{parameter} is longer than {longest} characters")
    # Cc: control characters; Cs: half a surrogate pair, which can't be encoded; Zl and Zp: line
    # and paragraph separators, which would break a log line in two.
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in value):
        raise SourceRefused(f"{parameter} holds a control character")


def _check_local(url: str) -> None:
    path = url.removeprefix("file://")
    host, slash, _ = path.partition("/")
    if not slash or host not in ("", "localhost"):
        raise SourceRefused("url names no absolute path on this machine")


def _check_network(url: str, scheme: str) -> None:
    if "?" in url or "#" in url:
        # git, curl and Python disagree on where the host ends, and queries often hold tokens.
        raise SourceRefused("url has a query or a fragment, which a repository's address has not")
    if "\\" in url or " " in url:
        raise SourceRefused("url holds a backslash or a space")
    try:
        netloc = urlsplit(url).netloc
    except ValueError:
        raise SourceRefused("url has a host that can't be read") from None
    user, at, host = netloc.rpartition("@")
    if at and (scheme != "ssh" or not _USER.fullmatch(user)):
        raise SourceRefused(_USER_INFORMATION[0], hint=_USER_INFORMATION[1])
    match = _HOST_AND_PORT.fullmatch(host)
    if match is None or int(match[2] or 0) > _HIGHEST_PORT:
        raise SourceRefused(
            "url has a host that can't be read",
            hint="Use letters, digits, dots and dashes; write other names as xn--…",
        )
    _check_address(match[1])


def _check_scp_style(url: str) -> None:
    match = _SCP_STYLE.fullmatch(url)
    if match is None:  # scheme_of() has seen to it
        raise SourceRefused("url is not of the form user@host:path")
    user, host, path = match.groups()
    if "@" in path.partition("/")[0]:
        # user:password@host:path
        raise SourceRefused(_USER_INFORMATION[0], hint=_USER_INFORMATION[1])
    if (user is not None and not _USER.fullmatch(user)) or path.startswith("-"):
        raise SourceRefused("url has a user or a path that could be taken for an option")
    _check_address(host)


def _check_address(host: str) -> None:
    bare = host.strip("[]").rstrip(".").lower()
    address = _literal_address(bare)
    if bare in _METADATA_NAMES or (address is not None and _is_refused(address)):
        raise SourceRefused("url names an address that serves machine metadata, or no host at all")


def _literal_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        try:
            # 2852039166, 0xA9FEA9FE, 0251.0376.1.1 and 169.16689662 are addresses to curl too.
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _is_refused(address: IPv4Address | IPv6Address) -> bool:
    return (
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address in _METADATA_ADDRESSES
    )
