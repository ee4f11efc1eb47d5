"""Progress of a training, step by step, for displays and for other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback
from transformers import TrainerControl as Control
from transformers import TrainerState as State
from transformers import TrainingArguments as Arguments

from ..phases import Advance

ShowSteps = Callable[[int, int, str], object]
"""Function that is called with the optimizer steps done, their total, and a remark."""


class StepReport(TrainerCallback):  # type: ignore[misc]
    """Trainer callback that reports every optimizer step and the last validation result."""

    note = ""

    def __init__(self, show: ShowSteps) -> None:
        self.show = show

    def on_train_begin(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        self.show(state.global_step, state.max_steps, self.note)

    def on_step_end(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        self.show(state.global_step, state.max_steps, "validating" if control.should_evaluate else self.note)

    def on_prediction_step(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        if control.should_evaluate:  # an epoch is validated; sweeps report to `SweepReport`
            self.show(state.global_step, state.max_steps, "validating")

    def on_evaluate(self, args: Arguments, state: State, control: Control, **more: Any) -> None:
        self.note = f"epoch {round(state.epoch)}: validation {more['metrics']['eval_selection']:.3f}"
        self.show(state.global_step, state.max_steps, self.note)

    def on_save(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        self.show(state.global_step, state.max_steps, self.note)


class SweepReport(TrainerCallback):  # type: ignore[misc]
    """Trainer callback that reports how many of a sweep's texts are evaluated."""

    def __init__(self, total: int, advance: Advance) -> None:
        self.left, self.advance = total, advance

    def on_prediction_step(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        done = min(self.left, args.eval_batch_size)  # the last batch is not full
        self.left -= done
        self.advance(done)
