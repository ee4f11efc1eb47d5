"""Adaptation: masked fine-tuning of a classifier on its own predictions, and comparison with the original."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor

from ..config import AdaptConfig, MeasureConfig, TrainConfig, TrainedWith, select_fields
from ..data import Task
from ..data.rows import read_classes
from ..data.task import LABELED, Columns, LabeledTask, Own, labeled_task, unlabeled_task, write_labeled
from ..errors import InputError
from ..files import timed
from ..measuring.fitting import Masking, fit_tests_on, masked_pvalues, trace_masked
from ..measuring.plan import Tests, floors_of, recalibration_of
from ..measuring.plausibility import correlate_scores
from ..measuring.texts import read_slices
from ..methods.registry import explain, parse
from ..models.classes import match_classes
from ..models.classifier import Classifier
from ..models.evaluator import Evaluator
from ..models.loading import choose_label, load
from ..models.tokens import Batch
from ..phases import Advance, Progress, as_part, start_phase
from ..stats.intervals import Interval, bootstrap_interval
from ..stats.masf import MIN_ROWS
from ..stats.pvalues import DatasetPValue
from ..store.records import AdaptRecord
from ..training import Enough, Goal, Session
from ..training.inputs import load_splits, summarize_inputs
from ..verdict.adapted import is_measurable, largest_outside_share
from ..verdict.evidence import choose_test, rejects
from .fitted_tests import fitted_tests
from .measured import filled_config, task_of, training_record
from .run import run_once

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, TrainerCallback

    from ..store.run_store import RunStore
    from ..training.inputs import Inputs

CHECKED_TEXTS = 200
"""Held-out texts on which both models are checked."""
STOP_TEXTS = 100
"""Validation texts on which the model is checked after each epoch."""
EXPLAINED_TEXTS, EXPLAINED_TOKENS = 50, 5000
"""Held-out texts, and the most tokens in them, that both models explain."""


def adapt(
    config: AdaptConfig,
    store: RunStore,
    *,
    resume: bool = False,
    restart: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
    progress: Progress | None = None,
) -> AdaptRecord:
    """Make a classifier measurable by masked fine-tuning on its own predictions; no labels are needed.

    The targets are the original's class probabilities for whole texts, and its class for masked texts.
    Training stops early when the model agrees with the original on `config.agreement` of the validation
    texts and masked texts are in distribution for it.

    Args:
        config: The classifier (`model`), your texts (`data` and `text`, or `task`) and settings.
        store: Store that the adapted checkpoint and its record are written to.
        resume: Continue an unfinished run from its last whole epoch.
        restart: Delete any existing run and start over.
        callbacks: Callbacks for the Hugging Face Trainer.
        progress: Called with a phase before or after training (`predict`, `validate`, `test`, `fit tests`,
            `check`, `agreement`, `explain`), the amount done in it so far, and the total: evaluations for
            `explain`, texts for the others.

    Returns:
        The record, with the agreement, checks and explanations of both models; `answers` is the verdict.
        The checkpoint is in `store.folder(record.config)`.

    Raises:
        InputError: The classifier or the texts cannot be used, the run is unfinished, or another
            process is working on it.

    Example:
        >>> texts = {"data": "stories.csv", "text": "story", "pair": "question"}
        >>> config = fm.AdaptConfig(model="checkpoint", **texts, epochs=1)
        >>> record = fm.adapt(config, fm.RunStore("runs"))
        >>> 0 <= record.agreement <= 1
        True
    """
    complete = complete_config(config)

    session = Session(resume, callbacks, progress)

    def work(folder: Path) -> dict[str, Any]:
        return adapt_model(complete, folder, session)

    record = run_once(complete, store, work, resume=resume, restart=restart, read=read_inputs)
    return cast(AdaptRecord, record)


def complete_config(config: AdaptConfig) -> AdaptConfig:
    """Return the config with the digest of your own method; without texts, with those of the checkpoint."""
    config = config.replace(compare_code=parse(config.compare).code)
    if config.task or config.data:
        return config
    record = training_record(config.model)
    if record is None:
        raise InputError(f"{config.model} does not say what it was trained on; give your texts with --data")
    names = ("task", "data", "text", "pair", "rationale", "valid", "test", "data_dir")
    return config.replace(**select_fields(record.trained, names))


def texts_task(config: AdaptConfig, labels: Sequence[str]) -> Task:
    """Return the task that a config names, or a task for the user's own texts, with or without labels."""
    if not config.data or config.label:
        return task_of(config)
    if not config.text:
        raise InputError(f"--data {config.data} requires --text, the name of that column")
    valid, test = (Path(path) if path else None for path in (config.valid, config.test))
    columns = Columns(config.text, None, config.pair or None, config.rationale or None)
    return unlabeled_task(Own(Path(config.data), valid, test), columns, labels)


def read_inputs(config: TrainConfig) -> Inputs:
    """Load the inputs that adaptation with this config would use now, and return their digests."""
    original, adapting = load_original(config), cast(AdaptConfig, config)
    texts = texts_task(adapting, original.labels)
    return summarize_inputs(texts, load_splits(config, texts), original.fingerprint)


def adapt_model(config: AdaptConfig, folder: Path, session: Session) -> dict[str, Any]:
    """Adapt a classifier, save it in `folder`, and return the results of training and comparison."""
    from ..training.finetuning import finetune

    seconds: dict[str, float] = {}
    with timed(seconds, "predict"):
        original = load_original(config)
        texts = texts_task(config, original.labels)
        splits = load_splits(config, texts)
        truth = true_labels(config, original, texts, splits["test"])
        done = start_phase(session.progress, "predict", sum(map(len, splits.values())))
        logits, labels = {}, {}
        for name, rows in splits.items():
            logits[name] = predict(original, rows, done)
            labels[name] = logits[name].argmax(dim=1).tolist()
        require_variety(original.labels, labels["train"])
        task = labeled_task(splits, labels, name=config.task_or_data, classes=original.labels)
        # the comparison and later measurements read these labels, which need the original no more
        write_labeled(folder / LABELED, task)
    enough = stop_rule(config, original, task.splits["validation"])
    goal = Goal(targets=logits["train"].softmax(dim=1).numpy(), enough=enough)
    result = finetune(config, task, folder, goal, session)
    with timed(seconds, "compare"):
        both = Both(original, load(folder))
        tests = fit_both(config, both, folder, task, result["data"], session.progress)
        comparison = compare_models(config, both, tests, task.splits["test"], truth, session.progress)
    return {
        **result,
        **summarize_inputs(texts, splits, original.fingerprint),
        "source": asdict(texts.source),
        **comparison,
        "seconds": {**seconds, **result["seconds"]},
    }


def load_original(config: TrainConfig) -> Classifier:
    """Load the classifier to adapt, with a mask token."""
    if choose_label(config.model, "0") is not None:
        raise InputError(
            f"{config.model} gives several labels at once; expected a classifier that chooses one class: "
            "train such a model with faithmeter train --task …"
        )
    original = load(config.model, add_mask_token=config.add_mask_token)
    if original.predicts_number:
        raise InputError(
            f"{config.model} predicts a number; expected a classifier that chooses one class: train such a "
            "model with faithmeter train --task …"
        )
    return original


def predict(clf: Classifier, rows: Dataset, done: Advance) -> Tensor:
    """Return the logits of all rows of a split, float64 Tensor [N, C]; `done` is told of each chunk."""
    evaluator, logits = Evaluator(clf), []
    for batch, _ in read_slices(evaluator, rows, len(rows)):
        logits.append(evaluator.logits(batch))
        done(len(batch))
    return torch.cat(logits)


def require_variety(classes: Sequence[str], labels: Sequence[int]) -> None:
    """Raise an InputError if all predictions are the same class, with which any constant model agrees."""
    if len({*labels}) < 2:
        raise InputError(
            f"the original predicts {classes[labels[0]]!r} for all {len(labels)} texts; expected "
            "texts of at least two of its classes"
        )


def true_labels(config: AdaptConfig, original: Classifier, texts: Task, test: Dataset) -> Tensor | None:
    """Return the true labels of the held-out texts as classes of the model; None if they are not known.

    Raises:
        InputError: A label column was given, and its labels are not the classes of the model.
    """
    if texts.label is None:
        return None
    try:
        named = texts.with_classes(read_classes(config.classes))
        return match_classes(original.labels, named.labels).to_model(torch.tensor(test["label"][:]))
    except InputError as error:
        if not config.label:  # a task that lends only its texts
            return None
        raise InputError(f"--label {config.label}: {error}; leave it out to adapt without labels") from None


def stop_rule(config: AdaptConfig, original: Classifier, validation: Dataset) -> Enough:
    """Return a function that stops training when the model agrees with the original and passes its check.

    The check is fitted on one half of the validation texts and performed on the other. If these are too few,
    no p-value can be small, it never passes, and training runs for all epochs.
    """
    fitted = validation.select(range(0, len(validation), 2))
    checked = validation.select(range(1, len(validation), 2))
    classifiers: dict[int, Classifier] = {}  # one for each model, as each adds hooks

    def enough(model: PreTrainedModel, agreement: float) -> bool:
        # the cheap condition first: the check evaluates every text eleven times
        if agreement < config.agreement or len(checked) < MIN_ROWS:
            return False
        clf = classifiers.setdefault(id(model), Classifier(model, original.tokenizer))
        # halves that share no text: a test that is applied to what it was fitted on accepts everything
        tests = fit_tests_on(clf, fitted, masking(config, config.strategy))
        # a check that could not say no must not end the training
        if not rejects(floors_of(tests)[choose_test(tests)]):
            return False
        pvalues = masked_pvalues(trace_masked(clf, checked, tests, STOP_TEXTS, config.seed))
        return is_measurable(pvalues[choose_test(pvalues)])

    return enough


def masking(config: AdaptConfig, trained_with: TrainedWith) -> Masking:
    """Return the masking of the texts that a check is fitted on."""
    return Masking(trained_with, config.scope, config.rates, config.seed)


class Both(NamedTuple):
    """The classifier as it was, and the adapted one."""

    original: Classifier
    adapted: Classifier


def fit_both(
    config: AdaptConfig, both: Both, folder: Path, task: LabeledTask, data: str, progress: Progress | None
) -> list[Tests]:
    """Return the in-distribution tests of the original and of the adapted model, whose tests are saved.

    Each is fitted on texts masked as in the training of its own model: what is normal differs.
    """
    validation, record = task.splits["validation"], training_record(config.model)
    trained_with: TrainedWith = record.trained.strategy if record else "unknown"
    total = 2 * len(validation)
    before = as_part(progress, "fit tests", 0, total)
    after = as_part(progress, "fit tests", len(validation), total)
    known = filled_config(MeasureConfig(), config, both.adapted.fingerprint, data)
    return [
        fit_tests_on(both.original, validation, masking(config, trained_with), before),
        fitted_tests(both.adapted, folder, task, known, progress=after),
    ]


def compare_models(
    config: AdaptConfig,
    both: Both,
    tests: Sequence[Tests],
    test: Dataset,
    truth: Tensor | None,
    progress: Progress | None,
) -> dict[str, Any]:
    """Return the agreement of both models on the held-out texts, their checks, and how alike they explain."""
    checked = min(CHECKED_TEXTS, len(test))
    values: dict[str, Any] = {"floors": floors_of(tests[1]), "checked_texts": checked, "truth": {}}
    shares = []
    for number, (name, clf) in enumerate(both._asdict().items()):
        part = as_part(progress, "check", number * checked, 2 * checked)
        trace = trace_masked(clf, test, tests[number], checked, config.seed, part)
        pvalues = masked_pvalues(trace)
        values[f"p_{name}"] = {own: _plain_pvalues(steps) for own, steps in pvalues.items()}
        shares.append(largest_outside_share(pvalues[choose_test(pvalues)]))
    values["outside_share_original"], values["outside_share"] = shares
    known = recalibration_of(tests[1])
    if known is not None:  # the last trace is that of the adapted model
        values["behavior"] = trace.check_behavior(known).to_dict()
    labels = torch.tensor(test["label"][:])  # the original's predictions
    predictions = predict(both.adapted, test, start_phase(progress, "agreement", len(test))).argmax(dim=1)
    if truth is not None:
        for name, own in zip(both._fields, (labels, predictions), strict=True):
            values["truth"][name] = float((own == truth).double().mean())
    values |= measure_agreement(labels, predictions, len(both.original.labels))
    return values | compare_explanations(both, test, config.compare, progress)


def _plain_pvalues(steps: Mapping[int, DatasetPValue]) -> dict[int, float]:
    return {percent: step.p for percent, step in steps.items()}


def measure_agreement(original: Tensor, adapted: Tensor, classes: int) -> dict[str, float]:
    """Return how often two models agree, how often a constant would, and Cohen's kappa."""
    # agreement by chance: both models' shares of each class, multiplied
    shares = [torch.bincount(each, minlength=classes).double() / len(each) for each in (original, adapted)]
    agreement, by_chance = float((original == adapted).double().mean()), float(shares[0] @ shares[1])
    kappa = (agreement - by_chance) / (1 - by_chance) if by_chance < 1 else math.nan
    return {"agreement": agreement, "constant": float(shares[0].max()), "kappa": kappa}


def compare_explanations(
    both: Both, rows: Dataset, method: str, progress: Progress | None = None
) -> dict[str, Any]:
    """Return how similarly two models rank the tokens of texts, explaining the original's prediction."""

    batch, labels = next(read_slices(Evaluator(both.original), rows, min(EXPLAINED_TEXTS, len(rows))))
    tokens = batch.explained.sum(dim=1)
    count = max(1, int((tokens.cumsum(dim=0) <= EXPLAINED_TOKENS).sum()))  # a single long text, at least
    batch, labels = batch[range(count)], labels[:count]
    bound = sum(map(parse(method).evaluations, tokens[:count].tolist()))
    done = start_phase(progress, "explain", 2 * bound)
    of_original = _explain_counted(both.original, batch, labels, method, bound, done)
    of_adapted = _explain_counted(both.adapted, batch, labels, method, bound, done)
    correlations = correlate_scores(of_original, of_adapted, batch)
    same_top = 0
    for row, explained in enumerate(batch.explained):
        one, two = of_original[row, explained].numpy(), of_adapted[row, explained].numpy()
        same_top += int(one.argmax() == two.argmax())  # of equal scores, the leftmost
    interval = bootstrap_interval(correlations) if correlations else Interval.undefined(0)
    return {
        "rank_agreement": interval.mean,
        "rank_lower": interval.lower,
        "rank_upper": interval.upper,
        "same_top": same_top / count,
        "explained_texts": count,
    }


def _explain_counted(
    clf: Classifier, batch: Batch, labels: Tensor, method: str, bound: int, done: Advance
) -> Tensor:
    """Return the scores of a method; `done` is told of as many evaluations as the bound."""
    left = bound

    def count_down(evaluations: int) -> None:
        nonlocal left
        step = min(left, evaluations)
        left -= step
        done(step)

    scores = explain(Evaluator(clf, progress=count_down), batch, labels, method)
    done(left)  # equal inputs are evaluated once, so that the bound is not reached
    return scores
