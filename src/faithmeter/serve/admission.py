"""Jobs of requests: their admission, the threads that run them one at a time, and their answers."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ..data import Task
from ..errors import InputError
from ..files import plain
from ..measuring.erase import states
from ..measuring.plan import Tests
from ..methods.registry import Method, explain
from ..models.classes import class_number
from ..models.classifier import Classifier
from ..models.encoding import encode
from ..models.evaluator import Evaluator
from ..models.tokens import EXPLAINED
from ..runs.pipeline import require_explaining
from . import Limits
from .schemas import Example, ExplainRequest, TextRequest

MAX_EXAMPLES = 4
EXAMPLE_POOL = 200
"""Number of leading rows of the test split from which examples are chosen."""
EXAMPLE_WORDS = 25
"""Preferred length of an example, in words."""


@dataclass(frozen=True)
class ServedModel:
    """Classifier to serve, with its name on the page.

    If the training task is known, `tests` holds its fitted in-distribution tests. `task` and `examples` are
    set only if the task's data are available, too.
    """

    clf: Classifier
    name: str
    task: Task | None = None
    tests: Tests | None = None
    examples: Sequence[Example] = ()


def choose_examples(task: Task) -> list[Example]:
    """Return up to `MAX_EXAMPLES` test texts with distinct labels, each close to `EXAMPLE_WORDS` words."""
    split = task.load()["test"]
    rows = list(split.select(range(min(EXAMPLE_POOL, len(split)))))
    rows.sort(key=lambda row: abs(len(row["text"].split()) - EXAMPLE_WORDS))
    nearest = {row["label"]: row for row in reversed(rows)}  # later rows replace earlier ones
    return [
        Example(text=row["text"], pair=row.get("context"), label=_name_label(task, row))
        for _, row in sorted(nearest.items())[:MAX_EXAMPLES]
    ]


def _name_label(task: Task, row: Mapping[str, Any]) -> str:
    """Return the name of a row's class, or its number."""
    return f"{row['value']:g}" if "value" in row else task.labels[row["label"]]


class Admission:
    """Gatekeeper that refuses requests beyond the limits and assigns the others to one of two workers.

    Long jobs have a worker of their own, so that masking a word stays fast during a beam search.
    """

    def __init__(self, model: ServedModel, limits: Limits) -> None:
        self.model, self.limits = model, limits
        # for the event loop, which is another thread: two threads cannot use one tokenizer at a time
        self.tokenizer = copy.deepcopy(model.clf.tokenizer)
        self.quick = Worker(model.clf, max_queued=limits.max_queued)
        self.long = Worker(model.clf, max_queued=limits.max_queued)

    def close(self) -> None:
        self.quick.close()
        self.long.close()

    def count_tokens(self, body: TextRequest) -> int:
        """Return the number of explained tokens in the text of a request.

        Raises:
            InputError: The text or its context exceeds the limits, the context is missing, or the model
                does not accept one.
        """
        self._require_short("text", body.text)
        self._require_short("pair", body.pair or "")
        pairs = None if body.pair is None else [body.pair]
        self.model.clf.require_pairs(pairs)
        (row,) = encode(self.tokenizer, [body.text], pairs, max_length=self.model.clf.max_length)
        return int(row["kinds"].count(EXPLAINED))

    def parse_methods(self, body: ExplainRequest) -> list[Method]:
        """Return the requested methods.

        Raises:
            InputError: A method or the label is unknown, or a method is the random baseline.
        """
        if body.label is not None:
            class_number(self.model.clf.labels, body.label)
        return [require_explaining(name) for name in body.methods]

    def choose_worker(self, evaluations: int) -> Worker:
        """Return the worker for a job that needs at most this many evaluations of the model.

        Raises:
            InputError: The job could need more evaluations than the limits allow.
        """
        # the bound, not what the cache may save: an answer must not depend on earlier requests
        if evaluations > self.limits.max_evaluations:
            raise InputError(
                f"this could take {evaluations} evaluations of the model; expected at most "
                f"{self.limits.max_evaluations}: use a shorter text, fewer methods, a narrower beam or fewer "
                "orders"
            )
        return self.quick if evaluations <= self.limits.max_quick_evaluations else self.long

    def _require_short(self, name: str, text: str) -> None:
        words, limits = len(text.split()), self.limits  # counted before the tokenizer, which is slower
        if words > limits.max_words:
            raise InputError(f"{name} has {words} words; expected at most {limits.max_words}: shorten it")
        if len(text) > limits.max_characters:
            raise InputError(
                f"{name} has {len(text)} characters; expected at most {limits.max_characters}: shorten it"
            )


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
