"""Run: one record to be, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..config import Config, MeasureConfig, RoarConfig, TrainConfig
from ..runs.run import filled_config
from ..runs.store import RunStore


@dataclass(frozen=True)
class Run:
    """One record to be: its config, and the run it needs. A measurement's config is filled in from that."""

    config: Config
    after: Run | None = None

    @property
    def trained(self) -> TrainConfig:
        """The fine-tuning that this run is, or is about."""
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
        """The config whose digest names the record; None while what a measurement needs is not there."""
        if not isinstance(self.config, MeasureConfig):
            return self.config
        record = store.peek(self.trained)
        if record is None:
            return None
        return filled_config(self.config, self.trained, record.fingerprint, record.data)

    def done(self, store: RunStore) -> bool:
        """By the record alone: files beside it are verified by the runs that build on them."""
        config = self.located(store)
        return config is not None and store.peek(config) is not None
