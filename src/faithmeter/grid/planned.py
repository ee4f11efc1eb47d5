"""Planned runs: the config of each run, the run that must finish before it, and the work that it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import Config, MeasureConfig, RoarConfig, TrainConfig
from ..runs.measured import filled_config
from ..runs.run import changed_inputs
from ..store.records import ForeignRecord
from ..store.run_store import RunStore

if TYPE_CHECKING:
    from ..training.inputs import Inputs

Show = Callable[[str, int, int, str], object]
"""Function that is called with the part of a run at work, the amount done, the total, and a remark."""


@dataclass(frozen=True)
class Run:
    """A planned run, with the run that must finish before it.

    Attributes:
        config: Config of the run; that of a measurement is completed once its model is trained.
        after: Run that must finish first; None if there is none.
    """

    config: Config
    after: Run | None = None

    @property
    def trained(self) -> TrainConfig:
        """Training config of this run or, for a measurement, of the model that it measures."""
        config = self.after.config if isinstance(self.config, MeasureConfig) and self.after else self.config
        assert isinstance(config, TrainConfig)
        return config

    @property
    def name(self) -> str:
        """Human-readable name, such as `train bAbI-1 embedded half/both seed 0`."""
        trained = self.trained
        words = [self.config.kind, trained.task_or_data, Path(trained.model).name]
        words += [f"{trained.strategy}/{trained.validation}", f"seed {trained.seed}"]
        if isinstance(self.config, RoarConfig):
            words += [self.config.method, f"{self.config.percent} %"]
        return " ".join(words)

    def located(self, store: RunStore) -> Config | None:
        """Return the complete config, whose digest identifies the record.

        A measurement depends on the weights of its model: the result is None until that model is trained.
        """
        if not isinstance(self.config, MeasureConfig):
            return self.config
        # without verifying files: this is asked for every run at every look
        record = store.peek(self.trained)
        if record is None:
            return None
        # as `measure_checkpoint` completes it, or the record would not be found
        return filled_config(self.config, self.trained, record.fingerprint, record.data)

    def changed_inputs(self, store: RunStore, read: Callable[[TrainConfig], Inputs]) -> str:
        """Describe which inputs of a finished training run have changed since; empty if none has.

        The result is also empty for measurements and unfinished training runs. `read` returns the current
        inputs of a config.
        """
        if not isinstance(self.config, TrainConfig):
            return ""
        record = store.peek(self.config)
        return "" if record is None else changed_inputs(self.config, record, store, read)

    def done(self, store: RunStore) -> bool:
        """Return whether the store holds a record of the run in the current format.

        The files beside the record are verified only by the runs that use them.
        """
        try:
            config = self.located(store)
            return config is not None and store.peek(config) is not None
        except ForeignRecord:
            return False


def perform(run: Run, store: RunStore, show: Show, device: str = "auto", processes: int = 1) -> None:
    """Execute one run and write its record.

    A measurement is evaluated on `device`; a training is shared by so many processes.
    """
    config = run.config
    if isinstance(config, MeasureConfig):
        from ..runs.measured import Origin
        from ..runs.measurements import Conduct, measure_checkpoint

        folder = store.folder(run.trained)
        moved = _summed(show, parts=len(config.methods) + 2)  # the check and the baseline
        data_dir = run.trained.data_dir
        origin = Origin(Path(data_dir) if data_dir else None)
        measure_checkpoint(folder, config, store, origin, Conduct(device, moved))
        return
    from ..training.steps import StepReport

    options: dict[str, Any] = {"callbacks": [StepReport(partial(show, ""))], "processes": processes}
    if isinstance(config, RoarConfig):
        from ..paper.roar import roar

        roar(config, store, progress=_summed(show, parts=1), **options)
    else:
        from ..runs.run import train

        train(run.trained, store, resume=True, **options)


def _summed(show: Show, *, parts: int) -> Callable[[str, int, int], None]:
    """Return a progress function that shows percent of all parts, which may have other numbers of texts."""
    finished: dict[str, float] = {}

    def move(part: str, done: int, total: int) -> None:
        # each part is a method on all texts; dear ones do not count more
        finished[part] = done / total
        show(part, round(100 * sum(finished.values()) / parts), 100, "")

    return move
