"""Slices: up to 64 texts of a task that methods erase together, the unit of progress and resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from torch import Tensor

from ..files import timed
from ..methods.registry import Method
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .costs import sort_by_cost
from .erase import check_trace, keep_erased, trace_erasure
from .plan import Settings, Tests
from .trace import Trace

Report = Callable[[str, int], object]
"""Function that is called with a method and the number of texts just finished; 0 while it is at work."""


@dataclass(frozen=True)
class Work:
    """Settings that all slices of a measurement share: the model, methods by name, tests and options."""

    evaluator: Evaluator
    methods: Mapping[str, Method]
    tests: Tests = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)


class Slice(NamedTuple):
    """Texts whose traces, or parts of them, are missing.

    Attributes:
        batch: The texts.
        labels: Class of the model that is explained for each text, [B].
        missing: Methods that have not erased these texts.
        known: Traces of these texts that lack p-values of a test, or the complement.
    """

    batch: Batch
    labels: Tensor
    missing: tuple[str, ...]
    known: Mapping[str, Trace] = {}


def trace_slice(work: Work, part: Slice, report: Report = lambda *_: None) -> dict[str, Trace]:
    """Return the complete traces of a slice by method; nothing is read or written.

    Methods are called from cheap to dear, and share evaluations. What is known is not explained again: its
    erased texts follow from the steps in the trace.
    """
    evaluator, traces = work.evaluator, {}
    evaluator.forget()  # methods share its cache; slices do not, so that each is independent of those before
    missing = {name: work.methods[name] for name in part.missing}
    for name, method in sort_by_cost(missing, part.batch, work.settings.percents):
        evaluator.progress = partial(_beat, report, name)
        before, evaluator.requested = evaluator.evaluations, {}
        trace = trace_erasure(evaluator, part.batch, part.labels, method, work.settings.percents, work.tests)
        # p-values were computed on the way; the complement, if asked for, is evaluated now
        trace = _complete(work, part, trace)
        evaluations = evaluator.evaluations - before
        # equal inputs that another method had evaluated already would have been its own
        alone = evaluations + sum(evaluator.requested.values())
        traces[name] = replace(
            trace,
            method=name,
            evaluations=evaluations,
            evaluations_alone=alone,
            devices=(str(evaluator.device),),
        )
        report(name, len(part.batch))
    for name, trace in part.known.items():
        evaluator.progress = partial(_beat, report, name)
        before = evaluator.evaluations
        traces[name] = _complete(work, part, trace)
        extra = evaluator.evaluations - before
        traces[name] = replace(
            traces[name],
            evaluations=trace.evaluations + extra,
            evaluations_alone=trace.evaluations_alone + extra,
            devices=tuple(dict.fromkeys((*trace.devices, str(evaluator.device)))),
        )
        report(name, len(part.batch))
    evaluator.progress = evaluator.requested = None
    return traces


def _complete(work: Work, part: Slice, trace: Trace) -> Trace:
    """Return a trace with the p-values of all tests, and with the complement if the settings ask for it."""
    tests = {name: test for name, test in work.tests.items() if name not in trace.pvalues}
    seconds = dict(trace.seconds)
    if tests:
        with timed(seconds, "check"):
            pvalues = check_trace(work.evaluator, part.batch, trace, tests)
        pvalues = {name: {**trace.pvalues, **pvalues}[name] for name in work.tests}  # in their order
        trace = replace(trace, pvalues=pvalues, seconds=seconds)
    if work.settings.complement and trace.kept is None:
        with timed(seconds, "evaluate"):
            kept = keep_erased(work.evaluator, part.batch, part.labels, trace)
        trace = replace(trace, kept=kept, seconds=seconds)
    return trace


def _beat(report: Report, name: str, evaluations: int) -> None:
    report(name, 0)
