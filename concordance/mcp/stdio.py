"""Serving one client on this process's own standard input and output.

What belongs here: the transport. Standard output carries the protocol and nothing else: what
anything in this process prints goes to standard error meanwhile.
"""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server


def serve_stdio(server: Server[Any]) -> None:
    """Serve until standard input closes."""
    anyio.run(_serve, server)


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())
