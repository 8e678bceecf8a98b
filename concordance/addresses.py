"""Addresses and paths that settings take, checked so that none holds a secret.

What belongs here: the shape of an address, and what to say of one that can't be used. Which setting
takes which is `concordance.settings`' matter.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

# What could be `user:password@host:path`; a folder may well have an `@` in its name.
USER_AND_SECRET = re.compile(r"[^/:@]*:[^/@]*@[^/:]+:")
SCP_STYLE = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^:].*")
SSH_USER = re.compile(r"[A-Za-z0-9._-]+")
# A path drops one of the two slashes.
ADDRESS = re.compile(r"(?:https?|ssh|git):/", re.IGNORECASE)


def _check_git_url(url: str) -> str:
    """Refuse what could be a secret; whether the rest is an address is asked for each project.

    The address is taken apart by hand: a parser's own message would repeat what it can't read.
    """
    scheme, with_scheme, rest = url.partition("://")
    server = re.split(r"[/?#]", rest if with_scheme else url, maxsplit=1)[0]
    user, at, _ = server.rpartition("@")
    ssh = not with_scheme or scheme.lower() == "ssh"
    if at and not (ssh and SSH_USER.fullmatch(user)):
        raise ValueError(
            "it holds user information, which would be stored and shown with it; take it out and "
            "name the token in 'credentials' (an environment variable or a Secret block)"
        )
    if with_scheme and not server.strip(":") and scheme.lower() != "file":
        raise ValueError("it names no server")
    if "?" in rest or "#" in url:
        raise ValueError(
            "it holds a query or a fragment, where a token could stand; take it out and name the "
            "token in "
            "'credentials' (an environment variable or a Secret block)"
        )
    return url


def _check_page_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in ("http", "https") or not rest:
        raise ValueError("write an address that starts with https:// or http://")
    if "@" in re.split(r"[/?#\\]", rest, maxsplit=1)[0]:
        raise ValueError("it holds user information; leave it out, or put it into a proxy")
    if " " in rest or not rest.isprintable():
        raise ValueError("it holds a space or a control character")
    if "?" in rest or "#" in rest:
        raise ValueError(
            "it holds a query or a fragment, where a token could stand; leave it out, or put it "
            "into a proxy"
        )
    return url


def _written_together(given: object) -> object:
    """A list of addresses as one text, which the file may write as a list."""
    several = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
    return ",".join(given) if several else given  # type: ignore[arg-type]


def _check_page_urls(urls: str) -> str:
    found = [_check_page_url(url.strip()) for url in urls.split(",")]
    if len({url.rstrip("/") for url in found}) < len(found):
        raise ValueError("it names one address twice")
    return ",".join(found)


def _check_path(path: Path) -> Path:
    if "\0" in str(path):
        raise ValueError("a path holds no NUL")
    if ADDRESS.match(str(path)) or USER_AND_SECRET.match(str(path)):
        raise ValueError("it is an address; write it under 'url'")
    return path


GitUrl = Annotated[str, Field(min_length=1), AfterValidator(_check_git_url)]
PageUrl = Annotated[str, AfterValidator(_check_page_url)]
PageUrls = Annotated[str, BeforeValidator(_written_together), AfterValidator(_check_page_urls)]
LocalPath = Annotated[Path, AfterValidator(_check_path)]
