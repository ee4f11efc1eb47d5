"""Admission of requests: checks against the limits before any work starts, and the choice of a worker."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data import Task
from ..errors import InputError
from ..measuring.plan import Tests
from ..methods.registry import Method
from ..models.classes import class_number
from ..models.classifier import Classifier
from ..models.encoding import encode
from ..models.tokens import EXPLAINED
from ..runs.pipeline import require_explaining
from .jobs import Worker
from .limits import Limits
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
