"""Config → record in the store, doing only what is not done yet."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import MeasureConfig, RoarConfig, TrainConfig
from ..errors import InputError
from ..files import write_parquet
from ..tasks import Task, own_task, task
from ..training import UNFINISHED
from .record import INPUTS, RECORD, TEXTS, RoarRecord, TrainRecord, read_measurement, read_record
from .store import RunStore, Unready, require_files

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from ..faithfulness.masf import MaSF
    from ..faithfulness.measurement import Measurement
    from ..models.classifier import Classifier
    from ..training.inputs import Inputs


INPUT_FIELDS = (*("task", "model", "limit", "data", "text", "label", "pair", "valid", "test", "data_dir"),)
"""Fields of a config that name the rows and the encoder of a training."""


def task_of(config: TrainConfig) -> Task:
    """Return the task that a config names, or that of its own data."""
    if not config.data:
        return task(config.task, config.data_dir or None)
    if not (config.text and config.label):
        missing = "--label" if config.text else "--text"
        raise InputError(f"--data {config.data} came without {missing}, the name of that column")
    return own_task(
        config.data,
        text=config.text,
        label=config.label,
        pair=config.pair or None,
        valid=config.valid or None,
        test=config.test or None,
    )


def train(
    config: TrainConfig,
    store: RunStore,
    *,
    resume: bool = False,
    restart: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
) -> TrainRecord:
    """Fine-tune a model, or return the record of the same training if it is in the store.

    Args:
        config: Task, model, seed and settings.
        store: Store that the checkpoint and its record are written to.
        resume: Continue an unfinished run from its last whole epoch.
        restart: Delete what is there and begin anew.
        callbacks: Callbacks for the Hugging Face Trainer.

    Returns:
        The record; the checkpoint is in `store.folder(config)`.

    Raises:
        InputError: The run is unfinished, another process works on it, or its inputs have changed since.

    Example:
        >>> record = fm.train(fm.TrainConfig(limit=8, epochs=1), fm.RunStore("runs"))
        >>> record.rows["train"], len(record.epochs)
        (8, 1)
    """
    folder, task = store.folder(config), task_of(config)
    if not restart and (finished := store.find(config)):
        _require_same_inputs(config, finished, store)
        return finished
    with store.claim(config):
        if restart:
            shutil.rmtree(folder, ignore_errors=True)
        if record := store.get(config):
            _require_same_inputs(config, record, store)
            return record
        if (folder / UNFINISHED).exists() and not resume:
            raise InputError(
                f"{folder} holds an unfinished run; add --resume to go on or --restart to begin anew"
            )
        from ..training.finetuning import finetune

        result = finetune(config, task, folder, resume=resume, callbacks=callbacks)
        _keep_logs(folder)
        record = store.put(config, result)
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        return record


def roar(
    config: RoarConfig,
    store: RunStore,
    *,
    callbacks: Sequence[TrainerCallback] = (),
    progress: Callable[[int, int], object] | None = None,
) -> RoarRecord:
    """Return the record of one step of Recursive ROAR; the previous step must be in the store."""
    from ..models.loading import load
    from ..training.finetuning import finetune
    from ..training.inputs import load_splits
    from . import roar as erasing

    folder, before, task = store.folder(config), store.folder(config.before), task_of(config)
    if finished := store.find(config):
        _require_same_inputs(config, finished, store)
        return finished
    with store.claim(config):
        if record := store.get(config):
            return record
        earlier = store.get(config.before)
        if earlier is None:
            raise Unready(f"{before} has no record; Recursive ROAR needs the step before: run that first")
        erased, explained = erasing.stored_positions(
            folder,
            earlier.fingerprint,
            lambda: erasing.erase_splits(
                load(str(before)),
                load_splits(config, task),
                erasing.read_positions(before),
                config.method,
                config.percent,
                seed=config.seed,
                progress=progress,
            ),
        )
        options: dict[str, Any] = {"resume": True, "callbacks": callbacks}
        result = finetune(config, task, folder, erased=erased, previous=earlier.fingerprint, **options)
        plain = earlier.plain if isinstance(earlier, RoarRecord) else earlier.unmasked
        seconds = {"explain": explained, **result["seconds"]}
        _keep_logs(folder)
        record = store.put(config, {**result, "plain": plain, "seconds": seconds})
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        return record


def _keep_logs(folder: Path) -> None:
    """Move the files of TensorBoard out of the folder that a finished run loses."""
    if (logs := folder / UNFINISHED / "runs").exists():
        shutil.move(logs, folder / "logs")


def changed_inputs(
    config: TrainConfig, record: TrainRecord, store: RunStore, read: Callable[[TrainConfig], Inputs]
) -> str:
    """Return in words which inputs of a finished training have changed since; empty if none has.

    Inputs that are not here any more cannot have been replaced. `read` is called with `input_config(config)`.
    """
    from ..training.inputs import describe_changes

    try:
        now = read(input_config(config))
    except InputError:
        return ""
    earlier = store.peek(config.before) if isinstance(config, RoarConfig) else None
    now = {**now, "previous": earlier.fingerprint if earlier else record.previous}
    before = {"source": record.source.kind, "splits": record.splits, "encoder": record.encoder}
    return describe_changes({**before, "previous": record.previous}, now)


def input_config(config: TrainConfig) -> TrainConfig:
    """Return a config with the fields that name the inputs of a training, and defaults for all others."""
    return TrainConfig(**{name: getattr(config, name) for name in INPUT_FIELDS})


def current_inputs(config: TrainConfig) -> Inputs:
    """Return the digests of the inputs that a config names."""
    from ..training.inputs import read_inputs

    return read_inputs(config, task_of(config))


def describe_change(folder: Path, changes: str) -> str:
    return (
        f"{folder} was trained with other inputs: changed are {changes}; add --restart or "
        "delete that folder to train again, or choose another --output to keep both"
    )


def _require_same_inputs(config: TrainConfig, record: TrainRecord, store: RunStore) -> None:
    """Refuse a record whose inputs have changed since: old numbers would pass for new ones."""
    if changes := changed_inputs(config, record, store, current_inputs):
        raise InputError(describe_change(store.folder(config), changes))


def trained_as(checkpoint: str | Path) -> TrainConfig | None:
    """Return the config that a checkpoint was trained with; None if it has no record."""
    path = Path(checkpoint) / RECORD
    if not path.exists():
        return None
    return read_record(path).trained


def training_of(checkpoint: str | Path, config: MeasureConfig, data_dir: Path | None) -> TrainConfig:
    """Return how a checkpoint was trained, as far as it is known, on the task that is to be measured."""
    trained = trained_as(checkpoint) or TrainConfig(task=config.task, model=str(checkpoint))
    if not (config.task or trained.task):
        raise InputError(f"{checkpoint} does not say what it was trained on; name the task with --task")
    if config.task:
        trained = trained.replace(task=config.task, data="")
    return trained if data_dir is None else trained.replace(data_dir=str(data_dir))


def measured_task(
    clf: Classifier, checkpoint: str | Path, config: MeasureConfig, data_dir: Path | None
) -> tuple[Task, MeasureConfig]:
    """Return the task to measure and the config, completed from how the checkpoint was trained."""
    from ..training.finetuning import measured_data

    trained = training_of(checkpoint, config, data_dir)
    if not config.strategy and trained_as(checkpoint) is None:
        config = config.replace(strategy="unknown")
    measured = task_of(trained)
    if len(measured.labels) != len(clf.labels):
        raise InputError(
            f"{checkpoint} knows {len(clf.labels)} classes, {measured.name} has {len(measured.labels)}; "
            "measure a checkpoint on the task it was trained on"
        )
    return measured, filled_config(config, trained, clf.fingerprint, measured_data(measured))


def filled_config(config: MeasureConfig, trained: TrainConfig, fingerprint: str, data: str) -> MeasureConfig:
    """Return the config with what it leaves open taken from a training; its digest names the record."""
    from ..methods.registry import default_methods, parse

    methods = [parse(name) for name in config.methods or default_methods()]
    return config.replace(
        checkpoint=fingerprint,
        data=data,
        task=trained.data or trained.task,
        strategy=config.strategy or trained.strategy,
        scope=config.scope or trained.scope,
        rates=config.rates or ("" if trained.rates == "uniform" else trained.rates),
        code=tuple(f"{method.name}:{method.code}" for method in methods if method.code),
    )


def measure(
    checkpoint: str | Path,
    config: MeasureConfig,
    store: RunStore,
    *,
    data_dir: Path | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Measurement:
    """Measure a checkpoint, or return the same measurement if it is in the store.

    Finished chunks, the results of every text and a record are written.
    """
    from ..faithfulness.dataset import measure_task
    from ..files import timed
    from ..methods.registry import default_methods
    from ..models.loading import load

    fingerprint = _checked(checkpoint, store)
    clf = load(checkpoint)
    if fingerprint not in (None, clf.fingerprint):
        raise InputError(
            f"the weights of {checkpoint} have the fingerprint {clf.fingerprint}; its record expects "
            f"{fingerprint}: train it again"
        )
    trained = training_of(checkpoint, config, data_dir)
    measured, config = measured_task(clf, checkpoint, config, data_dir)
    folder = store.folder(config)
    seconds: dict[str, float] = {}
    with store.claim(config):
        if record := store.get(config):
            return read_measurement(folder, record)
        with timed(seconds, "fit"):
            fitting = None if progress is None else partial(progress, "check")
            tests = fitted_tests(clf, checkpoint, measured, config, progress=fitting)
        result = measure_task(
            clf,
            measured,
            config.methods or default_methods(),
            seed=config.seed,
            limit=config.limit,
            percents=config.percents,
            tests=tests,
            keep=store.root / "chunks" / config.chunks,
            progress=progress,
        )
        write_parquet(folder / TEXTS, result.frame)
        if result.inputs is not None:
            write_parquet(folder / INPUTS, result.inputs)
        values = {
            "trained": trained.to_dict(),
            "train_digest": trained.digest,
            "labels": list(clf.labels),
            "threshold": measured.threshold,
            "seconds": seconds,
        }
        store.put(config, {**values, **result.to_record()})
        return result


def _checked(checkpoint: str | Path, store: RunStore) -> str | None:
    """Return the fingerprint of a checkpoint with a record, whose files are verified; None without one.

    A damaged checkpoint is put aside if it is in the store, and refused elsewhere.
    """
    folder = Path(checkpoint)
    if not (folder / RECORD).exists():
        return None
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
        raise InputError(f"{checkpoint} is a measurement; give the folder of a training")
    return record.fingerprint


def fitted_tests(
    clf: Classifier,
    checkpoint: str | Path,
    measured: Task,
    config: MeasureConfig,
    *,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, MaSF]:
    """Return the in-distribution tests of a checkpoint: from the files beside it, or fitted and put there."""
    from ..faithfulness.check import fit_tests
    from ..faithfulness.masf import CALIBRATIONS, FORMAT, MaSF

    # all that the fit does not depend on is left out
    settings = config.replace(checkpoint="", methods=(), code=(), limit=0, step=10).digest
    version = FORMAT.rpartition("-")[2]
    files = {n: Path(checkpoint) / f"masf-{n}-{settings}-{version}.safetensors" for n in CALIBRATIONS}
    if all(file.exists() for file in files.values()):
        return {name: MaSF.load(file, fingerprint=clf.fingerprint) for name, file in files.items()}
    masking: dict[str, Any] = {"trained_with": config.strategy, "scope": config.scope, "seed": config.seed}
    masking["rates"] = config.rates or "uniform"
    tests = fit_tests(clf, measured, **masking, progress=progress)
    if Path(checkpoint).is_dir():  # a hub model has no place of its own
        for name, test in tests.items():
            test.save(files[name], fingerprint=clf.fingerprint)
    return tests
