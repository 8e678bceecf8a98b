"""What every request passes: who asks, how much is sent, what is logged, which headers go out.

What belongs here: what is decided before a body is read and a route is chosen.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from concordance.http.callers import Callers
from concordance.http.loopback import is_here
from concordance.http.metering import Meter
from concordance.http.problems import LOG, problem
from concordance.settings import Settings

MCP = "/mcp"
METRICS = "/metrics"
KEPT = ("/v1/", METRICS)
_LONGEST_PATH = 200
# The page has its own files and asks its own server; nothing else may be loaded or may frame it.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, callers: Callers, settings: Settings, meter: Meter) -> None:
        self._app = app
        self._meter = meter
        self._callers = callers
        self._most_bytes = settings.http_max_body_bytes
        self._seconds = settings.http_request_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        logged = _Logged(scope, send)
        try:
            await self._pass(scope, receive, logged)
        finally:
            caller = scope.get("state", {}).get("caller")
            seconds = time.perf_counter() - began
            self._meter.count(scope["path"], scope["method"], logged.status, seconds)
            LOG.info(
                "%s %s %s %.1f ms %s",
                scope["method"],
                quote(scope["path"][:_LONGEST_PATH]),
                logged.status,
                seconds * 1_000,
                caller.name if caller is not None else "-",
            )

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refuse(scope)
        if refusal is None:
            read = await self._read(scope, receive)
            if isinstance(read, Response):
                refusal = read
            else:
                await self._app(scope, _replayed(read, receive), send)
                return
        await refusal(scope, receive, send)

    def _refuse(self, scope: Scope) -> Response | None:
        """Note who asks; the response to somebody who may not."""
        headers = Headers(scope=scope)
        if not self._callers.need_keys and not is_here(headers.get("host", "")):
            # A page from elsewhere may have its name resolve to this machine.
            return problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                "misdirected-request",
                "This server has another name",
                "Without keys, only localhost is answered",
            )
        if not _is_kept(scope):
            return None
        caller = self._callers.find(headers.get("authorization"))
        if caller is None:
            return problem(
                HTTPStatus.UNAUTHORIZED,
                "no-key",
                "A key is needed",
                "Send a known key as 'Authorization: Bearer KEY'",
                headers={"WWW-Authenticate": 'Bearer realm="concordance"'},
            )
        scope.setdefault("state", {})["caller"] = caller
        return None

    async def _read(self, scope: Scope, receive: Receive) -> bytes | Response:
        """The body, or the response to one that is too large or comes too slowly."""
        # What needs no key takes no body.
        most = self._most_bytes if _is_kept(scope) else 0
        stated = Headers(scope=scope).get("content-length", "")
        if stated.isdecimal() and int(stated) > most:
            return _too_large(most)
        body = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > most:
                        return _too_large(most)
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            return problem(
                HTTPStatus.REQUEST_TIMEOUT,
                "too-slow",
                "The request came too slowly",
                f"It has to be sent within {self._seconds:g} seconds",
                headers={"Connection": "close"},
            )


def _is_kept(scope: Scope) -> bool:
    """Whether a key is needed, where there are keys."""
    return scope["path"] == MCP or str(scope["path"]).startswith(KEPT)


def _too_large(most: int) -> Response:
    return problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too-large",
        "The body is too large",
        f"At most {most} bytes are read",
        headers={"Connection": "close"},
    )


class _Logged:
    """Sends what goes out, with the headers that everything has, and keeps its status."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.status: int | str = "-"
        self._kept = _is_kept(scope)
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if self._kept:
                headers.setdefault("Cache-Control", "no-store")
        await self._send(message)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, and then whatever else comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay
