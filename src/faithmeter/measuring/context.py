"""Context of a result: what is known about task, model and check besides the traces."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..config import TrainedWith, UnitName

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..stats.behavior import Recalibration
    from .trace import Trace


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
KEPT = (
    *("metric", "others", "threshold", "floors", "trained_with"),
    *("classes_by_number", "precision", "agreement", "scores"),
)
"""Fields of a context that the manifest of a measurement keeps; the others follow from texts and traces."""


def make_context(traces: Collection[Trace], texts: DataFrame, **facts: Any) -> Context:
    """Return the context of traces on these texts, given the facts that do not follow from them."""
    devices = dict.fromkeys(device for trace in traces for device in trace.devices)
    truncated = float(texts["truncated"].mean())
    return Context(truncated=truncated, device=", ".join(devices), inputs=texts, **facts)


def join_contexts(contexts: Sequence[Context]) -> Context:
    """Return the context of several seeds: of each fact that differs, the one that asks for most care."""
    changes = {}
    for name, choose in MOST_CAREFUL.items():
        changes[name] = choose([getattr(context, name) for context in contexts])
    recalibrations = tuple(next(iter(context.recalibrations), None) for context in contexts)
    return replace(contexts[0], recalibrations=recalibrations, **changes)


def _join_floors(floors: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the highest floor of each test that all seeds have."""
    tests = [test for test in floors[0] if all(test in own for own in floors)]
    return {test: max(own[test] for own in floors) for test in tests}


def _least(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]  # a NaN compares with nothing
    return min(known, default=math.nan)


MOST_CAREFUL: dict[str, Callable[[Any], Any]] = {
    "floors": _join_floors,
    "truncated": max,
    "classes_by_number": any,
    "device": lambda devices: ", ".join(dict.fromkeys(devices)),
    "precision": min,  # bf16 and fp16 sort before fp32
    "ranks_alike": min,
    "agreement": _least,
}
"""By field of a context, the fact of several seeds that asks for most care."""
