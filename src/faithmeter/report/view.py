"""View: what a reader sees of a result, and in which words; the same on every surface.

A view begins with the one sentence that a reader with ten seconds needs, then shows a chart, then a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from ..measuring.plausibility import PLAUSIBILITY
from ..stats.curves import KINDS, PROBABILITY
from ..stats.other_metrics import OTHER_METRICS
from ..verdict.formats import format_metric, format_percent
from .blocks import (
    Block,
    Cell,
    Chart,
    Code,
    Column,
    Row,
    Sentence,
    Table,
    file_column,
    number_columns,
    plain_row,
)
from .view_texts import NAME, doubt_sentences, view_explanation

if TYPE_CHECKING:
    from ..measuring.result import Result
    from ..runs.auditing import Audit
    from ..store.records import AdaptRecord, MaskedScores, TrainRecord
    from ..verdict.sentences import Answer, Verdict
    from .beside import Beside

    Named = Mapping[tuple[str | None, str | None], Result]
    """Results by task and model, without a name if there is one."""

CONSTANTS = {
    "single-label": "the most frequent label in training",
    "multi-label": "the labels of most training texts",
    "regression": "the mean of the training labels",
}
"""What the constant guess of a training is, by kind of task."""
PREFERENCE = (
    "Prefer ACU with its check: it is compared with random erasure of the same texts, has an interval, and "
    "is trusted only if the erased texts are in distribution."
)
DIFFERENCE = (
    "ACU: whether the model needs the words that a method calls important. All others: whether people call "
    "the same words the reason (human rationales). Neither says anything about the other."
)
COUNT = number_columns(["texts"], 0)
COSTS = (*number_columns(["evals"], 0), *number_columns(["seconds"]))


def view(result: object) -> list[Block]:
    """Return the blocks of a result: a measurement, an explanation, an adaptation, or an audit."""
    return VIEWS[type(result).__name__](result)


def lead(result: Result, *, costs: bool = True) -> list[Block]:
    """Return the first blocks of a result: one sentence, one chart and one table."""
    return [top_sentence(result.verdict), *lead_chart(result), areas_table(result, costs=costs)]


def _result(result: Result) -> list[Block]:
    tables = []
    # sufficiency needs the complement of each step, which is measured for these metrics only
    if not math.isnan(result.metrics(BASELINE)["sufficiency"]):
        tables.append(metrics_table({(None, None): result}))
    if result.plausibility:
        tables.append(replace(plausibility_table({(None, None): result}), notes=()))
    return [*lead(result), *tables, *verdict_sentences(result.verdict)]


def _adaptation(record: AdaptRecord) -> list[Block]:
    return [_adaptation_table(record), *answer_sentences(record.answers)]


def _audit(audit: Audit) -> list[Block]:
    """Return the three answers of an audit, what was measured, what that rests on, and the next command."""
    first, *others = audit.answers
    reasons = []
    for subject, reason in audit.reasons.items():
        reasons.append(Sentence(reason, "note", "answer", subject))
    return [
        Sentence(first.text, first.mood, "top", first.question),
        *answer_sentences(others),
        *lead_chart(audit.result),
        areas_table(audit.result),
        *reasons,
        *doubt_sentences(audit.result.verdict.doubts),
        Code(audit.next_command),
    ]


def _beside(beside: Beside) -> list[Block]:
    from .beside import view_beside

    return view_beside(beside)


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
    sentences: list[Block] = []
    for one in answers:
        sentences.append(Sentence(one.text, one.mood, "answer", one.question, one.points))
    return sentences


def areas_table(result: Result, *, costs: bool = True) -> Table:
    """Return the methods, the most faithful first and random erasure last, by default with their costs.

    Each method is compared with random erasure of the same texts. Areas on different texts cannot be
    compared: if the methods were not measured on the same texts, a note gives the ACU on those they share.
    """
    kinds = dict.fromkeys((result.main_kind, "acu", "racu"))
    areas = number_columns([KINDS[kind].title for kind in kinds])
    columns = (NAME, *areas, *number_columns(map("p {}".format, result.tests), 3), *COUNT)
    rows = [_area_row(result, method, kinds, costs=costs) for method in result.ranked]
    unit = "" if result.context.unit == "token" else f", {result.context.unit}s erased"
    title = f"Faithfulness, and areas by {format_metric(result.metric)}{unit}, in %"
    notes = ("p: of the steps below 100 % together.", *_area_notes(result))
    return Table(
        title, (*columns, *(COSTS if costs else ())), tuple(rows), notes if result.tests else notes[1:]
    )


def _area_row(result: Result, method: str, kinds: Iterable[str], *, costs: bool) -> Row:
    areas = map(partial(area_cell, result, method), kinds)
    numbers = [*map(partial(result.p, method), result.tests), result.texts_of(method)]
    if costs:
        numbers += [result.evaluations[method], sum(result.seconds[method].values())]
    return (Cell(method), *areas, *plain_row(*numbers))


def area_cell(result: Result, method: str, kind: str) -> Cell:
    """Return an area of a method in percent, with its interval if it has one."""
    _, low, high, _ = result.interval(method, kind).or_mean()
    # random erasure is what areas are measured from, and RACU's interval is as wide as its divisor
    has_interval = method != BASELINE and kind != "racu" and low < high
    bounds = (100 * low, 100 * high) if has_interval else ()
    return Cell(100 * result.area(method, kind), *bounds)


def _area_notes(result: Result) -> Iterator[str]:
    explained = _explained(result)
    if result.ceiling is not None:
        shares = _shares(dict(zip(explained, map(result.share_of_ceiling, explained), strict=True)))
        yield f"% of the ceiling, the best order of each text by any method: {shares}."
    yield from _unusual_note(result)
    fewest = min(map(result.texts_of, result.methods))
    if max(map(result.texts_of, explained), default=0) > fewest:
        shared = result.first(fewest)
        ranked = _explained(shared)
        areas = _shares(dict(zip(ranked, map(shared.acu, ranked), strict=True)))
        yield f"ACU on the {fewest} texts that all were measured on: {areas}."


def _unusual_note(result: Result) -> Iterator[str]:
    """Yield the share of texts that MaSF rejects, and the smallest share that it would have noticed."""
    shares, noticed = {}, 0.0
    for method in result.ranked:
        test = result.unusual(method)
        if test is not None:
            shares[method], noticed = test.share, max(noticed, test.noticed)
    if shares:
        each = _shares(shares, "%", decimals=0)
        yield f"Texts that look unusual one by one, at the worst rate: {each}; 5% do by chance."
        least = format_percent(noticed, 0)
        yield f"A share of {least}% would have been noticed in four of five measurements."


def lead_chart(result: Result) -> list[Block]:
    """Return the chart of the leading method against random erasure; none if only that was measured."""
    explained = _explained(result)
    if not explained:
        return []
    rivals = filter(result.rivals.__contains__, explained)
    best = [*result.verdict.leaders, *rivals, *explained][0]
    # without anything to remove there is no share of it; the area of the metric is always defined
    name = "acu" if math.isnan(result.area(best)) else result.main_kind
    kind = KINDS[name]
    quantity = kind.of_metric(result.metric)
    own, random = result.curve(best, quantity), result.random_curve(best, quantity)
    shows = "mean probability of the label" if quantity == PROBABILITY else format_metric(quantity)
    title = f"{shows} in %, by percent of the {result.context.unit}s erased"
    curves = {best: _percents(own.values), BASELINE: _percents(random.values)}
    area = f"{kind.title} {format_percent(result.area(best, name))} %"
    return [Chart(title, own.percents, curves, area)]


def _explained(result: Result) -> list[str]:
    """Return the methods but for random erasure, the most faithful first."""
    return list(filter(BASELINE.__ne__, result.ranked))


def _shares(fractions: Mapping[str, float], unit: str = "", *, decimals: int = 1) -> str:
    """Return methods with fractions, in percent, as a list."""
    return ", ".join(f"{method} {format_percent(one, decimals)}{unit}" for method, one in fractions.items())


def _percents(fractions: Iterable[float]) -> list[float]:
    return [100 * fraction for fraction in fractions]


def scores_by_masking(lines: Iterable[MaskedScores], metric: str) -> dict[str | int, float]:
    """Return performance by what was masked."""
    return {line.masking: line.score(metric) for line in lines}


def metrics_table(results: Named) -> Table:
    """Return the metrics of other papers, most faithful first; their definitions are linked."""
    columns, definitions = [], []
    for name, metric in OTHER_METRICS.items():
        # log-odds are no fraction
        heading, decimals = (metric.title, f"({metric.better} is better)"), 1 if metric.unit else 2
        columns.append(
            file_column((name,), heading, form="number", decimals=(decimals,) * 2, unit=metric.unit)
        )
        definitions.append((metric.title, metric.url))

    def values(result: Result, method: str) -> list[float]:
        means = result.metrics(method)
        return [means[name] * (100 if metric.unit else 1) for name, metric in OTHER_METRICS.items()]

    table = Table("Metrics of other papers on the same erasures", tuple(columns), notes=(PREFERENCE,))
    return replace(_by_method(table, results, values), definitions=tuple(definitions))


def plausibility_table(results: Named) -> Table:
    """Return faithfulness beside the agreement with human rationales, which is another thing."""
    columns = []
    for name, title in {"acu": "ACU", **PLAUSIBILITY}.items():
        columns.append(file_column((name,), (title,), form="number", decimals=(1, 1)))

    def values(result: Result, method: str) -> list[float]:
        known = result.plausibility.get(method)
        return [] if known is None else _percents([result.acu(method), *map(known.__getitem__, PLAUSIBILITY)])

    title = "Faithfulness (ACU) and plausibility (agreement with human rationales), in %"
    return _by_method(Table(title, tuple(columns), notes=(DIFFERENCE,)), results, values)


def _by_method(table: Table, results: Named, values: Callable[[Result, str], list[float]]) -> Table:
    """Return the table with a row for each result and method that has values, and columns for their names."""
    rows: list[Row] = []
    for names, result in results.items():
        for method in result.ranked:
            numbers = values(result, method)
            if not all(map(math.isnan, numbers)):
                cells = (Cell() if math.isnan(number) else Cell(number) for number in numbers)
                rows.append((*map(Cell, names), Cell(method), *cells))
    labels = (
        file_column(("task",), ("Dataset",), "section"),
        file_column(("model",), ("Model",), "group"),
        file_column(("method",), ("method",), "label", form="method"),
    )
    return replace(table, columns=(*labels, *table.columns), rows=tuple(rows))


def view_check(results: Mapping[str, Result]) -> list[Block]:
    """Return the blocks of the check of a model, by name: p-values and the answer about the model."""
    blocks: list[Block] = [check_table(results)]
    for result in results.values():
        blocks += verdict_sentences(result.verdict, methods=False)
    return blocks


def check_table(results: Mapping[str, Result]) -> Table:
    """Return p-values over all texts, and the share of significant texts, by percent masked."""
    first = next(iter(results.values()))
    percents = first.pvalues(BASELINE, first.tests[0])
    rows: list[Row] = []
    for name, result in results.items():
        for test in result.tests:
            steps = result.pvalues(BASELINE, test).values()
            rows.append(plain_row(f"{name} {test}".strip(), *map(attrgetter("p"), steps)))
            shares = (format_percent(step.below[SIGNIFICANCE_LEVEL], 0) for step in steps)
            below = f"% below {SIGNIFICANCE_LEVEL:.2f}".replace("0.", ".")
            rows.append(plain_row(below, *shares, mark="grey"))
    title = f"are {first.texts} randomly masked texts in distribution? p by percent masked"
    return _table_by_step(title, "test", percents, rows, decimals=2)


def _table_by_step(title: str, name: str, percents: Iterable[int], rows: list[Row], decimals: int) -> Table:
    columns = (Column((name,), "label"), *number_columns(percents, decimals))
    return Table(title, columns, tuple(rows))


def training_table(records: Sequence[TrainRecord]) -> Table:
    """Return test performance by percent masked, with that of the constant guess in the last row."""
    from ..runs.measured import task_of

    task = task_of(records[0].config)
    percents = [line.masking for line in records[0].test if isinstance(line.masking, int)]
    rows: list[Row] = []
    for record in records:
        values = scores_by_masking(record.test, task.metric)
        rows.append(plain_row(record.config.strategy, *_percents(map(values.__getitem__, percents))))
    guess = "majority" if task.kind != "regression" else "the mean"
    level = format_percent(records[0].majority["test"][task.metric])
    rows.append(plain_row(guess, *[""] * (len(percents) - 1), level, mark="grey"))
    visible = "the length" if task.context is None else f"the length and the column {task.context}"
    title = f"{task.name}: test {format_metric(task.metric)} in %, by percent of the tokens masked at random"
    note = f"{guess}: always {CONSTANTS[task.kind]}; of a wholly masked text, the model sees {visible}"
    return replace(_table_by_step(title, "fine-tuning", percents, rows, decimals=1), notes=(note,))


def _adaptation_table(record: AdaptRecord) -> Table:
    """Return both models' p-values and their agreement, by percent masked."""
    percents = list(next(iter(record.p_adapted.values())))
    rows: list[Row] = []
    for name, checks in (("original", record.p_original), ("adapted", record.p_adapted)):
        for test, steps in checks.items():
            rows.append(plain_row(f"{name} {test}", *map(steps.__getitem__, percents)))
    shares = scores_by_masking(record.test, record.metric)
    agreement = map(format_percent, map(shares.__getitem__, percents))
    rows.append(plain_row("agreement in %", *agreement, mark="grey"))
    title = f"are {record.checked_texts} randomly masked texts in distribution? p by percent masked"
    return _table_by_step(title, "model, test", percents, rows, decimals=2)


VIEWS: dict[str, Callable[[Any], list[Block]]] = {
    "Result": _result,
    "Explanation": view_explanation,
    "AdaptRecord": _adaptation,
    "Audit": _audit,
    "Beside": _beside,
}
"""Views by the name of the class, so that showing one kind of result does not import the others."""
