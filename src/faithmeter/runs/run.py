"""Training of a config; finished runs are read from the store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import AdaptConfig, MeasureConfig, RoarConfig, TrainConfig, select_fields
from ..data import Task
from ..errors import InputError
from ..phases import Progress
from ..store.records import TrainRecord
from ..store.run_store import RunStore
from ..training import LABELS_ONLY, UNFINISHED, Goal, Session
from .fitted_tests import fitted_tests
from .measured import filled_config, task_of

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from ..training.inputs import Inputs


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
    progress: Progress | None = None,
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
            share them, and `check`), the number of texts done in it so far, and the total.

    Returns:
        The record; the checkpoint is in `store.folder(config)`.

    Raises:
        InputError: The run is unfinished, another process is working on it, or its inputs have changed.

    Example:
        >>> record = fm.train(fm.TrainConfig(limit=8, epochs=1), fm.RunStore("runs"))
        >>> record.rows["train"], len(record.epochs)
        (8, 1)
    """
    task, session = task_of(config), Session(resume, callbacks, progress, processes)

    def work(folder: Path) -> dict[str, Any]:
        result = finetune_in(config, task, folder, LABELS_ONLY, session)
        moveable = config.data or config.data_dir or config.task.endswith(".toml")
        if moveable:  # the check must not need data that may be gone when it is asked for
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
    # without a lock, so that a finished run is read from a store that cannot be written
    finished = None if restart else store.find(config)
    if isinstance(finished, TrainRecord):
        _require_same_inputs(config, finished, store, read)
        return finished
    with store.claim(config):
        if restart:
            shutil.rmtree(folder, ignore_errors=True)
        # another process may have finished it before this one held the lock
        record = store.get(config)
        if record:
            _require_same_inputs(config, record, store, read)
            return record
        if (folder / UNFINISHED).exists() and not resume:
            raise InputError(
                f"{folder} holds an unfinished run; add --resume to continue or --restart to start over"
            )
        result = work(folder)
        # out of the folder of the unfinished run, which is deleted once the record is there
        _keep_logs(folder)
        written = store.put(config, result)
        assert isinstance(written, TrainRecord)  # the kind of a record is that of its config
        # last: a kill before this line leaves a finished run with some files too many
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        return written


def finetune_in(
    config: TrainConfig, task: Task, folder: Path, goal: Goal, session: Session
) -> dict[str, Any]:
    """Fine-tune a model in this process, or by several, as `finetune` does."""
    if session.processes > 1:
        from .processes import finetune_together

        return finetune_together(config, folder, goal, session)
    from ..training.finetuning import finetune

    return finetune(config, task, folder, goal, session)


def _fit_tests(config: TrainConfig, task: Task, folder: Path, data: str, progress: Progress | None) -> None:
    """Fit and save the tests of a checkpoint whose data may be moved or deleted later."""
    from ..models.loading import load

    clf = load(folder, label=task.labels[0] if task.kind == "multi-label" else None)
    known = filled_config(MeasureConfig(), config, clf.fingerprint, data)
    with suppress(InputError):  # too few validation texts: commands that need a test report it
        fitted_tests(clf, folder, task, known, progress=progress)


def _keep_logs(folder: Path) -> None:
    """Move the TensorBoard files out of the folder that is deleted when a run finishes."""
    logs = folder / UNFINISHED / "runs"
    if logs.exists():
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
    # a step of Recursive ROAR also depends on the model that chose the erased tokens
    now = {**now, "previous": earlier.fingerprint if earlier else record.previous}
    before = {"source": record.source.kind, "splits": record.splits, "encoder": record.encoder}
    before |= {"previous": record.previous, "metric_code": record.metric_code}
    return describe_changes(before, now)


def input_config(config: TrainConfig) -> TrainConfig:
    """Return a config with only the fields that determine the inputs of training; others are defaults."""
    kind = AdaptConfig if isinstance(config, AdaptConfig) else TrainConfig
    return kind(**select_fields(config, INPUT_FIELDS))


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
    changes = changed_inputs(config, record, store, read)
    if changes:
        raise InputError(describe_change(store.folder(config), changes))
