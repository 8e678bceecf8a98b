"""The tools of the MCP interface at `/mcp`, by streamable HTTP.

What belongs here: the transport, without sessions: each request is answered by itself, as JSON. Who
asks is known from the key, as at every other path; what the tools do is `concordance.mcp`'s matter.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route

from concordance.http.callers import Caller
from concordance.http.gate import MCP
from concordance.http.problems import told_in_words
from concordance.http.working import Work
from concordance.index import Index
from concordance.mcp.server import Context, make_server

# Bodies are read and limited before they come here.
_ANY_SIZE = 1 << 62
_HERE = ("localhost", "127.0.0.1", "[::1]")


class Tools:
    """The route, and what has to run while it is served."""

    def __init__(self, work: Work, *, version: str, need_keys: bool) -> None:
        self._manager = StreamableHTTPSessionManager(
            make_server(_index_of, work, told_in_words, version=version),
            json_response=True,
            stateless=True,
            security_settings=None if need_keys else _of_this_machine(),
            max_request_body_size=_ANY_SIZE,
        )
        # Nothing is sent unasked, so there is no stream to GET and no session to DELETE.
        self.route = Route(MCP, StreamableHTTPASGIApp(self._manager), methods=["POST"])

    def running(self) -> AbstractAsyncContextManager[None]:
        """What answers, for as long as it is entered; once."""
        return self._manager.run()


def _index_of(context: Context) -> Index:
    request: Any = context.request
    caller: Caller = request.state.caller
    return caller.index


def _of_this_machine() -> TransportSecuritySettings:
    """Without keys: no page of elsewhere may ask, by whatever name it reaches this machine."""
    hosts = [name + port for name in _HERE for port in ("", ":*")]
    return TransportSecuritySettings(
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts],
    )
