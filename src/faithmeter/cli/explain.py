"""`faithmeter explain`: scores of the words of a text, by one or several methods."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..config import UnitName
from ..errors import InputError, unknown
from .options import Device, Overlap, PrecisionOption, Unit, as_precision
from .progress import bars
from .screen import Json, console, marked, output, print_json, quiet

if TYPE_CHECKING:
    from ..methods.registry import Method
    from ..models.classifier import Classifier
    from ..models.evaluator import Evaluator


def _writable(html: Path | None) -> Path | None:
    """Return the path of the output file, after checking that it can be written.

    Raises:
        InputError: The path is a folder, its folder does not exist, or writing is not permitted.
    """
    if html is not None:
        if html.is_dir() or not html.parent.is_dir():
            raise InputError(f"--html {html}: expected the name of a file, in a folder that exists")
        if not os.access(html if html.exists() else html.parent, os.W_OK):
            raise InputError(f"--html {html} cannot be written: no permission; choose another place")
    return html


Checkpoint = Annotated[
    str,
    typer.Argument(
        help="a folder made by `faithmeter train`, another saved classifier, or a hub name",
    ),
]
Methods = Annotated[
    list[str],
    typer.Option(
        "--method",
        "-m",
        help="method, e.g. loo-sign or beam(width=20); may be repeated; auto, or auto(budget=200) "
        "evaluations per text, takes the most faithful one on the validation texts of the training",
    ),
]


def explain(
    checkpoint: Checkpoint,
    text: Annotated[
        str | None, typer.Argument(help="the text to explain; '-' reads it from standard input")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="second text, for a model that reads two")] = None,
    method: Methods = ["loo-sign"],  # noqa: B006
    label: Annotated[str | None, typer.Option(help="class to explain; default: the predicted class")] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="file with one text per line, or .jsonl with `text`, `pair` and `label`"),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="write an HTML page to this file", callback=_writable)
    ] = None,
    unit: Unit = "token",
    overlap: Overlap = 0,
    device: Device = "auto",
    precision: PrecisionOption = "auto",
    as_json: Json = False,
) -> None:
    """Show how much each word contributes to the predicted class.

    Example: faithmeter explain runs/train-bAbI-1-half-0-… "Mary went to the garden." --pair "Where is Mary?"
    """
    from ..measuring.explanation import explain_texts, page
    from ..methods.registry import parse
    from ..models.classes import class_number
    from ..models.evaluator import Evaluator
    from ..models.loading import choose_label, load
    from ..runs.chosen_method import read_budget

    rows = _rows(file, text=text, pair=pair, label=label)
    budgets = [read_budget(name) for name in method]
    named = [None if budget else parse(name) for name, budget in zip(method, budgets, strict=True)]
    number_type = as_precision(precision)
    quiet()
    # methods and identical texts share evaluations
    clf = Evaluator(
        load(
            checkpoint,
            device=device,
            precision=number_type,
            label=choose_label(checkpoint, label),
            overlap=overlap,
        )
    )
    methods = [
        known or _choose(clf, checkpoint, budget, unit) for known, budget in zip(named, budgets, strict=True)
    ]
    for row in rows:  # check all rows before explaining the first
        with _name_place(row.place):
            clf.encode([row.text], row.pairs)
            if row.label is not None:
                class_number(clf.labels, row.label)
    explanations = []
    with bars() as progress:
        bar = progress.add_task("explaining", total=len(rows), note="")
        clf.progress = lambda _: progress.update(bar, note=f"{clf.evaluations:,} evaluations")
        for row in rows:
            with _name_place(row.place):
                explanations += explain_texts(
                    clf,
                    [row.text],
                    pairs=row.pairs,
                    methods=methods,
                    labels=[row.label],
                    unit=cast(UnitName, unit),
                )
            progress.advance(bar)
    if html is not None:
        try:
            html.write_text(page(explanations), encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"--html {html} cannot be written: {error.strerror}; choose another place"
            ) from error
        console.print(f"page: {html}", soft_wrap=True)
    if as_json:
        print_json([explanation.to_dict() for explanation in explanations])
    elif html is None:
        for number, (row, explanation) in enumerate(zip(rows, explanations, strict=True)):
            if len(rows) > 1:
                output.print(marked("\n" * (number > 0) + row.place, "bold", ""))
            output.print(explanation)


def _choose(clf: Evaluator, checkpoint: str, budget: int | None, unit: str) -> Method:
    """Return the method that `auto` takes for a checkpoint, and print why."""
    from ..methods.registry import parse
    from ..runs.chosen_method import BUDGET, choose_method

    with bars() as progress:
        bar = progress.add_task("choosing a method", total=None, note="")
        choice = choose_method(
            cast("Classifier", clf.clf),
            checkpoint,
            budget or BUDGET,
            unit=cast(UnitName, unit),
            progress=lambda name, *_: progress.update(bar, note=name),
        )
    console.print(choice.reason, soft_wrap=True)
    return parse(choice.method)


@dataclass(frozen=True)
class Row:
    """Text to explain, with its context and class; `place` names its file and line, if it has any."""

    text: str
    pair: str | None
    label: str | int | None
    place: str = ""

    @property
    def pairs(self) -> list[str] | None:
        return None if self.pair is None else [self.pair]


ROW_TYPES = {"text": str, "pair": str | None, "label": str | int | None}


def _rows(file: Path | None, **given: str | None) -> list[Row]:
    """Return the texts to explain, from the file, the command line or standard input.

    Raises:
        InputError: Both or neither of a text and a file are given, or a row is not valid.
    """
    if (given["text"] is None) == (file is None):
        raise InputError(
            'expected either a text or --file with texts: faithmeter explain CHECKPOINT "a text"'
        )
    if file is not None:
        return list(_read(file, given))
    if os.path.isfile(f"{given['text']}/config.json"):  # unlike Path, also for texts that are no paths
        raise InputError(
            f"{given['text']} is a checkpoint; expected a text: if a pattern stands for several "
            "folders, name one of them"
        )
    if given["text"] == "-":
        given["text"] = typer.get_text_stream("stdin").read().strip()
    return [_row(given)]


def _read(file: Path, given: dict[str, str | None]) -> Iterator[Row]:
    """Yield the rows of a file; values given on the command line fill in missing keys."""
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    if not any(map(str.strip, lines)):
        raise InputError(f"{file} holds no text; expected one per line")
    for number, line in enumerate(lines, start=1):
        place = f"{file}, line {number}"
        if line.strip():
            with _name_place(place):
                own = _object(line) if file.suffix == ".jsonl" else {"text": line}
                yield _row(given | own, place)


def _object(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InputError(f"got {line.strip()}; expected an object with `text`")
    return row


def _row(given: dict[str, Any], place: str = "") -> Row:
    for key, value in given.items():
        if key not in ROW_TYPES:
            raise unknown("key", key, ROW_TYPES)
        if not isinstance(value, ROW_TYPES[key]):
            raise InputError(f"`{key}` is {value!r}; expected a string")
    if not given["text"].strip():
        raise InputError("the text is empty; expected at least one word")
    return Row(**given, place=place)


@contextmanager
def _name_place(place: str) -> Iterator[None]:
    """Prefix the message of any InputError raised in the block with `place`, unless it is empty."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}" if place else str(error)) from error
