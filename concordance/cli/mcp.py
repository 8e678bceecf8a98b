"""The command that serves the tools of the MCP interface to a program that starts it."""

from __future__ import annotations

import asyncio
import os
import signal
from importlib.metadata import version

from cyclopts import App

from concordance.adapters.environment import process_environment, read_configuration
from concordance.index import Index

app = App()


@app.command
def mcp() -> int:
    """Serve search and citations as MCP tools on standard input and output, until it closes."""
    environ = process_environment()
    configuration = read_configuration(environ, need_projects=False)
    from concordance.http.working import Work  # noqa: PLC0415 - loading takes its time
    from concordance.mcp.server import make_server  # noqa: PLC0415 - likewise
    from concordance.mcp.stdio import serve_stdio  # noqa: PLC0415 - likewise

    settings = configuration.settings
    with Index.open(configuration, environment=environ) as index:
        work = Work(most=settings.http_max_requests, seconds=settings.http_request_seconds)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: _end(index, number))
        try:
            # Whoever starts this process is its operator, and is told what went wrong.
            serve_stdio(make_server(lambda _: index, work, str, version=version("concordance")))
        finally:
            asyncio.run(work.close())
    return 0


def _end(index: Index, number: int) -> None:
    """End at a signal: the thread that reads standard input can't be interrupted, nor outwaited."""
    signal.signal(number, signal.SIG_IGN)
    index.close()
    os._exit(128 + number)
