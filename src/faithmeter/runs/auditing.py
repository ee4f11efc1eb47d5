"""Audit of a classifier: is it measurable, what makes it so, and which explanation of it to use.

What is cheap comes first: the check of the model as it is, then an adaptation if the check does not accept,
then the methods, the cheapest first. Every part is kept in the store, so that the same audit continues where
it was stopped and gives the same digits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import ADAPTATION, BASELINE, AdaptConfig, MeasureConfig
from ..data.splits import measured_data
from ..data.task import LABELED, labeled_task, read_labeled
from ..errors import InputError
from ..files import timed, write_csv
from ..measuring.costs import bound_slice
from ..measuring.plain import Rendered
from ..measuring.plan import Names, Settings
from ..methods.registry import default_methods, expand, parse
from ..models.evaluator import Evaluator
from ..models.loading import load
from ..phases import Progress, start_phase
from ..store.run_store import RunStore
from ..training.inputs import load_splits
from ..verdict.adapted import explain_audit, judge_audit
from ..verdict.sentences import Answer, Verdict
from .adaptation import (
    CHECKED_TEXTS,
    STOP_TEXTS,
    adapt,
    load_original,
    predict,
    require_variety,
    texts_task,
    true_labels,
)
from .fitted_tests import fitted_tests, tests_beside
from .measured import filled_config, training_record
from .measurements import Conduct, measure, measure_checkpoint

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import TrainerCallback

    from ..data import Task
    from ..measuring.result import Result
    from ..models.classifier import Classifier
    from ..store.records import AdaptRecord

TOKENS = 20
"""Tokens of the text by which methods are ordered from cheap to dear."""
LIMIT = 200
"""Default number of held-out texts that are measured."""
TRAINING = 3
"""Evaluations that training on a text costs: the way back through the model takes twice the way forth."""
Announce = Callable[[Mapping[str, float]], object]
"""Function that is called with the seconds that each part of an audit takes at most on this machine."""
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
"""Seconds in the units of a budget."""


@dataclass(frozen=True, eq=False)
class Audit(Rendered):
    """Decision on a classifier: whether and how its explanations can be trusted.

    Attributes:
        model: Folder or hub name of the classifier.
        checked: Result of random masks on the classifier as it is.
        result: Result of the methods on the model that is used: the classifier, or the adapted one.
        record: Record of the adaptation; None if the classifier is measurable as it is.
        folder: Folder of the measurable model.
        left_out: What the budget left out: methods that were not begun, and an adaptation that was stopped.
    """

    model: str
    checked: Result
    result: Result
    record: AdaptRecord | None
    folder: str
    left_out: tuple[str, ...] = ()

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Three sentences: may explanations be trusted, which method to use, and what it cost."""
        adaptation = None if self.record is None else self.record.evidence
        return judge_audit(self.checked.verdict, self.result.verdict, adaptation, self.left_out)

    @property
    def reasons(self) -> dict[str, str]:
        """Return the basis of the answers, by subject."""
        adaptation = None if self.record is None else self.record.evidence
        return explain_audit(self.checked.verdict, self.result.verdict, adaptation)

    @property
    def verdict(self) -> Verdict:
        """Verdict on the model that is used."""
        return self.result.verdict

    @property
    def next_command(self) -> str:
        """Command that explains a text with the best method."""
        rivals = [name for name in self.verdict.leaders if not parse(name).searches]
        best = next(iter(rivals), "loo-sign")
        return f'faithmeter explain {self.folder} "your text" -m "{best}"'

    def __repr__(self) -> str:
        return f"<Audit of {self.model}: {' '.join(answer.text for answer in self.answers)}>"

    def __str__(self) -> str:
        return "\n".join(f"{answer.question} {answer.text}" for answer in self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values."""
        sentences = [{"question": one.question, "text": one.text, "mood": one.mood} for one in self.answers]
        return {
            "model": self.model,
            "answers": sentences,
            "reasons": self.reasons,
            "folder": self.folder,
            "adapted": self.record is not None,
            "agreement": math.nan if self.record is None else self.record.agreement,
            "left_out": list(self.left_out),
            "as_it_is": self.checked.to_dict(),
            "measured": self.result.to_dict(),
            "next": self.next_command,
        }

    def to_csv(self, path: str | Path) -> None:
        """Write the table of the measured methods to a CSV file."""
        write_csv(self.result.table(), path)


class Spent(Exception):
    """Raised within an adaptation when the budget is spent; its last whole epoch is kept."""


class Deadline:
    """Time after which an adaptation is stopped and no method is begun; without a budget there is none."""

    def __init__(self, budget: str) -> None:
        self._end = time.monotonic() + parse_budget(budget) if budget else math.inf

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._end

    def ends(self, progress: Progress | None) -> Progress:
        """Return a progress function that passes on to another one, and raises `Spent` after the deadline."""

        def show(phase: str, done: int, total: int) -> None:
            if self.passed:
                raise Spent
            if progress is not None:
                progress(phase, done, total)

        return show


@dataclass(frozen=True)
class Place:
    """Settings, store and progress that all measurements of an audit share."""

    config: AdaptConfig
    limit: int
    store: RunStore
    progress: Progress | None

    def measure(self, clf: Classifier, checkpoint: str, task: Task, methods: Names) -> Result:
        """Measure methods on held-out texts, with the tests beside the checkpoint or fitted once."""
        tests = tests_beside(clf)
        if not tests:
            record = training_record(checkpoint)  # the masks of the training are those of the tests
            known = MeasureConfig(strategy=record.trained.strategy if record else "unknown")
            known = filled_config(known, self.config.replace(label=""), clf.fingerprint, measured_data(task))
            tests = fitted_tests(clf, checkpoint, task, known, progress=self.progress)
        return measure(
            clf,
            task,
            methods,
            tests=tests,
            limit=self.limit,
            cache_dir=self.store.root,
            progress=self.progress,
        )


def audit(
    model: str | Path,
    data: str | Path,
    text: str,
    *,
    methods: Sequence[str] = (),
    limit: int = LIMIT,
    budget: str = "",
    store: RunStore | str | Path = "runs",
    progress: Progress | None = None,
    announce: Announce | None = None,
    **options: Any,
) -> Audit:
    """Decide whether explanations of a classifier can be trusted, and which to use.

    The classifier is checked as it is. If the check does not accept it, a copy is adapted: fine-tuned on
    masked texts with the classifier's own predictions. The methods are then measured on held-out texts.

    Args:
        model: Folder or hub name of the classifier.
        data: File with texts: csv, tsv, jsonl, parquet, or a saved `datasets` folder.
        text: Column with the texts.
        methods: Names of the methods, the dearest of which are begun last; by default those of `measure`.
        limit: Number of held-out texts that are measured; 0 measures all.
        budget: Time after which an adaptation is stopped and no further method is begun, such as `10m`; by
            default there is no limit. The same audit continues an adaptation from its last whole epoch.
        store: Folder that keeps what is finished; the same audit continues from there.
        progress: Called with a phase, the amount done in it so far, and the total.
        announce: Called with the seconds that each part takes at most, before the work begins.
        options: Fields of `AdaptConfig`, such as `pair`, the column with a second text, and `label`, the one
            with true labels, which are only compared with.

    Returns:
        Three answers, the measurements behind them, the record of the adaptation, and the folder of the
        measurable model.

    Raises:
        InputError: The classifier, the texts or an option cannot be used.

    Example:
        >>> decision = fm.audit("checkpoint", "stories.csv", "story", pair="question", limit=20)
        >>> len(decision.answers)
        3
    """
    root = store if isinstance(store, RunStore) else RunStore(Path(store))
    deadline, names = Deadline(budget), sort_methods(methods)
    config = AdaptConfig(model=str(model), data=str(data), text=text, **options)
    original = load_original(config)
    texts = texts_task(config, original.labels)
    splits = load_splits(config, texts)
    true_labels(config, original, texts, splits["test"])  # before the work: they must be the model's classes
    seconds: dict[str, float] = {}
    with timed(seconds, "predict"):
        task = label_held_out(config, original, splits, progress)
    if announce is not None:
        each = seconds["predict"] / sum(map(len, task.load().values()))
        bounds = bound_parts(config, original, splits, names, limit)
        announce({part: count * each for part, count in bounds.items()})
    place = Place(config, limit, root, progress)
    checked = place.measure(original, str(model), task, [])
    if checked.evidence.measurable:
        clf, record, folder = original, None, str(model)
    else:
        limited = deadline.ends(progress)
        try:
            # stopped as by Ctrl-C: a shorter training of its own would give other weights when continued
            record = adapt(config, root, resume=True, callbacks=_training_report(limited), progress=limited)
        except Spent:
            return Audit(str(model), checked, checked, None, str(model), (ADAPTATION, *names))
        folder = str(root.folder(record.config))
        clf, task = load(folder), _adapted_task(folder, record)
    done: list[str] = []
    for name in names:  # one after the other: finished ones are read from the store
        if deadline.passed:
            break
        done.append(name)
        place.measure(clf, folder, task, [name])
    result = place.measure(clf, folder, task, done)
    if record is not None and done:  # `report` and `list` find the measurement beside the adapted model
        named = MeasureConfig(methods=tuple(done), limit=limit)
        result = measure_checkpoint(folder, named, root, conduct=Conduct(progress=progress))
    return Audit(str(model), checked, result, record, folder, tuple(names[len(done) :]))


def sort_methods(names: Sequence[str]) -> list[str]:
    """Return the full names of methods, the cheapest first; without names, of those that `measure` takes."""
    methods = map(parse, expand(names or default_methods()))
    rivals = [method for method in methods if method.name != BASELINE]  # which is always measured
    return list(map(str, sorted(rivals, key=lambda method: method.evaluations(TOKENS))))


def label_held_out(
    config: AdaptConfig, original: Classifier, splits: Mapping[str, Dataset], progress: Progress | None
) -> Task:
    """Return the validation and test texts, labeled by the classifier itself.

    The classifier's own decisions are what is explained, so that no true labels are needed.
    """
    held_out = {role: rows for role, rows in splits.items() if role != "train"}
    done = start_phase(progress, "predict", sum(map(len, held_out.values())))
    labels = {role: predict(original, rows, done).argmax(dim=1).tolist() for role, rows in held_out.items()}
    require_variety(original.labels, labels["test"])
    return labeled_task(held_out, labels, name=config.task_or_data, classes=original.labels)


def bound_parts(
    config: AdaptConfig, clf: Classifier, splits: Mapping[str, Dataset], methods: Sequence[str], limit: int
) -> dict[str, int]:
    """Return the evaluations that each part of an audit takes at most, in the order of the parts."""
    sizes = {role: len(rows) for role, rows in splits.items()}
    texts, percents = min(limit or sizes["test"], sizes["test"]), Settings().percents
    parsed = dict(zip(methods, map(parse, methods), strict=True))
    read, bounds = bound_slice(Evaluator(clf), splits["test"], parsed, Settings())
    check = sizes["validation"] + len(percents) * texts
    epoch = TRAINING * sizes["train"] + 2 * sizes["validation"] + len(percents) * STOP_TEXTS
    compared = 2 * (sizes["validation"] + len(percents) * min(CHECKED_TEXTS, sizes["test"]))
    whole = sum(sizes.values()) + len(percents) * sizes["test"]
    return {
        "check": check,
        ADAPTATION: config.epochs * epoch + whole + compared,
        **{name: round(bound * texts / read) for name, bound in bounds.items()},
    }


def _training_report(progress: Progress) -> list[TrainerCallback]:
    from ..training.trainer import StepReport

    return [StepReport(lambda done, total, _: progress(ADAPTATION, done, total))]


def parse_budget(budget: str) -> float:
    """Return the seconds of a budget such as `90s`, `10m` or `1.5h`.

    Raises:
        InputError: It cannot be read.
    """
    number, unit = budget[:-1], budget[-1:]
    try:
        seconds = float(number) * UNITS[unit]
    except (KeyError, ValueError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InputError(f"budget {budget!r} cannot be read; expected a time such as 90s, 10m or 1.5h")
    return seconds


def _adapted_task(folder: str, record: AdaptRecord) -> Task:
    """Return the held-out texts of an adaptation, labeled by the original."""
    task = read_labeled(Path(folder) / LABELED, name=record.trained.task_or_data, classes=record.labels)
    return replace(task, splits={role: task.splits[role] for role in ("validation", "test")})
