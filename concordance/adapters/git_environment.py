"""The environment that git runs in, built from nothing.

What belongs here: which variables git sees, the configuration file that stands in for the user's
and the system's, and how a credential reaches git. What doesn't belong here: reading this
process's own environment (it is given as an argument), and starting git.

Credentials travel in `GIT_CONFIG_*` variables, which only this user can read and which are no
argument, no file and no part of the address. git 2.31 or newer reads them.
"""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from pydantic import SecretStr

from concordance.adapters.git_policy import GitPolicy, scheme_of
from concordance.errors import SourceRefused

_PASSED_ON: Final = (
    "PATH",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
)

# safe.directory: a source may belong to another user, and git-upload-pack would refuse it; what
# runs there reads no hook and no file-system monitor. followRedirects: curl would carry the
# Authorization header along to another host, and a public host could point to a private one.
# unpackLimit: a pack appears at once or not at all, loose objects one by one. fsckObjects stays
# off: it refuses old repositories for harmless faults, and nothing is ever checked out.
# bigFileThreshold: a larger blob is never held in memory while it is fetched. bundleURI: a server
# could name another address.
CONFIGURATION: Final = """\
[safe]
\tdirectory = *
[protocol]
\tversion = 2
[core]
\thooksPath = /dev/null
\tfsmonitor = false
\taskPass =
\tbigFileThreshold = 32m
[transfer]
\tbundleURI = false
[credential]
\thelper =
[http]
\tfollowRedirects = false
[fetch]
\tunpackLimit = 1
\trecurseSubmodules = false
\twriteCommitGraph = false
[maintenance]
\tauto = false
[gc]
\tauto = 2000
\tautoPackLimit = 20
\tautoDetach = false
\tpruneExpire = 2.days.ago
"""

_SSH_OPTIONS: Final = (
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "PermitLocalCommand=no",
    # A shared connection would outlive the group of processes that a deadline ends.
    "ControlMaster=no",
    "ControlPath=none",
)


@dataclass(frozen=True, slots=True)
class Credential:
    """A user name and a token for one host; the token never shows in a representation."""

    username: str
    token: SecretStr


def write_configuration(home: Path) -> Path:
    """Make git's private home directory and its configuration file, and return the file.

    Raises:
        OSError: It can't be written.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Under this name git older than 2.32 finds it too, by HOME.
    path = home / ".gitconfig"
    if not path.exists() or path.read_text(encoding="utf-8") != CONFIGURATION:
        unfinished = home / f".gitconfig.{os.getpid()}.{threading.get_ident()}"
        unfinished.write_text(CONFIGURATION, encoding="utf-8")
        unfinished.replace(path)
    return path


def git_environment(
    given: Mapping[str, str], home: Path, policy: GitPolicy, git_dir: Path | None = None
) -> dict[str, str]:
    """Every variable that git is to see; nothing of `given` but proxies, certificates and paths."""
    connect_seconds = max(1, int(policy.timeout_seconds))
    options = (*_SSH_OPTIONS, f"ConnectTimeout={connect_seconds}")
    environment = {name: given[name] for name in _PASSED_ON if name in given}
    environment.setdefault("PATH", os.defpath)
    environment |= {
        "HOME": str(home),
        "LANG": "C",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_SSH_COMMAND": " ".join(("ssh", *(f"-o{option}" for option in options))),
        "GIT_SSH_VARIANT": "ssh",
        "GIT_ALLOW_PROTOCOL": ":".join(policy.allowed_schemes) or "none",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        # The state directory may lie inside somebody's work tree.
        "GIT_CEILING_DIRECTORIES": str(home.parent),
    }
    if git_dir is not None:
        environment["GIT_DIR"] = str(git_dir)
    return environment


def credential_environment(url: str, credential: Credential | None) -> dict[str, str]:
    """The variables that give git the credential, for the scheme, host and port of `url` only.

    Raises:
        SourceRefused: The credential can't be used with such a URL, or can't be sent.
    """
    if credential is None:
        return {}
    if scheme_of(url) not in ("https", "http"):
        raise SourceRefused(
            "credentials are given for a url that is not fetched over HTTP",
            hint="ssh takes its key from the agent or from ~/.ssh; take 'credentials' out",
        )
    if scheme_of(url) == "http" and not _is_loopback(url):
        raise SourceRefused(
            "credentials are given for a url with the scheme 'http', which anybody could read",
            hint="Fetch it over https",
        )
    token = credential.token.get_secret_value()
    if not token or not credential.username or ":" in credential.username:
        raise SourceRefused("credentials hold no token, or a user name that can't be sent")
    if not (token + credential.username).isprintable():
        raise SourceRefused("credentials hold a line break or another control character")
    parts = urlsplit(url)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {_basic(credential)}",
    }


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        # As a whole: 127.example.org is a name, of whatever machine its owner says.
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def secrets_of(credential: Credential | None) -> tuple[str, ...]:
    """Every form in which the token could turn up in git's output, the longest first."""
    if credential is None:
        return ()
    token = credential.token.get_secret_value()
    forms = {
        token,
        quote(token),
        quote(token, safe=""),
        _basic(credential),
        base64.b64encode(token.encode()).decode(),
    }
    return tuple(sorted(filter(None, forms), key=len, reverse=True))


def _basic(credential: Credential) -> str:
    pair = f"{credential.username}:{credential.token.get_secret_value()}"
    return base64.b64encode(pair.encode()).decode()
