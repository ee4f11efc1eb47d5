"""In-distribution tests of a checkpoint, fitted once and saved beside it or in a cache folder.

Saved tests are loaded without the data that they were fitted on.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..config import MeasureConfig, Precision
from ..data import Task
from ..errors import DamageWarning, InputError
from ..phases import Progress
from ..stats.masf import MIN_ROWS
from ..store.records import TESTS
from .measured import Origin, filled_config, folder_of, measured_task, training_record

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..models.evaluator import Model
    from ..stats.masf import MaSF


def load_tests(
    clf: Classifier,
    checkpoint: str | Path,
    config: MeasureConfig,
    *,
    data_dir: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, MaSF] | None:
    """Return the tests of a checkpoint, fitting them if necessary.

    Returns None if its task is unknown, or if its training had too few validation rows to fit any test.

    Raises:
        InputError: The tests are not fitted yet, and the data are not where the training read them.
    """
    record = training_record(checkpoint)
    if record is None and not config.task:
        return None
    # the check of the training itself, whose data may be gone
    if record is not None and not config.task and data_dir is None:
        known = filled_config(config, record.trained, clf.fingerprint, record.data)
        tests = read_tests(clf, checkpoint, known)
        if tests is not None:
            return tests
        # no p-value of so few rows could be small, so that nothing would be found
        if record.rows["validation"] < MIN_ROWS:
            return None
    measured, known, _ = measured_task(clf, checkpoint, config, Origin(data_dir))
    return fitted_tests(clf, checkpoint, measured, known, progress=progress)


def saved_tests(clf: Classifier) -> dict[str, MaSF]:
    """Return the in-distribution tests that were saved with the checkpoint of a classifier.

    `faithmeter adapt` saves them, and so does the first `check`, `measure` or `serve` of a checkpoint. They
    need no data, and come with a checkpoint from the hub.

    Args:
        clf: A classifier that `load` returned.

    Returns:
        By name, the tests for `measure`, `explain_text` and `pipeline`.

    Raises:
        InputError: The classifier was not loaded from a checkpoint of faithmeter, or no tests were saved.

    Example:
        >>> saved_tests(clf)
        Traceback (most recent call last):
        ...
        faithmeter.errors.InputError: no tests were saved with this classifier; fit them: ...
    """
    tests = tests_beside(clf)
    if tests:
        return tests
    raise InputError(
        f"no tests were saved with {clf.checkpoint or 'this classifier'}; fit them: fit_tests(clf, task), "
        "or faithmeter check CHECKPOINT"
    )


def tests_beside(clf: Model) -> dict[str, MaSF]:
    """Return the tests that were saved with the checkpoint of a classifier; empty if there are none."""
    checkpoint = getattr(clf, "checkpoint", "")
    record = training_record(checkpoint) if checkpoint else None
    if record is None:
        return {}
    loaded = cast("Classifier", clf)
    config = MeasureConfig(precision=cast(Precision, loaded.precision), overlap=loaded.overlap)
    known = filled_config(config, record.trained, loaded.fingerprint, record.data)
    return read_tests(loaded, checkpoint, known) or {}


def fitted_tests(
    clf: Classifier,
    checkpoint: str | Path,
    measured: Task,
    config: MeasureConfig,
    *,
    progress: Progress | None = None,
) -> dict[str, MaSF]:
    """Return the tests of a checkpoint on a task; fit and save them if there are none."""
    from ..measuring.fitting import fit_tests

    tests = read_tests(clf, checkpoint, config)
    if tests is None:
        tests = fit_tests(
            clf,
            measured,
            trained_with=config.strategy or "unknown",
            scope=config.scope or "explained",
            rates=config.rates or "uniform",
            seed=config.seed,
            progress=progress,
        )

        def save(folder: Path) -> None:
            for name, file in _files(folder, config).items():
                tests[name].save(file, fingerprint=clf.fingerprint)

        write_beside(clf, checkpoint, save)
    return tests


def read_tests(clf: Classifier, checkpoint: str | Path, config: MeasureConfig) -> dict[str, MaSF] | None:
    """Read the tests for a config, saved beside the checkpoint or in the cache; None if there are none."""
    from ..stats.masf import MaSF

    for folder in checkpoint_folders(clf, checkpoint):
        files = _files(folder, config)
        # both or none: they are fitted on the same features
        if all(map(Path.is_file, files.values())):
            try:
                return {
                    name: MaSF.load(file, fingerprint=clf.fingerprint, calibration=name)
                    for name, file in files.items()
                }
            except InputError as error:
                # then the next folder, or another fit: a damaged check must not pass
                warnings.warn(f"{error}; it is not used", DamageWarning, stacklevel=2)
    return None


def write_beside(clf: Classifier, checkpoint: str | Path, write: Callable[[Path], object]) -> None:
    """Call `write` with the first folder for files about a checkpoint that can be written to.

    If there is none, nothing is saved: what was computed is still used.
    """
    for folder in checkpoint_folders(clf, checkpoint):
        with suppress(InputError, OSError):
            write(folder)
            return


def checkpoint_folders(clf: Classifier, checkpoint: str | Path) -> list[Path]:
    """Return the folders for files about a checkpoint: its own, if it has one, and one in the cache."""
    # checkpoints of the hub or of a read-only store
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = folder_of(checkpoint)
    beside = [folder] if folder.is_dir() else []
    return [*beside, cache / "faithmeter" / "tests" / clf.fingerprint]


def _files(folder: Path, config: MeasureConfig) -> dict[str, Path]:
    """Return the file of each test, named by a digest of all settings that the fit depends on."""
    from ..stats.masf import CALIBRATIONS, FORMAT

    settings = config.replace(
        **dict.fromkeys(("checkpoint", "label", "metric", "metric_code"), ""),
        **dict.fromkeys(("methods", "code"), ()),
        # of these the fit does not depend, so all measurements of a checkpoint share one
        limit=0,
        step=10,
        unit="token",
        complement=False,
    ).digest
    # files of another version are not found, instead of being refused
    version = FORMAT.rpartition("-")[2]
    return {name: folder / f"{TESTS}{name}-{settings}-{version}.safetensors" for name in CALIBRATIONS}
