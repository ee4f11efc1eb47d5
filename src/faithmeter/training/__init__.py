"""Masked fine-tuning of a model on a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..phases import Progress

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedModel, TrainerCallback

UNFINISHED = "trainer"
"""Name of the subfolder of a run that holds the checkpoints of its unfinished training run."""
Erased = Mapping[str, Sequence[Sequence[int]]]
"""Positions of the erased tokens in each row of each split."""
Enough = Callable[["PreTrainedModel", float], bool]
"""Function of a model after an epoch and its performance on whole validation texts: whether to stop."""


@dataclass(frozen=True, eq=False)
class Goal:
    """Goal of a training besides the labels of a task, for Recursive ROAR and for adaptation.

    Attributes:
        erased: Tokens to mask in all splits, which are then evaluated without further masking.
        previous: Fingerprint of the model that chose the erased tokens.
        targets: Class probabilities [N, C] that unmasked training rows learn instead of their class.
        enough: Called after each epoch; training stops if it returns True. None trains all epochs.
    """

    erased: Erased | None = None
    previous: str = ""
    targets: np.ndarray[Any, Any] | None = None
    enough: Enough | None = None


@dataclass(frozen=True, eq=False)
class Session:
    """Conduct of a training; its results are the same in any way.

    Attributes:
        resume: Whether an unfinished run continues from its last intact epoch.
        callbacks: Additional callbacks for the Trainer. With several processes, only those that report
            steps are called.
        progress: Called with a phase, the amount done in it so far, and the total.
        processes: Number of processes that share the training, one for each GPU.
    """

    resume: bool = False
    callbacks: Sequence[TrainerCallback] = ()
    progress: Progress | None = None
    processes: int = 1


LABELS_ONLY = Goal()
"""Goal of an ordinary fine-tuning."""
