"""Checkpoints of an unfinished training run: sealed when written, verified before training continues."""

from __future__ import annotations

import json
import math
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback
from transformers import TrainerControl as Control
from transformers import TrainerState as State
from transformers import TrainingArguments as Arguments

from ..errors import DamageWarning, InputError
from ..files import intact, read_sealed_json, seal, write_sealed_json
from .inputs import Inputs, describe_changes

START = "start.json"
"""Name of the file, beside the checkpoints, with the digests of the training's inputs."""


def resume_point(folder: Path, inputs: Inputs, *, resume: bool) -> Path | None:
    """Return the checkpoint from which training continues, or None if it starts over.

    To start over, old checkpoints are deleted and the digests of the inputs are written to `folder`.

    Raises:
        InputError: The unfinished run began with different inputs.
    """
    checkpoint = last_checkpoint(folder) if resume else None
    if checkpoint is not None:
        try:
            before = read_sealed_json(folder / START)
        except InputError as error:
            warnings.warn(f"{error}; the training starts over", DamageWarning, stacklevel=2)
        else:
            changes = describe_changes(before, inputs)
            if changes:  # a run that began with other rows would end with weights of neither
                raise InputError(
                    f"{folder.parent} holds an unfinished run that began with other inputs; changed: "
                    f"{changes}; delete that folder (train: --restart) to start over, or restore them"
                )
            return checkpoint
    for stale in _checkpoints(folder):
        shutil.rmtree(stale)
    write_sealed_json(folder / START, inputs)
    return None


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint that is intact together with the checkpoint of its best epoch.

    Return None if there is none. Damaged checkpoints are renamed, with a DamageWarning; unfinished ones are
    ignored.
    """
    sound: dict[str, Path] = {}  # the newest first
    for checkpoint in _checkpoints(folder):
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        with warnings.catch_warnings(record=True) as damage:
            warnings.simplefilter("always")
            if intact(checkpoint, f"put aside as {aside.name}"):
                sound[checkpoint.name] = checkpoint
        for warning in damage:
            shutil.rmtree(aside, ignore_errors=True)
            checkpoint.rename(aside)
            warnings.warn(str(warning.message), DamageWarning, stacklevel=2)
    # the best epoch is restored in the end: without it, other weights would be saved
    for checkpoint in sound.values():
        state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
        if _name(state["best_global_step"]) in sound:
            return checkpoint
    return None


def _checkpoints(folder: Path) -> list[Path]:
    """Return the paths of the checkpoints in a folder, the newest first."""
    numbered = {}
    for path in folder.glob("checkpoint-*"):
        step = path.name.rpartition("-")[2]
        if step.isdecimal():
            numbered[int(step)] = path
    return [numbered[step] for step in sorted(numbered, reverse=True)]


def _name(step: int) -> str:
    return f"checkpoint-{step}"


class SealedCheckpoints(TrainerCallback):  # type: ignore[misc]
    """Trainer callback that seals every checkpoint and deletes all but the last and the best.

    It also corrects the path of the best checkpoint after the run's folder has been moved.
    """

    def on_train_begin(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        if state.best_global_step:  # the saved path is wrong if the store was moved
            state.best_model_checkpoint = str(Path(args.output_dir) / _name(state.best_global_step))

    def on_save(self, args: Arguments, state: State, control: Control, **_: Any) -> None:
        if not state.is_world_process_zero:  # of several processes, only the first one writes
            return
        folder = Path(args.output_dir)
        seal(folder / _name(state.global_step))
        needed = {_name(state.global_step), _name(state.best_global_step)}
        for checkpoint in _checkpoints(folder):
            if checkpoint.name not in needed:
                shutil.rmtree(checkpoint, ignore_errors=True)


def require_best(state: State) -> None:
    """Raise an InputError if the checkpoint of the best epoch is missing or damaged."""
    best = state.best_model_checkpoint
    if best is None or not intact(Path(best), "the best epoch cannot be restored"):
        raise InputError(
            f"the best epoch (step {state.best_global_step}) is missing or damaged at {best}; "
            "train again: it continues from the intact epochs"
        )


class Divergence(TrainerCallback):  # type: ignore[misc]
    """Trainer callback that stops training if it diverges, before the weights are saved.

    It raises an InputError if the loss or a weight is not finite.
    """

    def on_log(self, args: Arguments, state: State, control: Control, **more: Any) -> None:
        for name, value in more["logs"].items():
            if "loss" in name:
                _require_finite(name, math.isfinite(value), args, state)

    # the loss of the last step may be finite although its update has spoiled the weights
    def on_evaluate(self, args: Arguments, state: State, control: Control, **more: Any) -> None:
        for weight in more["model"].parameters():
            _require_finite("weights", bool(torch.isfinite(weight).all()), args, state)


def _require_finite(name: str, finite: bool, args: Arguments, state: State) -> None:
    if not finite:
        raise InputError(
            f"the training diverged: {name} not finite in epoch {math.ceil(state.epoch)}; lower "
            f"--learning-rate, which is {args.learning_rate:g}, and train again"
        )
