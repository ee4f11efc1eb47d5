"""Training runs for the tests: on a tiny encoder, interrupted, compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

import faithmeter as fm
from faithmeter.runs.measured import task_of
from faithmeter.training import Goal, Session
from faithmeter.training.finetuning import finetune


def run(config: fm.TrainConfig, folder: Path, **options: Any) -> dict[str, Any]:
    goal = Goal(**{name: options.pop(name) for name in ("erased", "previous") if name in options})
    return finetune(config, task_of(config), folder, goal, Session(**options))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


class Interrupt(TrainerCallback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            raise KeyboardInterrupt
