"""Measurement of methods on a task: of a classifier in memory, or of a checkpoint in a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..config import BASELINE, Explained, MeasureConfig, UnitName
from ..data import TASKS, Task
from ..errors import InputError
from ..files import timed
from ..measuring.costs import Bounds, bound_measurement
from ..measuring.plan import (
    Extent,
    Names,
    Plan,
    Settings,
    Tests,
    Texts,
    plan_measurement,
    recalibration_of,
    refuse_complement,
)
from ..measuring.pool import make_context
from ..measuring.result import Result
from ..methods.registry import default_methods
from ..models.evaluator import Model
from ..models.masks import PERCENTS
from ..phases import Progress
from ..stats.metrics import MetricFunction, name_metric
from ..store.records import RECORD, TrainRecord, read_record
from ..store.run_store import RunStore, Unready, require_files
from ..store.traces import Shelf
from .fitted_tests import fitted_tests, load_tests, read_tests, tests_beside
from .join import Compute, Join, compute_here
from .measured import HERE, Origin, folder_of, load_measured, measured_task

if TYPE_CHECKING:
    from ..models.classifier import Classifier

DEFAULT_METHODS: Names = tuple(default_methods())
"""Methods that are measured by default."""


def measure(
    clf: Model,
    task: Task | Texts,
    methods: Names = DEFAULT_METHODS,
    *,
    limit: int = 0,
    percents: Sequence[int] = PERCENTS,
    unit: UnitName = "token",
    complement: bool = False,
    explain: Explained = "label",
    tests: Tests | Literal["auto"] | None = "auto",
    split: Literal["validation", "test"] = "test",
    metric: str | MetricFunction | None = None,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Measure explanations on the texts of a task.

    Args:
        clf: A classifier, or an `Evaluator` that shares its evaluations.
        task: A task, or a list of texts (or of pairs of a text and its context) without labels: then the
            model's own predictions are explained. A single text is measured by `explain_text`.
        methods: Names of methods, or methods; or a mapping from names to methods and to scores that were
            computed elsewhere (see `own_scores`). Random erasure, the baseline, is always measured;
            `random(seed=1)` sets its seed.
        limit: Measure only the first `limit` texts; 0 measures all.
        percents: Percentages of tokens to erase: increasing whole numbers, the first 0 and the last 100.
        unit: What is scored and erased as one piece: token, word or sentence.
        complement: Also evaluate texts with only the erased part left, which sufficiency and insertion need
            (see `Result.metrics`).
        explain: Class whose explanation is measured: the true label, or `predicted`, the model's own decision
            for the whole text, right or wrong.
        tests: In-distribution tests, from `fit_tests`; `auto` uses those that were saved with the
            classifier's checkpoint. Without tests no area is trusted.
        split: The split whose texts are measured. Choose methods and their options on validation texts, and
            measure the chosen one on test texts.
        metric: Name of the metric of curves and areas, or a function `(labels, predictions) -> float`, see
            `metric`; the default is that of the task.
        cache_dir: Folder that keeps the traces of all methods, such as a store. What it has is not computed
            again, for whatever limit, methods, tests and metric.
        progress: Called with a phase, here the name of a method, the number of texts done in it so far, and
            the number of all texts.

    Returns:
        Curves, areas, intervals, p-values, doubts and verdict.

    Raises:
        InputError: An option is not valid, or model, task and methods do not fit each other.

    Example:
        >>> result = fm.measure(clf, task, ["loo-sign"], limit=20)
        >>> result.acu("loo-sign") <= 1
        True
    """
    if isinstance(task, str):
        hint = f"for the task give fm.task({task!r})" if task in TASKS else "explain_text measures one text"
        raise InputError(f"task is {task!r:.60}; expected a task: {hint}")
    checks = tests_beside(clf) if tests == "auto" else tests or {}
    settings = Settings(tuple(percents), unit, complement, explain=explain)
    extent = Extent(limit, split, None if metric is None else name_metric(metric))
    plan = plan_measurement(clf, task, methods, checks, settings, extent)
    join = Join(plan, None if cache_dir is None else Shelf.of_plan(Path(cache_dir), plan))
    join.fill(compute_here, progress)
    join.merge()
    return build_result(join)


def build_result(join: Join, ranks_alike: float = 0.0) -> Result:
    """Return the result that follows from complete traces."""
    plan, traces = join.plan, join.traces()
    context = make_context(
        traces.values(),
        join.located_texts(),
        classes=len(plan.task.labels),
        ranks_alike=ranks_alike,
        unit=plan.settings.unit,
        recalibrations=(recalibration_of(plan.tests, own=plan.own),),
        **plan.facts,
    )
    return Result((traces,), context)


@dataclass(frozen=True)
class Conduct:
    """Device, workers and progress of a measurement; no number depends on them.

    Attributes:
        device: Device to evaluate on; stored traces are used whatever their device was.
        progress: Called with a phase (`check`, or the name of a method), the number of texts done in it so
            far, and the number of all texts.
        announce: Called with the bounds on the evaluations before the work begins, if there is work to do.
        compute: Computes missing slices.
        load: Loads the model; None for `faithmeter.load`.
    """

    device: str = "auto"
    progress: Progress | None = None
    announce: Callable[[Bounds], object] | None = None
    compute: Compute = compute_here
    load: Callable[..., Classifier] | None = None


IN_SILENCE = Conduct()
"""In this process, without progress."""


def measure_checkpoint(
    checkpoint: str | Path,
    config: MeasureConfig,
    store: RunStore,
    origin: Origin = HERE,
    conduct: Conduct = IN_SILENCE,
) -> Result:
    """Measure a checkpoint; what the store has of the traces is not computed again.

    Traces, and a manifest of what was asked, are written to the store.

    Args:
        checkpoint: Folder of a checkpoint, or hub name.
        config: Methods and settings; missing ones are taken from the checkpoint's training.
        store: Store to read from and write to.
        origin: Where the texts come from.
        conduct: Device, progress and workers.
    """
    clf = _load_verified(checkpoint, config, store, conduct)
    # before the data are read, which may take long
    refuse_complement(clf, complement=config.complement)
    as_given = config
    measured, config, trained = measured_task(clf, checkpoint, config, origin)
    if not config.methods:  # the record names what was measured, whatever is the default one day
        config = config.replace(methods=tuple(default_methods()))
    tests = read_tests(clf, checkpoint, config)  # None: they are not fitted yet
    plan = _plan_config(clf, measured, config, tests or {})
    shelf = Shelf.of_plan(store.root, plan)
    join = Join(plan, shelf)
    missing = join.missing()
    if conduct.announce is not None and missing:
        unfitted = len(measured.load().get("validation", ())) if tests is None else 0
        # before the tests are fitted: a user who stops here has lost nothing
        conduct.announce(bound_measurement(plan, missing, unfitted))
    # without a lock: a finished measurement is also read from a store that cannot be written
    if tests is not None and store.find(config) is not None and not join.gaps():
        return build_result(join, config.ranks_alike)
    with store.claim(config):
        seconds: dict[str, float] = {}
        if tests is None:
            with timed(seconds, "fit"):
                if "validation" in measured.load():
                    tests = fitted_tests(clf, checkpoint, measured, config, progress=conduct.progress)
                else:  # those of the training's own validation texts
                    tests = load_tests(
                        clf, checkpoint, as_given, data_dir=origin.data_dir, progress=conduct.progress
                    )
            plan = replace(plan, tests=tests or {})
            join = Join(plan, shelf)
        join.fill(conduct.compute, conduct.progress)
        result = build_result(join, config.ranks_alike)
        # the manifest says that all traces are there, so it is the last thing to be written
        training = {"trained": trained.to_dict(), "train_digest": trained.digest}
        store.put(config, {**_describe_request(join), **training, "seconds": seconds})
        join.merge()
        return result


def _plan_config(clf: Classifier, task: Task, config: MeasureConfig, tests: Tests) -> Plan:
    """Return the plan of a complete config."""
    methods = (f"{BASELINE}(seed={config.seed})", *config.methods)
    settings = Settings(config.percents, config.unit, config.complement, explain=config.explain)
    return plan_measurement(clf, task, methods, tests, settings, Extent(config.limit))


def _describe_request(join: Join) -> dict[str, Any]:
    """Return what was asked and which traces answer it; the numbers follow from the traces."""
    plan = join.plan
    return {
        "task_name": plan.task.name,
        "labels": list(plan.evaluator.labels),
        "texts": plan.count,
        "subject": join.subject,
        "traces": join.names,
        "tests": join.tests,
        "recalibration": recalibration_of(plan.tests, own=plan.own),
        **plan.facts,
    }


def _load_verified(
    checkpoint: str | Path, config: MeasureConfig, store: RunStore, conduct: Conduct
) -> Classifier:
    """Load a checkpoint whose files and weights are those of its record.

    Raises:
        InputError: They are not.
    """
    fingerprint = _checked(checkpoint, store)
    clf = load_measured(checkpoint, config, conduct.device, conduct.load)
    # files may be intact and yet be those of another training
    if fingerprint not in (None, clf.fingerprint):
        raise InputError(
            f"the weights of {checkpoint} have the fingerprint {clf.fingerprint}; its record expects "
            f"{fingerprint}: train it again"
        )
    return clf


def _checked(checkpoint: str | Path, store: RunStore) -> str | None:
    """Verify the files of a checkpoint, and return the fingerprint in its record; None without a record.

    A damaged checkpoint is an error; if it is in the store, it is also put aside.
    """
    folder = folder_of(checkpoint)
    if not (folder / RECORD).exists():
        return None
    # only what lies in this store is moved aside; other folders belong to the user
    if folder.resolve().parent == store.root.resolve():
        record = store.open(folder)
        if record is None:
            raise Unready(f"{checkpoint} was damaged and is put aside; train it again")
    else:
        record = read_record(folder / RECORD)
        try:
            require_files(folder, record)
        except InputError as error:
            raise InputError(f"{error}; copy that checkpoint again, or train it again") from error
    if not isinstance(record, TrainRecord):
        raise InputError(f"{checkpoint} is a measurement; give the folder of a training run")
    return record.fingerprint
