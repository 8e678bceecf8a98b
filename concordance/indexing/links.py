"""Addresses of lines on the web, from a repository's own address."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from concordance.addresses import SCP_STYLE

_GITEA_LIKE = ("codeberg.org", "gitea.com")
_KNOWN_HOSTS = ("github.com", "gitlab.com", *_GITEA_LIKE)


def web_address(location: str, web_url: str | None) -> str | None:
    """The address of a repository's pages: as configured, or from the location of known hosts."""
    if web_url:
        return web_url.rstrip("/")
    if SCP_STYLE.fullmatch(location):
        host, _, path = location.partition("@")[2].partition(":")
    elif "://" in location:
        parts = urlsplit(location)
        host, path = parts.hostname or "", parts.path
    else:
        return None
    if host.lower() not in _KNOWN_HOSTS:
        return None
    # An address may hold escapes already; a path after a colon may hold anything.
    return f"https://{host.lower()}/{quote(path.strip('/').removesuffix('.git'), safe='/%~')}"


def belongs(directory: str | None, location: str) -> bool:
    """Whether a folder is a work tree of a repository, or lies in one, as far as names tell.

    Another machine's clone lies elsewhere: it is known by the repository's own name in its path.
    """
    if not directory:
        return False
    own = re.split(r"[/:\\]", location.rstrip("/").removesuffix(".git"))[-1]
    return own != "" and own in re.split(r"[/\\]", directory)


def commit_link(web: str | None, commit: str | None) -> str | None:
    """The address of a commit, or None where the host or the commit is not known."""
    if web is None or not commit:
        return None
    host = urlsplit(web).hostname or ""
    return f"{web}{'/-' if host.startswith('gitlab.') else ''}/commit/{quote(commit)}"


def line_link(web: str | None, *, path: str, commit: str, start: int, end: int) -> str | None:
    """The address of some lines of a file at a commit, or None where the host is not known.

    A rendered Markdown page has no line numbers; each host has a word that shows the source.
    """
    if web is None:
        return None
    where = quote(path)
    host = urlsplit(web).hostname or ""
    if host.startswith("gitlab."):
        return f"{web}/-/blob/{commit}/{where}?plain=1#L{start}-{end}"
    if host in _GITEA_LIKE:
        return f"{web}/src/commit/{commit}/{where}?display=source#L{start}-L{end}"
    return f"{web}/blob/{commit}/{where}?plain=1#L{start}-L{end}"
