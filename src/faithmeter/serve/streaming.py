"""A job's result as JSON, or as lines of progress with the result in the last one."""

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
from .worker import Job, Lane, Stopped

STREAM = "application/x-ndjson"
BEAT = 0.2
"""Seconds between two lines of progress."""

Result = dict[str, Any]

logger = logging.getLogger(__name__)


async def answer(request: Request, lane: Lane, job: Job[Result]) -> Response:
    """What the job gives, once the lane has done it. When the one who asked goes away, the job stops."""
    future = lane.start(job)
    gone = asyncio.create_task(_disconnected(request))
    gone.add_done_callback(lambda _: job.stop())
    lines = _lines(job, future, gone)
    if STREAM in request.headers.get("accept", ""):
        return StreamingResponse((_written(line) async for line in lines), media_type=STREAM)
    async for _ in lines:
        pass
    if future.cancelled():
        raise Stopped
    return JSONResponse(plain(future.result()))


async def _lines(
    job: Job[Result], future: asyncio.Future[Result], gone: asyncio.Task[None]
) -> AsyncIterator[dict[str, Any]]:
    either: set[asyncio.Future[Any]] = {future, gone}
    try:
        while not (future.done() or gone.done()):
            yield {
                "stage": job.stage,
                "done": job.done,
                "stages": job.stages,
                "evaluations": job.evaluations,
                "at_most": job.at_most,
            }
            await asyncio.wait(either, timeout=BEAT, return_when=asyncio.FIRST_COMPLETED)
        if future.done() and not future.cancelled():
            yield _last(future)
    finally:
        gone.cancel()
        future.cancel()  # of no effect on one that is done


def _last(future: asyncio.Future[Result]) -> dict[str, Any]:
    error = future.exception()
    if error is None:
        return {"result": future.result()}
    if isinstance(error, InputError | Stopped):
        return {"error": str(error)}
    logger.error("a request failed", exc_info=error)
    return {"error": "the server failed; its log says why"}


def _written(line: dict[str, Any]) -> str:
    return json.dumps(plain(line), ensure_ascii=False, allow_nan=False) + "\n"


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
