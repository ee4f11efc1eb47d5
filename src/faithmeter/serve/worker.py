"""Lanes: threads that compute one thing after the other, with a bounded queue, progress and a way to stop."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..faithfulness.trajectory import states
from ..methods.registry import explain
from ..models.classifier import Classifier
from ..models.evaluator import Evaluator

MEMORY = 2**26
"""Bytes of results that a lane remembers."""

T = TypeVar("T")


class Busy(Exception):
    """Too many wait already."""

    def __str__(self) -> str:
        return "too many requests are waiting"


class Stopped(Exception):
    """Nobody waits for the result any more, or the server is about to end."""

    def __str__(self) -> str:
        return "the work was stopped"


@dataclass
class Job(Generic[T]):
    """Work of one request, and how far it is. `work` is given the lane's evaluator and the job."""

    work: Callable[[Evaluator, Job[T]], T]
    at_most: int = 1  # evaluations
    stage: str = "waiting"
    done: int = 0
    stages: int = 1
    evaluations: int = 0
    stopped: bool = False

    def run(self, evaluator: Evaluator) -> T:
        evaluator.progress = self.count
        try:
            self.stage = "working"
            self.count(0)
            return self.work(evaluator, self)
        finally:
            evaluator.progress = None

    def count(self, evaluations: int) -> None:
        """Called after every micro-batch: so soon a stopped job ends."""
        if self.stopped:
            raise Stopped
        self.evaluations += evaluations

    def note(self, stage: str, done: int, stages: int) -> None:
        self.stage, self.done, self.stages = stage, done, stages

    def stop(self) -> None:
        self.stopped = True


class Lane:
    """One thread with an evaluator and a tokenizer of its own, as neither can serve two threads at a time.

    All lanes share the model's weights.
    """

    def __init__(self, clf: Classifier, *, waiting: int) -> None:
        own = copy.copy(clf)
        own.tokenizer = copy.deepcopy(clf.tokenizer)
        self._evaluator = Evaluator(own, memory=MEMORY)
        self._executor = ThreadPoolExecutor(1)
        self._jobs: dict[asyncio.Future[Any], Job[Any]] = {}
        self._waiting = waiting
        batch = own.encode(["a"])  # hooks are put into the model now, while no other lane is using it
        states(self._evaluator, batch)
        explain(self._evaluator, batch, [0], "grad-l2")

    def start(self, job: Job[T]) -> asyncio.Future[T]:
        if len(self._jobs) >= self._waiting:
            raise Busy
        future = asyncio.get_running_loop().run_in_executor(self._executor, job.run, self._evaluator)
        self._jobs[future] = job
        future.add_done_callback(self._jobs.pop)
        return future

    def close(self) -> None:
        for job in self._jobs.values():
            job.stop()
        self._executor.shutdown(wait=False, cancel_futures=True)
