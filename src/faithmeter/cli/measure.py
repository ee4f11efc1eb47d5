"""`faithmeter measure` and `check`: are the explanations true, and are masked texts normal to the model?"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..config import MeasureConfig
from ..errors import InputError, unknown
from .explain import Checkpoint
from .screen import Json, Store, bars, console, output, print_json, quiet, table

if TYPE_CHECKING:
    from ..measurement import Measurement
    from ..onetext import TextMeasurement

ALPHA = 0.05
BASELINE = "random"
COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}

TaskName = Annotated[str, typer.Option("--task", help="default: what the checkpoint was trained on")]
DataDir = Annotated[Path | None, typer.Option(help="folder with the official files of the task")]
Limit = Annotated[int, typer.Option(min=0, help="only the first texts of the test split; 0 takes all")]
Seed = Annotated[int, typer.Option(min=0, help="random orders are drawn from it")]
Require = Annotated[
    list[str], typer.Option(help="such as 'loo-sign:racu>=40' or 'check:p>=0.05'; exit code 1 when not met")
]


def measure(
    checkpoint: Checkpoint,
    task: TaskName = "",
    method: Annotated[
        list[str], typer.Option("--method", "-m", help="may be repeated; default: all ten")
    ] = [],  # noqa: B006
    limit: Limit = 0,
    step: Annotated[int, typer.Option(min=1, max=100, help="percents erased at a time")] = 10,
    seed: Seed = 0,
    data_dir: DataDir = None,
    text: Annotated[str | None, typer.Option(help="measure this one text instead of a task")] = None,
    pair: Annotated[str | None, typer.Option(help="the second text, with --text")] = None,
    label: Annotated[str | None, typer.Option(help="the class to measure, with --text")] = None,
    require: Require = [],  # noqa: B006
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """Erase texts by each method and compare the fall in performance with erasing at random: ACU and RACU.

    Example: faithmeter measure runs/train-bAbI-1-half-0-… -m loo-sign -m grad-l2 --limit 200
    """
    from ..methods import parse

    requirements = [parse_requirement(line) for line in require]
    methods = " ".join(str(parse(name)) for name in method)
    config = MeasureConfig(task=task, methods=methods, seed=seed, limit=limit, step=step)
    if text is not None:
        shown = _measure_text(checkpoint, config, data_dir, {"text": text, "pair": pair, "label": label})
        print_json(shown.to_dict()) if as_json else output.print(shown)
        return
    result = run(checkpoint, config, store, data_dir)
    if as_json:
        print_json(result.to_dict())
    else:
        output.print(summary(result))
        warn(result)
    _hold(requirements, result)


def check(
    checkpoint: Checkpoint,
    task: TaskName = "",
    limit: Limit = 0,
    seed: Seed = 0,
    data_dir: DataDir = None,
    require: Require = [],  # noqa: B006
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """Test whether randomly masked texts are in distribution for the model (MaSF), at 0, 10, …, 100 % masked.

    Example: faithmeter check runs/train-bAbI-1-half-0-… --require 'check:p>=0.05'
    """
    requirements = [parse_requirement(line) for line in require]
    result = run(
        checkpoint, MeasureConfig(task=task, methods=BASELINE, seed=seed, limit=limit), store, data_dir
    )
    if as_json:
        print_json(result.to_dict())
    else:
        output.print(pvalue_table(**{"": result}))
        warn(result)
    _hold(requirements, result)


def run(checkpoint: str, config: MeasureConfig, root: Path, data_dir: Path | None) -> Measurement:
    """Measure with a bar for each method."""
    from .. import runs
    from ..methods import METHODS, parse
    from ..store import RunStore

    methods = [parse(name) for name in config.methods.split()] or list(METHODS.values())
    quiet()
    with bars() as progress:
        names = dict.fromkeys(["check", BASELINE, *map(str, methods)])
        lines = {name: progress.add_task(name, total=None, note="", visible=False) for name in names}

        def moved(name: str, done: int, total: int) -> None:
            progress.update(lines[name], advance=done, total=total, visible=True)

        return runs.measure(checkpoint, config, RunStore(root), data_dir=data_dir, progress=moved)


def _measure_text(
    checkpoint: str, config: MeasureConfig, data_dir: Path | None, one: dict[str, str | None]
) -> TextMeasurement:
    """One text, with p-values where it is known what the model was trained on."""
    from .. import runs
    from ..model import load
    from ..onetext import measure_text

    quiet()
    clf = load(checkpoint)
    tests = None
    if config.task or runs.trained_as(checkpoint):
        measured, config = runs.measured_task(clf, checkpoint, config, data_dir)
        tests = runs.fitted_tests(clf, checkpoint, measured, config)
    return measure_text(
        clf,
        str(one["text"]),
        pair=one["pair"],
        label=one["label"],
        methods=config.methods.split() or ["loo-sign", "int-grad-sign", "grad-l2"],
        seed=config.seed,
        percents=[*range(0, 100, config.step), 100],
        tests=tests,
    )


def summary(*results: Measurement) -> Table:
    """The methods, most faithful first; each is compared with random erasure of the same texts."""
    tests = [f"p {test}" for test in results[0].tests]
    title = f"faithfulness by {results[0].metric}: areas in %, p of all steps together"
    shown = table(title, "method", "ACU", "RACU", *tests, "texts", "evaluations", "seconds")
    rows = [(result, method) for result in results for method in result.methods if method != BASELINE]
    for result, method in sorted([*rows, (results[0], BASELINE)], key=lambda row: -row[0].acu(row[1])):
        areas = [f"{100 * area:.1f}" for area in (result.acu(method), result.racu(method))]
        pvalues = [f"{result.p(method, test):.3f}" for test in result.tests]
        effort = (
            f"{result.texts}",
            f"{result.evaluations[method]}",
            f"{sum(result.seconds[method].values()):.1f}",
        )
        shown.add_row(method, *areas, *pvalues, *effort)
    return shown


def pvalue_table(**results: Measurement) -> Table:
    """P-values of all texts together, by percent masked at random, and the share of texts below 5 %."""
    first = next(iter(results.values()))
    percents = list(first.pvalues(BASELINE, first.tests[0]))
    title = f"are {first.texts} randomly masked texts in distribution? p by percent masked"
    shown = table(title, "test", *map(str, percents))
    for name, result in results.items():
        for test in result.tests:
            steps = result.pvalues(BASELINE, test).values()
            shown.add_row(f"{name} {test}".strip(), *(f"{step.p:.2f}" for step in steps))
            shown.add_row("  % below .05", *(f"{100 * step.below[ALPHA]:.0f}" for step in steps), style="dim")
    return shown


def warn(result: Measurement) -> None:
    """Say what must not be trusted."""
    floor = result.floors["published"]
    if floor > ALPHA:
        console.print(
            f"[yellow]The published test could not have rejected: a hopeless outlier gets p = {floor:.3f}, "
            "as there are too few validation texts. Go by crossfit.[/]"
        )
    for method in result.methods:
        p = result.p(method, "crossfit")
        if p < ALPHA:
            found = f"{method}: erased texts are out of distribution (p = {p:.3f})"
            console.print(f"[yellow]{found}; do not trust its areas.[/]")


def parse_requirement(line: str) -> tuple[str, str, str, float]:
    """'loo-sign:racu>=40' → method, quantity, comparison, bound."""
    found = re.fullmatch(r"(.+):(\w+)\s*(>=|<=|>|<)\s*([-+]?[.\d]+)", line.strip())
    if not found:
        raise InputError(f"requirement {line!r} cannot be read; expected such as 'loo-sign:racu>=40'")
    method, quantity, comparison, bound = found.groups()
    if quantity not in QUANTITIES:
        raise unknown("quantity", quantity, QUANTITIES)
    return method, quantity, comparison, float(bound)


QUANTITIES: dict[str, Callable[[Measurement, str], float]] = {
    "acu": lambda result, method: 100 * result.acu(method),
    "racu": lambda result, method: 100 * result.racu(method),
    "p": lambda result, method: result.p(method, "crossfit"),
}
"""What can be required; areas in percent, as in the table."""


def _hold(requirements: list[tuple[str, str, str, float]], result: Measurement) -> None:
    """Exit with 1 unless all requirements are met; an undefined number meets none."""
    failed = False
    for name, quantity, comparison, bound in requirements:
        method = BASELINE if name == "check" else name
        if method not in result.methods:
            raise unknown("method in a requirement", name, ["check", *result.methods])
        value = QUANTITIES[quantity](result, method)
        met = COMPARISONS[comparison](value, bound)
        failed |= not met
        verdict = "met" if met else "[bold red]not met[/]"
        console.print(f"{verdict}: {name}:{quantity} {comparison} {bound:g}, is {value:.4g}")
    if failed:
        raise typer.Exit(1)
