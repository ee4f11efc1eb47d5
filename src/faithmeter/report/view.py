"""View: what a reader sees of a result, and in which words; the same on every surface.

A view begins with the one sentence that a reader with ten seconds needs, then shows a chart, then a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from ..measuring.plausibility import PLAUSIBILITY
from ..stats.areas import KINDS, PROBABILITY
from ..stats.other_metrics import OTHER_METRICS
from ..verdict.formats import format_metric, format_percent
from .blocks import Block, Cell, Code, Column, Row, Sentence, Table
from .view_texts import NAME, area_chart, doubt_sentences, view_explanation, view_text

if TYPE_CHECKING:
    from ..measuring.result import Result
    from ..runs.auditing import Audit
    from ..store.records import AdaptRecord, TrainRecord
    from ..verdict import Answer, Verdict
    from .beside import Beside

AREA = Column(("ACU",), form="number")
PVALUE_DIGITS = (3, 3)
CONSTANTS = {
    "single-label": "the most frequent label in training",
    "multi-label": "the labels of most training texts",
    "regression": "the mean of the training labels",
}
"""What the constant guess of a training is, by kind of task."""
COUNT = Column(("texts",), form="number", decimals=(0, 0))
COSTS = (Column(("evals",), form="number", decimals=(0, 0)), Column(("seconds",), form="number"))


def view(result: object) -> list[Block]:
    """Return the blocks of a result: a measurement, an explanation, one measured text, or an adaptation."""
    return VIEWS[type(result).__name__](result)


def lead(result: Result) -> list[Block]:
    """Return the first blocks of a result: one sentence, one chart and one table."""
    return [top_sentence(result.verdict), *lead_chart(result), areas_table(result)]


def _result(result: Result) -> list[Block]:
    return [
        *lead(result),
        *([metrics_table(result)] if "sufficiency" in _measured_metrics(result) else []),
        *([plausibility_table(result)] if result.plausibility else []),
        *verdict_sentences(result.verdict),
    ]


def _adaptation(record: AdaptRecord) -> list[Block]:
    return [_adaptation_table(record), *answer_sentences(record.answers)]


def _audit(audit: Audit) -> list[Block]:
    """Return the three sentences of an audit, then what was measured, and the next command."""
    first, *others = audit.answers
    answer, _, reasons = first.text.partition(". ")  # the answer alone for who has ten seconds
    return [
        Sentence(f"{answer}.", first.mood, "top", first.question),
        Sentence(reasons, "note", "answer"),
        *answer_sentences(others),
        *lead_chart(audit.result),
        areas_table(audit.result),
        *doubt_sentences(audit.result.verdict.doubts),
        Code(audit.next_command),
    ]


def _beside(beside: Beside) -> list[Block]:
    from .beside import view_beside

    return view_beside(beside)


VIEWS: dict[str, Callable[[Any], list[Block]]] = {
    "Result": _result,
    "TextMeasurement": view_text,
    "Explanation": view_explanation,
    "AdaptRecord": _adaptation,
    "Audit": _audit,
    "Beside": _beside,
}
"""Views by the name of the class, so that showing one kind of result does not import the others."""


def top_sentence(verdict: Verdict) -> Sentence:
    """Return the sentence that answers which method to use."""
    answer = verdict.answers[1]
    return Sentence(verdict.headline or answer.text, answer.mood, "top")


def verdict_sentences(verdict: Verdict, *, methods: bool = True) -> list[Block]:
    """Return the questions with their answers; the doubts, if there are any, are the answer to the last.

    Without `methods`, the question about them is left out.
    """
    first, second, last = verdict.answers
    answers = [first, *([second] if methods else [])]
    if not verdict.doubts:
        return answer_sentences([*answers, last])
    question = Sentence("", "note", "answer", last.question)
    return [*answer_sentences(answers), question, *doubt_sentences(verdict.doubts)]


def answer_sentences(answers: Iterable[Answer]) -> list[Block]:
    """Return each answer after its question."""
    return [Sentence(one.text, one.mood, "answer", one.question, one.points) for one in answers]


def areas_table(result: Result, *, costs: bool = True) -> Table:
    """Return the methods, the most faithful first and random erasure last, by default with their costs.

    Each method is compared with random erasure of the same texts. Areas on different texts cannot be
    compared: if the methods were not measured on the same texts, a note gives the ACU on those they share.
    """
    kinds = dict.fromkeys((result.main_kind, "acu", "racu"))
    areas = [Column((KINDS[kind].title,), form="number") for kind in kinds]
    tests = [Column((f"p {test}",), form="number", decimals=PVALUE_DIGITS) for test in result.tests]
    counts = (COUNT, *COSTS) if costs else (COUNT,)
    unit = "" if result.context.unit == "token" else f", {result.context.unit}s erased"
    title = f"Faithfulness, and areas by {format_metric(result.metric)}{unit}, in %"
    width = 1 + len(kinds) + len(tests) + len(counts)
    rows = tuple(_area_row(result, method, kinds)[:width] for method in result.ranked)
    notes = ("p: of the steps below 100 % together.", *_area_notes(result))
    return Table(title, (NAME, *areas, *tests, *counts), rows, notes if result.tests else notes[1:])


def _area_row(result: Result, method: str, kinds: Iterable[str]) -> Row:
    return (
        Cell(method),
        *(area_cell(result, method, kind) for kind in kinds),
        *(Cell(result.p(method, test)) for test in result.tests),
        Cell(result.texts_of(method)),
        Cell(result.evaluations[method]),
        Cell(sum(result.seconds[method].values())),
    )


def area_cell(result: Result, method: str, kind: str) -> Cell:
    """Return an area of a method in percent, with its interval if it has one."""
    _, low, high, _ = result.interval(method, kind).or_mean()
    has_interval = method != BASELINE and kind != "racu" and low < high
    bounds = (100 * low, 100 * high) if has_interval else ()
    return Cell(100 * result.area(method, kind), *bounds)


def _area_notes(result: Result) -> Iterator[str]:
    explained = [method for method in result.ranked if method != BASELINE]
    if result.ceiling is not None:
        shares = [f"{method} {format_percent(result.share_of_ceiling(method))}" for method in explained]
        yield f"% of the ceiling, the best order of each text by any method: {', '.join(shares)}."
    fewest = min(map(result.texts_of, result.methods))
    if any(result.texts_of(method) > fewest for method in explained):
        shared = result.first(fewest)
        ranked = [method for method in shared.ranked if method != BASELINE]
        areas = ", ".join(f"{method} {format_percent(shared.acu(method))}" for method in ranked)
        yield f"ACU on the {fewest} texts that all were measured on: {areas}."


def lead_chart(result: Result) -> list[Block]:
    """Return the chart of the leading method against random erasure; none if only that was measured."""
    explained = [method for method in result.ranked if method != BASELINE]
    if not explained:
        return []
    rivals = [method for method in explained if method in result.rivals]
    best = [*result.verdict.leaders, *rivals, *explained][0]
    # without anything to remove there is no share of it; the area of the metric is always defined
    name = "acu" if math.isnan(result.area(best)) else result.main_kind
    kind = KINDS[name]
    quantity = kind.of_metric(result.metric)
    curves = {best: result.curve(best, quantity), BASELINE: result.random_curve(best, quantity)}
    rows = [
        (name, percent, 100 * value)
        for name, curve in curves.items()
        for percent, value in zip(curve.percents, curve.values, strict=True)
    ]
    shows = "mean probability of the label" if quantity == PROBABILITY else format_metric(quantity)
    title = f"{shows} in %, by percent of the {result.context.unit}s erased"
    area = f"{kind.title} {format_percent(result.area(best, name))} %"
    return [area_chart(rows, best, BASELINE, area, title)]


def metrics_table(result: Result) -> Table:
    """Return the metrics of other papers, most faithful by ACU first."""
    columns = []
    for metric in OTHER_METRICS.values():
        digits = (1, 1) if metric.unit else (3, 3)
        columns.append(Column((f"{metric.title} ({metric.better})",), form="number", decimals=digits))
    scales = {name: 100 if metric.unit else 1 for name, metric in OTHER_METRICS.items()}
    rows = []
    for row in result.metric_table().to_dict("records"):
        cells = (Cell(scale * row[name]) for name, scale in scales.items())
        rows.append((Cell(str(row["method"])), *cells))
    title = "metrics of other papers in % (log-odds: natural logarithm); in brackets: what is better"
    return Table(title, (NAME, *columns), tuple(rows))


def _measured_metrics(result: Result) -> set[str]:
    """Return the names of the metrics of other papers that are defined for random erasure."""
    return {name for name, value in result.metrics(BASELINE).items() if value == value}  # NaN: undefined


def plausibility_table(result: Result) -> Table:
    """Return faithfulness beside the agreement with human rationales, which is another thing."""
    columns = [Column((title,), form="number") for title in PLAUSIBILITY.values()]
    rows = []
    for row in result.plausibility_table().to_dict("records"):
        cells = (Cell(100 * row[name]) for name in ("acu", *PLAUSIBILITY))
        rows.append((Cell(str(row["method"])), *cells))
    title = "Faithfulness (ACU) and plausibility (agreement with human rationales), in %"
    return Table(title, (NAME, AREA, *columns), tuple(rows))


def view_check(results: Mapping[str, Result]) -> list[Block]:
    """Return the blocks of the check of a model, by name: p-values and the answer about the model."""
    blocks: list[Block] = [check_table(results)]
    for result in results.values():
        blocks += verdict_sentences(result.verdict, methods=False)
    return blocks


def check_table(results: Mapping[str, Result]) -> Table:
    """Return p-values over all texts, and the share of significant texts, by percent masked."""
    first = next(iter(results.values()))
    percents = list(first.pvalues(BASELINE, first.tests[0]))
    rows: list[Row] = []
    for name, result in results.items():
        for test in result.tests:
            steps = result.pvalues(BASELINE, test).values()
            rows.append((Cell(f"{name} {test}".strip()), *(Cell(step.p) for step in steps)))
            shares = (format_percent(step.below[SIGNIFICANCE_LEVEL], 0) for step in steps)
            below = f"% below {SIGNIFICANCE_LEVEL:.2f}".replace("0.", ".")
            rows.append(tuple(Cell(text, mark="grey") for text in (below, *shares)))
    title = f"are {first.texts} randomly masked texts in distribution? p by percent masked"
    columns = (Column((str(percent),), form="number", decimals=(2, 2)) for percent in percents)
    return Table(title, (Column(("test",), "label"), *columns), tuple(rows))


def training_table(records: Sequence[TrainRecord]) -> Table:
    """Return test performance by percent masked, with that of the constant guess in the last row."""
    from ..runs.measured import task_of

    task = task_of(records[0].config)
    percents = [line.masking for line in records[0].test if isinstance(line.masking, int)]
    rows: list[Row] = []
    for record in records:
        values = {line.masking: line.score(task.metric) for line in record.test}
        rows.append((Cell(record.config.strategy), *(Cell(100 * values[percent]) for percent in percents)))
    guess = "majority" if task.kind != "regression" else "the mean"
    level = format_percent(records[0].majority["test"][task.metric])
    rows.append(tuple(Cell(text, mark="grey") for text in (guess, *[""] * (len(percents) - 1), level)))
    visible = "the length" if task.context is None else f"the length and the column {task.context}"
    title = f"{task.name}: test {format_metric(task.metric)} in %, by percent of the tokens masked at random"
    note = f"{guess}: always {CONSTANTS[task.kind]}; of a wholly masked text, the model sees {visible}"
    columns = (Column((str(percent),), form="number") for percent in percents)
    return Table(title, (Column(("fine-tuning",), "label"), *columns), tuple(rows), (note,))


def _adaptation_table(record: AdaptRecord) -> Table:
    """Return both models' p-values and their agreement, by percent masked."""
    percents = list(next(iter(record.p_adapted.values())))
    rows: list[Row] = [
        (Cell(f"{name} {test}"), *(Cell(steps[percent]) for percent in percents))
        for name, checks in (("original", record.p_original), ("adapted", record.p_adapted))
        for test, steps in checks.items()
    ]
    shares = {line.masking: line.score(record.metric) for line in record.test}
    agreement = (format_percent(shares[percent]) for percent in percents)
    rows.append(tuple(Cell(text, mark="grey") for text in ("agreement in %", *agreement)))
    title = f"are {record.checked_texts} randomly masked texts in distribution? p by percent masked"
    columns = (Column((str(percent),), form="number", decimals=(2, 2)) for percent in percents)
    return Table(title, (Column(("model, test",), "label"), *columns), tuple(rows))
