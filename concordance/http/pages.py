"""The search page and its files: static, and the same for everybody.

What belongs here: serving them. What the page shows, it asks of the same server as any program.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}


def pages() -> APIRouter:
    """A route for each file; a browser asks each time whether it changed."""
    router = APIRouter(include_in_schema=False)
    for path, (name, kind) in _FILES.items():
        router.add_api_route(path, _giving(name, kind), methods=["GET", "HEAD"])
    return router


def _giving(name: str, kind: str) -> Callable[[Request], Response]:
    def give(request: Request) -> Response:
        content, tag = _read(name)
        headers = {"Cache-Control": "no-cache", "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    return give


@cache
def _read(name: str) -> tuple[bytes, str]:
    content = (files("concordance.http") / "page" / name).read_bytes()
    return content, f'"{sha256(content).hexdigest()[:32]}"'
