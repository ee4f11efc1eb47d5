"""`faithmeter explain`: scores of the words of texts, and whether the explanation of one text is faithful."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..config import MeasureConfig, UnitName
from ..errors import InputError, located
from ..files import require_writable, writing
from .lean import load_lean
from .options import Loading, Unit, option
from .progress import bars, phases
from .requirements import Gate, hold, parse_requirements, text_quantities
from .screen import marked, note, output, print_json, quiet, show
from .texts import PairColumn, Row, TextColumn, read_texts

if TYPE_CHECKING:
    from ..measuring.explanation import Explanation
    from ..methods.registry import Method
    from ..models.classifier import Classifier
    from ..models.evaluator import Evaluator


def _require_writable(parameter: typer.CallbackParam, path: Path | None) -> Path | None:
    """Return the path of an output file, after checking that it can be written.

    Raises:
        InputError: The path is a folder, its folder does not exist, or writing is not permitted.
    """
    if path is not None:  # asked before the work: hours of it end in this file
        option = f"--{parameter.name} {path}"
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"{option}: expected the name of a file, in a folder that exists")
        require_writable(path.parent, f"--{parameter.name} {path}:")
    return path


Checkpoint = Annotated[
    str,
    typer.Argument(
        help="a folder made by `faithmeter train`, another saved classifier, or a hub name",
    ),
]
Given = Annotated[str | None, typer.Argument(help="the text to explain; '-' reads it from standard input")]
Context = Annotated[str | None, typer.Argument(help="a second text, for a model that reads two")]


@dataclass(frozen=True)
class Words:
    """Options that name the texts to explain: one on the command line, a table, or a file of lines."""

    given: Given = None
    context: Context = None
    name: str | None = option(None, "class to explain; default: the predicted class", "--class")
    data: Path | None = option(None, "your own data, such as a csv file, all rows of which are explained")
    text: TextColumn = None
    label: str | None = option(
        None, "column with the class to explain; default: the predicted one", "--label"
    )
    pair: PairColumn = None
    file: Path | None = option(None, "file with one text per line, or .jsonl with `text`, `pair` and `label`")

    def read(self) -> list[Row]:
        """Return the texts; raise an InputError unless they are given in one way."""
        words = {"text": self.given, "pair": self.context, "label": self.name}
        columns = {"text": self.text, "pair": self.pair, "label": self.label}
        return read_texts(words, self.file, self.data, columns)


@dataclass(frozen=True)
class Files:
    """Options that name files to write."""

    html: Path | None = option(None, "write an HTML page to this file", callback=_require_writable)
    csv: Path | None = option(None, "write the scores of all words to this file", callback=_require_writable)


@dataclass(frozen=True)
class Explaining:
    """Options on how texts are explained."""

    method: list[str] = option(
        ["loo-sign"],
        "method, e.g. loo-sign or beam(width=20); may be repeated; auto, or auto(budget=200) evaluations "
        "per text, takes the most faithful one on the validation texts of the training",
        "--method",
        "-m",
    )
    verify: bool | None = option(
        None,
        "measure whether the explanation of a single text is faithful; default: yes, if it is short",
        "--verify/--no-verify",
        show_default=False,
    )
    seed: int = option(0, "seed of the random orders of --verify", min=0)
    unit: Unit = "token"


def explain(
    checkpoint: Checkpoint,
    words: Words,
    files: Files,
    loading: Loading,
    gate: Gate,
    explaining: Explaining,
) -> None:
    """Show how much each word contributes to the predicted class, and whether that explanation is faithful.

    Example: faithmeter explain runs/train-bAbI-1-half-0-… "Mary went to the garden." "Where is Mary?"
    """
    from ..methods.registry import parse
    from ..models.evaluator import Evaluator
    from ..models.loading import choose_label
    from ..runs.choices import read_budget

    rows, single, verify = words.read(), words.given is not None, explaining.verify
    if not single and (verify or gate.require):
        raise InputError("--verify and --require go with a single text; for all rows: faithmeter measure")
    budgets = [*map(read_budget, explaining.method)]
    if gate.require and any(budgets):
        raise InputError("--require names a method, which auto has yet to choose; name it with --method")
    # all names are parsed before the model is loaded: a wrong one is told at once
    methods = [None if budget else parse(one) for one, budget in zip(explaining.method, budgets, strict=True)]
    requirements = parse_requirements(gate.require, [*map(str, methods)])
    quiet()
    chosen, unit = choose_label(checkpoint, words.name), cast(UnitName, explaining.unit)
    # methods and identical texts share evaluations
    clf = Evaluator(load_lean(checkpoint, label=chosen, **loading.options))
    named = [
        method or _choose(clf, checkpoint, budget, unit)
        for method, budget in zip(methods, budgets, strict=True)
    ]
    explanations = _explain(clf, rows, named, unit)
    asked = single and verify is not False
    verified = asked and (verify or bool(gate.require) or _is_short(clf, rows[0], named, unit))
    if verified:
        config = MeasureConfig(seed=explaining.seed, unit=unit, label=chosen or "")
        explanations = [_verify(clf, checkpoint, explanations[0], rows[0], named, config)]
    _write(explanations, files)
    if gate.as_json:
        print_json([explanation.to_dict() for explanation in explanations])
    else:
        _show(rows, explanations, files)
    if verified:
        [one] = explanations
        hold(requirements, text_quantities(one), one.verdict, even_if_untrusted=gate.even_if_untrusted)


def _choose(clf: Evaluator, checkpoint: str, budget: int | None, unit: UnitName) -> Method:
    """Return the method that `auto` takes for a checkpoint, and print why."""
    from ..methods.registry import parse
    from ..runs.choices import BUDGET, choose_method

    with bars() as progress:
        bar = progress.add_task("choosing a method", total=None, note="")
        choice = choose_method(
            cast("Classifier", clf.clf),
            checkpoint,
            budget or BUDGET,
            unit=unit,
            progress=lambda name, *_: progress.update(bar, note=name),
        )
    note(choice.reason)
    return parse(choice.method)


def _explain(
    clf: Evaluator, rows: Sequence[Row], methods: Sequence[Method], unit: UnitName
) -> list[Explanation]:
    """Return the explanation of each row, after checking all of them: a wrong last row costs no work."""
    from ..measuring.one_text import explain_texts
    from ..models.classes import class_number

    for row in rows:
        with located(row.place):
            clf.encode([row.text], row.pairs)  # raises for a text without words, or without its pair
            if row.label is not None:
                class_number(clf.labels, row.label)
    explanations: list[Explanation] = []
    # texts are explained one by one, so that the bar moves; equal inputs are shared by the evaluator
    with bars() as progress:
        bar = progress.add_task("explaining", total=len(rows), note="")
        clf.progress = lambda _: progress.update(bar, note=f"{clf.evaluations:,} evaluations")
        for row in rows:
            with located(row.place):
                tokens = clf.encode([row.text], row.pairs)
                explanations += explain_texts(clf, tokens, methods, [row.label], unit)
            progress.advance(bar)
    clf.progress = None  # the bar is gone
    return explanations


def _is_short(clf: Evaluator, row: Row, methods: Sequence[Method], unit: UnitName) -> bool:
    """Return whether a text is verified without being asked to; if not, print what would do it."""
    from ..measuring.costs import MAX_EVALUATIONS, bound_text
    from ..measuring.one_text import ORDERS
    from ..models.masks import PERCENTS
    from ..models.tokens import in_units

    batch = in_units(clf.encode([row.text], row.pairs), unit)
    bound = bound_text(clf, batch, methods, orders=ORDERS, steps=len(PERCENTS))
    if bound > MAX_EVALUATIONS:
        note(f"not verified, as that takes up to {bound:,} evaluations of the model; to do it: --verify")
    return bound <= MAX_EVALUATIONS


def _verify(
    clf: Evaluator,
    checkpoint: str,
    explanation: Explanation,
    row: Row,
    methods: Sequence[Method],
    config: MeasureConfig,
) -> Explanation:
    """Return an explanation with its verdict, and with p-values if the model has a check."""
    from ..measuring.one_text import Trial, verify_text
    from ..runs.fitted_tests import load_tests

    config = config.replace(overlap=clf.overlap, precision=clf.precision)  # `auto` is decided by now
    with phases() as advance:
        try:
            tests = load_tests(cast("Classifier", clf.clf), checkpoint, config, progress=advance)
        except InputError as error:  # colors need no check
            note(f"no p-values: {error}")
            tests = None
        advance("verifying", 0, 1 + len(methods))
        trial = Trial(seed=config.seed, tests=tests or {}, unit=config.unit)
        tokens = clf.encode([row.text], row.pairs)

        def progress(_: str, done: int, total: int) -> None:
            advance("verifying", done, total)

        return verify_text(clf, tokens, explanation, methods, trial, progress)


def _write(explanations: Sequence[Explanation], files: Files) -> None:
    """Write the files that were asked for, and print their names."""
    if files.html is not None:
        from ..report.surfaces import write_page

        with writing(files.html.parent):
            write_page(explanations, files.html, title="Explanations")
        note(f"page: {files.html}")
    if files.csv is not None:
        import pandas as pd

        from ..files import write_csv

        rows = []
        for number, one in enumerate(explanations):
            rows.extend(one.rows(number))
        write_csv(pd.DataFrame(rows), files.csv)
        note(f"scores: {files.csv}")


def _show(rows: Sequence[Row], explanations: Sequence[Explanation], files: Files) -> None:
    """Print explanations; if files hold them, only the verdict on a single one."""
    from ..report.view_texts import view_colors, view_verdict

    for number, (row, explanation) in enumerate(zip(rows, explanations, strict=True)):
        if files == Files():
            if len(rows) > 1:
                output.print(marked("\n" * (number > 0) + row.place, "bold", ""))
            show(view_colors(explanation))
        if explanation.verified:
            output.print()
            show(view_verdict(explanation))
