"""Web application: the API endpoints, which run their jobs in worker threads, and the static files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from ..config import BASELINE, MeasureConfig
from ..errors import InputError, escape_controls
from ..measuring.costs import explain_cost, measure_cost
from ..measuring.one_text import Trial, explain_texts, probe_text, verify_text
from ..methods.registry import METHODS
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from ..report.html import heat_script, heat_style, palette_style
from . import Limits, schemas
from .admission import STREAM_TYPE, Admission, Job, JobStopped, JsonObject, QueueFull, ServedModel, respond
from .security import LimitRequests, RequireHost, RequireToken, SecurityHeaders

Endpoint = Callable[..., Awaitable[Response]]

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
RETRY_SECONDS = 2
MAX_DETAIL_CHARACTERS = 500
STATIC = Path(__file__).parent / "static"
PROBLEMS = {
    400: "The body is not JSON, or the host name is not one of this server's (see `--allowed-host`)",
    401: "The token is missing (only where the server requires one)",
    403: "The request comes from the page of another site",
    413: "The request is too large",
    422: "The request is not valid, or exceeds a limit",
    503: "Too many requests are waiting; try again after `Retry-After` seconds",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": schemas.Problem, "description": problem} for code, problem in PROBLEMS.items()
}
STREAM_EXAMPLE = (
    '{"stage": "random", "done": 1, "stages": 2, "evaluations": 679, "max_evaluations": 1423}\n'
    '{"result": {…}}\n'
)
STREAM_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {STREAM_TYPE: {"schema": {"type": "string"}, "example": STREAM_EXAMPLE}}}
}
DESCRIPTION = f"""
Explain the predictions of a text classifier, and measure how faithful the explanations are. `explain` and
`measure` return JSON. With `Accept: {STREAM_TYPE}` they return lines of JSON instead: progress (`evaluations`
of the model so far, and `max_evaluations`), then `result` or `error` in the last line. Closing the connection
stops the work.
"""
TOKEN_DESCRIPTION = """
This server requires a token: send it with each request as `Authorization: Bearer TOKEN`.
"""


def create_app(
    model: ServedModel,
    *,
    limits: Limits | None = None,
    hosts: Sequence[str] = LOOPBACK_NAMES,
    token: str | None = None,
) -> FastAPI:
    """Create the web application that serves the page and the API.

    Args:
        model: The classifier and its description.
        limits: Limits on requests and queues; None for the defaults.
        hosts: Accepted Host headers.
        token: Token that every request must carry; None for no token.

    Returns:
        The application. Call `app.state.admission.close()` to stop its worker threads.
    """
    limits = limits or Limits()
    admission = Admission(model, limits)
    app = FastAPI(
        title="faithmeter",
        version=version("faithmeter"),
        description=DESCRIPTION + (TOKEN_DESCRIPTION if token else ""),
        docs_url=None,  # FastAPI's own pages load scripts from another site; docs.html does not
        redoc_url=None,
        middleware=[  # the first one is the outermost: also refusals have the headers
            Middleware(SecurityHeaders),
            Middleware(RequireHost, hosts=hosts),
            *([Middleware(RequireToken, token=token)] if token else []),
            Middleware(LimitRequests, max_bytes=limits.max_body_bytes),
        ],
        exception_handlers={
            InputError: _refuse_input,
            RequestValidationError: _refuse_invalid,
            HTTPException: _refuse_http,
            QueueFull: _refuse_busy,
            JobStopped: _refuse_busy,
        },
    )
    app.state.admission = admission
    _add_model(app, admission)
    _add_probe(app, admission)
    _add_explain(app, admission)
    _add_measure(app, admission)
    _add_styles(app)
    _add_pages(app)
    _fit_examples(app, bool(model.clf.takes_pair))  # last, as it fixes the description of all routes
    return app


def _add_pages(app: FastAPI) -> None:
    """Add the static files, by names without a slash.

    A mount would also match the paths of the API, and name its own methods where theirs are asked for.
    """
    files = StaticFiles(directory=STATIC, html=True)  # html: `/` is index.html
    for path in ("/", "/{name}"):
        app.router.routes.append(Route(path, files, methods=["GET"], include_in_schema=False))


def _fit_examples(app: FastAPI, takes_pair: bool) -> None:
    """Leave the context out of the examples of requests to a model that reads single texts."""
    for schema in app.openapi()["components"]["schemas"].values():
        for example in schema.get("examples", ()):
            if not takes_pair:
                example.pop("pair", None)


def _add_styles(app: FastAPI) -> None:
    """Add routes for the colors and the heat map, whose files are in other packages."""
    contents = {
        "/palette.css": (palette_style(), "text/css"),
        "/heat.css": (heat_style(), "text/css"),
        "/heat.js": (heat_script(), "text/javascript"),
    }
    for path, (content, media_type) in contents.items():
        app.add_route(path, _respond_with(content, media_type), include_in_schema=False)


def _respond_with(content: str, media_type: str) -> Callable[[Request], Response]:
    return lambda _: Response(content, media_type=media_type)


def _add_model(app: FastAPI, admission: Admission) -> None:
    model, limits = admission.model, admission.limits
    methods = [
        schemas.MethodInfo(name=name, about=method.about, signed=method.signed)
        for name, method in METHODS.items()
        if name != BASELINE
    ]
    response = schemas.ModelResponse(
        name=model.name,
        version=app.version,
        labels=list(model.clf.labels),
        predicts_number=model.clf.predicts_number,
        task=model.task.name if model.task else None,
        explained=model.task.explained if model.task else None,
        context=model.task.context if model.task else None,
        tests=list(model.tests or {}),
        methods=methods,
        examples=list(model.examples),
        max_words=limits.max_words,
        max_evaluations=limits.max_evaluations,
    )

    @app.get(
        "/api/model", responses={code: REFUSALS[code] for code in (400, 401)}, summary="Describe the model"
    )
    async def describe_model() -> schemas.ModelResponse:
        return response


def _add_probe(app: FastAPI, admission: Admission) -> None:
    @app.post(
        "/api/probe",
        response_model=schemas.ProbeResponse,
        responses=REFUSALS,
        summary="Classify the text with some tokens masked; locate its words and tokens",
    )
    async def probe(body: schemas.ProbeRequest, request: Request) -> Response:
        admission.count_tokens(body)

        def work(evaluator: Evaluator, _: Job[JsonObject]) -> JsonObject:
            return probe_text(
                evaluator, body.text, pair=body.pair, masked=body.masked, tests=admission.model.tests
            ).to_dict()

        return await respond(request, admission.quick, Job(work))


def _post(app: FastAPI, path: str, response: type[BaseModel], summary: str) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator that registers a POST endpoint with a JSON or streamed response."""
    responses = {**REFUSALS, **STREAM_RESPONSE}
    return app.post(path, response_model=response, responses=responses, summary=summary)


def _add_explain(app: FastAPI, admission: Admission) -> None:
    summary = "Score each word and token by how much it speaks for a class, with several methods"

    @_post(app, "/api/explain", schemas.ExplainResponse, summary)
    async def explain(body: schemas.ExplainRequest, request: Request) -> Response:
        methods = admission.parse_methods(body)
        # an upper bound, told before the work: a beam over a long text would hold the worker for hours
        cost = explain_cost(methods, admission.count_tokens(body))
        worker = admission.choose_worker(cost)

        def work(evaluator: Evaluator, _: Job[JsonObject]) -> JsonObject:
            tokens = _encode(evaluator, body)
            [explanation] = explain_texts(evaluator, tokens, methods, [body.label], body.unit)
            return explanation.to_dict()

        return await respond(request, worker, Job(work, cost))


def _add_measure(app: FastAPI, admission: Admission) -> None:
    summary = "Measure explanations: erase the text by each method, and in random orders"

    @_post(app, "/api/measure", schemas.MeasureResponse, summary)
    async def measure(body: schemas.MeasureRequest, request: Request) -> Response:
        methods = admission.parse_methods(body)
        percents = MeasureConfig(step=body.step).percents
        cost = measure_cost(methods, admission.count_tokens(body), orders=body.orders, steps=len(percents))
        admission.choose_worker(cost)  # raises if the cost is too high; the worker is always the long one

        def work(evaluator: Evaluator, job: Job[JsonObject]) -> JsonObject:
            trial = Trial(body.orders, body.seed, percents, admission.model.tests or {}, body.unit)
            tokens = _encode(evaluator, body)
            [colors] = explain_texts(evaluator, tokens, methods, [body.label], body.unit)
            return verify_text(evaluator, tokens, colors, methods, trial, job.set_stage).to_dict()

        # never the quick worker: even a short measurement is many evaluations
        return await respond(request, admission.long, Job(work, cost))


def _encode(evaluator: Evaluator, body: schemas.TextRequest) -> Batch:
    tokens: Batch = evaluator.encode([body.text], None if body.pair is None else [body.pair])
    return tokens


async def _refuse_input(_: Request, error: Exception) -> Response:
    return _refusal(422, str(error))


async def _refuse_invalid(_: Request, error: Exception) -> Response:
    """Return an error response that names the first invalid field, but not its value, which may be long."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _refusal(400, f"the body is not JSON: {first['ctx']['error']}")
    field = ".".join(map(str, first["loc"])).removeprefix("body").removeprefix(".")
    return _refusal(422, f"{field}: {first['msg']}" if field else first["msg"])


async def _refuse_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refusal(error.status_code, error.detail, error.headers)


async def _refuse_busy(_: Request, error: Exception) -> Response:
    detail = f"{error}; try again in {RETRY_SECONDS} seconds"
    return _refusal(503, detail, {"Retry-After": str(RETRY_SECONDS)})


def _refusal(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error response whose detail is one line of limited length, without control characters."""
    if len(detail) > MAX_DETAIL_CHARACTERS:
        detail = f"{detail[:MAX_DETAIL_CHARACTERS]}…"
    return JSONResponse({"detail": escape_controls(detail, keep="")}, status, headers)
