"""Training, Recursive ROAR and measurement of a config; finished runs are read from the store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import BASELINE, AdaptConfig, MeasureConfig, RoarConfig, TrainConfig
from ..data import Task
from ..errors import InputError
from ..files import write_parquet
from ..store.records import INPUTS, RECORD, TEXTS, RoarRecord, TrainRecord, read_measurement, read_record
from ..store.run_store import RunStore, Unready, require_files
from ..training import UNFINISHED
from .bounded import Bounds, bound_measurement, expensive_methods
from .fitted_tests import fitted_tests, load_tests, read_tests
from .measured import filled_config, folder_of, load_measured, measured_task, task_of

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import TrainerCallback

    from ..measuring.chunks import ChunkWork
    from ..measuring.measurement import Measurement
    from ..models.classifier import Classifier
    from ..models.tokens import Batch
    from ..stats.masf import MaSF
    from ..training.inputs import Inputs

    Fill = Callable[
        [ChunkWork, Iterable[tuple[Batch, Tensor]], Path, Callable[[str, int, int], object] | None], object
    ]
    """Function that writes the missing chunks of a measurement to a folder (see `shards.fill_chunks`)."""


INPUT_FIELDS = (
    *("task", "model", "add_mask_token", "limit", "validation_limit"),
    *("data", "text", "label", "label_kind", "metric", "pair", "valid", "test", "data_dir"),
)
"""Config fields that determine the rows and the encoder of a training run."""


def train(
    config: TrainConfig,
    store: RunStore,
    *,
    resume: bool = False,
    restart: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
    processes: int = 1,
    progress: Callable[[str, int, int], object] | None = None,
) -> TrainRecord:
    """Fine-tune a model, or return the record if the store already has this run.

    Args:
        config: Task, model, seed and settings.
        store: Store that the checkpoint and its record are written to.
        resume: Continue an unfinished run from its last whole epoch.
        restart: Delete any existing run and start over.
        callbacks: Callbacks for the Hugging Face Trainer.
        processes: Number of processes that share the training, one for each GPU. With several, only
            callbacks that report steps are called.
        progress: Called with a phase after the last epoch (`validate` and `test`, unless several processes
            share them, and `check`), the number of texts just finished (0 when it starts), and the total.

    Returns:
        The record; the checkpoint is in `store.folder(config)`.

    Raises:
        InputError: The run is unfinished, another process is working on it, or its inputs have changed.

    Example:
        >>> record = fm.train(fm.TrainConfig(limit=8, epochs=1), fm.RunStore("runs"))
        >>> record.rows["train"], len(record.epochs)
        (8, 1)
    """
    task = task_of(config)

    def work(folder: Path) -> dict[str, Any]:
        result = _finetune(config, task, folder, processes, callbacks, progress, resume=resume)
        moveable = config.data or config.data_dir or config.task.endswith(".toml")
        if moveable:
            _fit_tests(config, task, folder, result["data"], progress)
        return {**result, "task_name": task.name}

    return run_once(config, store, work, resume=resume, restart=restart)


def run_once(
    config: TrainConfig,
    store: RunStore,
    work: Callable[[Path], dict[str, Any]],
    *,
    resume: bool,
    restart: bool,
    read: Callable[[TrainConfig], Inputs] | None = None,
) -> TrainRecord:
    """Return the record of a run from the store or, if there is none, call `work` and write the record.

    `read` returns the current digests of a config's inputs; the default is `current_inputs`.
    """
    read = read or current_inputs
    folder = store.folder(config)
    if not restart and (finished := store.find(config)):
        _require_same_inputs(config, finished, store, read)
        return finished
    with store.claim(config):
        if restart:
            shutil.rmtree(folder, ignore_errors=True)
        if record := store.get(config):
            _require_same_inputs(config, record, store, read)
            return record
        if (folder / UNFINISHED).exists() and not resume:
            raise InputError(
                f"{folder} holds an unfinished run; add --resume to continue or --restart to start over"
            )
        result = work(folder)
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
    processes: int = 1,
) -> RoarRecord:
    """Perform one step of Recursive ROAR, or return its record if the store already has it.

    Raises:
        Unready: The previous step is not in the store.
        InputError: Another process is working on the run, or its inputs have changed.
    """
    from ..models.loading import load
    from ..training.inputs import load_splits
    from . import roar as erasing

    folder, before, task = store.folder(config), store.folder(config.before), task_of(config)
    if finished := store.find(config):
        _require_same_inputs(config, finished, store, current_inputs)
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
        options: dict[str, Any] = {"resume": True, "erased": erased, "previous": earlier.fingerprint}
        result = _finetune(config, task, folder, processes, callbacks, None, **options)
        plain = earlier.plain if isinstance(earlier, RoarRecord) else earlier.unmasked
        seconds = {"explain": explained, **result["seconds"]}
        _keep_logs(folder)
        record = store.put(config, {**result, "plain": plain, "seconds": seconds})
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        return record


def _finetune(
    config: TrainConfig,
    task: Task,
    folder: Path,
    processes: int,
    callbacks: Sequence[TrainerCallback],
    progress: Callable[[str, int, int], object] | None,
    **options: Any,
) -> dict[str, Any]:
    """Fine-tune a model in this process, or by several; the options are those of `finetune`."""
    if processes > 1:
        from .processes import finetune_together

        show = next((callback.show for callback in callbacks if hasattr(callback, "show")), None)
        return finetune_together(config, folder, processes=processes, show=show, **options)
    from ..training.finetuning import finetune

    return finetune(config, task, folder, callbacks=callbacks, progress=progress, **options)


def _fit_tests(
    config: TrainConfig,
    task: Task,
    folder: Path,
    data: str,
    progress: Callable[[str, int, int], object] | None,
) -> None:
    """Fit and save the tests of a checkpoint whose data may be moved or deleted later."""
    from ..models.loading import load

    clf = load(folder, label=task.labels[0] if task.kind == "multi-label" else None)
    known = filled_config(MeasureConfig(), config, clf.fingerprint, data)
    with suppress(InputError):  # too few validation texts: commands that need a test report it
        fitted_tests(
            clf, folder, task, known, progress=None if progress is None else partial(progress, "check")
        )


def _keep_logs(folder: Path) -> None:
    """Move the TensorBoard files out of the folder that is deleted when a run finishes."""
    if (logs := folder / UNFINISHED / "runs").exists():
        shutil.move(logs, folder / "logs")


def changed_inputs(
    config: TrainConfig, record: TrainRecord, store: RunStore, read: Callable[[TrainConfig], Inputs]
) -> str:
    """Describe which inputs of a finished training run have changed since; empty if none has.

    Inputs that can no longer be read count as unchanged. `read` is called with `input_config(config)`.
    """
    from ..training.inputs import describe_changes

    try:
        now = read(input_config(config))
    except InputError:
        return ""
    earlier = store.peek(config.before) if isinstance(config, RoarConfig) else None
    now = {**now, "previous": earlier.fingerprint if earlier else record.previous}
    before = {"source": record.source.kind, "splits": record.splits, "encoder": record.encoder}
    before |= {"previous": record.previous, "metric_code": record.metric_code}
    return describe_changes(before, now)


def input_config(config: TrainConfig) -> TrainConfig:
    """Return a config with only the fields that determine the inputs of training; others are defaults."""
    kind = AdaptConfig if isinstance(config, AdaptConfig) else TrainConfig
    return kind(**{name: getattr(config, name) for name in INPUT_FIELDS})


def current_inputs(config: TrainConfig) -> Inputs:
    """Return the digests of a config's inputs as they are now."""
    from ..training.inputs import read_inputs

    return read_inputs(config, task_of(config))


def describe_change(folder: Path, changes: str) -> str:
    return (
        f"{folder} was trained with other inputs; changed: {changes}; add --restart or "
        "delete that folder to train again, or choose another --output to keep both"
    )


def _require_same_inputs(
    config: TrainConfig, record: TrainRecord, store: RunStore, read: Callable[[TrainConfig], Inputs]
) -> None:
    """Raise an InputError if the inputs of a finished training run have changed since."""
    if changes := changed_inputs(config, record, store, read):
        raise InputError(describe_change(store.folder(config), changes))


def measure(
    checkpoint: str | Path,
    config: MeasureConfig,
    store: RunStore,
    *,
    data_dir: Path | None = None,
    data: Path | None = None,
    own: Task | None = None,
    device: str = "auto",
    progress: Callable[[str, int, int], object] | None = None,
    announce: Callable[[Bounds], object] | None = None,
    fill: Fill | None = None,
) -> Measurement:
    """Measure a checkpoint, or return the measurement if the store already has it.

    Finished chunks, the results of every text and a record are written to the store.

    Args:
        checkpoint: Folder of a checkpoint, or hub name.
        config: Methods and settings; missing ones are taken from the checkpoint's training.
        store: Store to read from and write to.
        data_dir: Folder of the datasets; None for the one used in training.
        data: New path of the user's own data, if they were moved after training; None otherwise.
        device: Device to evaluate on; a stored measurement is used whatever its device was.
        own: Texts of the user, measured instead of a task.
        progress: Called with a method (or `check`), the number of texts just finished (0 while it is at
            work), and the total.
        announce: Called with the bounds on the evaluations before the work begins, if there is work to do.
        fill: Computes missing chunks elsewhere before the measurement reads them; None computes them here.

    Returns:
        The measurement.
    """
    from ..measuring import measure as dataset
    from ..methods.registry import default_methods, parse

    clf = _load_verified(checkpoint, config, store, device)
    dataset.refuse_complement(clf, complement=config.complement)
    as_given = config
    measured, config, trained = measured_task(clf, checkpoint, config, data_dir, data, own)
    if (finished := find_measurement(config, store)) is not None:
        return finished
    left_out = {} if config.methods else expensive_methods(clf, measured, config)
    if left_out:
        chosen = tuple(name for name in default_methods() if name not in left_out)
        config = config.replace(methods=chosen)
        if (finished := find_measurement(config, store)) is not None:
            return finished
    names = config.methods or default_methods()
    dataset.require_own_scores(clf, measured.split("test"), map(parse, names), config.limit, config.unit)
    if announce is not None:
        fitted = "validation" not in measured.load() or read_tests(clf, checkpoint, config) is not None
        fitting = 0 if fitted else len(measured.load()["validation"])
        announce(bound_measurement(clf, measured, config, left_out, fitting))

    def fit_tests() -> dict[str, MaSF]:
        fitting = None if progress is None else partial(progress, "check")
        if "validation" in measured.load():
            return fitted_tests(clf, checkpoint, measured, config, progress=fitting)
        return load_tests(clf, checkpoint, as_given, data_dir=data_dir, progress=fitting) or {}

    with store.claim(config):
        if record := store.get(config):
            return read_measurement(store.folder(config), record)
        return _measure_into(store, clf, measured, config, trained, fit_tests, progress=progress, fill=fill)


def _load_verified(checkpoint: str | Path, config: MeasureConfig, store: RunStore, device: str) -> Classifier:
    """Load a checkpoint whose files and weights are those of its record.

    Raises:
        InputError: They are not.
    """
    fingerprint = _checked(checkpoint, store)
    clf = load_measured(checkpoint, config, device)
    if fingerprint not in (None, clf.fingerprint):
        raise InputError(
            f"the weights of {checkpoint} have the fingerprint {clf.fingerprint}; its record expects "
            f"{fingerprint}: train it again"
        )
    return clf


def _measure_into(
    store: RunStore,
    clf: Classifier,
    measured: Task,
    config: MeasureConfig,
    trained: TrainConfig,
    fit_tests: Callable[[], dict[str, MaSF]],
    *,
    progress: Callable[[str, int, int], object] | None,
    fill: Fill | None,
) -> Measurement:
    """Measure a classifier and write chunks, the results of every text and the record to the store."""
    from ..files import timed
    from ..measuring import measure as dataset
    from ..methods.registry import default_methods

    folder, chunks = store.folder(config), store.root / "chunks" / config.chunks
    names = config.methods or default_methods()
    seconds: dict[str, float] = {}
    with timed(seconds, "fit"):
        tests = fit_tests()
    options: dict[str, Any] = {
        **{name: getattr(config, name) for name in ("seed", "percents", "unit", "complement")},
        "tests": tests,
    }
    if fill is not None:
        work = dataset.chunk_work(clf, names, **options)
        fill(work, dataset.measured_chunks(work, measured, config.limit), chunks, progress)
        progress = None  # all has been reported
    result = dataset.measure(
        clf, measured, names, limit=config.limit, keep=chunks, progress=progress, **options
    )
    write_parquet(folder / TEXTS, result.frame)
    if result.inputs is not None:
        write_parquet(folder / INPUTS, result.inputs)
    values = {
        "trained": trained.to_dict(),
        "train_digest": trained.digest,
        "task_name": measured.name,
        "labels": list(clf.labels),
        "threshold": measured.threshold,
        "seconds": seconds,
    }
    store.put(config, {**values, **result.to_record()})
    return result


def find_measurement(config: MeasureConfig, store: RunStore) -> Measurement | None:
    """Return a measurement from the store; None if there is none.

    It is read from its own record, or selected from a measurement with more methods.
    """
    from ..methods.registry import default_methods

    if record := store.find(config):
        return read_measurement(store.folder(config), record)
    methods = {BASELINE, *(config.methods or default_methods())}
    for folder, wider in store.variants(config):
        same = wider.config.replace(methods=config.methods, code=config.code) == config
        if same and methods <= wider.methods.keys() and {*config.code} <= {*wider.config.code}:
            return read_measurement(folder, wider).select_methods(methods)
    return None


def _checked(checkpoint: str | Path, store: RunStore) -> str | None:
    """Verify the files of a checkpoint, and return the fingerprint in its record; None without a record.

    A damaged checkpoint is an error; if it is in the store, it is also put aside.
    """
    folder = folder_of(checkpoint)
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
        raise InputError(f"{checkpoint} is a measurement; give the folder of a training run")
    return record.fingerprint
