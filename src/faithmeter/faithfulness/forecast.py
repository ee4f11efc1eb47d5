"""Forecast of a measurement: evaluations that each method needs at most, and about how long they take.

The seconds come from a sample of the measurement itself: whole texts of the measured lengths in micro-batches
of the measured size, with an evaluator that is warmed up. The sample of each method grows as long as it is
cheap, and a method that is too slow for a single text is stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..methods.registry import Method, explain
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .trajectory import states

SAMPLE_TEXTS = (1, 4, 16, 64)
"""Numbers of texts in the growing sample that calibrates the forecast of a method."""
MIN_SAMPLE_SECONDS, MAX_SAMPLE_SECONDS, SAMPLE_SHARE = 0.2, 0.5, 0.01
"""A sample grows up to this share of the forecast, but at least and at most to these seconds."""
MIN_SPARING_TEXTS = 16
"""Texts of a sample that are enough to forecast how far a method stays below its bound."""
SPARING_SHARE = 0.8
"""A method that makes a smaller share of the evaluations of its bound in a sample is sparing."""
CHECK = "check"
"""Name of the in-distribution tests among the methods of a forecast, if they must be fitted."""


@dataclass(frozen=True)
class Forecast:
    """Cost of a measurement before it starts.

    Attributes:
        texts: Number of texts.
        evaluations: By method, the number of evaluations at most; repeated ones are not made.
        seconds: By method, about how long it takes.
        left_out: Evaluations of methods that are not measured because of their cost.
        at_most: Methods whose seconds are an upper bound, since a small sample cannot tell how many of the
            evaluations they need.
    """

    texts: int
    evaluations: Mapping[str, int]
    seconds: Mapping[str, float]
    left_out: Mapping[str, int] = field(default_factory=dict)
    at_most: frozenset[str] = frozenset()


def bound_evaluations(
    method: Method, tokens: Sequence[int], percents: Sequence[int], windows: Sequence[int] = ()
) -> int:
    """Return an upper bound on the evaluations of erasing texts with these numbers of explained tokens.

    A recursive method explains the tokens that are left at each step. Every step is evaluated once more. Each
    window of a text is an evaluation; by default, a text has one.
    """
    explained = percents[:-1] if method.recursive else percents[:1]
    each = (sum(method.evaluations(n - n * percent // 100) for percent in explained) for n in tokens)
    counts = windows or [1] * len(tokens)
    return sum(count * (own + len(percents)) for count, own in zip(counts, each, strict=True))


def too_expensive(bounds: Mapping[str, int]) -> dict[str, int]:
    """Return the method that needs more evaluations than all others together, with its bound; else nothing.

    The rule counts evaluations and not seconds, so that it gives the same answer on every machine.
    """
    total = sum(bounds.values())
    return {name: bound for name, bound in bounds.items() if len(bounds) > 1 and 2 * bound > total}


def sort_by_cost(
    methods: Mapping[str, Method], batch: Batch, percents: Sequence[int]
) -> list[tuple[str, Method]]:
    """Return the methods from cheap to dear by their bounds on a batch."""
    tokens = count_tokens(batch)
    return sorted(methods.items(), key=lambda item: bound_evaluations(item[1], tokens, percents))


def count_tokens(batch: Batch) -> list[int]:
    """Return the number of explained tokens of each text."""
    counts: list[int] = batch.explained.sum(dim=1).tolist()
    return counts


@dataclass(frozen=True)
class Sample:
    """Cost of explaining or evaluating some texts.

    Attributes:
        texts: Number of texts.
        bound: Upper bound on their evaluations.
        tokens: Upper bound on the tokens in these evaluations.
        evaluations: Evaluations made.
        seconds: Time that they took.
        finished: False if the work was stopped.
    """

    texts: int
    bound: int
    tokens: int
    evaluations: int
    seconds: float
    finished: bool

    @property
    def is_bound(self) -> bool:
        """Whether the sample shows what an evaluation costs, but not how many are made."""
        sparing = 0 < self.evaluations < SPARING_SHARE * self.bound and self.texts < MIN_SPARING_TEXTS
        return sparing or not self.finished

    @property
    def seconds_each(self) -> float:
        """Seconds for each token of the bound; at most, if `is_bound`."""
        made = min(1.0, max(1, self.evaluations) / self.bound) if self.is_bound else 1.0
        return self.seconds / (made * self.tokens)


class Stop(BaseException):
    """Raised to stop a sample; no `Exception`, so that a method that catches errors does not catch it."""


def forecast(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    methods: Mapping[str, Method],
    percents: Sequence[int],
    texts: int,
    fitting: int = 0,
) -> Forecast:
    """Forecast the cost of `texts` texts from a batch of them.

    `fitting` is the number of validation texts that the in-distribution tests are fitted on, 0 if they are
    fitted already. Their cost is listed as that of the method `check`.
    """
    tokens, windows, share = count_tokens(batch), clf.count_windows(batch), texts / len(batch)
    lengths = batch.attention_mask.sum(dim=1).tolist()
    probe = Evaluator(clf.clf, budget=clf.budget, streams=clf.streams)

    def cost(counts: Sequence[int]) -> int:
        return sum(count * length for count, length in zip(counts, lengths, strict=True))

    def evaluation_seconds(times: int, texts: int) -> float:
        """Return the seconds of evaluating so many texts, each so many times."""
        counts = [times] * len(batch)
        total = texts / len(batch) * cost(counts)

        def evaluate(rows: Tensor) -> None:
            states(probe, batch[rows.repeat_interleave(times)])

        return total * _grow_sample(probe, lengths, windows, evaluate, counts, total).seconds_each

    evaluations, seconds, at_most = {}, {}, set()
    if fitting:
        evaluations[CHECK] = round(fitting * sum(windows) / len(batch))
        seconds[CHECK] = evaluation_seconds(1, fitting)
    steps = evaluation_seconds(len(percents), texts)
    for name, method in methods.items():
        evaluations[name] = round(share * bound_evaluations(method, tokens, percents, windows))
        seconds[name] = steps
        if method.scores:  # given scores cost nothing
            continue

        def explain_texts(rows: Tensor, method: Method = method) -> None:
            explain(probe, batch[rows], labels[rows], method)

        first = [method.evaluations(n) for n in tokens]
        total = share * cost([bound_evaluations(method, [n], percents) - len(percents) for n in tokens])
        # without a declared cost, the time of a text is known only when it is finished
        stoppable = method.cost is not None
        sample = _grow_sample(probe, lengths, windows, explain_texts, first, total, stoppable=stoppable)
        seconds[name] += total * sample.seconds_each
        if sample.is_bound:
            at_most.add(name)
    return Forecast(texts, evaluations, seconds, at_most=frozenset(at_most))


def _grow_sample(
    probe: Evaluator,
    lengths: Sequence[int],
    windows: Sequence[int],
    work: Callable[[Tensor], object],
    bounds: Sequence[int],
    total: float,
    *,
    stoppable: bool = True,
) -> Sample:
    """Return the cost of `work` on the largest sample that is cheap: texts of about the median length.

    Texts of similar length share micro-batches, as in the measurement. Costs are counted in tokens, to carry
    over to other lengths.

    Args:
        probe: Evaluator that `work` uses.
        lengths: Number of tokens of each text.
        windows: Number of windows of each text.
        work: Function of the rows of a sample.
        bounds: Upper bound on the evaluations of `work` for each text, if it has one window.
        total: Tokens in all evaluations of the measurement, at most.
        stoppable: False to finish the work on a sample however long it takes.
    """
    by_length = sorted(range(len(lengths)), key=lengths.__getitem__)
    sample = None
    for texts in dict.fromkeys(min(size, len(lengths)) for size in SAMPLE_TEXTS):
        start = (len(lengths) - texts) // 2
        rows = sorted(by_length[start : start + texts])
        tokens = sum(bounds[row] * lengths[row] for row in rows)
        if sample is None:
            _run(probe, work, rows, 0 if stoppable else None)  # warm-up: the first micro-batch
        else:
            per_token = sample.seconds / sample.tokens
            allowed = min(max(SAMPLE_SHARE * total * per_token, MIN_SAMPLE_SECONDS), MAX_SAMPLE_SECONDS)
            if not sample.finished or tokens * per_token > allowed:
                break
        seconds, finished = _run(probe, work, rows, MAX_SAMPLE_SECONDS if stoppable else None)
        if sample is not None and not finished:
            break  # the smaller sample, which was finished, tells more
        bound = sum(windows[row] * bounds[row] for row in rows)
        sample = Sample(texts, bound, tokens, probe.evaluations, seconds, finished)
    assert sample is not None
    return sample


def _run(
    probe: Evaluator, work: Callable[[Tensor], object], rows: Sequence[int], limit: float | None
) -> tuple[float, bool]:
    """Return the seconds of `work` on these rows, and whether it was finished.

    It is stopped at the first micro-batch that ends after `limit` seconds; None sets no limit.
    """

    def watch(evaluations: int) -> None:
        if limit is not None and time.perf_counter() - start > limit:
            raise Stop

    probe.forget()
    probe.evaluations, probe.progress, finished = 0, watch, True
    start = time.perf_counter()
    try:
        work(torch.tensor(rows))
    except Stop:
        finished = False
        if probe.device.type != "cpu":
            torch.accelerator.synchronize()  # what is queued has been counted
    probe.progress = None
    return time.perf_counter() - start, finished
