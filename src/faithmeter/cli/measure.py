"""`faithmeter measure` and `check`: are the explanations true, and are masked texts normal to the model?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..config import BASELINE, SIGNIFICANCE_LEVEL, MeasureConfig
from ..errors import InputError
from .explain import Checkpoint
from .requirements import CHECK, Require, hold, parse_requirements, quantities
from .screen import Json, Store, bars, console, output, print_json, quiet, table

if TYPE_CHECKING:
    from ..faithfulness.dataset import Measurement
    from ..faithfulness.single_text import TextMeasurement

FEW = ("loo-sign", "int-grad-sign", "grad-l2")
"""The methods that one text is measured by, unless told otherwise."""

TaskName = Annotated[str, typer.Option("--task", help="default: what the checkpoint was trained on")]
DataDir = Annotated[Path | None, typer.Option(help="folder with the official files of the task")]
Limit = Annotated[int, typer.Option(min=0, help="only the first texts of the test split; 0 takes all")]
Seed = Annotated[int, typer.Option(min=0, help="random orders are drawn from it")]


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
    from ..methods.registry import METHODS, parse

    names = [str(parse(name)) for name in method]
    config = MeasureConfig(task=task, methods=tuple(names), seed=seed, limit=limit, step=step)
    if text is not None:
        requirements = parse_requirements(require, names or FEW)
        one = _measure_text(checkpoint, config, data_dir, {"text": text, "pair": pair, "label": label})
        print_json(one.to_dict()) if as_json else output.print(one)
        found = {name: quantities(own.acu, own.racu, own.p, one.floors) for name, own in one.methods.items()}
        hold(requirements, found)
        return
    for option, given in (("--pair", pair), ("--label", label)):
        if given is not None:
            raise InputError(f"{option} {given!r} goes with --text, the text that it belongs to")
    requirements = parse_requirements(require, [CHECK, BASELINE, *(names or METHODS)])
    result = run(checkpoint, config, store, data_dir)
    print_json(result.to_dict()) if as_json else output.print(summary(result))
    warn(result)
    hold(requirements, _quantities(result))


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
    requirements = parse_requirements(require, [CHECK, BASELINE])
    config = MeasureConfig(task=task, methods=(BASELINE,), seed=seed, limit=limit)
    result = run(checkpoint, config, store, data_dir)
    print_json(result.to_dict()) if as_json else output.print(pvalue_table(**{"": result}))
    warn(result)
    hold(requirements, _quantities(result))


def run(checkpoint: str, config: MeasureConfig, root: Path, data_dir: Path | None) -> Measurement:
    """Measure with a bar for each method."""
    from ..methods.registry import METHODS, parse
    from ..runs import run as runs
    from ..runs.store import RunStore

    methods = [parse(name) for name in config.methods] or list(METHODS.values())
    quiet()
    with bars() as progress:
        names = dict.fromkeys([CHECK, BASELINE, *map(str, methods)])
        lines = {name: progress.add_task(name, total=None, note="", visible=False) for name in names}

        def moved(name: str, done: int, total: int) -> None:
            progress.update(lines[name], advance=done, total=total, visible=True)

        return runs.measure(checkpoint, config, RunStore(root), data_dir=data_dir, progress=moved)


def _measure_text(
    checkpoint: str, config: MeasureConfig, data_dir: Path | None, one: dict[str, str | None]
) -> TextMeasurement:
    """One text, with p-values where it is known what the model was trained on."""
    from ..faithfulness.single_text import measure_text
    from ..models.loading import load
    from ..runs import run as runs

    quiet()
    clf = load(checkpoint)
    tests = None
    if config.task or runs.trained_as(checkpoint):
        measured, config = runs.measured_task(clf, checkpoint, config, data_dir)
        with bars() as progress:
            bar = progress.add_task("check", note="", visible=False)

            def moved(done: int, total: int) -> None:
                progress.update(bar, advance=done, total=total, visible=True)

            tests = runs.fitted_tests(clf, checkpoint, measured, config, progress=moved)
    return measure_text(
        clf,
        str(one["text"]),
        pair=one["pair"],
        label=one["label"],
        methods=config.methods or FEW,
        seed=config.seed,
        percents=config.percents,
        tests=tests,
    )


def _quantities(result: Measurement) -> dict[str, dict[str, float]]:
    """Of each method, and of the check."""
    found = {}
    for name in result.methods:
        p = {test: result.p(name, test) for test in result.tests}
        found[name] = quantities(result.acu(name), result.racu(name), p, result.floors)
    return {**found, CHECK: found[BASELINE]}


def summary(*results: Measurement) -> Table:
    """The methods, most faithful first; each is compared with random erasure of the same texts.

    Areas on different texts do not compare: those on the texts that all methods share are told below.
    """
    tests = [f"p {test}" for test in results[0].tests]
    title = f"faithfulness by {results[0].metric}: areas in %, p of the steps below 100 % together"
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
    common = set.intersection(*(set(result.frame["row"]) for result in results))
    if any(result.texts > len(common) for result in results):
        same = {method: 100 * result.among(common).acu(method) for result, method in rows}
        ranked = sorted(same.items(), key=lambda item: -item[1])
        spelled = ", ".join(f"{method} {area:.1f}" for method, area in ranked)
        shown.caption = f"ACU on the {len(common)} texts that all were measured on: {spelled}"
        shown.caption_justify = "left"
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
            shown.add_row(
                "  % below .05",
                *(f"{100 * step.below[SIGNIFICANCE_LEVEL]:.0f}" for step in steps),
                style="dim",
            )
    return shown


def warn(result: Measurement) -> None:
    """Say what must not be trusted."""
    from ..faithfulness.pvalues import format_pvalue

    for test, floor in result.floors.items():
        if floor >= SIGNIFICANCE_LEVEL:
            why = f"a hopeless outlier gets p = {floor:.3f}, as there are too few validation texts"
            console.print(f"The {test} test could not have rejected: {why}.", style="yellow")
    for method in result.methods:
        p = result.p(method, "crossfit")
        if p < SIGNIFICANCE_LEVEL:
            found = f"{method}: erased texts are out of distribution ({format_pvalue(p)})"
            console.print(f"{found}; do not trust its areas.", style="yellow")
    last = result.pvalues(BASELINE, "crossfit")[100].p
    if last < SIGNIFICANCE_LEVEL:
        found = f"wholly masked texts are out of distribution ({format_pvalue(last)})"
        console.print(f"{found}: rare in fine-tuning; RACU, which is scaled by them, is less sure than ACU.")
