"""Planned runs: the config of each run, and the run that must finish before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import Config, MeasureConfig, RoarConfig, TrainConfig
from ..runs.measured import filled_config
from ..runs.record import ForeignRecord
from ..runs.run import changed_inputs
from ..runs.store import RunStore

if TYPE_CHECKING:
    from ..training.inputs import Inputs


@dataclass(frozen=True)
class Run:
    """Planned run: its config, and the run that it needs, from which a measurement's config is completed."""

    config: Config
    after: Run | None = None

    @property
    def trained(self) -> TrainConfig:
        """Config of the fine-tuning that this run performs or, if it is a measurement, evaluates."""
        config = self.after.config if isinstance(self.config, MeasureConfig) and self.after else self.config
        assert isinstance(config, TrainConfig)
        return config

    @property
    def name(self) -> str:
        trained = self.trained
        words = [self.config.kind, trained.task_or_data, Path(trained.model).name]
        words += [f"{trained.strategy}/{trained.validation}", f"seed {trained.seed}"]
        if isinstance(self.config, RoarConfig):
            words += [self.config.method, f"{self.config.percent} %"]
        return " ".join(words)

    def located(self, store: RunStore) -> Config | None:
        """Return the config whose digest names the record; None while the measured training is not done."""
        if not isinstance(self.config, MeasureConfig):
            return self.config
        record = store.peek(self.trained)
        if record is None:
            return None
        return filled_config(self.config, self.trained, record.fingerprint, record.data)

    def changed_inputs(self, store: RunStore, read: Callable[[TrainConfig], Inputs]) -> str:
        """Return in words which inputs of a finished training have changed since; empty if none has."""
        if not isinstance(self.config, TrainConfig) or (record := store.peek(self.config)) is None:
            return ""
        return changed_inputs(self.config, record, store, read)

    def done(self, store: RunStore) -> bool:
        """Return whether the run has a record of this format; runs that build on its files verify them."""
        try:
            config = self.located(store)
            return config is not None and store.peek(config) is not None
        except ForeignRecord:
            return False
