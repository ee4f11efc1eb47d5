"""View: what a reader sees of a result, and in which words; the same on every surface.

A view begins with the one sentence that a reader with ten seconds needs, then shows a chart, then a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from ..measuring.plausibility import PLAUSIBILITY
from ..stats.other_metrics import OTHER_METRICS
from ..verdict.formats import format_metric, format_number, format_percent
from .blocks import Block, Cell, Chart, Column, HeatMap, Row, Sentence, Table

if TYPE_CHECKING:
    from ..measuring.explanation import Explanation, Unit
    from ..measuring.one_text import Erasure, TextMeasurement
    from ..measuring.result import Result
    from ..store.records import AdaptRecord, TrainRecord
    from ..verdict import Answer, Doubt, Verdict

NAME = Column(("method",), "label", form="code")
AREA = Column(("ACU",), form="number")
PVALUE_DIGITS = (3, 3)
CONSTANTS = {
    "single-label": "the most frequent label in training",
    "multi-label": "the labels of most training texts",
    "regression": "the mean of the training labels",
}
"""What the constant guess of a training is, by kind of task."""
COUNT = Column(("texts",), form="number", decimals=(0, 0))


def view(result: object) -> list[Block]:
    """Return the blocks of a result: a measurement, an explanation, one measured text, or an adaptation."""
    return VIEWS[type(result).__name__](result)


def _result(result: Result) -> list[Block]:
    return [
        *top_sentence(result.verdict),
        *lead_chart(result),
        areas_table(result),
        *([metrics_table(result)] if "sufficiency" in _measured_metrics(result) else []),
        *([plausibility_table(result)] if result.plausibility else []),
        *verdict_sentences(result.verdict),
    ]


def _text(result: TextMeasurement) -> list[Block]:
    summary = result.verdict.summary
    top = Sentence(f"{summary.text}.", summary.mood, "top")
    answers = [Sentence(one.text, one.mood, "answer", f"{one.question}:") for one in result.verdict.answers]
    return [top, *_text_chart(result), _text_table(result), *answers, *doubt_sentences(result.verdict.doubts)]


def _explanation(result: Explanation) -> list[Block]:
    return [*_facts(result), *_heat_maps(result)]


def _adaptation(record: AdaptRecord) -> list[Block]:
    return [_adaptation_table(record), *answer_sentences(record.answers)]


VIEWS: dict[str, Callable[[Any], list[Block]]] = {
    "Result": _result,
    "TextMeasurement": _text,
    "Explanation": _explanation,
    "AdaptRecord": _adaptation,
}
"""Views by the name of the class, so that showing one kind of result does not import the others."""


def top_sentence(verdict: Verdict) -> list[Block]:
    """Return the sentence that answers which method to use."""
    answer = verdict.answers[1]
    return [Sentence(verdict.headline or answer.text, answer.mood, "top")]


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


def doubt_sentences(doubts: Iterable[Doubt]) -> list[Block]:
    """Return the doubts as sentences."""
    return [Sentence(f"{doubt.text}.", doubt.severity, "doubt") for doubt in doubts]


def areas_table(result: Result) -> Table:
    """Return the methods, the largest area first and random erasure last.

    Each method is compared with random erasure of the same texts. Areas on different texts cannot be
    compared: if the methods were not measured on the same texts, a note gives the ACU on those they share.
    """
    unit = "" if result.context.unit == "token" else f", {result.context.unit}s erased"
    measured = f"{format_metric(result.metric)}{unit}"
    title = f"faithfulness by {measured}: areas in %, p of the steps below 100 % together"
    tests = [Column((f"p {test}",), form="number", decimals=PVALUE_DIGITS) for test in result.tests]
    costs = (COUNT, Column(("evals",), form="number", decimals=(0, 0)), Column(("seconds",), form="number"))
    return Table(
        title,
        (NAME, AREA, Column(("RACU",), form="number"), *tests, *costs),
        tuple(_area_row(result, method) for method in result.ranked),
        tuple(_area_notes(result)),
    )


def _area_row(result: Result, method: str) -> Row:
    acu, racu = result.areas[method]
    _, low, high, _ = result.interval(method, "acu")
    interval = (None, None) if method == BASELINE else (100 * low, 100 * high)
    return (
        Cell(method),
        Cell(100 * acu, *interval),
        Cell(100 * racu),
        *(Cell(result.p(method, test)) for test in result.tests),
        Cell(result.texts_of(method)),
        Cell(result.evaluations[method]),
        Cell(sum(result.seconds[method].values())),
    )


def _area_notes(result: Result) -> Iterator[str]:
    explained = [method for method in result.ranked if method != BASELINE]
    if result.ceiling is not None:
        shares = [f"{method} {format_percent(result.share_of_ceiling(method))}" for method in explained]
        yield f"% of the ceiling, the best order of each text by any method: {', '.join(shares)}"
    fewest = min(map(result.texts_of, result.methods))
    if any(result.texts_of(method) > fewest for method in explained):
        shared = result.first(fewest)
        ranked = [method for method in shared.ranked if method != BASELINE]
        areas = ", ".join(f"{method} {format_percent(shared.acu(method))}" for method in ranked)
        yield f"ACU on the {fewest} texts that all were measured on: {areas}"


def lead_chart(result: Result) -> list[Block]:
    """Return the chart of the leading method against random erasure; none if only that was measured."""
    explained = [method for method in result.methods if method != BASELINE]
    if not explained:
        return []
    leaders = result.verdict.leaders or (max(explained, key=result.acu),)
    best = leaders[0]
    curves = {name: result.curve(name) for name in (best, BASELINE)}
    rows = [
        (name, percent, 100 * value)
        for name, curve in curves.items()
        for percent, value in zip(curve.percents, curve.values, strict=True)
    ]
    title = f"{format_metric(result.metric)} in %, by percent of the {result.context.unit}s erased"
    return [_area_chart(rows, best, BASELINE, f"ACU {format_percent(result.acu(best))} %", title)]


def _area_chart(
    rows: Sequence[tuple[str, int, float]], method: str, baseline: str, area: str, title: str
) -> Chart:
    frame = [dict(zip(("label", "percent", "value"), row, strict=True)) for row in rows]
    encoding = {"x": "percent", "y": "value", "color": "label", "order": (method, baseline), "area": area}
    return Chart("area", frame, encoding, title)


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


def _text_chart(result: TextMeasurement) -> list[Block]:
    """Return the chart of the method with the largest area against the mean of the random orders."""
    best = max(result.methods, key=lambda name: result.methods[name].acu)
    curves = {best: result.methods[best].probability, BASELINE: result.mean}
    scale = 100 if result.quantity == "probability" else 1
    rows = [
        (name, percent, scale * value)
        for name, values in curves.items()
        for percent, value in zip(result.percents, values, strict=True)
    ]
    area = f"ACU {_format_quantity(result, result.methods[best].acu, 1)}"
    return [_area_chart(rows, best, BASELINE, area, _text_title(result))]


def _text_title(result: TextMeasurement) -> str:
    probability = result.quantity == "probability"
    curve = f"probability of {result.label} in %" if probability else "predicted number"
    return f"{curve}, by percent of the text erased"


def _text_table(result: TextMeasurement) -> Table:
    """Return the curve of each method with its p-values, and those of the random orders."""
    rows: list[Row] = []
    for name, erasure in result.methods.items():
        rows.append((Cell(name), *map(Cell, _curve_row(result, erasure))))
        for test, pvalues in erasure.pvalues.items():
            cells = (f"p {test}", *(f"{p:.2f}".lstrip("0") for p in pvalues))
            rows.append(tuple(Cell(text, mark="grey") for text in (*cells, "", "")))
    orders = {f"random (mean of {result.orders})": result.mean, "5 %": result.lower, "95 %": result.upper}
    for name, values in orders.items():
        cells = (name, *(_format_quantity(result, value) for value in values), "", "")
        rows.append(tuple(Cell(text, mark="grey") for text in cells))
    columns = (Column((heading,)) for heading in (*map(str, result.percents), "ACU", "RACU"))
    return Table(_text_title(result), (NAME, *columns), tuple(rows))


def _curve_row(result: TextMeasurement, erasure: Erasure) -> list[str]:
    points = [_format_quantity(result, value) for value in (*erasure.probability, erasure.acu)]
    return [*points, format_percent(erasure.racu, 0)]


def _format_quantity(result: TextMeasurement, value: float, decimals: int = 0) -> str:
    """Format a point of a curve or its ACU: a percentage, or a number in its own unit."""
    if result.quantity == "probability":
        return format_percent(value, decimals)
    return format_number(value, 2)


def _facts(result: Explanation) -> Iterator[Block]:
    probabilities = ", ".join(f"{name} {p:.1%}" for name, p in result.probabilities.items())
    yield Sentence(f"prediction {result.prediction}" + (f" ({probabilities})" if probabilities else ""))
    if result.pair is not None:
        yield Sentence(f"context: {result.pair}")
    if result.truncated:
        yield Sentence("the text is longer than the model can read: its end was left out", "caution")
    if result.precision != "fp32":
        yield Sentence(f"evaluated in {result.precision}")


def _heat_maps(result: Explanation) -> Iterator[Block]:
    """Yield the words of each method and, unless each word is one token, its tokens."""
    for method in result.methods:
        signed = method in result.signed
        words, scores = _with_gaps(result.words, result.text), _scores(result.words, method)
        yield HeatMap(words, scores, method=method, label=result.label, signed=signed)
        if len(result.tokens) != len(result.words):
            tokens, scores = _with_gaps(result.tokens), _scores(result.tokens, method)
            yield HeatMap(tokens, scores, method=method, label=result.label, signed=signed, pieces="tokens")


def _scores(units: Sequence[Unit], method: str) -> tuple[float, ...]:
    return tuple(unit.scores[method] for unit in units)


def _with_gaps(units: Sequence[Unit], text: str | None = None) -> tuple[str, ...]:
    """Return the units with a blank before each that follows a gap in `text`; without it, all do."""
    words, end = [], 0
    for number, unit in enumerate(units):
        gap = number > 0 if text is None else bool(text[end : unit.start])
        words.append(" " * gap + unit.text)
        end = unit.end
    return tuple(words)
