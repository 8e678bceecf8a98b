"""Addresses of lines on the web, from a repository's own address."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from concordance.settings import SCP_STYLE

_GITHUB_LIKE = ("github.com", "codeberg.org", "gitea.com")


def web_address(location: str, web_url: str | None) -> str | None:
    """The address of a repository's pages: as configured, or from the location of known hosts."""
    if web_url:
        return web_url.rstrip("/")
    if SCP_STYLE.fullmatch(location):
        host, _, path = location.partition("@")[2].partition(":")
    else:
        parts = urlsplit(location)
        host, path = parts.hostname or "", parts.path
    if host not in (*_GITHUB_LIKE, "gitlab.com"):
        return None
    return f"https://{host}/{path.strip('/').removesuffix('.git')}"


def line_link(web: str | None, *, path: str, commit: str, start: int, end: int) -> str | None:
    """The address of some lines of a file at a commit, or None where the host is not known."""
    if web is None:
        return None
    where = quote(path)
    host = urlsplit(web).hostname or ""
    if host.startswith("gitlab."):
        return f"{web}/-/blob/{commit}/{where}#L{start}-{end}"
    if host in ("codeberg.org", "gitea.com"):
        return f"{web}/src/commit/{commit}/{where}#L{start}-L{end}"
    # A rendered Markdown page has no line numbers; ?plain=1 shows the source.
    return f"{web}/blob/{commit}/{where}?plain=1#L{start}-L{end}"
