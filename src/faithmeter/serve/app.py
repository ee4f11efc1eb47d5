"""The application: requests → the library's functions, on lanes; the page beside it as static files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware import Middleware

from ..config import BASELINE, MeasureConfig
from ..errors import InputError
from ..explanations.explanation import explain_text
from ..explanations.what_if import probe_text
from ..faithfulness.single_text import measure_text
from ..methods.registry import METHODS
from ..models.evaluator import Evaluator
from . import schemas
from .admission import Desk, Served
from .limits import Limits, explain_cost, measure_cost
from .security import Border, KnownHost, SafeHeaders
from .streaming import STREAM, Result, answer
from .worker import Busy, Job, Stopped

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
RETRY_SECONDS = 2
STATIC = Path(__file__).parent / "static"
REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": schemas.Problem, "description": why}
    for code, why in {
        400: "No JSON, or asked by a name that is not this server's: `--allowed-host` adds names",
        403: "Asked by the page of another site",
        413: "Too large a request",
        422: "Not understood, or more than is allowed",
        503: "Too many are waiting; try again after `Retry-After` seconds",
    }.items()
}
LINES = '{"stage": "random", "done": 1, "stages": 2, "evaluations": 679, "at_most": 1423}\n{"result": {…}}\n'
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": {STREAM: {"schema": {"type": "string"}, "example": LINES}}}
}
DESCRIPTION = f"""
Probe a text classifier whose explanations can be measured. `explain` and `measure` answer with JSON or, asked
with `Accept: {STREAM}`, with one line of JSON after the other: progress (`evaluations` of the model made, of
`at_most` so many), and in the last line `result` or `error`. Closing the connection stops the work.
"""


def create_app(served: Served, *, limits: Limits | None = None, hosts: Sequence[str] = LOOPBACK) -> FastAPI:
    """The page and its API, for requests to these `hosts` only. `app.state.desk.close()` ends its threads."""
    limits = limits or Limits()
    desk = Desk(served, limits)
    app = FastAPI(
        title="faithmeter",
        version=version("faithmeter"),
        description=DESCRIPTION,
        docs_url=None,  # they would load scripts from elsewhere; docs.html is our own
        redoc_url=None,
        middleware=[
            Middleware(SafeHeaders),
            Middleware(KnownHost, hosts=hosts),
            Middleware(Border, limit=limits.body),
        ],
        exception_handlers={
            InputError: _wrong,
            RequestValidationError: _invalid,
            Busy: _busy,
            Stopped: _busy,
        },
    )
    app.state.desk = desk
    _add_model(app, desk)
    _add_probe(app, desk)
    _add_explain(app, desk)
    _add_measure(app, desk)
    app.mount("/", StaticFiles(directory=STATIC, html=True))
    return app


def _add_model(app: FastAPI, desk: Desk) -> None:
    task, tests = desk.served.task, desk.served.tests
    methods = [
        schemas.MethodInfo(name=name, about=method.about, signed=method.signed)
        for name, method in METHODS.items()
        if name != BASELINE
    ]
    described = schemas.ModelResponse(
        name=desk.served.name,
        version=app.version,
        labels=list(desk.served.clf.labels),
        task=task.name if task else None,
        explained=task.explained if task else None,
        context=task.context if task else None,
        tests=list(tests or {}),
        methods=methods,
        examples=list(desk.served.examples),
        max_words=desk.limits.words,
        max_evaluations=desk.limits.evaluations,
    )

    @app.get("/api/model", responses={400: REFUSALS[400]}, summary="What is served")
    async def model() -> schemas.ModelResponse:
        return described


def _add_probe(app: FastAPI, desk: Desk) -> None:
    @app.post(
        "/api/probe",
        response_model=schemas.ProbeResponse,
        responses=REFUSALS,
        summary="The text with some tokens masked: prediction, p-values, and where words and tokens stand",
    )
    async def probe(asked: schemas.ProbeRequest, request: Request) -> Response:
        desk.tokens(asked)

        def work(evaluator: Evaluator, _: Job[Result]) -> Result:
            return probe_text(
                evaluator, asked.text, pair=asked.pair, masked=asked.masked, tests=desk.served.tests
            ).to_dict()

        return await answer(request, desk.quick, Job(work))


def _add_explain(app: FastAPI, desk: Desk) -> None:
    @app.post(
        "/api/explain",
        response_model=schemas.ExplainResponse,
        responses={**REFUSALS, **STREAMED},
        summary="How much each word and token speaks for a class, by several methods",
    )
    async def explain(asked: schemas.ExplainRequest, request: Request) -> Response:
        methods = desk.methods(asked)
        cost = explain_cost(methods, desk.tokens(asked))
        lane = desk.lane(cost)

        def work(evaluator: Evaluator, _: Job[Result]) -> Result:
            return explain_text(
                evaluator, asked.text, pair=asked.pair, methods=methods, label=asked.label
            ).to_dict()

        return await answer(request, lane, Job(work, cost))


def _add_measure(app: FastAPI, desk: Desk) -> None:
    @app.post(
        "/api/measure",
        response_model=schemas.MeasureResponse,
        responses={**REFUSALS, **STREAMED},
        summary="Is the explanation true? The text erased by each method, beside random orders",
    )
    async def measure(asked: schemas.MeasureRequest, request: Request) -> Response:
        methods = desk.methods(asked)
        percents = MeasureConfig(step=asked.step).percents
        cost = measure_cost(methods, desk.tokens(asked), orders=asked.orders, steps=len(percents))
        desk.lane(cost)

        def work(evaluator: Evaluator, job: Job[Result]) -> Result:
            return measure_text(
                evaluator,
                asked.text,
                pair=asked.pair,
                label=asked.label,
                methods=methods,
                orders=asked.orders,
                seed=asked.seed,
                percents=percents,
                tests=desk.served.tests,
                progress=job.note,
            ).to_dict()

        return await answer(request, desk.long, Job(work, cost))


async def _wrong(_: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 422)


async def _invalid(_: Request, error: Exception) -> Response:
    """What was sent is not repeated: it may be long, or nothing that JSON can say."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"detail": f"the body is not JSON: {first['ctx']['error']}"}, 400)
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    return JSONResponse({"detail": f"{place}: {first['msg']}" if place else first["msg"]}, 422)


async def _busy(_: Request, error: Exception) -> Response:
    said = f"{error}; try again in {RETRY_SECONDS} seconds"
    return JSONResponse({"detail": said}, 503, {"Retry-After": str(RETRY_SECONDS)})
