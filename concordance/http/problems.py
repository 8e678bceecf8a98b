"""What went wrong, as problem details (RFC 9457).

What belongs here: which type of error is which problem. The caller reads what it can mend; what
only the operator can mend goes into the log, and the caller is told that it did.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from concordance.errors import (
    BadRequest,
    ConcordanceError,
    DatabaseConflict,
    DatabaseUnavailable,
    NothingIndexed,
    OrchestrationError,
    ProviderError,
    ProviderTimeout,
    RequestRefused,
    RequestTimeout,
    TooManyRequests,
    UnknownProject,
)

MEDIA_TYPE = "application/problem+json"
LOG = logging.getLogger("concordance.http")


class Fault(BaseModel):
    """One value of the request that can't be used."""

    pointer: str = Field(description="Where it stands: a JSON pointer, or a parameter's name.")
    detail: str


class Problem(BaseModel):
    """What went wrong, after RFC 9457."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:concordance:problem:unknown-project",
                    "title": "There is no such project",
                    "status": 404,
                    "detail": "there is no project 'beacon'",
                }
            ]
        }
    )

    type: str = Field(description="Which kind; what a program decides by.")
    title: str
    status: int
    detail: str
    errors: list[Fault] | None = None


@dataclass(frozen=True, slots=True)
class _Kind:
    """What callers are told of a type of error."""

    status: HTTPStatus
    name: str
    title: str
    told: bool = False
    retry_after: int | None = None


_KINDS: dict[type[BaseException], _Kind] = {
    RequestRefused: _Kind(
        HTTPStatus.FORBIDDEN, "not-allowed", "This key may not do that", told=True
    ),
    UnknownProject: _Kind(
        HTTPStatus.NOT_FOUND, "unknown-project", "There is no such project", told=True
    ),
    NothingIndexed: _Kind(
        HTTPStatus.NOT_FOUND, "nothing-indexed", "Nothing is indexed yet", told=True
    ),
    BadRequest: _Kind(
        HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", "The request can't be answered", told=True
    ),
    TooManyRequests: _Kind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "busy",
        "Too many requests at once",
        told=True,
        retry_after=1,
    ),
    RequestTimeout: _Kind(
        HTTPStatus.GATEWAY_TIMEOUT, "too-slow", "It took too long", told=True, retry_after=5
    ),
    ProviderTimeout: _Kind(
        HTTPStatus.GATEWAY_TIMEOUT,
        "provider-unavailable",
        "The question could not be embedded",
        told=True,
        retry_after=5,
    ),
    ProviderError: _Kind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "provider-unavailable",
        "The question could not be embedded",
        told=True,
        retry_after=60,
    ),
    DatabaseConflict: _Kind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "index-unavailable",
        "The index can't be asked now",
        retry_after=1,
    ),
    DatabaseUnavailable: _Kind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "index-unavailable",
        "The index can't be asked now",
        retry_after=5,
    ),
    OrchestrationError: _Kind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "runs-unavailable",
        "No run can be started now",
        told=True,
        retry_after=60,
    ),
    ConcordanceError: _Kind(
        HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "The index can't be asked"
    ),
}
_IN_LOG = "The operator finds the cause in the log"


def problem(  # noqa: PLR0913 - the fields of a problem
    status: int,
    name: str,
    title: str,
    detail: str,
    *,
    errors: Sequence[Fault] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """A problem as a response."""
    body: dict[str, Any] = {
        "type": f"urn:concordance:problem:{name}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    if errors is not None:
        body["errors"] = [fault.model_dump() for fault in errors]
    return Response(json.dumps(body), status, headers=headers, media_type=MEDIA_TYPE)


def told(error: Exception) -> str:
    """What a caller is told of an error of ours; what it is not told goes into the log."""
    if isinstance(error, ConcordanceError) and _kind(error).told:
        return error.message
    LOG.error("%s: %s", type(error).__name__, error)
    return _IN_LOG


def told_in_words(error: ConcordanceError) -> str:
    """The same with what kind of error it is, for callers who are shown no type."""
    hint = f". {error.hint}" if isinstance(error, BadRequest) and error.hint else ""
    return f"{_kind(error).title}: {told(error)}{hint}"


def _kind(error: Exception) -> _Kind:
    return next(_KINDS[base] for base in type(error).__mro__ if base in _KINDS)


def of_ours(_: Request, error: Exception) -> Response:
    """An error of ours, by its type."""
    kind, detail = _kind(error), told(error)
    after = {} if kind.retry_after is None else {"Retry-After": str(kind.retry_after)}
    return problem(kind.status, kind.name, kind.title, detail, headers=after)


def of_shape(_: Request, error: Exception) -> Response:
    """A request whose values can't be used; what they are is not repeated."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    if any(fault["type"] == "json_invalid" for fault in found):
        return problem(
            HTTPStatus.BAD_REQUEST, "not-json", "The body is no JSON", "It can't be read"
        )
    faults = [
        Fault(pointer=_pointer(fault["loc"]), detail=fault["msg"].removeprefix("Value error, "))
        for fault in found
    ]
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "bad-request",
        "The request can't be answered",
        "; ".join(f"{fault.pointer}: {fault.detail}" for fault in faults[:3]),
        errors=faults,
    )


def _pointer(location: Sequence[str | int]) -> str:
    where, *rest = location
    named = (str(part).replace("~", "~0").replace("/", "~1") for part in rest)
    pointer = "".join(f"/{part}" for part in named) or "/"
    pointer = pointer if where == "body" else pointer.removeprefix("/")
    return pointer.encode(errors="backslashreplace").decode()


def of_http(_: Request, error: Exception) -> Response:
    """What the framework refuses: an unknown path, another method, a body that is no JSON."""
    if not isinstance(error, HTTPException):
        raise error
    status, headers = HTTPStatus(error.status_code), dict(error.headers or {})
    name = status.phrase.lower().replace(" ", "-")
    return problem(
        status, name, status.phrase, status.description or status.phrase, headers=headers
    )


def of_others(_: Request, error: Exception) -> Response:
    """A fault of this program: the server's log has it whole."""
    LOG.error("unexpected: %s", type(error).__name__)
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return problem(status, "internal", "A fault of this program", _IN_LOG)


def as_problems(document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document in which what failed has the media type of a problem."""
    for path in document["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if int(status) >= HTTPStatus.BAD_REQUEST and "application/json" in content:
                    content[MEDIA_TYPE] = content.pop("application/json")
    return document


def documented(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """The problems that an operation may answer with, for OpenAPI."""
    described = {
        HTTPStatus.SERVICE_UNAVAILABLE: "Busy, or what is asked is away; see Retry-After.",
        HTTPStatus.GATEWAY_TIMEOUT: "It took too long; see Retry-After.",
    }
    return {
        int(status): {"model": Problem, "description": described.get(status, status.description)}
        for status in statuses
    }
