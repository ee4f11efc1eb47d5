"""The task that a checkpoint is measured on, and the complete config that identifies the measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import AdaptConfig, MeasureConfig, TrainConfig, select_fields
from ..data import Task, own_task, task
from ..data.rows import read_classes
from ..data.splits import measured_data
from ..data.task import LABELED, class_task, read_labeled
from ..errors import InputError
from ..stats.metrics import metric_code
from ..store.records import RECORD, AdaptRecord, TrainRecord, read_record

if TYPE_CHECKING:
    from ..models.classifier import Classifier


@dataclass(frozen=True)
class Origin:
    """Where the measured texts come from, if not from where the training of the checkpoint read them.

    Attributes:
        data_dir: Folder of the official files of the task.
        data: New path of the user's own data, which were moved after training.
        own: Texts of the user, measured instead of a task.
    """

    data_dir: Path | None = None
    data: Path | None = None
    own: Task | None = None


HERE = Origin()
"""Origin of texts that are where the training read them."""


def load_measured(
    checkpoint: str | Path, config: MeasureConfig, device: str, load: Callable[..., Classifier] | None = None
) -> Classifier:
    """Load a classifier on a device, with the precision, label and overlap of a measurement.

    `load` takes the place of `faithmeter.load`.
    """
    from ..models import loading

    return (load or loading.load)(
        str(checkpoint),
        device=device,
        precision=config.precision,
        label=config.label or None,
        overlap=config.overlap,
    )


def task_of(config: TrainConfig) -> Task:
    """Return the task that a config names, or the task of the config's own data."""
    if not config.data:
        named = task(config.task, config.data_dir or None)
        return named.with_metric(config.metric) if config.metric else named
    if not (config.text and config.label):
        missing = "--label" if config.text else "--text"
        raise InputError(f"--data {config.data} requires {missing}, the name of that column")
    return own_task(
        config.data,
        text=config.text,
        label=config.label,
        label_kind=config.label_kind,
        metric=config.metric or None,
        pair=config.pair or None,
        rationale=config.rationale or None,
        valid=config.valid or None,
        test=None if config.test == config.data else config.test or None,
        all_test=config.test == config.data,
    )


def folder_of(checkpoint: str | Path) -> Path:
    """Return the folder of a checkpoint, downloaded if it is on the hub."""
    from ..models.loading import local_copy

    return Path(local_copy(checkpoint))


def training_record(checkpoint: str | Path) -> TrainRecord | None:
    """Return the record of a checkpoint's training; None if it was not trained by faithmeter."""
    path = folder_of(checkpoint) / RECORD
    if not path.exists():
        return None
    record = read_record(path)
    if not isinstance(record, TrainRecord):
        raise InputError(f"{checkpoint} is a measurement; give the folder of a training run")
    return record


def training_of(checkpoint: str | Path, config: MeasureConfig, origin: Origin) -> TrainConfig:
    """Return the training config of a checkpoint, as far as known, with the data to be measured."""
    record, data, data_dir = training_record(checkpoint), origin.data, origin.data_dir
    trained = record.trained if record else TrainConfig(task=config.task, model=str(checkpoint))
    if config.task and isinstance(trained, AdaptConfig):  # measured by the labels of a task
        trained = TrainConfig(**select_fields(trained, TrainConfig.model_fields))
    if not (config.task or trained.task or trained.data):
        raise InputError(f"{checkpoint} does not say what it was trained on; name the task with --task")
    if config.task:
        trained = trained.replace(task=config.task, data="")
    if data is not None:
        if not trained.data:
            raise InputError(
                f"--data {data} alone is for checkpoints that were trained with --data; name its columns "
                "with --text and --label, or give --task"
            )
        others = select_fields(trained, ("valid", "test"))  # moved to the same folder
        moved = {name: str(data.parent / Path(path).name) for name, path in others.items() if path}
        trained = trained.replace(data=str(data), **moved)
    return trained if data_dir is None else trained.replace(data_dir=str(data_dir))


def measured_task(
    clf: Classifier,
    checkpoint: str | Path,
    config: MeasureConfig,
    origin: Origin = HERE,
) -> tuple[Task, MeasureConfig, TrainConfig]:
    """Return the task to measure, the measurement's complete config, and the checkpoint's training config."""
    from ..models.classes import match_classes, require_kind

    record = training_record(checkpoint)
    # nothing says how the model was trained; the digest must not depend on a guess
    if not config.strategy and record is None:
        config = config.replace(strategy="unknown")
    own = origin.own
    if own is not None:
        require_kind(own, number=clf.predicts_number)
        # a file may lack a class of the model, and list the others in another order
        own = _in_order(own, clf.labels, config.classes)
        trained = _on_own_texts(own, record.trained if record else TrainConfig(model=str(checkpoint)))
        # of a model with several labels, the one that was loaded
        chosen = _by_metric(class_task(own, clf.labels), config)
        match_classes(clf.labels, chosen.labels)
        filled = filled_config(config, trained, clf.fingerprint, measured_data(own), chosen.metric)
        return chosen, filled, trained
    trained = training_of(checkpoint, config, origin)
    try:
        measured: Task
        # its labels are the original's predictions, which lie beside the checkpoint
        if isinstance(record, AdaptRecord) and isinstance(trained, AdaptConfig):
            measured = read_labeled(
                folder_of(checkpoint) / LABELED, name=trained.task_or_data, classes=record.labels
            )
        else:
            measured = task_of(trained)
        require_kind(measured, number=clf.predicts_number)
        # of the rows as they are read, before labels are renamed or one is chosen
        digest = measured_data(measured)
        measured = _by_metric(class_task(measured, clf.labels), config)
        measured = measured.with_classes(read_classes(config.classes))
    except InputError as error:
        if record is None or config.task:
            raise
        option = "--data" if trained.data else "--task or --data-dir"
        raise InputError(f"{error}; if the data of {checkpoint} were moved, give {option}") from error
    match_classes(clf.labels, measured.labels)  # raises an InputError before anything is fitted
    if record is not None and origin.data is not None and digest == record.data:
        trained = record.trained  # the rows are the same, so the measurement keeps its name
    return measured, filled_config(config, trained, clf.fingerprint, digest, measured.metric), trained


def _in_order(own: Task, labels: Sequence[str], classes: str) -> Task:
    """Return the task of the user's own texts with the model's names of classes, in its order if it has all.

    A file may lack a class of the model.
    """
    names = read_classes(classes)
    written = dict(zip(names.values(), names, strict=True))
    codes = tuple(written.get(label, label) for label in labels)
    if {*own.labels} <= {*codes}:
        own = replace(own, labels=codes)
    return own.with_classes(names)


def _by_metric(measured: Task, config: MeasureConfig) -> Task:
    return measured.with_metric(config.metric) if config.metric else measured


def _on_own_texts(own: Task, trained: TrainConfig) -> TrainConfig:
    """Return a training with the user's own test texts as its data; `task_of` gives them back.

    A file whose rows are all test texts is both data and test.
    """
    paths = own.own.paths if own.own else {}
    test, valid = str(paths.get("test", "")), str(paths.get("validation", ""))
    label = ",".join(own.label) if isinstance(own.label, tuple) else own.label
    columns = {"text": own.explained, "label": label, "pair": own.context or "", "label_kind": own.kind}
    columns |= {"rationale": own.rationale or "", "metric": ""}
    return trained.replace(
        task="", data=str(paths.get("train", test)), test=test, valid=valid, data_dir="", **columns
    )


def filled_config(
    config: MeasureConfig, trained: TrainConfig, fingerprint: str, data: str, metric: str = ""
) -> MeasureConfig:
    """Return the config with missing settings taken from the training; its digest identifies the record.

    `metric` is the name of the metric that is measured by, whose source belongs to the identity.
    """
    from ..methods.registry import default_methods, parse

    methods = list(map(parse, config.methods or default_methods()))
    return config.replace(
        checkpoint=fingerprint,
        data=data,
        task=trained.task_or_data,
        strategy=config.strategy or trained.strategy,
        scope=config.scope or trained.scope,
        # the default stays out of the digest, which is older than this option
        rates=config.rates or ("" if trained.rates == "uniform" else trained.rates),
        # of the user's methods: another source is another measurement
        code=tuple(f"{method.name}:{method.code}" for method in methods if method.code),
        metric_code=metric_code(metric),
    )
