"""Erasure: masking more and more of the most important tokens of texts, and the model's answers.

Up to 64 texts of a task, a slice, are erased together by all methods: the unit of progress and resume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InputError
from ..files import timed
from ..methods.registry import Method, as_labels, explain, parse
from ..models.evaluator import Evaluator, Model, pick, require_finite
from ..models.masks import PERCENTS, top_mask
from ..models.tokens import Batch
from .costs import sort_by_cost
from .plan import Settings, Tests
from .trace import NEVER, PHASES, Trace, subset

Report = Callable[[str, int], object]
"""Function that is called with a method and the number of texts just finished; 0 while it is at work."""


def erase(
    clf: Model,
    batch: Batch,
    labels: Tensor | Iterable[int],
    method: str | Method,
    *,
    percents: Sequence[int] = PERCENTS,
    scores: Tensor | None = None,
) -> Iterator[tuple[int, Batch]]:
    """Mask the most important tokens of texts, step by step.

    A recursive method explains the partly masked text again at every step; other methods explain the whole
    text once. Masked tokens stay masked. Texts that lose no token at a step, and all texts at 100 %, need no
    explanation.

    Args:
        clf: A classifier, or an `Evaluator` that shares its evaluations.
        batch: Texts, B of them with T tokens.
        labels: Class to explain for each text, [B].
        method: Name of a method, or a method.
        percents: Percentages of tokens to erase: increasing numbers between 0 and 100.
        scores: Tensor [B, T] of the method's scores for the whole texts, if they are known already.

    Returns:
        An iterator over (percent, batch), with `n * percent // 100` of a text's n explained tokens masked.

    Raises:
        InputError: Percents, labels, method or scores are not valid.

    Example:
        >>> steps = dict(fm.erase(clf, batch, labels, "loo-sign", percents=(0, 50, 100)))
        >>> list(steps)
        [0, 50, 100]
    """
    if list(percents) != sorted(set(percents)) or not all(0 <= percent <= 100 for percent in percents):
        raise InputError(f"percents are {tuple(percents)}; expected increasing numbers from 0 to 100")
    # masks are drawn and compared here; only evaluations go to the device
    batch = batch.to(torch.device("cpu"))
    known = None if scores is None else _as_scores(scores, batch)
    return _steps(Evaluator.of(clf), batch, as_labels(labels, batch), parse(method), percents, known)


def _as_scores(scores: Tensor, batch: Batch) -> Tensor:
    """Return scores as float64 on the CPU; raise an InputError unless each token has a finite score."""
    shape = tuple(batch.input_ids.shape)
    if tuple(scores.shape) != shape or not scores.isfinite().all():
        raise InputError(
            f"scores of shape {tuple(scores.shape)}; expected a finite score for each token, shape {shape}"
        )
    return scores.detach().cpu().double()


def _steps(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    method: Method,
    percents: Sequence[int],
    known: Tensor | None,
) -> Iterator[tuple[int, Batch]]:
    explained, sizes = batch.explained, batch.explained.sum(dim=1)  # [B, T], [B]
    scores = torch.zeros(explained.shape, dtype=torch.float64) if known is None else known.clone()
    masked, unchanged = batch, torch.ones(len(batch), dtype=torch.bool)
    for percent in percents:
        already = explained & (masked.input_ids == clf.mask_id)
        # n·p // 100 in integers: floats would round some counts down by one
        growing = sizes * percent // 100 > already.sum(dim=1)
        # Scores of the whole text may be given. Once masked, only a recursive method has other ones.
        stale = torch.where(unchanged, known is None, method.recursive)
        # at 100 % the order does not matter
        rows = (growing & stale & (percent < 100)).nonzero()[:, 0]
        if len(rows):
            scores[rows] = explain(clf, masked[rows], labels[rows], method)
        unchanged &= ~growing
        # what is masked already stays, whatever its new score; ties go to the leftmost unit
        masked = batch.masked(top_mask(scores, explained, percent, already=already), clf.mask_id)
        yield percent, masked


def trace_erasure(
    evaluator: Evaluator,
    batch: Batch,
    labels: Tensor,
    method: Method,
    percents: Sequence[int],
    tests: Tests,
) -> Trace:
    """Erase texts with a method, and return what the model did."""
    seconds = dict.fromkeys(PHASES, 0.0)
    with timed(seconds, "explain"):
        scores = explain(evaluator, batch, labels, method)
    return trace_scored(evaluator, Scored(batch, labels, method, scores), percents, tests, seconds)


class Scored(NamedTuple):
    """Texts with the scores [B, T] that a method gives their units for the classes `labels` [B]."""

    batch: Batch
    labels: Tensor
    method: Method
    scores: Tensor


def trace_scored(
    evaluator: Evaluator, texts: Scored, percents: Sequence[int], tests: Tests, seconds: dict[str, float]
) -> Trace:
    """Erase texts that were explained already; `seconds` by phase are added to.

    A step that masks nothing new in a text is not evaluated again.
    """
    batch, labels, method, scores = texts
    with timed(seconds, "explain"):
        steps = erase(evaluator, batch, labels, method, percents=percents, scores=scores)
        # the steps are nested, so the first step of each token tells them all
        masked = torch.stack([step.input_ids == evaluator.mask_id for _, step in steps])  # [S, B, T]
    # argmax of a row of False is 0, so tokens that are never masked need their own number
    first = torch.where(masked.any(dim=0), masked.int().argmax(dim=0), NEVER)  # [B, T]
    variants = _Variants.of(batch, first, len(percents))
    inputs = variants.of_steps(batch, evaluator)
    with timed(seconds, "evaluate"):
        logits, features = states(evaluator, inputs) if tests else (evaluator.logits(inputs), torch.empty(0))
    with timed(seconds, "check"):
        pvalues = variants.check(tests, features)
    return Trace(
        method=str(method),
        percents=tuple(percents),
        rows=batch.index.numpy(),
        targets=labels.numpy(),
        # float32 from birth: what memory and disk hold is the same, so a result read again has equal digits
        logits=variants.spread(logits.float().numpy()),
        scores=_by_text(scores, batch.explained),
        steps=_by_text(first.to(torch.uint8), batch.explained),
        pvalues=pvalues,
        seconds=seconds,
        code=method.code,
        numbers=evaluator.predicts_number,
    )


def _by_text(values: Tensor, explained: Tensor) -> tuple[NDArray[Any], ...]:
    """Return the values [B, T] of the explained units of each text."""
    ends = explained.sum(dim=1).cumsum(dim=0).tolist()
    return tuple(np.split(values[explained].numpy(), ends[:-1]))


def check_trace(evaluator: Evaluator, batch: Batch, trace: Trace, tests: Tests) -> dict[str, NDArray[Any]]:
    """Return the p-values [N, S] of tests on the erased texts of a trace, without explaining them again."""
    variants = _Variants.of(batch, _first_steps(batch, trace), len(trace.percents))
    return variants.check(tests, states(evaluator, variants.of_steps(batch, evaluator))[1])


def keep_erased(evaluator: Evaluator, batch: Batch, labels: Tensor, trace: Trace) -> NDArray[np.float64]:
    """Return the label's probability [N, S] when only the units that a step masks are left."""
    variants = _Variants.of(batch, _first_steps(batch, trace), len(trace.percents))
    rows = variants.rows
    # sufficiency: of the covered tokens only the masked units stay, special tokens and context are untouched
    erased = variants.of_steps(batch, evaluator).input_ids == evaluator.mask_id
    others = batch[rows].covered & ~erased
    logits = evaluator.logits(batch[rows].masked(others, evaluator.mask_id))
    kept: NDArray[np.float64] = variants.spread(pick(logits.softmax(dim=1), labels[rows]).numpy())
    return kept


@dataclass(frozen=True)
class _Variants:
    """Distinct inputs of an erasure: K pairs of a text and a step that masks something new in it.

    Attributes:
        rows: Text of each variant, step by step, Tensor [K].
        where: Tokens that are masked in each, bool Tensor [K, T].
        places: Variant of each text at each step, [N, S].
    """

    rows: Tensor
    where: Tensor
    places: NDArray[np.int64]

    @classmethod
    def of(cls, batch: Batch, first: Tensor, steps: int) -> _Variants:
        """Return the variants of texts whose tokens are first masked at these steps, Tensor [B, T]."""
        # in a short text several steps mask nothing new; these are not evaluated again
        numbers = torch.arange(steps)[:, None, None]
        fresh = ((first == numbers) & batch.explained).any(dim=2)  # [S, B]
        fresh[0] = True  # the first step evaluates every text
        step, rows = fresh.nonzero(as_tuple=True)  # [K]
        places = torch.zeros(fresh.shape, dtype=torch.long)
        places[fresh] = torch.arange(len(rows))
        # a text that a step leaves unchanged has the results of its last evaluation
        places = places.cummax(dim=0).values
        return cls(rows, (first[rows] <= step[:, None]) & batch.explained[rows], places.T.numpy())

    def of_steps(self, batch: Batch, evaluator: Evaluator) -> Batch:
        """Return the masked texts."""
        return batch[self.rows].masked(self.where, evaluator.mask_id)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values [K, …] of the variants by text and step, [N, S, …]."""
        return values[self.places]

    def check(self, tests: Tests, features: Tensor) -> dict[str, NDArray[Any]]:
        """Return the p-values [N, S] of tests on the features [K, L, H] of the variants."""
        return {name: self.spread(test.pvalues(features.numpy())) for name, test in tests.items()}


def _first_steps(batch: Batch, trace: Trace) -> Tensor:
    """Return the first step that masks each token, Tensor [B, T]; 255 for tokens that are not explained."""
    first = torch.full(batch.explained.shape, NEVER)
    # units are stored text by text in the order of their tokens, as the mask selects them
    first[batch.explained] = torch.from_numpy(np.concatenate(trace.steps)).long()
    return first


def states(evaluator: Evaluator, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return logits [B, C] in float64 and features [B, L, H] in float32, computed in micro-batches."""

    def work(micro: Batch, items: Tensor) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            states: tuple[Tensor, Tensor] = evaluator.states(micro)
        return states

    logits, features = evaluator.gather(work, batch, torch.arange(len(batch)))
    # a NaN would silently predict class 0
    require_finite(logits, batch.index)
    return logits.double(), features.float()


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
    missing = subset(work.methods, part.missing)
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
        pvalues = subset({**trace.pvalues, **pvalues}, work.tests)  # in their order
        trace = replace(trace, pvalues=pvalues, seconds=seconds)
    if work.settings.complement and trace.kept is None:
        with timed(seconds, "evaluate"):
            kept = keep_erased(work.evaluator, part.batch, part.labels, trace)
        trace = replace(trace, kept=kept, seconds=seconds)
    return trace


def _beat(report: Report, name: str, evaluations: int) -> None:
    report(name, 0)
