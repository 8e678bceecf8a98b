"""How an Ollama server is reached: its address, proxies and the deadline of a request.

What belongs here: the client alone. What is asked of it is `concordance.adapters.ollama`'s work.
"""

from __future__ import annotations

import ssl
import time
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx
import ollama

from concordance.adapters.answers import DEADLINE, PLAIN, limit_answer
from concordance.errors import SettingsError

CONNECT_SECONDS = 10.0


def open_client(url: str, timeout_seconds: float) -> ollama.Client:
    """A client of the server at an address; nothing is asked yet.

    Raises:
        SettingsError: It is no web address.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise SettingsError(f"ollama_url is no web address: {url!r}")
        # The host is always given, so OLLAMA_HOST is never read. OLLAMA_API_KEY is: where it is
        # set, the client sends it to this address as a bearer token, and, since redirects are not
        # followed, to no other.
        return ollama.Client(
            host=url,
            timeout=httpx.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
            follow_redirects=False,
            # httpx takes HTTP_PROXY and ALL_PROXY for loopback addresses too, unless NO_PROXY
            # names them; a proxy can't reach this machine's loopback. Elsewhere one may be needed.
            trust_env=not _is_loopback(parts.hostname),
            verify=_trusted(),
            headers=PLAIN,
            event_hooks={"request": [_keep_deadline], "response": [limit_answer]},
        )
    except (ValueError, httpx.InvalidURL) as error:
        raise SettingsError(f"ollama_url is no web address: {url!r}") from error


@cache
def _trusted() -> ssl.SSLContext:
    # Each client would read the certificates anew, which takes longer than all else that opens it.
    return httpx.create_ssl_context()


def _keep_deadline(request: httpx.Request) -> None:
    deadline = DEADLINE.get()
    if deadline is not None:
        left = max(deadline - time.monotonic(), 0.001)
        timeout = httpx.Timeout(left, connect=min(CONNECT_SECONDS, left))
        request.extensions["timeout"] = timeout.as_dict()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
