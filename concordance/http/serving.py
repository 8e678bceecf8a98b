"""Serving the application on a socket, until the process is asked to end.

What belongs here: the server, and its log. The application is `app`'s matter.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from concordance.http.app import StartReindex, make_app
from concordance.http.callers import Callers
from concordance.http.problems import LOG
from concordance.settings import Settings

# Connections, idle ones among them, after which the next one is turned away.
_MOST_CONNECTIONS = 1_000
# How long requests that are at work have at the end.
_LAST_SECONDS = 10
# Connections that wait to be taken.
_WAITING = 512


def serve(  # noqa: PLR0913 - what a server is made of
    opening: Callable[[], Callers],
    settings: Settings,
    start_reindex: StartReindex,
    *,
    host: str,
    port: int,
    version: str,
    on_start: Callable[[str], None],
) -> None:
    """Serve until interrupted; `on_start` is told the address.

    Raises:
        OSError: The address can't be listened at.
    """
    with listen(host, port) as listening:
        application = make_app(opening(), settings, start_reindex, version=version)
        _log_to_stderr()
        named = f"[{host}]" if ":" in host else host
        on_start(f"http://{named}:{listening.getsockname()[1]}/")
        server(application).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Its protocol is named, as asyncio sends at once on connections of TCP alone, and takes a socket
    of no protocol for something else: each response would wait 40 ms for the client's system.

    Raises:
        OSError: The address can't be listened at.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_WAITING)
    except OSError:
        made.close()
        raise
    return made


def server(application: ASGIApp) -> uvicorn.Server:
    """What speaks HTTP for the application, with the limits on connections."""
    return uvicorn.Server(
        uvicorn.Config(
            application,
            access_log=False,  # it would log what addresses hold; the application has its own
            server_header=False,
            proxy_headers=False,
            log_level="warning",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_LAST_SECONDS,
        )
    )


def _log_to_stderr() -> None:
    """One line a request: no key, no question, no address but the path."""
    handler = logging.StreamHandler()
    line = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    line.converter = time.gmtime
    handler.setFormatter(line)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
