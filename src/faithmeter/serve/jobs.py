"""Jobs of requests: the threads that run them one at a time, and their answers, at once or as a stream."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ..errors import InputError
from ..files import plain
from ..measuring.erase import states
from ..methods.registry import explain
from ..models.classifier import Classifier
from ..models.evaluator import Evaluator

MAX_CACHE_BYTES = 2**26
"""Maximum size of each worker's cache of evaluations."""
STREAM_TYPE = "application/x-ndjson"
PROGRESS_SECONDS = 0.2
"""Time between two progress lines."""
FAILURE = "the server failed; its log says why"

JsonObject = dict[str, Any]

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class QueueFull(Exception):
    """Error of a worker whose queue has no room for another job."""

    def __str__(self) -> str:
        return "too many requests are waiting"


class JobStopped(Exception):
    """Error that ends a job because the client disconnected or the server is shutting down."""

    def __str__(self) -> str:
        return "the work was stopped"


@dataclass
class Job(Generic[Result]):
    """Work of one request and its progress; `work` is called with the worker's evaluator and this job."""

    work: Callable[[Evaluator, Job[Result]], Result]
    max_evaluations: int = 1
    stage: str = "waiting"
    done: int = 0
    stages: int = 1
    evaluations: int = 0
    stopped: bool = False

    def run(self, evaluator: Evaluator) -> Result:
        evaluator.progress = self.count  # called after each micro-batch, which is where a job can stop
        try:
            self.stage = "working"
            self.count(0)
            return self.work(evaluator, self)
        finally:
            evaluator.progress = None

    def count(self, evaluations: int) -> None:
        """Add to the number of evaluations done; called after every micro-batch.

        Raises:
            JobStopped: The job was stopped.
        """
        if self.stopped:
            raise JobStopped
        self.evaluations += evaluations

    def set_stage(self, stage: str, done: int, stages: int) -> None:
        self.stage, self.done, self.stages = stage, done, stages

    def stop(self) -> None:
        self.stopped = True


class Worker:
    """Thread with its own evaluator and tokenizer, neither of which is safe to share between threads.

    All workers share the weights of the model.
    """

    def __init__(self, clf: Classifier, *, max_queued: int) -> None:
        own = copy.copy(clf)  # shallow: the weights are those of all workers
        own.tokenizer = copy.deepcopy(clf.tokenizer)
        self._evaluator = Evaluator(own, memory=MAX_CACHE_BYTES)
        self._executor = ThreadPoolExecutor(1)
        self._jobs: dict[asyncio.Future[Any], Job[Any]] = {}
        self._max_queued = max_queued
        # installs the hooks in the model now, while no other worker is using it
        batch = own.encode(["a"], ["a"] if own.takes_pair else None)
        states(self._evaluator, batch)
        explain(self._evaluator, batch, [0], "grad-l2")

    def start(self, job: Job[Result]) -> asyncio.Future[Result]:
        """Queue a job and return a future for its result.

        Raises:
            QueueFull: `max_queued` jobs are already waiting or running.
        """
        if len(self._jobs) >= self._max_queued:
            raise QueueFull
        future = asyncio.get_running_loop().run_in_executor(self._executor, job.run, self._evaluator)
        self._jobs[future] = job
        future.add_done_callback(self._jobs.pop)
        return future

    def close(self) -> None:
        """Stop all jobs and let the thread end, without waiting for it."""
        for job in self._jobs.values():
            job.stop()
        self._executor.shutdown(wait=False, cancel_futures=True)


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
