"""The precision that `auto` stands for: a lower one where it ranks words as fp32 does, otherwise fp32."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..config import BASELINE, MeasureConfig, Precision
from .measured import HERE, Origin, load_measured, measured_task

if TYPE_CHECKING:
    from torch import Tensor

    from ..models.evaluator import Evaluator
    from ..models.tokens import Batch

LOWER: Precision = "bf16"
TEXTS = 32
"""Texts whose explanations are compared, the first that are measured."""
LEAST = 0.98
"""Mean rank correlation with the scores in fp32 that every method must keep."""


class Chosen(NamedTuple):
    """A precision with its reason.

    Attributes:
        precision: The precision to evaluate in.
        ranks: Mean rank correlation of the scores in both precisions, by method; empty if none was measured.
        reason: Why, in a sentence.
    """

    precision: Precision
    ranks: dict[str, float]
    reason: str

    @property
    def config(self) -> dict[str, Any]:
        """Fields of a `MeasureConfig` that follow from the choice."""
        if self.precision == LOWER:
            return {"precision": LOWER, "ranks_alike": min(self.ranks.values())}
        return {"precision": self.precision}


def choose_precision(
    checkpoint: str, config: MeasureConfig, origin: Origin = HERE, device: str = "auto"
) -> Chosen:
    """Return the precision in which to measure: bf16 if every method ranks the words of texts as in fp32.

    All methods of the measurement are asked, those that search for an order included: a verdict in bf16 is
    to be that in fp32.
    """
    from ..measuring.texts import read_rows
    from ..methods.registry import default_methods
    from ..models.devices import find_device, supports
    from ..models.evaluator import Evaluator

    if not supports(LOWER, target := find_device(device)):
        return Chosen("fp32", {}, f"auto is fp32: this {target.type.upper()} does not compute in {LOWER}")
    exact = load_measured(checkpoint, config.replace(precision="fp32"), device)
    lower = load_measured(checkpoint, config.replace(precision=LOWER), device)
    task, _, _ = measured_task(exact, checkpoint, config, origin)
    rows = task.load()["test"]
    batch, _ = read_rows(Evaluator(exact), rows, range(min(TEXTS, len(rows))), config.unit)
    labels = Evaluator(exact).logits(batch).argmax(dim=1)
    methods = [name for name in config.methods or default_methods() if name != BASELINE]
    ranks = compare_ranks(Evaluator(exact), Evaluator(lower), batch, labels, methods)
    chosen: Precision = LOWER if ranks and all(rank >= LEAST for rank in ranks.values()) else "fp32"
    each = ", ".join(f"{name} {rank:.3f}" for name, rank in sorted(ranks.items(), key=lambda one: one[1]))
    ask = f"rank correlation of {LOWER} with fp32 on {len(batch)} texts (required: {LEAST}): {each or 'none'}"
    return Chosen(chosen, ranks, f"auto is {chosen}: {ask}")


def compare_ranks(
    exact: Evaluator, lower: Evaluator, batch: Batch, labels: Tensor, methods: Iterable[str]
) -> dict[str, float]:
    """Return each method's mean rank correlation over texts; 0 where no text has words that differ."""
    from ..measuring.plausibility import correlate_scores
    from ..methods.registry import explain

    ranks = {}
    for name in methods:
        scores, rounded = (explain(clf, batch, labels, name) for clf in (exact, lower))
        known = correlate_scores(scores, rounded, batch)
        ranks[name] = sum(known) / len(known) if known else 0.0
    return ranks
