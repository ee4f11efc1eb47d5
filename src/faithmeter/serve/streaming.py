"""Responses to requests that run a job: one JSON document, or a stream of progress and the result."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ..errors import InputError
from ..files import plain
from .worker import Job, JobStopped, Worker

STREAM_TYPE = "application/x-ndjson"
PROGRESS_SECONDS = 0.2
"""Time between two progress lines."""
FAILURE = "the server failed; its log says why"

JsonObject = dict[str, Any]

logger = logging.getLogger(__name__)


async def respond(request: Request, worker: Worker, job: Job[JsonObject]) -> Response:
    """Run a job and return its result as JSON, or as a stream if the Accept header requests one.

    The job stops when the client disconnects.

    Raises:
        QueueFull: Too many jobs are waiting for the worker.
        JobStopped: The job was stopped before it ended, and the response is not a stream.
    """
    future = worker.start(job)
    # a page that is closed or typed into asks for nothing any more; its job would block the next one
    disconnection = asyncio.create_task(_wait_for_disconnect(request))
    disconnection.add_done_callback(lambda _: job.stop())
    messages = _progress_and_result(job, future, disconnection)
    if STREAM_TYPE in request.headers.get("accept", ""):
        lines = (_to_line(message) async for message in messages)
        return StreamingResponse(lines, media_type=STREAM_TYPE)
    async for _ in messages:
        pass
    if future.cancelled():
        raise JobStopped
    return JSONResponse(plain(future.result()))


async def _progress_and_result(
    job: Job[JsonObject], future: asyncio.Future[JsonObject], disconnection: asyncio.Task[None]
) -> AsyncIterator[JsonObject]:
    either: set[asyncio.Future[Any]] = {future, disconnection}
    try:
        while not (future.done() or disconnection.done()):
            yield {
                "stage": job.stage,
                "done": job.done,
                "stages": job.stages,
                "evaluations": job.evaluations,
                "max_evaluations": job.max_evaluations,
            }
            await asyncio.wait(either, timeout=PROGRESS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if future.done() and not future.cancelled():
            yield _result_or_error(future)
    finally:
        disconnection.cancel()
        future.cancel()  # has no effect on a future that is done


def _result_or_error(future: asyncio.Future[JsonObject]) -> JsonObject:
    error = future.exception()
    if error is None:
        return {"result": future.result()}
    if isinstance(error, InputError | JobStopped):
        return {"error": str(error)}
    logger.error("a request failed", exc_info=error)  # its text may hold paths of the server
    return {"error": FAILURE}


def _to_line(message: JsonObject) -> str:
    return json.dumps(plain(message), ensure_ascii=False, allow_nan=False) + "\n"


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
