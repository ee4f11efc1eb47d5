"""Fitting of in-distribution tests on texts masked as in the model's training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import BASELINE, Rates, Scope, TrainedWith
from ..data import Task
from ..data.task import class_task
from ..errors import InputError, unknown
from ..methods.registry import parse
from ..models.classes import ClassMatch, match_classes
from ..models.evaluator import Evaluator, Model
from ..models.masks import PERCENTS, row_generators, uniform_mask
from ..models.tokens import Batch
from ..phases import Progress, start_phase
from ..stats.behavior import Recalibration, recalibrate
from ..stats.masf import CALIBRATIONS, CROSSFIT, MIN_ROWS, MaSF, rows_held_out
from ..stats.pvalues import DatasetPValue, dataset_pvalue, rejected_ranks
from ..training.masking import STRATEGIES, require_masking
from .erase import states, trace_erasure
from .plan import Tests
from .texts import read_slices
from .trace import Trace, join_traces

if TYPE_CHECKING:
    from datasets import Dataset

RECALIBRATION_TEXTS = 400
"""Validation texts that the behavioral check is fitted on, at most; results/validation/ladder.csv."""
CHECK = "check"
"""Phase in which texts are evaluated for the in-distribution tests."""


@dataclass(frozen=True)
class Masking:
    """How texts are masked on which a check is fitted: as in the model's training.

    Attributes:
        trained_with: Masking strategy of the training; with none and unknown, texts stay whole.
        scope: Columns that the training masked.
        rates: Distribution of the training's masking rates.
        seed: Seed of the masks.
    """

    trained_with: TrainedWith = "unknown"
    scope: Scope = "explained"
    rates: Rates = "uniform"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trained_with not in get_args(TrainedWith):
            raise unknown("trained_with", self.trained_with, get_args(TrainedWith))
        require_masking(self.strategy, self.scope, self.rates)

    @property
    def strategy(self) -> str:
        """Rows of a batch that are masked."""
        return "none" if self.trained_with == "unknown" else self.trained_with

    def draw(self, batch: Batch) -> Tensor:
        """Return a mask [B, T] drawn as in fine-tuning."""
        chosen = torch.zeros(len(batch), dtype=torch.bool)
        chosen[STRATEGIES[self.strategy]] = True
        # the same rows of a batch as in training: with `half` every other one, so whole texts are normal, too
        allowed = batch.maskable(self.scope) & chosen[:, None]
        return uniform_mask(allowed, row_generators(self.seed, "masf", batch.index), rates=self.rates)


def fit_tests(
    clf: Model,
    task: Task,
    *,
    trained_with: TrainedWith = "unknown",
    scope: Scope = "explained",
    rates: Rates = "uniform",
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, MaSF]:
    """Fit the in-distribution tests of a model on the validation texts of a task.

    Args:
        clf: The classifier.
        task: The task whose validation split is used, at least 20 texts.
        trained_with: Masking strategy of the model's training: half, all, none, or unknown. The tests are
            fitted on texts masked in the same way; for none and unknown, on whole texts.
        scope: Columns that the training masked: explained, or all.
        rates: Distribution of the training's masking rates: uniform, or ends.
        seed: Seed of the masks.
        progress: Called with the phase `check`, the number of texts done so far, and the total.

    Returns:
        A fitted `MaSF` by calibration: `published` and `crossfit`.

    Raises:
        InputError: An option is unknown, or there are too few validation texts.

    Example:
        >>> tests = fit_tests(clf, task, trained_with="half")
        >>> list(tests)
        ['published', 'crossfit']
    """
    masking = Masking(trained_with, scope, rates, seed)
    names = getattr(clf, "labels", task.labels)
    # of a model with several labels, the one that is asked for
    task = class_task(task, names)
    tests = fit_tests_on(clf, task.split("validation"), masking, progress)
    match = match_classes(names, task.labels) if task.label is not None else None
    evaluator = Evaluator.of(clf)
    if not evaluator.predicts_number:
        split, deciding = task.split("validation"), {CROSSFIT: tests[CROSSFIT]}
        trace = trace_masked(evaluator, split, deciding, RECALIBRATION_TEXTS, seed)
        # labels of measured tasks are the truth, those of texts alone the model's own predictions
        references = rows_held_out(len(split))
        known = fit_recalibration(trace, match, references)
        own = fit_recalibration(trace, None, references)
        for test in tests.values():
            test.recalibration, test.own_recalibration = known, own
    return tests


def fit_recalibration(trace: Trace, match: ClassMatch | None, references: NDArray[np.int64]) -> Recalibration:
    """Return what validation texts, masked at random at each rate, tell about a model.

    Args:
        trace: The first validation texts, masked at random, with the p-values of the cross-fitted test.
        match: Classes of the texts' labels as those of the model; None if the texts have no labels. The
            model's predictions for whole texts then take their place.
        references: Numbers of the texts that the test did not learn from. At each rate, these and new texts
            are treated alike, so that new ones are rejected as often as chance wants it.
    """
    labels = torch.from_numpy(trace.targets)
    # without labels, whole texts tell what the model says, masked ones whether it still means it
    targets = trace.predictions[:, 0] if match is None else match.to_model(labels).numpy()
    # at 0 % nothing is masked, and at 100 % nothing is left to be recalibrated on
    percents = [percent for percent in PERCENTS if 0 < percent < 100]
    steps = [*map(PERCENTS.index, percents)]
    known = recalibrate(trace.logits[:, steps], targets, percents)
    ranked = np.sort(trace.pvalues[CROSSFIT][np.isin(trace.rows, references)][:, steps], axis=0)  # [R, S]
    rejecting = rejected_ranks(len(ranked))
    if rejecting < 1:  # too few references to reject any text
        return known
    return known._replace(limits=tuple(ranked[rejecting - 1].tolist()), references=len(ranked))


def fit_tests_on(
    clf: Model, split: Dataset, masking: Masking, progress: Progress | None = None
) -> dict[str, MaSF]:
    """Fit the in-distribution tests of a model on the rows of a split, as `fit_tests` does."""
    if len(split) < MIN_ROWS:  # before the texts are read
        raise InputError(
            f"{len(split)} validation rows; the check needs at least {MIN_ROWS}: use a larger validation "
            "set, such as a file with --valid"
        )
    evaluator, features = Evaluator.of(clf), []
    done = start_phase(progress, CHECK, len(split))
    for batch, _ in read_slices(evaluator, split, len(split)):
        masked = batch.masked(masking.draw(batch), evaluator.mask_id)
        features.append(states(evaluator, masked)[1])
        done(len(batch))
    rows = torch.cat(features).numpy()
    trained_with = masking.trained_with
    return {name: MaSF(calibration=name, trained_with=trained_with).fit(rows) for name in CALIBRATIONS}


def trace_masked(
    clf: Model, split: Dataset, tests: Tests, texts: int, seed: int, progress: Progress | None = None
) -> Trace:
    """Return the trace of the first texts of a split, masked at random; `progress` as in `fit_tests`."""
    evaluator, random = Evaluator.of(clf), parse(f"{BASELINE}(seed={seed})")
    count, traces = min(texts, len(split)), []
    done = start_phase(progress, CHECK, count)
    for batch, labels in read_slices(evaluator, split, count):
        traces.append(trace_erasure(evaluator, batch, labels, random, PERCENTS, tests))
        done(len(batch))
    return join_traces(traces)


def masked_pvalues(trace: Trace) -> dict[str, dict[int, DatasetPValue]]:
    """Return, by test and percentage masked, the p-value of the texts of a trace."""
    pvalues = {}
    for test, values in trace.pvalues.items():  # [N, S]
        pvalues[test] = dict(zip(trace.percents, map(dataset_pvalue, values.T), strict=True))
    return pvalues
