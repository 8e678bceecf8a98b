"""The application: routes, what they need, and their descriptions.

What belongs here: from a route to a call of the front door.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.responses import Response

from concordance.errors import ConcordanceError, NothingIndexed, RequestRefused, UnknownProject
from concordance.http import problems, samples
from concordance.http.bodies import CoverageReport, Health, ReindexBody, SearchBody, StartedRun
from concordance.http.callers import Caller, Callers
from concordance.http.gate import MCP, METRICS, Gate
from concordance.http.metering import CONTENT_TYPE, Meter
from concordance.http.pages import pages
from concordance.http.problems import documented
from concordance.http.tools import Tools
from concordance.http.working import Work
from concordance.metrics import index_metrics
from concordance.models import Answer, Scope, SearchRequest
from concordance.settings import Settings

StartReindex = Callable[[Sequence[str] | None, Sequence[Scope] | None, bool], StartedRun]
JSON = "application/json"
_DESCRIPTION = (
    "Questions to an index over many projects' documentation, decisions and session logs. Each "
    "answer cites file, lines and commit, or session and event, and says what it lacks."
)
_ALWAYS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.MISDIRECTED_REQUEST,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
# What requests are counted by; whatever else is asked for counts together.
_ROUTES = frozenset({"/", "/healthz", METRICS, MCP, "/v1/coverage", "/v1/reindex", "/v1/search"})
_key = HTTPBearer(auto_error=False, description="A key of the keys file; see docs/http.md.")


def make_app(
    callers: Callers, settings: Settings, start_reindex: StartReindex, *, version: str
) -> FastAPI:
    """The whole application; it closes the callers' indexes at its end.

    Args:
        callers: Who may ask, by which index.
        settings: The limits.
        start_reindex: Starts the deployment `reindex/reindex`, and tells of its run.
        version: Of this program.
    """
    work = Work(most=settings.http_max_requests, seconds=settings.http_request_seconds)

    tools = Tools(work, version=version, need_keys=callers.need_keys)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        async with tools.running():
            yield
        await work.close()
        callers.close()

    app = FastAPI(
        title="Concordance",
        version=version,
        description=_DESCRIPTION,
        # The framework's own pages load their programs from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=life,
    )
    meter = Meter(_ROUTES, work.at_work)
    app.add_middleware(Gate, callers=callers, settings=settings, meter=meter)
    app.add_exception_handler(ConcordanceError, problems.of_ours)
    app.add_exception_handler(RequestValidationError, problems.of_shape)
    app.add_exception_handler(HTTPException, problems.of_http)
    app.add_exception_handler(Exception, problems.of_others)
    app.include_router(_questions(work, meter))
    app.include_router(_runs(work, start_reindex))
    app.include_router(_metrics(work, meter))
    app.include_router(pages())
    app.router.routes.append(tools.route)

    @app.get("/healthz", summary="Whether the process answers", responses=documented())
    async def health() -> Health:
        return Health(status="ok", version=version)

    _describe(app)
    return app


def _questions(work: Work, meter: Meter) -> APIRouter:
    router = APIRouter(prefix="/v1", dependencies=[Security(_key)])

    @router.post(
        "/search",
        summary="The passages that answer a question, with citations",
        response_model=Answer,
        responses=documented(*_ALWAYS),
    )
    async def search(body: SearchBody, request: Request) -> Response:
        asked = _within(body, work.seconds)
        index = _caller(request).index

        def answered() -> str:
            answer = index.search(asked)
            meter.note(answer)
            return answer.model_dump_json()

        return Response(await work.run(answered), media_type=JSON)

    @router.get(
        "/coverage",
        summary="What is indexed, and how far it can be trusted",
        response_model=CoverageReport,
        responses=documented(*_ALWAYS),
    )
    async def coverage(
        request: Request,
        project: Annotated[
            list[str] | None,
            Query(
                description="A slug; may be given repeatedly, none given means all.",
                examples=[["beacon"]],
            ),
        ] = None,
    ) -> Response:
        index = _caller(request).index

        def told() -> str:
            covered = tuple(index.coverage(project or None))
            return CoverageReport(as_of=index.now(), coverage=covered).model_dump_json()

        return Response(await work.run(told), media_type=JSON)

    return router


def _runs(work: Work, start_reindex: StartReindex) -> APIRouter:
    router = APIRouter(prefix="/v1", dependencies=[Security(_key)])

    @router.post(
        "/reindex",
        summary="Start a run that brings projects up to date",
        status_code=HTTPStatus.ACCEPTED,
        response_model=StartedRun,
        responses=documented(HTTPStatus.FORBIDDEN, *_ALWAYS),
    )
    async def reindex(body: ReindexBody, request: Request) -> Response:
        caller = _caller(request)
        if not caller.may_reindex:
            raise RequestRefused(f"the key '{caller.name}' may not start runs")
        started = await work.run(
            lambda: start_reindex(_slugs(caller, body.projects), body.scopes, body.full)
        )
        return Response(started.model_dump_json(), HTTPStatus.ACCEPTED, media_type=JSON)

    return router


def _metrics(work: Work, meter: Meter) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(METRICS)
    async def metrics(request: Request) -> Response:
        caller = _caller(request)
        if not caller.may_measure:
            raise RequestRefused(f"the key '{caller.name}' may not read metrics")
        of_index = await work.run(lambda: index_metrics(caller.index))
        return Response(meter.exposition() + of_index, media_type=CONTENT_TYPE)

    return router


def _caller(request: Request) -> Caller:
    found: Caller = request.state.caller
    return found


def _within(body: SearchBody, seconds: float) -> SearchRequest:
    """The question, with a deadline that this server keeps."""
    asked = SearchRequest.model_construct(_fields_set=body.model_fields_set, **dict(body))
    if asked.deadline_seconds <= seconds:
        return asked
    return asked.model_copy(update={"deadline_seconds": seconds})


def _slugs(caller: Caller, named: Sequence[str] | None) -> list[str] | None:
    """The projects of a run; of a key, those that its login reads.

    Raises:
        UnknownProject: One is not there, or is another tenant's.
        NothingIndexed: A key's login reads none.
    """
    if not caller.bound:
        for slug in named or ():
            caller.index.project(slug)
        return None if named is None else list(named)
    known = sorted({covered.project for covered in caller.index.coverage()})
    for slug in named or ():
        if slug not in known:
            raise UnknownProject("there is no project of a name that was given")
    if not known:
        raise NothingIndexed("nothing is indexed yet")
    return known if named is None else list(named)


def _describe(app: FastAPI) -> None:
    """Have the OpenAPI document say that what failed is a problem, and give an example of each."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = problems.as_problems(plain())
            # Set last, as the framework leaves out of an example what is null.
            for (path, method), example in samples.RESPONSES.items():
                found = document["paths"][path][method]["responses"]["200"]["content"][JSON]
                found["example"] = example()
        return app.openapi_schema or {}

    app.openapi = described  # type: ignore[method-assign]  # the framework's way
