"""Config → record in the store, doing only what is not done yet."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import MeasureConfig, TrainConfig
from .errors import InputError
from .store import RECORD, RunStore, read_record, write_parquet
from .tasks import Task, own_task, task
from .tasks.splits import digest

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from .indist import MaSF
    from .measurement import Measurement
    from .model import Classifier


def task_of(config: TrainConfig) -> Task:
    """The task that a config names, or the one that its own data make."""
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
) -> dict[str, Any]:
    """The record of a fine-tuning; the checkpoint lies beside it. A finished run is not run again."""
    folder = store.folder(config)
    if restart:
        shutil.rmtree(folder, ignore_errors=True)
    if record := store.get(config):
        _require_same_data(config, record, folder)
        return record
    unfinished = folder / "trainer"
    if unfinished.exists() and not resume:
        raise InputError(
            f"{folder} holds an unfinished run; add --resume to go on or --restart to begin anew"
        )
    from .finetuning import finetune

    result = finetune(config, task_of(config), folder, resume=resume, callbacks=callbacks)
    record = store.put(config, result)
    if (logs := unfinished / "runs").exists():  # where TensorBoard's files are
        shutil.move(logs, folder / "logs")
    shutil.rmtree(unfinished, ignore_errors=True)
    return record


def _require_same_data(config: TrainConfig, record: dict[str, Any], folder: Path) -> None:
    """A user's file may have changed since; what was trained on then would pass for a result of now."""
    if not config.data:
        return
    from .finetuning import load_splits

    splits = load_splits(config, task_of(config))
    changed = [name for name, rows in splits.items() if digest(rows) != record["splits"][name]]
    if changed:
        raise InputError(
            f"{config.data} has changed ({', '.join(changed)}) since {folder} was trained; "
            "add --restart to train again, or another --output to keep both"
        )


def trained_as(checkpoint: str | Path) -> TrainConfig | None:
    """The config that a checkpoint was trained with, if it is one of ours."""
    path = Path(checkpoint) / RECORD
    return TrainConfig.from_dict(read_record(path)["config"]) if path.exists() else None


def measured_task(
    clf: Classifier, checkpoint: str | Path, config: MeasureConfig, data_dir: Path | None
) -> tuple[Task, MeasureConfig]:
    """What to measure: the config with what it leaves open taken from how the checkpoint was trained."""
    trained = trained_as(checkpoint) or TrainConfig(task=config.task)
    if not (config.task or trained.task):
        raise InputError(f"{checkpoint} does not say what it was trained on; name the task with --task")
    if config.task:
        trained = replace(trained, task=config.task, data="")
    if data_dir is not None:
        trained = replace(trained, data_dir=str(data_dir))
    measured = task_of(trained)
    splits = measured.load()
    filled = replace(
        config,
        checkpoint=clf.fingerprint,
        data=f"{digest(splits['validation'])[:16]}-{digest(splits['test'])[:16]}",
        task=trained.data or trained.task,
        strategy=config.strategy or trained.strategy,
        scope=config.scope or trained.scope,
    )
    if len(measured.labels) != len(clf.labels):
        raise InputError(
            f"{checkpoint} knows {len(clf.labels)} classes, {measured.name} has {len(measured.labels)}; "
            "measure a checkpoint on the task it was trained on"
        )
    return measured, filled


def measure_run(
    clf: Classifier,
    measured: Task,
    config: MeasureConfig,
    tests: dict[str, MaSF],
    store: RunStore,
    *,
    progress: Callable[[str, int, int], object] | None = None,
) -> Measurement:
    """Measure, keeping finished chunks, the results of every text, and a record in the store."""
    from .measurement import measure_task
    from .methods import METHODS

    result = measure_task(
        clf,
        measured,
        config.methods.split() or list(METHODS),
        seed=config.seed,
        limit=config.limit,
        percents=[*range(0, 100, config.step), 100],
        tests=tests,
        keep=store.root / "chunks" / config.chunks,
        progress=progress,
    )
    write_parquet(store.folder(config) / "texts.parquet", result.frame)
    store.put(config, result.to_dict())
    return result


def fitted_tests(
    clf: Classifier,
    checkpoint: str | Path,
    measured: Task,
    config: MeasureConfig,
    *,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, MaSF]:
    """The in-distribution tests of a checkpoint: from the files beside it, or fitted now and put there."""
    from .indist import CALIBRATIONS, MaSF
    from .measurement import fit_tests

    settings = replace(config, checkpoint="", methods="", limit=0, step=10).digest  # what the fit depends on
    files = {name: Path(checkpoint) / f"masf-{name}-{settings}.safetensors" for name in CALIBRATIONS}
    if all(file.exists() for file in files.values()):
        return {name: MaSF.load(file, fingerprint=clf.fingerprint) for name, file in files.items()}
    masking: dict[str, Any] = {"strategy": config.strategy, "scope": config.scope, "seed": config.seed}
    tests = fit_tests(clf, measured, **masking, progress=progress)
    if Path(checkpoint).is_dir():  # a hub model has no place of its own
        for name, test in tests.items():
            test.save(files[name], fingerprint=clf.fingerprint)
    return tests
