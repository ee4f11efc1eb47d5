"""Tables, costs and verdicts of measurements as the terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from ..measuring.plausibility import PLAUSIBILITY
from ..stats.other_metrics import OTHER_METRICS
from ..verdict.formats import format_metric, format_percent
from .screen import MARKS, console, table

if TYPE_CHECKING:
    from ..measuring.measurement import Measurement
    from ..runs.bounded import Bounds
    from ..store.records import TrainRecord
    from ..verdict import Answer, Verdict


def print_bounds(bounds: Bounds) -> None:
    """Print how many evaluations each method needs at most, cheapest first, and which are left out."""
    ranked = sorted(bounds.evaluations.items(), key=lambda item: item[1])
    each = ", ".join(f"{name} {count:,}" for name, count in ranked)
    console.print(f"{bounds.texts} texts, at most so many evaluations: {each}", soft_wrap=True)
    for name, count in bounds.left_out.items():
        console.print(
            f"{name} is left out: up to {count:,} evaluations, more than all others together; to measure it, "
            f"name the methods: --method {name} …",
            soft_wrap=True,
        )


def print_truncated(record: TrainRecord) -> None:
    """Print which share of a split's texts was truncated in training, if any was."""
    role, share = max(record.truncated.items(), key=lambda item: item[1])
    if share:
        console.print(
            f"{format_percent(share)}% of the {role} texts are too long for the model: training reads only "
            "their beginnings; check, measure and explain read them in windows with --overlap",
            soft_wrap=True,
        )


def summary(*results: Measurement) -> Table:
    """Return a table of the methods, the highest ACU first and the baseline last.

    Each method is compared with random erasure of the same texts. Areas on different texts are not
    comparable: if the results do not cover the same texts, the caption gives the ACU on those they share.
    """
    tests = [f"p {test}" for test in results[0].tests]
    unit = "" if results[0].unit == "token" else f", {results[0].unit}s erased"
    measured = f"{format_metric(results[0].metric)}{unit}"
    title = f"faithfulness by {measured}: areas in %, p of the steps below 100 % together"
    lines = table(title, "method", "ACU", "[95 %]", "RACU", *tests, "texts", "evals", "seconds")
    lines.collapse_padding = True  # to fit into 80 columns
    for column in lines.columns[:4]:
        column.no_wrap = True
    rows = [(result, method) for result in results for method in result.methods if method != BASELINE]
    rows.sort(key=lambda row: -row[0].acu(row[1]))
    for result, method in [*rows, (results[0], BASELINE)]:
        acu, racu = (format_percent(area) for area in result.areas[method])
        _, lower, upper, _ = result.bounds(method)["acu"]
        interval = "" if method == BASELINE else f"[{format_percent(lower)}, {format_percent(upper)}]"
        pvalues = [f"{result.p(method, test):.3f}" for test in result.tests]
        seconds = f"{sum(result.seconds[method].values()):.1f}"
        lines.add_row(
            method, acu, interval, racu, *pvalues, f"{result.texts}", f"{result.evaluations[method]}", seconds
        )
    captions = []
    if shares := [
        f"{method} {format_percent(result.share_of_ceiling(method))}"
        for result, method in rows
        if result.ceiling
    ]:
        captions.append(f"% of the ceiling, the best order of each text by any method: {', '.join(shares)}")
    common = set.intersection(*(set(result.frame["row"]) for result in results))
    if any(result.texts > len(common) for result in results):
        shared = {method: result.among(common).acu(method) for result, method in rows}
        ranked = sorted(shared.items(), key=lambda item: -item[1])
        areas = [f"{method} {format_percent(area)}" for method, area in ranked]
        captions.append(f"ACU on the {len(common)} texts that all were measured on: {', '.join(areas)}")
    lines.caption, lines.caption_justify = "\n".join(captions) or None, "left"
    return lines


def metric_table(result: Measurement) -> Table:
    """Return a table of the metrics of other papers, most faithful by ACU first."""
    names = result.metrics(BASELINE)
    titles = [f"{OTHER_METRICS[name].title} ({OTHER_METRICS[name].better})" for name in names]
    title = "metrics of other papers in % (log-odds: natural logarithm); in brackets: what is better"
    lines = table(title, "method", *titles)
    for row in result.metric_table().to_dict("records"):
        values = ((row[name], OTHER_METRICS[name].unit) for name in names)
        cells = (format_percent(value) if unit else f"{value:.3f}" for value, unit in values)
        lines.add_row(str(row["method"]), *cells)
    return lines


def plausibility_table(result: Measurement) -> Table:
    """Return a table of faithfulness and of agreement with human rationales, which are different things."""
    title = "faithful (ACU) and plausible (agreement with human rationales) in %: different things"
    lines = table(title, "method", "ACU", *PLAUSIBILITY.values())
    for row in result.plausibility_table().to_dict("records"):
        lines.add_row(str(row["method"]), *(format_percent(row[name]) for name in ("acu", *PLAUSIBILITY)))
    return lines


def pvalue_table(**results: Measurement) -> Table:
    """Return a table of p-values over all texts, and of the share of significant texts, by percent masked."""
    first = next(iter(results.values()))
    percents = list(first.pvalues(BASELINE, first.tests[0]))
    title = f"are {first.texts} randomly masked texts in distribution? p by percent masked"
    lines = table(title, "test", *map(str, percents))
    for name, result in results.items():
        for test in result.tests:
            steps = result.pvalues(BASELINE, test).values()
            lines.add_row(f"{name} {test}".strip(), *(f"{step.p:.2f}" for step in steps))
            shares = (format_percent(step.below[SIGNIFICANCE_LEVEL], 0) for step in steps)
            lines.add_row(f"  % below {SIGNIFICANCE_LEVEL:.2f}".replace("0.", "."), *shares, style="dim")
    return lines


def print_answers(answers: Iterable[Answer], screen: Console) -> None:
    """Print each question with its answer in a line."""
    for answer in answers:
        line = Text.assemble(MARKS[answer.mood], (answer.question, "bold"), f" {answer.text}")
        screen.print(line, soft_wrap=True)


def print_verdict(verdict: Verdict, *, methods: bool = True) -> None:
    """Print the questions and answers of the verdict, and its doubts in place of the last answer.

    Without `methods`, the question about them is left out.
    """
    from ..verdict import QUESTIONS

    answers = [answer for answer in verdict.answers if methods or answer.question != QUESTIONS[1]]
    if not verdict.doubts:
        print_answers(answers, console)
        return
    *others, last = answers
    print_answers(others, console)
    console.print(Text(f"  {last.question}", "bold"))
    for doubt in verdict.doubts:
        console.print(Text.assemble(MARKS[doubt.severity], f"{doubt.text}."), soft_wrap=True)
