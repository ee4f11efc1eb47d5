"""`faithmeter check --stability`: agreement of rankings across precisions, batches and threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from ..config import BASELINE, MeasureConfig
from .progress import bars
from .screen import MARKS, console, output, print_json, quiet, table

if TYPE_CHECKING:
    from ..faithfulness.stability import Stability
    from ..methods import Method
    from ..models.classifier import Classifier
    from ..models.tokens import Batch

SAMPLE_TEXTS = 16
"""Number of test texts that are ranked if no limit is given."""


def check_stability(
    checkpoint: str, config: MeasureConfig, data_dir: Path | None, device: str, *, as_json: bool
) -> None:
    """Print how well the rankings of each method agree, for the predicted classes of the first test texts."""
    from ..faithfulness.stability import rank_stability
    from ..runs.measured import load_measured, measured_task

    quiet()
    clf = load_measured(checkpoint, config, device)
    task, *_ = measured_task(clf, checkpoint, config, data_dir)
    rows = task.load()["test"][: config.limit or SAMPLE_TEXTS]
    batch = clf.encode(rows["text"], rows.get("context"))
    methods = choose_methods(config.methods, int(batch.explained.sum(dim=1).max()))
    with bars() as progress:
        bar = progress.add_task("ranking", total=len(methods), note="")
        results = rank_stability(
            clf,
            batch,
            _predictions(clf, batch),
            methods,
            progress=lambda name: progress.update(bar, advance=1, note=f"{name} done"),
        )
    if as_json:
        values = {name: {**asdict(result), "stable": result.is_stable} for name, result in results.items()}
        print_json({"texts": len(batch), "methods": values})
    else:
        _print_results(results, len(batch))


def choose_methods(names: Sequence[str], tokens: int) -> list[Method]:
    """Return the named methods; without names, the default methods except the baseline.

    A method that costs more evaluations than all others together is also left out, with a message.
    """
    from ..faithfulness.forecast import too_expensive
    from ..methods import default_methods, parse

    if names:
        return [parse(name) for name in names]
    methods = [parse(name) for name in default_methods() if name != BASELINE]
    expensive = too_expensive({method.name: method.evaluations(tokens) for method in methods})
    for name in expensive:
        console.print(f"{name} is left out: it costs more than all others together (--method {name} adds it)")
    return [method for method in methods if method.name not in expensive]


def _predictions(clf: Classifier, batch: Batch) -> list[int]:
    from ..models.evaluator import Evaluator

    classes: list[int] = Evaluator(clf).logits(batch).argmax(dim=1).tolist()
    return classes


def _print_results(results: Mapping[str, Stability], texts: int) -> None:
    conditions = list(next(iter(results.values())).agreement)
    title = f"rank agreement on {texts} texts (Kendall's tau; 1 is the same ranking), and its lowest value"
    lines = table(title, "method", *conditions, "lowest")
    for name, result in results.items():
        agreement = (f"{result.agreement[condition]:.3f}" for condition in conditions)
        lines.add_row(name, *agreement, f"{min(result.lowest.values()):.3f}")
    output.print(lines)
    for name, result in results.items():
        if not result.is_stable:
            console.print(Text.assemble(MARKS["bad"], f"{name}: {result.doubt}."), soft_wrap=True)
    if all(result.is_stable for result in results.values()):
        console.print(Text.assemble(MARKS["good"], "no ranking depends on rounding."), soft_wrap=True)
