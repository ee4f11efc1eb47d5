"""The work of one planned run, whichever engine executes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..config import MeasureConfig, RoarConfig
from ..store.run_store import RunStore
from .planned import Run

Show = Callable[[str, int, int, str], object]
"""Function that is called with the part of a run at work, the amount done, the total, and a remark."""


def perform(run: Run, store: RunStore, show: Show, device: str = "auto", processes: int = 1) -> None:
    """Execute one run and write its record.

    A measurement is evaluated on `device`; a training is shared by so many processes.
    """
    config = run.config
    if isinstance(config, MeasureConfig):
        from ..runs.measured import Origin
        from ..runs.measurements import measure_checkpoint

        folder = store.folder(run.trained)
        moved = _summed(show, parts=len(config.methods) + 2)  # the check and the baseline
        measure_checkpoint(folder, config, store, Origin(_data_dir(run)), device=device, progress=moved)
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
        finished[part] = done / total
        show(part, round(100 * sum(finished.values()) / parts), 100, "")

    return move


def _data_dir(run: Run) -> Path | None:
    return Path(run.trained.data_dir) if run.trained.data_dir else None
