"""Forecast of a measurement: evaluations that each method needs at most, and about how long they take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ..methods.registry import Method, explain
from ..models.evaluator import Evaluator
from ..models.tokens import Batch

SAMPLE_TEXTS, SAMPLE_TOKENS = 4, 4
"""Texts that calibrate the forecast, and tokens of each that are explained."""


@dataclass(frozen=True)
class Forecast:
    """Cost of a measurement before it starts.

    Attributes:
        texts: Number of texts.
        evaluations: By method, the number of evaluations at most; repeated ones are not made.
        seconds: By method, about how long these evaluations take.
        left_out: Evaluations of methods that are not measured because of their cost.
    """

    texts: int
    evaluations: Mapping[str, int]
    seconds: Mapping[str, float]
    left_out: Mapping[str, int] = field(default_factory=dict)


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


def forecast(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    methods: Mapping[str, Method],
    percents: Sequence[int],
    texts: int,
) -> Forecast:
    """Forecast the cost of `texts` texts from a batch of them.

    Each method explains a few tokens of a few texts, which gives its seconds for an evaluation.
    """
    tokens, windows, share = count_tokens(batch), clf.count_windows(batch), texts / len(batch)
    by_length = sorted(range(len(batch)), key=tokens.__getitem__)
    places = (number * (len(batch) - 1) // (SAMPLE_TEXTS - 1) for number in range(SAMPLE_TEXTS))
    rows = torch.tensor(sorted({by_length[place] for place in places}))
    sample = batch[rows]
    if sample.units is None:
        few = sample.explained & (sample.explained.cumsum(dim=1) <= SAMPLE_TOKENS)
        sample = replace(sample, explained=few)
    clf.logits(sample)  # warm-up
    evaluations, seconds = {}, {}
    forward = _seconds_each(clf, sample, labels[rows], None)
    for name, method in methods.items():
        bound = bound_evaluations(method, tokens, percents, windows)
        steps = sum(windows) * len(percents)
        # given scores fit whole texts only, and cost nothing
        each = 0.0 if method.scores else _seconds_each(clf, sample, labels[rows], method)
        evaluations[name] = round(share * bound)
        seconds[name] = share * ((bound - steps) * each + steps * forward)
    return Forecast(texts, evaluations, seconds)


def _seconds_each(clf: Evaluator, sample: Batch, labels: Tensor, method: Method | None) -> float:
    """Return the seconds of one evaluation by a method, or of a plain one."""
    probe = Evaluator(clf.clf, streams=clf.streams)  # remembers nothing yet
    start = time.perf_counter()
    if method is None:
        probe.logits(sample)
    else:
        explain(probe, sample, labels, method)
    return (time.perf_counter() - start) / max(1, probe.evaluations)
