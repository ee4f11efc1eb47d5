"""Planned runs: the config of each run, and the run that must finish before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import Config, MeasureConfig, RoarConfig, TrainConfig
from ..runs.measured import filled_config
from ..runs.run import changed_inputs
from ..store.records import ForeignRecord
from ..store.run_store import RunStore

if TYPE_CHECKING:
    from ..training.inputs import Inputs


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
        record = store.peek(self.trained)
        if record is None:
            return None
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
