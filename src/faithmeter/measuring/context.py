"""Context of a result: what is known about task, model and check besides the traces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..config import TrainedWith, UnitName

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..stats.behavior import Recalibration


@dataclass(frozen=True, kw_only=True)
class Context:
    """Facts besides the traces that a result rests on: the task, the model, and what sibling runs tell.

    Attributes:
        classes: Number of classes.
        metric: Name of the task's first metric.
        others: Names of its other metrics.
        threshold: Performance above which the model counts as having learned the task.
        floors: By test, the smallest p-value that it can give.
        trained_with: Masking strategy of the training that the tests assume.
        truncated: Share of the texts whose end the model could not read.
        classes_by_number: Whether the classes of model and task were matched by number, not by name.
        device: Device, or devices, that the model was evaluated on.
        precision: Data type that it was evaluated in.
        ranks_alike: Lowest rank correlation of a method's scores with those in fp32, for which that type was
            chosen; 0 if it was not chosen so.
        agreement: Agreement of an adapted model with the original, as a fraction; NaN for any other model.
        unit: What was scored and erased as one piece: token, word or sentence.
        scores: By method, the origin of scores that were computed elsewhere.
        inputs: The texts with the positions of their units and, if there are any, their rationales; None if
            they are not at hand (see `texts.locate_tokens`).
        other_seeds: Number of trainings that are left out because they were measured on other texts.
        cost: Performance on whole texts lost against a plainly fine-tuned model, as a fraction.
        p_plain: P-value of the check of that model.
        recalibrations: For each seed, what its masked validation texts tell about its predictions (see
            `stats.behavior`); None, or no entry, if they were not evaluated.
    """

    classes: int
    metric: str
    others: tuple[str, ...] = ()
    threshold: float = -math.inf
    floors: Mapping[str, float] = field(default_factory=dict)
    trained_with: TrainedWith = "unknown"
    truncated: float = 0.0
    classes_by_number: bool = False
    device: str = "cpu"
    precision: str = "fp32"
    ranks_alike: float = 0.0
    agreement: float = math.nan
    unit: UnitName = "token"
    scores: Mapping[str, str] = field(default_factory=dict)
    inputs: DataFrame | None = None
    other_seeds: int = 0
    cost: float = math.nan
    p_plain: float = math.nan
    recalibrations: tuple[Recalibration | None, ...] = ()


FACTS = (
    *("trained_with", "truncated", "classes_by_number", "precision", "ranks_alike"),
    *("agreement", "cost", "p_plain"),
)
"""Fields of a context that evidence has, too."""


def join_contexts(contexts: Sequence[Context]) -> Context:
    """Return the context of several seeds: of each fact that differs, the one that asks for most care."""
    first, tests = contexts[0], [set(context.floors) for context in contexts]
    shared = [test for test in first.floors if all(test in names for names in tests)]
    agreements = [context.agreement for context in contexts if not math.isnan(context.agreement)]
    return replace(
        first,
        floors={test: max(context.floors[test] for context in contexts) for test in shared},
        truncated=max(context.truncated for context in contexts),
        classes_by_number=any(context.classes_by_number for context in contexts),
        device=", ".join(dict.fromkeys(context.device for context in contexts)),
        precision=min(context.precision for context in contexts),  # bf16 and fp16 sort before fp32
        ranks_alike=min(context.ranks_alike for context in contexts),
        agreement=min(agreements, default=math.nan),
        recalibrations=tuple(next(iter(context.recalibrations), None) for context in contexts),
    )
